"""The answers of an upstream as they came: captures in memory, and their lines for a reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.core.hiding.texts import redacted_error
from proxy.core.hiding.walk import redacted, redacted_headers
from proxy.core.sse import SSEDecoder
from proxy.observe.capture.contract import (
    AttemptCapture,
    Body,
    CapturedRequest,
    NullAttempt,
    NullCapture,
    RequestCapture,
)

#: Bytes of one answer; tiny answers have a few kilobytes.
MAX_BYTES, MAX_EVENTS = 512 * 1024, 4_096
#: Characters of an event, and of all headers.
MAX_SHOWN, MAX_SHOWN_HEADERS = 700, 3_000
#: Last events that are shown besides the first of each kind.
LAST = 3
#: Kinds of events that are counted, and characters of a kind's name.
MAX_KINDS, MAX_KIND = 20, 80
#: Attempts of one request: the runner of attempts repeats a few times.
MAX_ATTEMPTS = 16


@dataclass(slots=True)
class SeenAttempt(NullAttempt):
    """One attempt, in memory. See `AttemptCapture`."""

    transport: str
    method: str
    url: str
    headers: Mapping[str, str]
    body: Body
    status: int | None = None
    answer: Mapping[str, str] = field(default_factory=dict)
    raw: bytearray = field(default_factory=bytearray)
    said: list[Mapping[str, Any]] = field(default_factory=list)
    error: bytes = b""
    failure: str = ""

    def answered(self, status: int, headers: Mapping[str, str], **details: Any) -> None:
        self.status, self.answer = status, headers

    def refused(self, body: bytes) -> None:
        self.error = body[:MAX_BYTES]

    def data(self, chunk: bytes) -> None:
        self.raw += chunk[: MAX_BYTES - len(self.raw)]

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.said += events[: MAX_EVENTS - len(self.said)]

    def failed(self, error: str) -> None:
        self.failure = error


@dataclass(frozen=True, slots=True)
class _SeenRequest(NullCapture):
    """One request, which adds its attempts to the list of all."""

    kept: list[SeenAttempt] = field(default_factory=list)

    def attempt(
        self, *, transport: str, method: str, url: str, headers: Mapping[str, str], body: Body, **details: Any
    ) -> AttemptCapture:
        seen = SeenAttempt(transport, method, url, headers, body)
        if len(self.kept) < MAX_ATTEMPTS:
            self.kept.append(seen)
        return seen


class MemoryCaptures:
    """Captures in memory: the attempts since the list was cleared, in their order."""

    on = True

    def __init__(self) -> None:
        self.kept: list[SeenAttempt] = []

    def begin(self, request: CapturedRequest) -> RequestCapture:
        return _SeenRequest(kept=self.kept)


def attempt_lines(attempt: SeenAttempt) -> Iterator[str]:
    """The request in outline, and the answer, redacted, as lines."""
    yield f"sent: {attempt.transport} {attempt.method} {redacted_error(attempt.url)}, {_outline(attempt.body)}"
    if attempt.status is not None:
        yield f"answered: {attempt.status}, {_shown(redacted_headers(attempt.answer.items()), MAX_SHOWN_HEADERS)}"
    if attempt.error:
        yield f"refused: {_error(attempt.error)}"
    events = [*_events(bytes(attempt.raw)), *attempt.said]
    if events:
        kinds = Counter(map(_kind, events))
        yield f"events: {len(events)}: {', '.join(f'{kind} {count}' for kind, count in kinds.most_common(MAX_KINDS))}"
    for number, event in _examples(events):
        yield f"  {number}: {_shown(redacted(event))}"
    if attempt.failure:
        yield f"failed: {redacted_error(attempt.failure)}"


def _examples(events: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The first event of each kind and the last few, with their numbers: a renamed member may be in any of them."""
    shown: set[str] = set()
    for number, event in enumerate(events, 1):
        kind = _kind(event)
        is_new = kind not in shown and len(shown) < MAX_KINDS
        shown.update((kind,) if is_new else ())
        if is_new or number > len(events) - LAST:
            yield number, event


def _outline(body: Body) -> str:
    """The members of a body, without their texts."""
    if isinstance(body, bytes):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return f"{len(body)} bytes"
    if not isinstance(body, Mapping):
        return type(body).__name__
    return f"members: {', '.join(map(str, body))}"


def _events(raw: bytes) -> Iterator[Any]:
    """The server-sent events; any other body is one event."""
    decoder = SSEDecoder()
    found = [data for _, data in (*decoder.feed(raw), *decoder.end())]
    for data in found or ([raw] if raw else []):
        try:
            yield json.loads(data)
        except (ValueError, RecursionError):
            yield data.decode("utf-8", "replace")


def _kind(event: Any) -> str:
    """The type of an event; for a chunk of the chat API, the name of its content."""
    if not isinstance(event, Mapping):
        return str(event)[:MAX_KIND]
    if isinstance(event.get("type"), str):
        return str(event["type"])[:MAX_KIND]
    choices = event.get("choices")
    listed = choices if isinstance(choices, list) else ()
    delta = next((one.get("delta") for one in listed if isinstance(one, Mapping)), None)
    members = delta if isinstance(delta, Mapping) else event
    return "+".join(str(name) for name in members)[:MAX_KIND] or "empty"


def _error(body: bytes) -> str:
    try:
        return _shown(redacted(json.loads(body)))
    except (ValueError, RecursionError):
        return _shown(redacted_error(body.decode("utf-8", "replace")))


def _shown(value: Any, most: int = MAX_SHOWN) -> str:
    """The event, without the middle if it is long: usage and reasons are at the end."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} [… {len(text) - 2 * half} more …] {text[-half:]}"
