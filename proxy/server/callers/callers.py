"""The callers of one application: what each has used, and whether it may use more.

What was used on a day is kept in the file of the history, so it survives a restart, and all processes on that file
count together: each is told of the others within a second after its own requests. Replicas on other machines count for
themselves.
"""

from __future__ import annotations

import math
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from proxy.errors import BusyError, ProxyError
from proxy.observe.history.caller_use import CallerUse, read_use
from proxy.observe.history.problems import NewerHistory
from proxy.observe.history.schema import reading
from proxy.server.callers.keys import MAX_KEYS, CallerKey, KeyFile, digest_of

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import RequestRow

MINUTE_S = 60.0
DAY_S = 86_400


@dataclass(slots=True)
class Used:
    """The use of one caller since midnight UTC."""

    requests: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Day:
    """number  days since the epoch, UTC"""

    number: int = 0
    used: dict[str, Used] = field(default_factory=dict)


class Meter:
    """Counts what the callers of one application use.

    clock  epoch seconds
    keep   keeps what a caller used more; by default only this object knows it
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._begun: dict[str, deque[float]] = {}
        self._day = Day()
        self.keep: Callable[[CallerUse], None] = lambda _use: None

    def enter(self, key: CallerKey) -> None:
        """Counts one more request of a caller. Raises BusyError (429, with a `Retry-After`)."""
        now, limits = self._clock(), key.limits
        used = self._used(key.name, now)
        if limits.tokens_per_day is not None and used.tokens >= limits.tokens_per_day:
            what = f"the {limits.tokens_per_day} tokens a day of the key {key.name} are used up until 0:00 UTC"
            raise BusyError(what, retry_after=DAY_S - math.floor(now) % DAY_S)
        if limits.per_minute is not None:
            self._begin(key.name, limits.per_minute, now)
        used.requests += 1
        self._keep(key.name, 1, 0)

    def _begin(self, name: str, most: int, now: float) -> None:
        begun = self._begun.setdefault(name, deque())
        while begun and not 0 <= now - begun[0] < MINUTE_S:
            begun.popleft()
        if len(begun) >= most:
            wait = max(1, math.ceil(begun[-most] + MINUTE_S - now))
            raise BusyError(f"busy: the key {name} may begin {most} requests a minute; wait", retry_after=wait)
        begun.append(now)

    def spent(self, name: str, tokens: int) -> None:
        """Counts the cost of a finished request of a caller."""
        if tokens:
            self._used(name, self._clock()).tokens += tokens
            self._keep(name, 0, tokens)

    def _used(self, name: str, now: float) -> Used:
        today = math.floor(now) // DAY_S
        if today != self._day.number:
            self._day = Day(today)
            self._begun = {one: begun for one, begun in self._begun.items() if begun and now - begun[-1] < MINUTE_S}
        if name not in self._day.used and len(self._day.used) >= 2 * MAX_KEYS:  # names are added and revoked
            del self._day.used[next(iter(self._day.used))]
        return self._day.used.setdefault(name, Used())

    def told(self, used: Mapping[str, CallerUse]) -> None:
        """Takes over what all processes used, as far as it is written."""
        now = self._clock()
        for name, use in used.items():
            if use.day == math.floor(now) // DAY_S:
                ours = self._used(name, now)
                ours.requests, ours.tokens = max(ours.requests, use.requests), max(ours.tokens, use.tokens)

    def _keep(self, name: str, requests: int, tokens: int) -> None:
        self.keep(CallerUse(self._day.number, name, requests, tokens))


def used_today(path: Path, now: float) -> Mapping[str, CallerUse] | None:
    """name -> what was used since midnight UTC, as last written by a running proxy; None if the file cannot be read.
    Blocks."""
    try:
        with reading(path) as db:
            return read_use(db, math.floor(now) // DAY_S)
    except FileNotFoundError:
        return {}
    except (sqlite3.Error, OSError, NewerHistory):
        return None


#: The key that a request came with; missing for the one of the settings, and if none is needed.
CALLER: web.RequestKey[CallerKey] = web.RequestKey("caller", CallerKey)

_SESSIONS = uuid.UUID("9f0ad9c9-6a5c-4d0e-8f5e-0c6f1d9a2b47")


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers' keys and their use.

    file  None if callers have no keys of their own
    """

    file: KeyFile | None = None
    meter: Meter = field(default_factory=Meter)

    @property
    def guard(self) -> bool:
        """Whether callers need a key, apart from the one of the settings."""
        return self.file is not None and self.file.guards

    def find(self, keys: Iterable[bytes]) -> CallerKey | None:
        """The caller's key among those that a request sends, None if there is none. Raises ProxyError if the file is
        damaged."""
        if self.file is None:
            return None
        known = self.file.keys
        found = (known.get(digest_of(key)) for key in keys if key)
        caller = next((key for key in found if key is not None), None)
        if caller is None and self.file.problem:
            message = f"no key can be checked, since the file of the keys cannot be used: {self.file.problem}"
            raise ProxyError(f"{message}; tell the operator of this proxy", kind="sign_in")
        return caller

    def finished(self, row: RequestRow) -> None:
        """Counts a finished request."""
        if not row.caller:
            return
        # for a client that leaves before the service reports its cost, our own count is used
        own = row.estimate if row.status == "abandoned" and row.attempts else None
        beside = row.judge_input_tokens + row.judge_output_tokens + row.vision_input_tokens + row.vision_output_tokens
        self.meter.spent(row.caller, (row.input_tokens or own or 0) + (row.output_tokens or 0) + beside)

    def still(self, caller: CallerKey | None) -> bool:
        """Whether an accepted key is still valid."""
        return caller is None or self.file is None or caller.digest in self.file.keys


def own_session(caller: CallerKey | None, session: str) -> str:
    """The session of a caller for this proxy and the services: two callers that name the same one share nothing.

    >>> own_session(None, "s")
    's'
    """
    return session if caller is None else str(uuid.uuid5(_SESSIONS, f"{caller.digest}\n{session}"))
