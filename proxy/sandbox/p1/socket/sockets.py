"""The sockets of P1 as a whole: the upgrades that came, those that are open, and whether another is too many."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from proxy.sandbox.recorder import KEPT_REQUESTS, Socket
from proxy.sandbox.wires.refusal import Refused
from proxy.sandbox.wires.responses.failures import error_object

#: The window in which upgrades are counted.
BURST_S = 1.0

#: Times of upgrades kept: a limit above this one is none.
MAX_TIMES = 10_000


class Limits(NamedTuple):
    """None: no limit."""

    per_second: int | None = None
    most_open: int | None = None


class Sockets:
    """`seen` are the last upgrades, refused ones among them, oldest first; `total` all of them ever."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.seen: deque[Socket] = deque(maxlen=KEPT_REQUESTS)
        self.total = 0
        self.open = 0
        self.most_open = 0  # at the same time, ever
        self._numbers = itertools.count(1)
        self._times: deque[float] = deque(maxlen=MAX_TIMES)

    def register(self, headers: Mapping[str, str]) -> Socket:
        """Counts an upgrade; sockets are numbered from 1."""
        socket = Socket(next(self._numbers), headers)
        self.total += 1
        self.seen.append(socket)
        self._times.append(self.clock())
        return socket

    def over(self, limits: Limits) -> bool:
        """Whether the upgrade that came last is one too many. Refused ones count in the second as well."""
        since = self.clock() - BURST_S
        while self._times and self._times[0] <= since:
            self._times.popleft()
        burst = limits.per_second is not None and len(self._times) > limits.per_second
        return burst or (limits.most_open is not None and self.open >= limits.most_open)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Counts a socket as open."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield
        finally:
            self.open -= 1


def too_old() -> Refused:
    error = error_object("websocket_connection_limit_reached", type="invalid_request_error")
    return Refused(400, {"error": error})
