"""The interface of captures. The server begins one for each valid request that will be served; a provider reports each
attempt. Both have a null form, so callers need not check whether captures are on.

All of this is called on the event loop: it takes references, never copies, never waits and never raises. Callers do not
change what they passed. Redaction, encoding and files are the business of another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

#: A body: the bytes on the wire, or their meaning where the wire is no text; its values may be bytes at any depth.
Body = bytes | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """The request, as it is when its capture begins.

    kind             messages, count_tokens, responses, chat_completions
    session, number  the client's session, None without; the request's number in it, 0 without
    requested        the client's name of the model; `model`: the upstream's
    body             as received, unpacked
    converted        the hub request, unless the body is the hub's or passed through
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
        """Records the head of the answer; `details` come from the transport: {"pooled": True}."""
        ...

    def refused(self, body: bytes) -> None:
        """Records the body of an error answer."""
        ...

    def data(self, chunk: bytes) -> None:
        """Records a piece of the answer's body: server-sent events, or JSON."""
        ...

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Records the events of one read, on a wire that is no text or has frames of its own."""
        ...

    def sent(self, message: Mapping[str, Any]) -> None:
        """Records a message sent to the upstream after the request, where both sides talk."""
        ...

    def failed(self, error: str) -> None:
        """Records why this attempt ended, in words: no connection, a pause, a stream that was cut, a refusal."""
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
        """Begins an attempt over the transport `http`, `websocket` or `connect`. A failed upgrade has no body.
        `details`: number of the attempt, and what the transport knows beforehand."""
        ...

    def streamed(self, data: bytes) -> None:
        """Records server-sent events as the client gets them."""
        ...

    def replied(self, body: bytes) -> None:
        """Records a whole answer that is not streamed, or an error with a status of its own."""
        ...

    def ended(self, outcome: str, status: int | None, error: str | None = None) -> None:
        """Records the end: `completed`, `failed` or `abandoned`. Nothing may follow, for its attempts neither.

        status  of the answer; None for a client that left before there was one
        error   in words, None for an answer that is complete
        """
        ...


class Captures(Protocol):
    """Begins captures."""

    @property
    def on(self) -> bool:
        """Whether captures are kept, so that a `CapturedRequest` is worth making."""
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
