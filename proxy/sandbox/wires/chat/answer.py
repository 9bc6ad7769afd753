"""One answer as chat completion chunks, with methods by which a fault alters it.

a chunk with the role, one for each word of reasoning and text, some for each call, one with the finish reason, the
usage where this upstream puts it, `[DONE]`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.model.pieces import pieces, tokens_of, words
from proxy.sandbox.model.reply import Call, Part, Say, Think
from proxy.sandbox.play.actions import BARE, Action, Framing, Raw
from proxy.sandbox.wires.answer import Answer, Block, Event

DONE = Raw(b"data: [DONE]\n\n")

#: Places of the usage: its own chunk at the end, the top of the finishing chunk, or that chunk's first choice.
USAGE_PLACES = ("own", "finish", "choice")

#: Block -> the member of a delta or message for its text.
_MEMBERS = {"thinking": "reasoning_content", "text": "content"}


@dataclass(kw_only=True)
class ChatAnswer(Answer):
    """The answer. `head` are the members of every chunk; `new_id` makes the id of a call from its tool and number.

    `asked_usage`: whether the client wants the usage chunk (which never comes unasked). Blocks are
    `{"type":"thinking"|"text","text"}` and `{"type":"call","index","id","name","arguments"}`."""

    framing: ClassVar[Framing] = BARE
    call_type: ClassVar[str] = "call"
    thought_type: ClassVar[str] = "thinking"
    limit_reason: ClassVar[str] = "length"

    head: dict[str, Any]
    new_id: Callable[[str, int], str]
    usage_places: Sequence[str] = ("own",)
    asked_usage: bool = True

    def new_block(self, part: Part) -> Block:
        if isinstance(part, Call):
            index, name = len(self.calls), part.tool.name
            arguments = part.arguments if isinstance(part.arguments, str) else dump_json(part.arguments)
            call_id = self.new_id(name, index)
            return {"type": "call", "index": index, "id": call_id, "name": name, "arguments": arguments}
        if isinstance(part, Think):
            return {"type": "thinking", "text": "\n\n".join(part.paragraphs)}
        return {"type": "text", "text": part.text if isinstance(part, Say) else ""}

    def text_of(self, kind: str) -> str:
        """All text of the blocks of that type."""
        return "".join(block["text"] for block in self.blocks if block["type"] == kind)

    @property
    def finish_reason(self) -> str:
        return self.reason or ("tool_calls" if self.calls else "stop")

    @property
    def usage(self) -> dict[str, Any]:
        thought = tokens_of(self.text_of("thinking"))
        called = sum(tokens_of(call["name"] + call["arguments"]) for call in self.calls)
        output = thought + tokens_of(self.text_of("text")) + called
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": output,
            "total_tokens": self.input_tokens + output,
            "cached_tokens": self.cached_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    def beginning(self) -> list[Event]:
        return [self.delta(role="assistant", content="")]

    def events_of(self, place: int) -> list[Event]:
        block = self.blocks[place]
        if block["type"] == self.call_type:
            return [self.opening_chunk(block), *(self.fragment(block, piece) for piece in pieces(block["arguments"]))]
        return [self.delta(**{_MEMBERS[block["type"]]: word}) for word in words(block["text"])]

    def end(self) -> list[Action]:
        """The finishing chunk, the usage chunk if there is one, and `[DONE]`."""
        last = self.delta()
        last["choices"][0]["finish_reason"] = self.finish_reason
        if "choice" in self.usage_places:
            last["choices"][0]["usage"] = self.usage
        if "finish" in self.usage_places:
            last["usage"] = self.usage
        own = "own" in self.usage_places and self.asked_usage
        return [last, {**self.head, "choices": [], "usage": self.usage}, DONE] if own else [last, DONE]

    def delta(self, **members: Any) -> Event:
        return {**self.head, "choices": [{"index": 0, "delta": members, "finish_reason": None}]}

    def call_chunk(self, call: Block, function: dict[str, Any], **members: Any) -> Event:
        """A chunk with one entry for the call."""
        return self.delta(tool_calls=[{"index": call["index"], **members, "function": function}])

    def opening_chunk(self, call: Block, arguments: Any = "", name: str | None = None) -> Event:
        """The chunk that names the call."""
        function = {"name": call["name"] if name is None else name, "arguments": arguments}
        return self.call_chunk(call, function, id=call["id"], type="function")

    def fragment(self, call: Block, arguments: Any) -> Event:
        """A chunk with a part of the arguments."""
        return self.call_chunk(call, {"arguments": arguments})

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text_of("text")}
        if thought := self.text_of("thinking"):
            message["reasoning_content"] = thought
        if self.calls:
            chunks = (self.opening_chunk(call, call["arguments"]) for call in self.calls)
            entries = [chunk["choices"][0]["delta"]["tool_calls"][0] for chunk in chunks]
            message["tool_calls"] = [{name: entry[name] for name in ("id", "type", "function")} for entry in entries]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        answer = {**self.head, "object": "chat.completion", "choices": [choice], **self.extra}
        return {**answer, "usage": self.usage} if self.usage_places else answer

    def is_terminal(self, action: Action) -> bool:
        return action == DONE

    def kind_of(self, event: Event) -> str | None:
        delta = event["choices"][0]["delta"] if event.get("choices") else {}
        for kind, member in _MEMBERS.items():
            if delta.get(member):
                return kind
        fragments = [one["function"].get("arguments") for one in delta.get("tool_calls", ())]
        return "call" if any(fragments) else None

    def clear(self, *, message: bool) -> None:
        """Removes all output. A message without text is not different from none here: the role comes in any case."""
        self.blocks = []

    def text_event(self, text: str) -> Event:
        return self.delta(content=text)

    def strange_event(self, number: int) -> Event:
        strange: tuple[Event, ...] = (
            self.delta(future_content="?"),
            {**self.head, "object": "chat.completion.notice", "choices": [], "notice": "?"},
            {"x-future": {"queued": number}},
        )
        return strange[number % 3]

    def failure(
        self, message: str = "Internal server error", kind: str = "server_error", code: str | int | None = None
    ) -> Event:
        return {"error": {"message": message, "type": kind, **({} if code is None else {"code": code})}}

    def keepalive(self) -> Event:
        return {**self.head, "choices": []}
