"""Keeps the raw text and the events of a stream within bounds, and counts the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from proxy.core.hiding.texts import redacted_error, redacted_text
from proxy.core.hiding.walk import redacted
from proxy.core.sse import FrameTooLarge, SSEDecoder, dump_json, dump_printable
from proxy.observe.capture.layout import UPSTREAM_BODY
from proxy.observe.capture.writing.files import CaptureFiles, GrowingFile

_MIB = 1024 * 1024

#: Bytes of an answer's raw text, as written.
MAX_RAW_BYTES = 8 * _MIB
#: Events in one direction.
MAX_EVENTS = 1024
MAX_EVENT_BYTES = 8 * _MIB
#: A larger frame is neither in the raw text nor among the events.
MAX_KEPT_FRAME_BYTES = 64 * 1024
#: Values of a body that is parsed: more of them make an unreadable file, and gigabytes of objects.
MAX_COMMAS = 2_000_000
#: Digits of a whole number; Python neither reads nor writes thousands of them.
_MAX_DIGITS = 1000


@dataclass(slots=True)
class KeptCounts:
    """Counts of what was kept and left out. Bytes and frames are those of the raw text."""

    captured_bytes: int = 0
    captured_frames: int = 0
    captured_events: int = 0
    truncated: bool = False
    truncated_frames: int = 0
    truncated_events: int = 0
    oversized_frames: int = 0
    malformed: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class CapturedStream:
    """One direction of one exchange.

    station  of its events
    raw      whether its text is kept as well
    """

    def __init__(self, files: CaptureFiles, station: str, *, raw: bool) -> None:
        self.counts = KeptCounts()
        self._files = files
        self._station = station
        self._raw = raw
        self._file: GrowingFile | None = None
        self._event_bytes = 0
        self._decoder: SSEDecoder | None = SSEDecoder()

    def text(self, chunk: bytes) -> None:
        """Adds a piece of server-sent events."""
        if self._decoder is None:
            return
        try:
            frames = self._decoder.feed(chunk)
        except FrameTooLarge:  # where the next one begins is not known
            self._decoder = None
            self._oversized(len(chunk))
            return
        for name, data in frames:
            self._frame(name, data)

    def event(self, event: Mapping[str, Any], size: int) -> None:
        """Adds an event that came in a frame of its own, of about this size in bytes."""
        if size > MAX_KEPT_FRAME_BYTES:
            self._oversized(size)
            return
        shown = redacted(event)
        self._keep_text(str(event["type"]) if isinstance(event.get("type"), str) else "", dump_json(shown))
        self._keep_event(shown, size)

    def close(self) -> None:
        """Ends the stream."""
        if self._decoder is not None:
            for name, data in self._decoder.end():
                self._frame(name, data)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _frame(self, name: bytes, data: bytes) -> None:
        size = len(name) + len(data)
        if size > MAX_KEPT_FRAME_BYTES:
            self._oversized(size)
            return
        text, kind = data.decode("utf-8", "replace"), redacted_text(name.decode("utf-8", "replace"))
        try:
            shown = redacted(_read(text))
        except (ValueError, RecursionError):
            self.counts.malformed += text.strip() != "[DONE]"
            self._keep_text(kind, redacted_text(text))
            return
        self._keep_text(kind, dump_json(shown))
        if kind and isinstance(shown, dict) and shown.get("type") != kind:
            shown = {"_sse_event": kind, **shown}
        self._keep_event(shown, size)

    def _keep_event(self, event: Any, size: int) -> None:
        counts = self.counts
        if (
            counts.truncated_events
            or counts.captured_events >= MAX_EVENTS
            or self._event_bytes + size > MAX_EVENT_BYTES
        ):
            counts.truncated = True
            counts.truncated_events += 1
            return
        counts.captured_events += 1
        self._event_bytes += size
        self._files.write_event(self._station, printed(event))

    def _keep_text(self, kind: str, text: str) -> None:
        if self._raw:
            lines = "\n".join(f"data: {line}" for line in text.split("\n"))
            self._keep_raw(f"event: {kind}\n{lines}\n\n" if kind else f"{lines}\n\n")

    def _keep_raw(self, frame: str) -> None:
        data = frame.encode("utf-8", "backslashreplace")
        counts = self.counts
        if counts.truncated_frames or counts.captured_bytes + len(data) > MAX_RAW_BYTES or not self._write(data):
            counts.truncated = True
            counts.truncated_frames += 1
            return
        counts.captured_bytes += len(data)
        counts.captured_frames += 1

    def _write(self, data: bytes) -> bool:
        if self._file is None:
            self._file = self._files.grow(UPSTREAM_BODY, "sse")
        return self._file is not None and self._file.add(data)

    def _oversized(self, size: int) -> None:
        self.counts.truncated = True
        self.counts.oversized_frames += 1
        if self._raw and not self.counts.truncated_frames:
            self._write(b": a frame of %d bytes is left out\n\n" % size)


def printed(value: Any) -> bytes:
    """The value as JSON for a file."""
    return dump_printable(value, indent=2).encode()


def _read(text: str) -> Any:
    """Parses JSON; NaN and infinities become texts. Raises ValueError and RecursionError."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else f"[number of {len(digits)} digits]"


def printed_body(body: bytes) -> tuple[bytes, str]:
    """A whole body, redacted, and its extension: `json`, else `txt`; `bin` where it is no text and only its size is
    written."""
    if body.count(b",") > MAX_COMMAS:
        return f"[left out: {len(body)} bytes of too many values]".encode(), "txt"
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return f"[bytes len={len(body)}]".encode(), "bin"
    try:
        return printed(redacted(_read(text))), "json"
    except (ValueError, RecursionError):
        return redacted_error(text).encode("utf-8", "backslashreplace"), "txt"
