"""Captures that record their calls, in the words of tests.

A request is recorded as its stations: `http 529 refused failed http 200 data streamed completed:200` is an answer
that came with the second attempt. A station that comes several times in a row for one attempt is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness import until

from proxy.observe.capture.contract import AttemptCapture, Body, CapturedRequest, RequestCapture


@dataclass
class RecordedAttempt:
    """One attempt; `answers` are statuses and headers."""

    request: RecordedRequest
    number: int
    transport: str
    method: str
    url: str
    headers: Mapping[str, str]
    body: Body
    details: dict[str, Any]
    answers: list[tuple[int, Mapping[str, str], dict[str, Any]]] = field(default_factory=list)
    refusals: list[bytes] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    said: list[Mapping[str, Any]] = field(default_factory=list)
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def answered(self, status: int, headers: Mapping[str, str], **details: Any) -> None:
        self._note(str(status))
        self.answers.append((status, headers, details))

    def refused(self, body: bytes) -> None:
        self._note("refused")
        self.refusals.append(body)

    def data(self, chunk: bytes) -> None:
        self._note("data")
        self.chunks.append(chunk)

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._note("events")
        self.said += events

    def sent(self, message: Mapping[str, Any]) -> None:
        self._note("sent")
        self.messages.append(message)

    def failed(self, error: str) -> None:
        self._note("failed")
        self.failures.append(error)

    def _note(self, station: str) -> None:
        self.request.note(station, self.number)


@dataclass
class RecordedRequest:
    """One request."""

    begun: CapturedRequest
    attempts: list[RecordedAttempt] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)
    ends: list[tuple[str, int | None, str | None]] = field(default_factory=list)
    stations: dict[tuple[int, str], None] = field(default_factory=dict)

    @property
    def place(self) -> str | None:
        return f"/captures/{self.begun.request_id}"

    def attempt(
        self, *, transport: str, method: str, url: str, headers: Mapping[str, str], body: Body, **details: Any
    ) -> AttemptCapture:
        recorded = RecordedAttempt(self, len(self.attempts) + 1, transport, method, url, headers, body, details)
        self.attempts.append(recorded)
        self.note(transport, recorded.number)
        return recorded

    def streamed(self, data: bytes) -> None:
        self.note("streamed")
        self.frames.append(data)

    def replied(self, body: bytes) -> None:
        self.note("replied")
        self.replies.append(body)

    def ended(self, outcome: str, status: int | None, error: str | None = None) -> None:
        self.note(f"{outcome}:{status}")
        self.ends.append((outcome, status, error))

    def note(self, station: str, attempt: int = 0) -> None:
        assert not self.ends, f"{station} came after the end"
        self.stations[attempt, station] = None

    @property
    def way(self) -> str:
        """The stations in the order in which they came first."""
        return " ".join(station for _, station in self.stations)

    @property
    def raw(self) -> bytes:
        """What the client got."""
        return b"".join(self.frames or self.replies)


class Recorded:
    """Captures of all requests."""

    on = True

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []

    def begin(self, request: CapturedRequest) -> RequestCapture:
        recorded = RecordedRequest(request)
        self.requests.append(recorded)
        return recorded

    @property
    def last(self) -> RecordedRequest:
        return self.requests[-1]

    async def over(self, requests: int = 1) -> RecordedRequest:
        """The newest of so many requests, when it is over."""
        await until(lambda: len(self.requests) == requests and self.last.ends)
        return self.last
