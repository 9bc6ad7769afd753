"""The captures of the program: calls on the event loop become messages to a writer.

A message is a tuple of its name and the number of its capture, then:

    begin     folder, the request as a dict, when
    attempt   number, transport, method, url, headers, body, details, when
    answered  number, status, headers, details, when       refused, data, failed  number, value
    events    number, marshalled list                      sent                   number, marshalled list
    streamed  bytes                                        replied                bytes
    ended     outcome, status, error, messages lost, when

Headers are pairs, times seconds of a clock that only grows. Bytes and dicts are references.
"""

from __future__ import annotations

import itertools
import marshal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from proxy.core.hiding.secret import blanked, blanked_bytes
from proxy.observe.capture.contract import (
    NULL_ATTEMPT,
    NULL_CAPTURE,
    AttemptCapture,
    Body,
    CapturedRequest,
    RequestCapture,
)
from proxy.observe.capture.layout import capture_path
from proxy.observe.capture.writing.channel import Channel
from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.lifecycle import Log

#: Takes a message and its size in bytes; False when there is no room for it.
Send = Callable[[tuple[Any, ...], int], bool]

#: Size of a message besides its bytes.
MESSAGE_BYTES = 512

#: The converted form of a larger body is left out: a dict of that size takes too long to hand over, and it says the
#: same as the body.
MAX_CONVERTED_BYTES = 4 * 1024 * 1024

_FIELDS = tuple(field.name for field in fields(CapturedRequest))
#: Deeper values cannot be marshalled.
_UNTOLD = marshal.dumps([{"type": "unprintable"}])


class QueuedCaptures:
    """Begins captures below `<root>/traffic`; their messages go to `send`.

    >>> captures = QueuedCaptures(root, lambda message, _size: writer.take(message) or True)   # doctest: +SKIP
    """

    on = True

    def __init__(self, root: Path, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._send = send
        self._clock = clock
        self._numbers = itertools.count(1)

    def begin(self, request: CapturedRequest) -> QueuedCapture | None:
        """The capture; None when its message found no room."""
        # two models of one provider may be asked for one request, and no folder is written to twice
        name = f"{request.request_id}-{request.earlier + 1}" if request.earlier else request.request_id
        path = capture_path(self._root, request.session, request.number, request.provider, name)
        number = next(self._numbers)
        size = len(request.body)
        facts = {name: getattr(request, name) for name in _FIELDS}
        facts["headers"] = _pairs(request.headers)
        if request.converted is not None:
            facts["converted"] = _converted(request.converted, size)
            size *= 2
        if not self._send(("begin", number, str(path), facts, self._clock()), size + MESSAGE_BYTES):
            return None
        return QueuedCapture(number, str(path), size, self._send, self._clock)


def _pairs(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers as plain texts: names of foreign mappings may be of a subclass, which cannot be marshalled."""
    return [(str(name), str(value)) for name, value in headers.items()]


def _blanked_pairs(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of an upstream, without secrets: the writer knows those of this request only."""
    return [(name, blanked(value)) for name, value in _pairs(headers)]


def _converted(body: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    return body if size <= MAX_CONVERTED_BYTES else {"left_out": f"the request has {size} bytes"}


class QueuedCapture:
    """One request. After a message that found no room, later ones are only counted: a stream with holes would be
    misread."""

    def __init__(self, number: int, place: str, size: int, send: Send, clock: Callable[[], float]) -> None:
        self.place = place
        self._number = number
        self._size = size
        self._send = send
        self._clock = clock
        self._attempts = 0
        self._lost = 0
        self._over = False

    def attempt(
        self, *, transport: str, method: str, url: str, headers: Mapping[str, str], body: Body, **details: Any
    ) -> AttemptCapture:
        self._attempts += 1
        number = self._attempts
        size = len(body) if isinstance(body, bytes) else self._size
        attempt = (number, transport, method, url, _pairs(headers), body, details, self._clock())
        if not self.send(("attempt", self._number, *attempt), size):
            return NULL_ATTEMPT
        return QueuedAttempt(self.send, self._number, number, self._clock)

    def streamed(self, data: bytes) -> None:
        self.send(("streamed", self._number, data), len(data))

    def replied(self, body: bytes) -> None:
        self.send(("replied", self._number, body), len(body))

    def ended(self, outcome: str, status: int | None, error: str | None = None) -> None:
        if not self._over:
            self._over = True
            # never refused for its size: there is only one for each capture
            self._send(("ended", self._number, outcome, status, error, self._lost, self._clock()), 0)

    def send(self, message: tuple[Any, ...], size: int) -> bool:
        """Whether the message found room."""
        if self._over:
            return False
        if self._lost or not self._send(message, size + MESSAGE_BYTES):
            self._lost += 1
            return False
        return True


class QueuedAttempt:
    """One attempt of a request."""

    __slots__ = ("_clock", "_number", "_send", "_to")

    def __init__(self, send: Send, to: int, number: int, clock: Callable[[], float]) -> None:
        self._send = send
        self._to = to
        self._number = number
        self._clock = clock

    def answered(self, status: int, headers: Mapping[str, str], **details: Any) -> None:
        self._send(("answered", self._to, self._number, status, _blanked_pairs(headers), details, self._clock()), 0)

    def refused(self, body: bytes) -> None:
        self._send(("refused", self._to, self._number, blanked_bytes(body)), len(body))

    def data(self, chunk: bytes) -> None:
        self._send(("data", self._to, self._number, chunk), len(chunk))

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._marshalled("events", [*events])

    def sent(self, message: Mapping[str, Any]) -> None:
        self._marshalled("sent", [message])

    def failed(self, error: str) -> None:
        self._send(("failed", self._to, self._number, error), len(error))

    def _marshalled(self, what: str, values: Any) -> None:
        """Marshals at once: it takes a microsecond, less than measuring the values, and has to be done anyway."""
        try:
            data = marshal.dumps(values, 2)
        except ValueError:
            data = _UNTOLD
        self._send((what, self._to, self._number, data), len(data))


class FolderCaptures:
    """Captures in `<state_root>/traffic`. See `proxy.observe.capture.contract.Captures`.

    Nothing is started before the first request. Each kind of failure is logged once, a full queue too.
    """

    def __init__(self, state_root: Path, limits: CaptureLimits, log: Log) -> None:
        self._log = log
        self._channel = Channel(state_root, limits, self._report)
        self._captures = QueuedCaptures(state_root, self._channel.send)

    @property
    def on(self) -> bool:
        return self._channel.on

    def begin(self, request: CapturedRequest) -> RequestCapture:
        return (self._captures.begin(request) if self._channel.on else None) or NULL_CAPTURE

    def close(self, timeout: float) -> bool:
        """Writes what is queued, for at most `timeout` seconds; False when something was lost. Blocks."""
        whole = self._channel.close(timeout)
        if not whole:
            self._report("warn", "captures_cut", {"reason": f"they were not written within {timeout:g} s"})
        return whole

    def _report(self, level: str, msg: str, fields: dict[str, Any]) -> None:
        self._log.write(level, "captures", msg, **fields)
