"""Turns messages into artifacts.

Blocking, and without a thread or a process of its own: `take` gets one message after another, in their order. A capture
that cannot be written ends there; its summary, or `report`, says what is missing.
"""

from __future__ import annotations

import marshal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proxy.core.hiding.texts import cut_text, redacted_error
from proxy.core.hiding.walk import redacted, redacted_headers, secrets_of
from proxy.observe.capture.layout import (
    ATTEMPT,
    CONVERTED,
    DOWNSTREAM_EVENT,
    METADATA,
    RECEIVED,
    REPLY,
    RESOLUTION,
    SENT_EVENT,
    SUMMARY,
    UPSTREAM_BODY,
    UPSTREAM_ERROR,
    UPSTREAM_EVENT,
    UPSTREAM_HEADERS,
    UPSTREAM_KEPT,
    UPSTREAM_METADATA,
    UPSTREAM_REQUEST,
)
from proxy.observe.capture.writing.files import CaptureFiles, CaptureLimits, TrafficFolder
from proxy.observe.capture.writing.streams import MAX_RAW_BYTES, CapturedStream, printed, printed_body

#: (name, number of the capture, …): see `queued.py`
Message = Sequence[Any]
#: Logs: level, message, fields.
Report = Callable[[str, str, dict[str, Any]], None]

#: Bytes of an error text in a summary.
MAX_ERROR_BYTES = 1000


class CaptureWriter:
    """All captures below `<root>/traffic`.

    report  gets `captures_full` when there is no room left, `capture_not_written` for the first that failed
    """

    def __init__(
        self,
        root: Path,
        limits: CaptureLimits,
        report: Report,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._traffic = TrafficFolder(root, limits, clock, self._full)
        self._report = report
        self._wall = wall
        self._open: dict[int, _OpenCapture] = {}
        self._failed = False

    def take(self, message: Message) -> None:
        """Handles one message. Raises nothing."""
        what, number, *rest = message
        try:
            if what == "begin":
                self._begin(number, *rest)
            elif number in self._open:
                _TAKES[what](self._open[number], *rest)
        except Exception as error:  # a full disk, a folder that was cleared, a value that cannot be written
            self._give_up(number, error)
        if what == "ended":
            self._open.pop(number, None)

    def _begin(self, number: int, path: str, request: dict[str, Any], at: float) -> None:
        self._traffic.remove_old(self._wall())
        files = CaptureFiles(self._traffic, Path(path))
        if files.make():
            capture = self._open[number] = _OpenCapture(files, request["provider"], at)
            capture.begin(request)

    def _give_up(self, number: int, error: Exception) -> None:
        capture = self._open.pop(number, None)
        if capture is not None:
            capture.drop()
        if not self._failed:
            self._failed = True
            self._report("warn", "capture_not_written", {"error": type(error).__name__, "detail": str(error)})

    def _full(self, size: int, files: int) -> None:
        self._report("warn", "captures_full", {"bytes": size, "files": files, "folder": str(self._traffic.path)})


class _OpenCapture:
    """One capture between its begin and its end."""

    def __init__(self, files: CaptureFiles, provider: str, at: float) -> None:
        self._files = files
        self._provider = provider
        self._begun_s = at
        self._attempts = 0
        self._attempt: _OpenAttempt | None = None
        self._downstream: CapturedStream | None = None

    def begin(self, request: dict[str, Any]) -> None:
        self._files.hide(secrets_of(request["headers"]))
        query, path = redacted_error(request["query"]), redacted_error(request["path"])
        self._write(
            METADATA,
            {
                "reqId": request["request_id"],
                "sessionId": request["session"],
                "sessionSeq": request["number"],
                "kind": request["kind"],
                "provider": request["provider"],
                "model": request["model"],
                "requestedModel": request["requested"],
                "effort": request["effort"],
                "method": request["method"],
                "path": path,
                "query": query,
                "headers": redacted_headers(request["headers"]),
            },
        )
        self._files.write(RECEIVED[request["kind"]], *printed_body(request["body"]))
        if request["converted"] is not None:
            self._write(CONVERTED, redacted(request["converted"]))
        self._write(RESOLUTION, {"requestedModel": request["requested"], "resolvedModel": request["model"]})

    def attempt(
        self, number: int, transport: str, method: str, url: str, headers: Any, body: Any, details: Any, at: float
    ) -> None:
        self._close_attempt()
        self._files.hide(secrets_of(headers))
        self._attempts += 1
        facts = {"attempt": number, "transport": transport, **redacted(details)}
        self._attempt = _OpenAttempt(self._files, number, facts, at)
        size = len(body) if isinstance(body, bytes) else None
        if body:
            written = printed_body(body) if isinstance(body, bytes) else (printed(redacted(body)), "json")
            self._files.write(UPSTREAM_REQUEST, *written)
        self._write(
            UPSTREAM_METADATA,
            {
                "method": method,
                "provider": self._provider,
                "transport": transport,
                "url": redacted_error(url),
                "headers": redacted_headers(headers),
                "size": size,
            },
        )

    def to_attempt(self, what: str, number: int, *rest: Any) -> None:
        if self._attempt is not None and self._attempt.number == number:
            _ATTEMPT_TAKES[what](self._attempt, *rest)

    def streamed(self, data: bytes) -> None:
        if self._downstream is None:
            self._downstream = CapturedStream(self._files, DOWNSTREAM_EVENT, raw=False)
        self._downstream.text(data)

    def replied(self, body: bytes) -> None:
        self._files.write(REPLY, *printed_body(body))

    def ended(self, outcome: str, status: int | None, error: str | None, lost: int, at: float) -> None:
        self._close_attempt()
        if self._downstream is not None:
            self._downstream.close()
        summary = {
            "outcome": outcome,
            "status": status,
            "error": None if error is None else _error_text(error),
            "elapsed_ms": _ms(at - self._begun_s),
            "attempts": self._attempts,
            "downstream": None if self._downstream is None else self._downstream.counts.as_json(),
            "artifacts_left_out": self._files.left_out,
            "messages_lost": lost,
        }
        self._files.write(SUMMARY, printed(summary), reserved=True)

    def drop(self) -> None:
        """Closes what is open, and writes no summary."""
        self._files.release()
        if self._attempt is not None:
            self._attempt.drop()

    def _close_attempt(self) -> None:
        if self._attempt is not None:
            self._attempt.close()
            self._attempt = None

    def _write(self, station: str, value: Any) -> None:
        self._files.write(station, printed(value))


class _OpenAttempt:
    """One attempt until the next one, or the end."""

    def __init__(self, files: CaptureFiles, number: int, facts: dict[str, Any], at: float) -> None:
        self.number = number
        self._files = files
        self._facts = facts
        self._begun_s = at
        self._answered = False
        self._error: str | None = None
        self._stream = CapturedStream(files, UPSTREAM_EVENT, raw=True)
        self._sent = CapturedStream(files, SENT_EVENT, raw=False)
        self._body: _WholeBody | None = None

    def answered(self, status: int, headers: Any, details: Any, at: float) -> None:
        self._facts |= {"status": status, "elapsed_ms": _ms(at - self._begun_s), **redacted(details)}
        self._write_attempt()
        self._files.write(UPSTREAM_HEADERS, printed({"status": status, "headers": redacted_headers(headers)}))
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        if "json" in kind.lower() and "stream" not in kind.lower():
            self._body = _WholeBody()

    def refused(self, body: bytes) -> None:
        if body:
            self._files.write(UPSTREAM_ERROR, *printed_body(body[:MAX_RAW_BYTES]))

    def data(self, chunk: bytes) -> None:
        if self._body is None:
            self._stream.text(chunk)
        else:
            self._body.add(chunk)

    def events(self, events: bytes) -> None:
        _add(self._stream, events)

    def sent(self, messages: bytes) -> None:
        _add(self._sent, messages)

    def failed(self, error: str) -> None:
        self._error = _error_text(error)

    def close(self) -> None:
        if not self._answered:
            self._write_attempt()
        self._stream.close()
        kept = self._stream.counts.as_json()
        if self._body is not None:
            kept |= self._body.write(self._files)
        sent = self._sent.counts
        if sent.captured_events or sent.truncated:
            kept["sent"] = sent.as_json()
        self._files.write(UPSTREAM_KEPT, printed({"attempt": self.number, "error": self._error, **kept}))

    def drop(self) -> None:
        self._stream.close()

    def _write_attempt(self) -> None:
        self._answered = True
        self._files.write(ATTEMPT, printed({"status": None, "elapsed_ms": None, **self._facts}))


class _WholeBody:
    """An answer that is one JSON text."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = self._left_out = 0

    def add(self, chunk: bytes) -> None:
        if self._left_out or self._size + len(chunk) > MAX_RAW_BYTES:
            self._left_out += len(chunk)
            return
        self._parts.append(chunk)
        self._size += len(chunk)

    def write(self, files: CaptureFiles) -> dict[str, Any]:
        """Writes the body; returns the counts."""
        if self._parts:
            files.write(UPSTREAM_BODY, *printed_body(b"".join(self._parts)))
        return {"captured_bytes": self._size, "truncated": bool(self._left_out), "truncated_bytes": self._left_out}


def _add(stream: CapturedStream, events: bytes) -> None:
    for event in marshal.loads(events):  # noqa: S302  made by our own process
        stream.event(event, len(marshal.dumps(event, 2)))


def _error_text(error: str) -> str:
    return cut_text(redacted_error(error), MAX_ERROR_BYTES)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _for_attempt(what: str) -> Callable[..., None]:
    return lambda capture, number, *rest: capture.to_attempt(what, number, *rest)


_ATTEMPT_TAKES: dict[str, Callable[..., None]] = {
    "answered": _OpenAttempt.answered,
    "refused": _OpenAttempt.refused,
    "data": _OpenAttempt.data,
    "events": _OpenAttempt.events,
    "sent": _OpenAttempt.sent,
    "failed": _OpenAttempt.failed,
}
_TAKES: dict[str, Callable[..., None]] = {
    "attempt": _OpenCapture.attempt,
    "streamed": _OpenCapture.streamed,
    "replied": _OpenCapture.replied,
    "ended": _OpenCapture.ended,
    **{what: _for_attempt(what) for what in _ATTEMPT_TAKES},
}
