"""The normal answer of a run, made as it proceeds, since the model's output depends on the client. At the end: the
points in it where a fault may happen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.model.pieces import ARGUMENT_PIECE, pieces, tokens_of, words
from proxy.sandbox.model.reply import Ask, Call, Called, Part, Returned, Say, Search, Think, Tool, reply
from proxy.sandbox.p5.asked import BLOB, EXEC, QUERY
from proxy.sandbox.p5.events import ENVELOPES
from proxy.sandbox.p5.execs import EXECS
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.prompt import FINDING, NATIVE
from proxy.sandbox.p5.runs import Run
from proxy.sandbox.play.actions import Action, Framing, Until
from proxy.sandbox.wires.answer import SOME_THOUGHT, Ids, Playable
from proxy.sandbox.wires.connect.protobuf import Message

PLAN_MODE = 3

#: Characters of the prompt that the service gives the client to keep.
MAX_BLOB_CHARS = 16_384

#: Heartbeats for ever.
NEVER = Until(lambda: False)

#: Context window of every model here, as reported in the checkpoint.
WINDOW = 200_000


@dataclass(kw_only=True)
class AgentAnswer(Playable):
    """The answer of a run. `parked`: the model's output is in a blob, and no text is streamed. `as_text`: calls are
    written, not made. `first`: parts before those of the model, which has no others when it is `speechless`. `piece`:
    characters of a delta, None: a word."""

    framing: ClassVar[Framing] = ENVELOPES

    ask: Ask
    run: Run
    options: P5Options
    ids: Ids
    prompt: str
    input_tokens: int
    mode: int = 1
    as_text: bool = False
    parked: bool = False
    parked_plain: bool = False  # the blob holds a text, not blocks
    speechless: bool = False
    stalls: bool = False  # whether nothing comes after the result of a call
    piece: int | None = None
    first: list[Part] = field(default_factory=list)
    output_tokens: int = 0
    _next: dict[str, int] = field(default_factory=lambda: {EXEC: 1, BLOB: 2, QUERY: 1})

    def whole(self) -> dict[str, Any]:
        raise NotImplementedError

    def stream(self) -> Iterator[Action]:
        yield from self.prelude()
        yield {"type": "step_started", "step_id": 1}
        yield from self.work()
        yield from self.ending()

    def prelude(self) -> Iterator[Action]:
        """Asks for the client's context, and gives it two blobs to keep."""
        yield from self.asks("context", number=0)
        for number, role in enumerate(("system", "user")):
            text = self.ask.system if role == "system" else self.prompt
            yield self.blob(number, role, text[:MAX_BLOB_CHARS])
        for number in range(2):
            yield self.settled(BLOB, number)

    def blob(self, number: int, role: str, content: Any) -> dict[str, Any]:
        data = dump_json({"role": role, "content": content}).encode()
        return {"type": "set_blob", "id": number, "blob_id": hashlib.sha256(data).hexdigest(), "data": data.hex()}

    def bound(self, action: Action) -> Action:
        """Binds a script's `{"type": "wait", "for": "exec" | "kv" | "query", "id": 1}` to this run."""
        if isinstance(action, dict) and action["type"] == "wait":
            return self.settled(action["for"], action.get("id", 0))
        return action

    def settled(self, family: str, number: int) -> Until:
        def ready() -> bool:
            found = self.run.ledger.find(family, number)
            return found is not None and found.done

        return Until(ready)

    def number(self, family: str) -> int:
        """The next id."""
        self._next[family] += 1
        return self._next[family] - 1

    def asks(self, kind: str, number: int | None = None, **args: Any) -> Iterator[Action]:
        """Requests an execution by the client, and waits for it."""
        number = self.number(EXEC) if number is None else number
        yield {"type": "exec", "kind": kind, "id": number, "exec_id": self.ids.new("exec"), **args}
        yield self.settled(EXEC, number)

    def work(self) -> Iterator[Action]:
        """The model's turns: each call brings another one."""
        parts = [*self.first, *([] if self.speechless else reply(self.ask))]
        while parts:
            part = parts.pop(0)
            if isinstance(part, Call) and not self.as_text and part.tool.name in NATIVE:
                yield from self.call(part)
                if self.stalls:
                    yield NEVER
                parts = reply(self.ask)
            else:
                yield from self.part(part)

    def part(self, part: Part) -> Iterator[Action]:
        if isinstance(part, Think):
            yield from self.thought("\n\n".join(part.paragraphs))
        elif isinstance(part, Say):
            yield from self.say(part.text)
        elif isinstance(part, Search):
            yield from self.query("web_search", part.query)
        else:
            yield from self.say(self.written(part), in_pieces=True)

    def thought(self, text: str) -> Iterator[Action]:
        for piece in words(text):
            yield {"type": "thinking_delta", "text": piece}
        yield {"type": "thinking_completed", "duration_ms": 12}
        self.output_tokens += tokens_of(text)

    def say(self, text: str, *, in_pieces: bool = False) -> Iterator[Action]:
        text = text.encode(errors="surrogateescape").decode(errors="backslashreplace")  # a file that is not UTF-8
        self.output_tokens += tokens_of(text)
        if self.mode == PLAN_MODE:
            yield from self.query("create_plan", text)
        elif self.parked:
            number = self.number(BLOB)
            yield self.blob(number, "assistant", text if self.parked_plain else [{"type": "text", "text": text}])
            yield self.settled(BLOB, number)
        else:
            size = ARGUMENT_PIECE if in_pieces else self.piece
            for piece in words(text) if size is None else pieces(text, size):
                yield {"type": "text_delta", "text": piece}
            yield {"type": "token_delta", "tokens": tokens_of(text)}

    def query(self, kind: str, text: str) -> Iterator[Action]:
        number = self.number(QUERY)
        yield {"type": "query", "kind": kind, "id": number, "text": text}
        yield self.settled(QUERY, number)

    def written(self, call: Call) -> str:
        """A call in the form of the history."""
        call_id = self.ids.new("toolu")
        return f'<tool_use id="{call_id}" name="{call.tool.name}">\n{dump_json(call.arguments)}\n</tool_use>'

    def call(self, call: Call) -> Iterator[Action]:
        """Calls a native tool; from then on the model knows the result."""
        number, call_id = self.number(EXEC), self.ids.new("toolu")
        kind, args = self.native(call)
        command = str(args.get("command") or args.get("pattern") or args.get("path"))
        shown = {"call_id": call_id, "command": command, "model_call_id": "model-call"}
        yield {"type": "tool_call_started", **shown}
        yield {"type": "partial_tool_call", "call_id": call_id, "text": command}
        yield from self.asks(kind, number, call_id=call_id, **args)
        yield {"type": "tool_call_completed", **shown}
        asked = self.run.ledger.find(EXEC, number)
        text = asked.outcome.text if asked is not None else ""
        entries = [*self.ask.entries, Called(call_id, call.tool.name), Returned(call_id, text)]
        self.ask = self.ask._replace(entries=entries)
        if self.options.reads_back:
            yield from self.read_back()

    def native(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Kind and arguments of the request for a call."""
        given = call.arguments if isinstance(call.arguments, dict) else {}
        if call.tool.name == "Read":
            return "read", {"path": given.get("file_path"), "offset": given.get("offset"), "limit": given.get("limit")}
        if call.tool.name == "Write":
            content = {"text": given.get("content"), "file_hex": given.get("file_hex")}
            return "write", {"path": given.get("file_path"), **content, "return_content": True}
        if call.tool.name in FINDING:
            kind = call.tool.name.removeprefix("cursor_")
            return kind, {name: given.get(name) for name in EXECS[kind][1] if name != "call_id"}
        shell = {name: given.get(name) for name in ("command", "timeout", "description", "working_directory")}
        return self.options.shell, {**shell, "working_directory": shell["working_directory"] or self.workspace or None}

    @property
    def workspace(self) -> str:
        """The workspace that the client announced."""
        context = self.run.ledger.find(EXEC, 0)
        for message in context.answers if context is not None else ():
            paths = message.sub(10, 1, 1, 4) or Message(b"")
            return paths.text(21) or paths.text(2)
        return ""

    def read_back(self) -> Iterator[Action]:
        """Asks for the blobs that the client keeps."""
        for asked in self.run.ledger.asked:
            if asked.family == BLOB and asked.number == 3:
                number = self.number(BLOB)
                yield {"type": "get_blob", "id": number, "blob_id": asked.args.bytes(1).hex()}
                yield self.settled(BLOB, number)
                found = self.run.ledger.find(BLOB, number)
                given = found.answers[-1].bytes(2, 1) if found is not None and found.answers else b""
                if given != asked.args.bytes(2):
                    self.run.blame(f"blob {asked.id} came back changed")
                return

    def ending(self) -> Iterator[Action]:
        yield {"type": "step_completed", "step_id": 1, "duration_ms": 34}
        yield {"type": "checkpoint", "used_tokens": self.input_tokens + self.output_tokens, "max_tokens": WINDOW}
        yield self.turn_ended()
        yield {"type": "end"}

    def turn_ended(self) -> dict[str, Any]:
        """The counters of a whole run, far above those of a request."""
        counters = {"input_tokens": self.input_tokens * 100, "output_tokens": self.output_tokens}
        return {"type": "turn_ended", **counters, "cache_read_tokens": self.input_tokens * 90, "cache_write_tokens": 0}


AgentFault = Callable[..., Iterable[Action]]

#: The call that a fault makes when it needs one.
SOME_CALL = Call(Tool("Bash"), {"command": "echo 0"})

_KINDS = {"step_started": "created", "thinking_delta": "thinking", "text_delta": "text"}


def kind_of(action: Action) -> str | None:
    """The point that an action belongs to."""
    if not isinstance(action, dict):
        return None
    if action["type"] == "exec":
        return None if action.get("kind") == "context" else "call"
    return _KINDS.get(action["type"])


def is_event(action: Action, *types: str) -> bool:
    return isinstance(action, dict) and action["type"] in types


def prepared(answer: AgentAnswer, after: str) -> AgentAnswer:
    """The answer, with a call or a thought if `after` needs one."""
    if after == "thinking":
        answer.first.insert(0, SOME_THOUGHT)
    elif after == "call" and not any(isinstance(part, Call) for part in reply(answer.ask)):
        answer.first.append(SOME_CALL)
    return answer


def insert(answer: AgentAnswer, after: str, *actions: Action) -> Iterator[Action]:
    """The normal answer with these actions inserted, at the latest before its end."""
    left: list[Action] | None = list(actions)
    if after == "nothing" and left is not None:
        yield from left
        left = None
    for one in prepared(answer, after).stream():
        if left is not None and is_event(one, "turn_ended"):
            yield from left
            left = None
        yield one
        if left is not None and kind_of(one) == after:
            yield from left
            left = None


def break_off(answer: AgentAnswer, after: str, *actions: Action) -> Iterator[Action]:
    """The beginning of the normal answer, then these actions and nothing else."""
    if after != "nothing":
        for one in prepared(answer, after).stream():
            if is_event(one, "turn_ended"):
                break
            yield one
            if kind_of(one) == after:
                break
    yield from actions


def without(answer: AgentAnswer, *types: str) -> Iterator[Action]:
    """The normal answer without the events of these types."""
    return (one for one in answer.stream() if not is_event(one, *types))


def replaced(actions: Iterable[Action], kind: str, change: Callable[[dict[str, Any]], Action]) -> Iterator[Action]:
    """The actions, with each event of that type changed."""
    return (change(one) if isinstance(one, dict) and is_event(one, kind) else one for one in actions)


def edited(answer: AgentAnswer, **members: Any) -> Iterator[Action]:
    """The normal answer with these members added to each event."""
    return ({**one, **members} if isinstance(one, dict) else one for one in answer.stream())


def at_work(answer: AgentAnswer, *begin: Iterable[Action]) -> Iterator[Action]:
    """The normal answer with these actions before the model's output; they are made when their turn comes."""
    for one in answer.stream():
        yield one
        if kind_of(one) == "created":
            for actions in begin:
                yield from actions
