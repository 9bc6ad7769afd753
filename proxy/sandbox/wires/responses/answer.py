"""One answer in Responses events, the failures it may report, and methods by which a fault alters it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from proxy.sandbox.model.reply import Part
from proxy.sandbox.play.actions import NAMED, Action, Framing
from proxy.sandbox.wires.answer import Answer, Block, Event
from proxy.sandbox.wires.responses.items import Writer, item_events, usage_of

CONTEXT_MESSAGE = "Your input exceeds the context window of this model. Please adjust your input and try again."

#: Code of a failed response -> its error object. `unexplained` has none.
FAILURES: dict[str, dict[str, Any] | None] = {
    "context_length_exceeded": {"message": CONTEXT_MESSAGE},
    "insufficient_quota": {"message": "You exceeded your current quota, please check your plan and billing details."},
    "usage_not_included": {"message": "To use Codex with your ChatGPT plan, upgrade to Plus."},
    "usage_limit_reached": {
        "message": "The usage limit has been reached",
        "type": "usage_limit_reached",
        "plan_type": "plus",
        "resets_in_seconds": 3600,
    },
    "cyber_policy": {"message": ""},
    "invalid_prompt": {"message": "Invalid prompt: we've limited access to this content for safety reasons."},
    "bio_policy": {"message": ""},
    "server_is_overloaded": {"message": "Our servers are currently overloaded. Please try again later."},
    "slow_down": {"message": "Please slow down."},
    "rate_limit_exceeded": {"message": "Rate limit reached for this model. Please try again in 1.3s."},
    "overloaded_error": {"message": "busy", "type": "overloaded_error"},
    "server_error": {"message": "An error occurred while processing your request. You can retry your request."},
    "internal_server_error": {"message": "Internal server error"},
    "previous_response_not_found": {"message": "Previous response with id 'resp_0' not found."},
    "websocket_connection_limit_reached": {"message": "Responses websocket connection limit reached (60 minutes)."},
    "unexplained": None,
}


def error_object(code: str | int, message: str | None = None, **members: Any) -> dict[str, Any] | None:
    """The error object for a code; an unknown code gets a generic message, a given message replaces the usual one."""
    known = FAILURES.get(str(code), {"message": "Something went wrong."})
    if known is None:
        return None
    said = known["message"] if message is None else message
    return {"code": code, **known, "message": said, **members}


TEXT_DELTA = "response.output_text.delta"
THINKING_DELTA = "response.reasoning_summary_text.delta"
ARGUMENTS_DELTA = "response.function_call_arguments.delta"

_KINDS = {TEXT_DELTA: "text", THINKING_DELTA: "thinking", ARGUMENTS_DELTA: "call"}


@dataclass(kw_only=True)
class ResponsesAnswer(Answer):
    """The answer. `envelope` is the response object without output, status and usage; blocks are its finished output
    items."""

    framing: ClassVar[Framing] = NAMED
    opening: ClassVar[int] = 2
    call_type: ClassVar[str] = "function_call"
    thought_type: ClassVar[str] = "reasoning"
    id_member: ClassVar[str] = "call_id"
    terminals: ClassVar[tuple[str, ...]] = ("response.completed", "response.incomplete")

    envelope: dict[str, Any]
    writer: Writer

    def new_block(self, part: Part) -> Block:
        return self.writer.item(part)

    @property
    def usage(self) -> dict[str, Any]:
        return usage_of(self.blocks, self.input_tokens, self.cached_tokens)

    def beginning(self) -> list[Event]:
        begun = {**self.envelope, "status": "in_progress", "output": [], "usage": None}
        return [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]

    def events_of(self, place: int) -> list[Event]:
        return item_events(self.blocks[place], place)

    def end(self) -> list[Action]:
        return [self.terminal("completed")]

    def whole(self) -> dict[str, Any]:
        return {**self.response("completed"), **self.extra}

    def finished(self, actions: Iterable[Action]) -> list[Action]:
        """The actions with numbered events, unless a fault has numbered them."""
        actions = list(actions)
        events = [action for action in actions if isinstance(action, dict)]
        if not all("sequence_number" in event for event in events):
            for place, event in enumerate(events):
                event["sequence_number"] = place
        return super().finished(actions)

    def kind_of(self, event: Event) -> str | None:
        return _KINDS.get(event["type"])

    def text_event(self, text: str) -> Event:
        return {"type": TEXT_DELTA, "output_index": 0, "content_index": 0, "delta": text}

    def strange_event(self, number: int) -> Event:
        kinds = ("response.some_future.delta", "codex.response.metadata", "response.queued")
        return {"type": kinds[number % 3], "delta": "?", "output_index": 7}

    def failure(self, code: str = "server_error", message: str | None = None, status: int | None = None) -> Event:
        """A `response.failed` with that error."""
        event = self.terminal("failed", output=[], usage=None, error=error_object(code, message))
        return event if status is None else {**event, "status": status}

    def keepalive(self) -> Event:
        return {"type": "keepalive"}

    def response(self, status: str, **members: Any) -> dict[str, Any]:
        """The final response object with that status."""
        return {**self.envelope, "status": status, "output": [*self.blocks], "usage": self.usage, **members}

    def terminal(self, status: str, event: str | None = None, **members: Any) -> Event:
        """The event that ends a response with that status, by default the event of that name."""
        return {"type": event or f"response.{status}", "response": self.response(status, **members)}
