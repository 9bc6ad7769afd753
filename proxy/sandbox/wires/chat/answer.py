"""One answer as chat completion chunks: the normal one, and the tools with which a fault alters it.

a chunk with the role, one for each word of reasoning and text, some for each call, one with the finish reason,
the usage where this upstream puts it, `[DONE]`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.model.pieces import pieces, tokens_of, words
from proxy.sandbox.model.reply import Ask, Call, Part, Say, Think
from proxy.sandbox.play.actions import BARE, Action, Framing, Raw
from proxy.sandbox.wires.answer import SOME_THOUGHT, Answer, Event, some_call

DONE = Raw(b"data: [DONE]\n\n")

#: Where the usage may stand: a chunk of its own at the end, the top of the finishing chunk, its first choice.
USAGE_PLACES = ("own", "finish", "choice")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """`index` is the place that the stream names, `arguments` the JSON text."""

    index: int
    call_id: str
    name: str
    arguments: str


@dataclass
class ChatAnswer(Answer):
    """`head` are the members that every chunk repeats; `new_id` makes the id of a call from its tool and number.

    `asked_usage` says whether the client wants the usage chunk (its own one never comes unasked).
    """

    framing: ClassVar[Framing] = BARE

    ask: Ask
    head: dict[str, Any]
    new_id: Callable[[str, int], str]
    input_tokens: int
    cached_tokens: int = 0
    usage_places: Sequence[str] = ("own",)
    asked_usage: bool = True
    tail: bytes = b""
    tail_comes: str = "together"
    extra: dict[str, Any] = field(default_factory=dict)  # of an answer without a stream
    thought: str = ""
    text: str = ""
    calls: list[ChatCall] = field(default_factory=list)
    finish: str | None = None

    def say(self, parts: Sequence[Part]) -> None:
        """Takes the parts of the model's reply."""
        for part in parts:
            if isinstance(part, Think):
                self.thought = "\n\n".join(part.paragraphs)
            elif isinstance(part, Say):
                self.text = part.text
            elif isinstance(part, Call):
                self._call(part.tool.name, part.arguments)

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    @property
    def usage(self) -> dict[str, Any]:
        thought = tokens_of(self.thought)
        output = thought + tokens_of(self.text) + sum(tokens_of(call.name + call.arguments) for call in self.calls)
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": output,
            "total_tokens": self.input_tokens + output,
            "cached_tokens": self.cached_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    def stream(self) -> list[Action]:
        return self.around([chunk for call in self.calls for chunk in self.call_chunks(call)])

    def around(self, calls: Sequence[Event]) -> list[Action]:
        """The stream with these chunks in place of the normal ones of the calls."""
        return [*self.beginning(), *calls, *self.end(), DONE]

    def beginning(self) -> list[Event]:
        """The role, the reasoning and the text."""
        return [
            self.delta(role="assistant", content=""),
            *(self.delta(reasoning_content=word) for word in words(self.thought)),
            *(self.delta(content=word) for word in words(self.text)),
        ]

    def end(self) -> list[Event]:
        """The finishing chunk, and the usage behind it where it has a chunk of its own."""
        last = self.delta()
        last["choices"][0]["finish_reason"] = self.finish_reason
        if "choice" in self.usage_places:
            last["choices"][0]["usage"] = self.usage
        if "finish" in self.usage_places:
            last["usage"] = self.usage
        own = "own" in self.usage_places and self.asked_usage
        return [last, {**self.head, "choices": [], "usage": self.usage}] if own else [last]

    def delta(self, **members: Any) -> Event:
        return {**self.head, "choices": [{"index": 0, "delta": members, "finish_reason": None}]}

    def opening_chunk(self, call: ChatCall) -> Event:
        """The chunk that names the call."""
        function = {"name": call.name, "arguments": ""}
        return self.delta(
            tool_calls=[{"index": call.index, "id": call.call_id, "type": "function", "function": function}]
        )

    def fragment(self, call: ChatCall, arguments: Any) -> Event:
        """A chunk with some of the arguments."""
        return self.delta(tool_calls=[{"index": call.index, "function": {"arguments": arguments}}])

    def call_chunks(self, call: ChatCall) -> list[Event]:
        return [self.opening_chunk(call), *(self.fragment(call, piece) for piece in pieces(call.arguments))]

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.thought:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        answer = {**self.head, "object": "chat.completion", "choices": [choice], **self.extra}
        return {**answer, "usage": self.usage} if self.usage_places else answer

    def is_terminal(self, action: Action) -> bool:
        return action == DONE

    def kind_of(self, event: Event) -> str | None:
        delta = event["choices"][0]["delta"] if event.get("choices") else {}
        if delta.get("reasoning_content"):
            return "thinking"
        if delta.get("content"):
            return "text"
        fragments = [one["function"].get("arguments") for one in delta.get("tool_calls", ())]
        return "call" if any(fragments) else None

    def add_call(self) -> None:
        self.add_calls(1)

    def add_calls(self, count: int) -> None:
        """At least that many."""
        for number in range(count - len(self.calls)):
            tool, arguments = some_call(self.ask, number)
            self._call(tool.name, arguments)

    def add_thought(self) -> None:
        self.thought = self.thought or SOME_THOUGHT

    def clear(self, *, message: bool) -> None:
        """A message without text cannot be told from no message here: the role comes in any case."""
        self.thought, self.text, self.calls = "", "", []

    def fix_call_ids(self, prefix: str) -> None:
        self.calls = [replace(call, call_id=f"{prefix}{number}") for number, call in enumerate(self.calls)]

    def text_event(self, text: str) -> Event:
        return self.delta(content=text)

    def strange_event(self, number: int) -> Event:
        strange: tuple[Event, ...] = (
            self.delta(future_content="?"),
            {**self.head, "object": "chat.completion.notice", "choices": [], "notice": "?"},
            {"x-future": {"queued": number}},
        )
        return strange[number % 3]

    def failure(self) -> Event:
        return {"error": {"message": "Internal server error", "type": "server_error"}}

    def keepalive(self) -> Action:
        return {**self.head, "choices": []}

    def _call(self, name: str, arguments: dict[str, Any] | str) -> None:
        text = arguments if isinstance(arguments, str) else dump_json(arguments)
        number = len(self.calls)
        self.calls.append(ChatCall(number, self.new_id(name, number), name, text))
