"""Chat-completion chunks to Messages events: the reducer behind every chat upstream.

Chunks are told apart by what they hold, not by a type, and upstreams are careless with tool calls: names come after arguments,
indexes start again, ids repeat. What can be understood without guessing is; the rest is a BadAnswer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.messages import Event, MessageStream
from proxy.core.read_tool import MAX_ARGUMENTS
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tools import ArgumentStream, parse_arguments, unique_id
from proxy.core.usage import chat_usage

#: upstream word -> stop reason; a word that is not here counts as `stop`
STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
#: More calls in one answer are a runaway model.
MAX_CALLS = 256


@dataclass(slots=True)
class _Slot:
    """A tool call under way. It opens when its name and id are known; until then its arguments are kept."""

    number: int
    call_id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list)
    size: int = 0
    filter: ArgumentStream | None = None  # set when it is open
    key: object = None
    sent: bool = False
    closed: bool = False


class ChatToMessages:
    """The reducer. `feed` takes one chunk and returns the Messages events it causes; `end` takes the end of the stream.

    policy  what the request says about the answer
    mark    first part of the signature of thinking blocks; chat upstreams have nothing to carry in it
    own_id  makes the id of a call out of its number, for upstreams whose ids repeat; None keeps theirs
    """

    def __init__(
        self,
        stream: MessageStream,
        policy: AnswerPolicy,
        *,
        mark: str,
        own_id: Callable[[int], str] | None = None,
    ) -> None:
        self._stream = stream
        self._policy = policy
        self._mark = mark
        self._own_id = own_id
        self._open: tuple[str, object] | None = None  # the open thinking or text block
        self._blocks = 0
        self._held: list[str] = []  # a structured answer, which is rewritten as a whole
        self._slots: dict[object, _Slot] = {}  # by upstream index; the newest call with that index
        self._all: list[_Slot] = []
        self._finish: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self.produced = False
        self.only_thinking = True
        self.finished = False
        self.usage: dict[str, Any] = {}

    # -- entry points

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        """The Messages events of one chunk. Raises BadAnswer."""
        if not self.finished:
            self._stream.start()
            self._note_usage(chunk.get("usage"))
            for choice in _choices(chunk):
                self._choice(choice)
        return self._stream.take()

    def end(self, *, done: bool) -> list[Event]:
        """The end of the stream; `done` when the upstream said that it was. Raises BadAnswer when the answer was cut."""
        if not self.finished:
            if self._finish is None and not done:
                raise BadAnswer("the upstream cut the answer: it ended without a finish reason")
            self._complete()
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """What can be said before an error."""
        self._close_block()
        self._stream.interrupt()
        return self._stream.take()

    # -- chunks

    def _note_usage(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            self._usage = usage

    def _choice(self, choice: Mapping[str, Any]) -> None:
        self._note_usage(choice.get("usage"))
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._say("thinking", delta.get("reasoning_content") or delta.get("reasoning"))
            self._say("text", delta.get("content"))
            for fragment in _fragments(delta.get("tool_calls")):
                self._fragment(fragment)
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self._finish = choice["finish_reason"]

    def _say(self, kind: str, text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        self.produced = True
        self.only_thinking = self.only_thinking and kind == "thinking"
        if self._open is None or self._open[0] != kind:
            self._close_block()
            self._close_calls()
            self._blocks += 1
            self._open = (kind, (kind, self._blocks))
            block = (
                {"type": "thinking", "thinking": "", "signature": ""}
                if kind == "thinking"
                else {"type": kind, kind: ""}
            )
            self._stream.open(self._open[1], block)
        if kind == "text" and self._policy.restore is not None:
            self._held.append(text)
        else:
            self._stream.delta(self._open[1], {"type": f"{kind}_delta", kind: text})

    def _close_block(self) -> None:
        if self._open is None:
            return
        (kind, key), self._open = self._open, None
        if kind == "thinking":
            self._stream.delta(key, {"type": "signature_delta", "signature": self._signature()})
        elif self._held and self._policy.restore is not None:
            text, self._held = self._policy.restore("".join(self._held)), []
            self._stream.delta(key, {"type": "text_delta", "text": text})
        self._stream.close(key)

    def _signature(self) -> str:
        """Carries nothing; it is only stable, and clients want one."""
        text = f"{self._mark}:{self._stream.message_id}:{self._blocks}"
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    # -- tool calls

    def _fragment(self, fragment: Mapping[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        slot = self._slot(fragment.get("index"), call_id, name)
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else dump_json(arguments)
        if slot.closed:
            if text.strip():
                raise BadAnswer(f"the upstream sent more arguments for tool {slot.name} after they were complete")
            return
        self._close_block()
        if slot.filter is None:  # names and ids may come in pieces, or whole in every piece
            slot.call_id += call_id if call_id != slot.call_id else ""
            slot.name += name if name != slot.name else ""
        self._append(slot, text)
        if slot.filter is not None:
            self._send(slot, slot.filter.feed(text))
        elif slot.name and (slot.call_id or self._own_id is not None) and (text or "arguments" in function):
            self._begin(slot)

    def _slot(self, index: Any, call_id: str, name: str) -> _Slot:
        """The call that a fragment belongs to: by index, unless a new id and name show that the index starts again."""
        known = self._slots.get(index) if index is not None else self._latest(call_id)
        if known is not None and not (call_id and name and call_id != known.call_id and self._whole(known)):
            return known
        if len(self._all) >= MAX_CALLS:
            raise BadAnswer(f"more than {MAX_CALLS} tool calls in one answer")
        for other in self._all:
            if not other.closed and self._whole(other) and other.filter is not None:
                self._close(other)
        slot = _Slot(len(self._all))
        self._all.append(slot)
        self._slots[index if index is not None else ("id", call_id)] = slot
        return slot

    def _latest(self, call_id: str) -> _Slot | None:
        """Without an index: the call with this id, or the newest one when the fragment names none."""
        if call_id:
            return self._slots.get(("id", call_id))
        return self._all[-1] if self._all else None

    def _whole(self, slot: _Slot) -> bool:
        text = "".join(slot.text)
        return bool(text.strip()) and parse_arguments(text) is not None

    def _append(self, slot: _Slot, text: str) -> None:
        if text:
            slot.text.append(text)
            slot.size += len(text)
            self.produced, self.only_thinking = True, False
            if slot.size > MAX_ARGUMENTS:
                raise BadAnswer(f"the arguments of tool {slot.name} passed {MAX_ARGUMENTS} bytes")

    def _begin(self, slot: _Slot) -> None:
        self.produced, self.only_thinking = True, False
        name = self._policy.names.get(slot.name, slot.name)
        wanted = self._own_id(slot.number) if self._own_id is not None else slot.call_id
        call_id = unique_id(wanted, self._policy.used_ids)
        slot.name, slot.key = name, ("call", slot.number)
        slot.filter = ArgumentStream(self._policy.optional(name))
        self._stream.open(slot.key, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
        self._send(slot, slot.filter.feed("".join(slot.text)))

    def _send(self, slot: _Slot, text: str) -> None:
        if text:
            slot.sent = True
            self._stream.delta(slot.key, {"type": "input_json_delta", "partial_json": text})

    def _close_calls(self) -> None:
        """Text or thinking after calls: they must be complete by now."""
        for slot in self._all:
            if not slot.closed:
                self._close(slot)

    def _close(self, slot: _Slot) -> None:
        if slot.filter is None:
            if not slot.name:
                raise BadAnswer("the upstream sent a tool call without a name")
            slot.call_id = slot.call_id or f"call_{self._stream.message_id}_{slot.number}"
            self._begin(slot)
        if slot.filter is None or parse_arguments("".join(slot.text)) is None:
            raise BadAnswer(f"the upstream sent arguments of tool {slot.name} that are not a JSON object")
        self._send(slot, slot.filter.end())
        self._stream.close(slot.key)
        slot.closed = True

    # -- the end

    def _complete(self) -> None:
        self._close_block()
        reason = STOP_REASONS.get(self._finish or "stop", "end_turn")
        for slot in self._all:
            if slot.closed:
                continue
            if reason == "max_tokens" and parse_arguments("".join(slot.text)) is None:
                self._cut(slot)
            else:
                self._close(slot)
        if reason == "end_turn" and any(slot.closed for slot in self._all):
            reason = "tool_use"  # some upstreams say `stop` after calls
        self.usage = chat_usage(self._usage)
        self.finished = True
        self._stream.finish(reason, self.usage)

    def _cut(self, slot: _Slot) -> None:
        """The output limit cut a call. One that nobody has seen is left out, so that the client can go on; one that the
        client sees must not be closed, since that would run it."""
        if slot.filter is not None:
            raise BadAnswer(f"the answer ended (max_tokens) inside the arguments of tool {slot.name}")


def _choices(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of the first answer; one upstream puts content and finish reason into two entries of it."""
    choices = chunk.get("choices")
    found = choices if isinstance(choices, list) else []
    return [choice for choice in found if isinstance(choice, Mapping) and choice.get("index") in (0, None)]


def _fragments(value: Any) -> list[Mapping[str, Any]]:
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
