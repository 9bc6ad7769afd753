"""What is told to a capture. The server begins one for each request that is right and will be served; a provider tells
of each attempt. Both have a null form, so nobody asks whether captures are on.

All of this is called on the event loop: it takes references, never copies, never waits and never raises. What was told
is not changed afterwards. Redaction, encoding and files are the business of another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

#: A body: the bytes that travel, or, where the wire is no text, what they mean; its values may be bytes at any depth.
Body = bytes | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """What a capture begins with.

    kind             messages, count_tokens, responses, chat_completions
    session, number  the client's session, None without; the request's number in it, 0 without
    requested        the model by the name that the client used; `model` the one that is asked for upstream
    body             as received, unpacked
    converted        the hub request, where the body is not the hub's and is not passed through either
    earlier          models that were asked for the same request before, and could not serve
    """

    request_id: str
    kind: str
    provider: str
    requested: str
    model: str
    effort: str | None
    session: str | None
    number: int
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    converted: Mapping[str, Any] | None = None
    earlier: int = 0


class AttemptCapture(Protocol):
    """One attempt at an upstream."""

    def answered(self, status: int, headers: Mapping[str, str], **details: Any) -> None:
        """The head of the answer; `details` are what a transport knows beside it: {"pooled": True}."""
        ...

    def refused(self, body: bytes) -> None:
        """The body of an answer that is an error."""
        ...

    def data(self, chunk: bytes) -> None:
        """A piece of the body of an answer: server-sent events, or JSON."""
        ...

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Events of a wire that is no text, or that comes in frames of its own: those that one read brought."""
        ...

    def sent(self, message: Mapping[str, Any]) -> None:
        """What goes to the upstream after the request, where both sides talk."""
        ...

    def failed(self, error: str) -> None:
        """Why no more comes of this attempt, in words: no connection, a pause, a stream that was cut, a refusal."""
        ...


class RequestCapture(Protocol):
    """One request."""

    @property
    def place(self) -> str | None:
        """The folder, for the log; None when nothing is kept."""
        ...

    def attempt(
        self, *, transport: str, method: str, url: str, headers: Mapping[str, str], body: Body, **details: Any
    ) -> AttemptCapture:
        """A request that leaves for the upstream: transport `http`, `websocket` or `connect`. An upgrade that failed
        is one without a body. `details`: number of the attempt, and what a transport knows of it beforehand."""
        ...

    def streamed(self, data: bytes) -> None:
        """Server-sent events as the client gets them."""
        ...

    def replied(self, body: bytes) -> None:
        """The whole answer of a request that does not stream, or an error that has a status of its own."""
        ...

    def ended(self, outcome: str, status: int | None, error: str | None = None) -> None:
        """The end: `completed`, `failed` or `abandoned`. Nothing is told afterwards, of an attempt neither.

        status  of the answer; None for a client that left before there was one
        error   in words, None for an answer that is complete
        """
        ...


class Captures(Protocol):
    """Where captures go."""

    @property
    def on(self) -> bool:
        """Whether it is worth keeping what a capture begins with."""
        ...

    def begin(self, request: CapturedRequest) -> RequestCapture: ...


class NullAttempt:
    """Keeps nothing."""

    def answered(self, status: int, headers: Mapping[str, str], **details: Any) -> None:
        return None

    def refused(self, body: bytes) -> None:
        return None

    def data(self, chunk: bytes) -> None:
        return None

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        return None

    def sent(self, message: Mapping[str, Any]) -> None:
        return None

    def failed(self, error: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class NullCapture:
    """Keeps nothing of a request."""

    place: str | None = field(default=None, init=False)

    def attempt(
        self, *, transport: str, method: str, url: str, headers: Mapping[str, str], body: Body, **details: Any
    ) -> AttemptCapture:
        return NULL_ATTEMPT

    def streamed(self, data: bytes) -> None:
        return None

    def replied(self, body: bytes) -> None:
        return None

    def ended(self, outcome: str, status: int | None, error: str | None = None) -> None:
        return None


class NullCaptures:
    """Begins captures that keep nothing."""

    on = False

    def begin(self, request: CapturedRequest) -> RequestCapture:
        return NULL_CAPTURE


NULL_ATTEMPT = NullAttempt()
NULL_CAPTURE = NullCapture()
