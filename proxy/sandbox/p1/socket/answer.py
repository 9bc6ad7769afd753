"""One answer on a socket of P1: the events of HTTP in text frames, with news of the account in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from proxy.sandbox.p1.socket.frames import SOCKET
from proxy.sandbox.play.actions import Action, Framing
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.responses.answer import ResponsesAnswer

#: How a socket is closed whose answer ended without saying so.
NORMAL_CLOSURE = 1000


@dataclass(kw_only=True)
class SocketAnswer(ResponsesAnswer):
    """`news` are the events about the account; without `announced` they are not told.

    A fault may make the socket `deaf` (pings stay unanswered) or have it closed after its actions: `close` is the code
    and the reason.
    """

    framing: ClassVar[Framing] = SOCKET

    news: list[Event] = field(default_factory=list)
    announced: bool = True
    deaf: bool = False
    close: tuple[int, str] | None = None

    @classmethod
    def of(cls, answer: ResponsesAnswer, news: list[Event], *, announced: bool) -> SocketAnswer:
        """The answer that would go over HTTP."""
        members = {one.name: getattr(answer, one.name) for one in fields(answer)}
        return cls(**members, news=news, announced=announced)

    def finished(self, actions: list[Action]) -> list[Action]:
        actions = super().finished(actions)
        begins = actions and isinstance(actions[0], dict) and actions[0]["type"] == "response.created"
        return [*self.news, *actions] if begins and self.announced else actions


def error_event(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Event:
    """What HTTP would answer with that status, as an event."""
    event: Event = {"type": "error", "status": status, "error": _error_of(status, body)}
    return {**event, "headers": dict(headers)} if headers else event


def _error_of(status: int, body: Any) -> Any:
    """The error object of a body, which is made of the text in the gateway's own form."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return body["error"]
    text = body.get("detail") if isinstance(body, dict) else body
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": str(text or f"HTTP status {status}"), "type": kind, "code": None, "param": None}
