"""Chat-completion chunks to Messages events: the reducer behind every chat upstream.

Chunks are told apart by what they hold, not by a type, and upstreams are careless with tool calls: names come after
arguments, indexes start again, ids repeat. What can be understood without guessing is; the rest is a BadAnswer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer, CallCut, CutAnswer
from proxy.core.sse import dump_json
from proxy.core.token_usage import chat_usage
from proxy.core.tools.calls import ArgumentStream, offered_tools, parse_arguments, unique_id
from proxy.core.tools.read_tool import MAX_ARGUMENTS

#: upstream word -> stop reason; a word that is not here counts as `stop`
STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
#: Stop reasons that may cut a call short.
_CUTTING = ("max_tokens", "refusal")
#: More calls in one answer are a runaway model.
MAX_CALLS = 256
#: Names and ids come in pieces, but not for ever.
MAX_LABEL = 1024


def chunk_error(chunk: Mapping[str, Any]) -> str | None:
    """What the upstream says when a chunk is an error, else None.

    >>> chunk_error({"error": {"message": "overloaded"}}), chunk_error({"choices": [], "error": None})
    ('overloaded', None)
    """
    error = chunk.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) and message else "the upstream reported an error"


@dataclass(frozen=True, slots=True)
class _Fragment:
    """One entry of `tool_calls`."""

    index: int | str | None
    call_id: str
    name: str
    text: str


@dataclass(slots=True)
class _Call:
    """A tool call under way. Its block opens when it is its turn and it is known what to open; until then, and as long
    as earlier calls are open, its arguments wait in `text`."""

    number: int
    call_id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list)
    size: int = 0
    passed: int = 0  # pieces of `text` that went through the filter
    filter: ArgumentStream | None = None  # set when the block is open
    key: int = -1
    done: bool = False  # closed, or left out
    looked: int = -1  # size at the last look whether it is whole, and what was found
    is_whole: bool = False

    @property
    def blank(self) -> bool:
        """No arguments yet; some upstreams write "null" for none."""
        return self.size < 100 and "".join(self.text).strip() in ("", "null")

    @property
    def whole(self) -> bool:
        """Whether the arguments are a complete object; nothing can then follow."""
        if self.looked != self.size:
            self.looked = self.size
            ends = next((piece.rstrip() for piece in reversed(self.text) if piece.strip()), "")
            self.is_whole = ends[-1:] == "}" and parse_arguments("".join(self.text)) is not None
        return self.is_whole

    def repeated(self, fragment: _Fragment) -> bool:
        """Whether a fragment is the whole call once more: some upstreams sum up at the end."""
        same = fragment.call_id == self.call_id != "" and len(fragment.text) == self.size
        return same and fragment.text == "".join(self.text) and self.whole

    @property
    def object_begun(self) -> bool:
        head = next((piece.lstrip() for piece in self.text if piece.strip()), "")
        return head[:1] == "{"


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
        self._blocks = 0  # opened so far: the index of the next one, and its key
        self._open: tuple[str, int] | None = None  # the open thinking or text block
        self._held: list[str] | None = None  # the open text of a structured answer, which is rewritten as a whole
        self._held_size = 0
        self._places: dict[int | str, _Call] = {}  # by upstream index; the newest call with that index
        self._calls: list[_Call] = []
        self._arguments_size = 0
        self._finish: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self.produced = False
        self.only_thinking = True
        self.finished = False
        self.incomplete = False
        self.usage: dict[str, Any] = {}

    # -- entry points

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        """The Messages events of one chunk. Raises BadAnswer, also for a chunk that is an error."""
        if not self.finished:
            error = chunk_error(chunk)
            if error is not None:
                raise BadAnswer(error)
            self._stream.start()
            self._note_usage(chunk.get("usage"))
            try:
                for choice in _choices(chunk):
                    self._choice(choice)
            except OverflowError as overflow:
                raise BadAnswer(str(overflow)) from None
        return self._stream.take()

    def end(self, *, done: bool) -> list[Event]:
        """The end of the stream; `done` when the upstream said that it was. Raises BadAnswer, and CutAnswer when it was
        not."""
        if not self.finished:
            if self._finish is None and not done:
                raise CutAnswer("the upstream cut the answer: it ended without a finish reason")
            try:
                self._complete()
            except OverflowError as overflow:
                raise BadAnswer(str(overflow)) from None
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """What can be said before an error."""
        try:
            self._close_block()
        except OverflowError:
            pass  # behind a call that never ended: nobody would see it
        self._stream.interrupt()
        return self._stream.take()

    # -- chunks

    def _note_usage(self, usage: Any) -> None:
        if isinstance(usage, Mapping) and usage:
            self._usage = usage

    def _choice(self, choice: Mapping[str, Any]) -> None:
        self._note_usage(choice.get("usage"))
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._say("thinking", delta.get("reasoning_content") or delta.get("reasoning"))
            self._say("text", delta.get("content"))
            for fragment in _fragments(delta.get("tool_calls")):
                self._fragment(fragment)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if self._finish not in (None, reason):
                raise BadAnswer(f"the upstream ended the answer twice: {self._finish}, then {reason}")
            self._finish = reason

    def _say(self, kind: str, text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        self.produced = True
        self.only_thinking = self.only_thinking and kind == "thinking"
        if self._open is None or self._open[0] != kind:
            self._close_block()
            self._close_whole()  # what is not complete may become so: the text then waits behind it
            empty = {"type": kind, kind: ""}
            key = self._open_block({**empty, "signature": ""} if kind == "thinking" else empty)
            self._open = (kind, key)
            self._held = [] if kind == "text" and self._policy.restore is not None else None
            self._held_size = 0
        if self._held is None:
            self._stream.delta(self._open[1], {"type": f"{kind}_delta", kind: text})
            return
        self._held.append(text)
        self._held_size += len(text)
        if self._held_size > MAX_HELD_BYTES:
            raise BadAnswer(f"a structured answer passed {MAX_HELD_BYTES} bytes")

    def _open_block(self, block: dict[str, Any]) -> int:
        """Opens a block behind all others. Its key is its index."""
        key, self._blocks = self._blocks, self._blocks + 1
        self._stream.open(key, block)
        return key

    def _close_block(self) -> None:
        if self._open is None:
            return
        (kind, key), self._open = self._open, None
        if kind == "thinking":
            self._stream.delta(key, {"type": "signature_delta", "signature": self._signature(key)})
        elif self._held is not None and self._policy.restore is not None:
            text, self._held = self._policy.restore("".join(self._held)), None
            self._stream.delta(key, {"type": "text_delta", "text": text})
        self._stream.close(key)

    def _signature(self, index: int) -> str:
        """Carries nothing; it is only stable, and clients want one."""
        text = f"{self._mark}:{self._stream.message_id}:{index}"
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    # -- tool calls: which one a fragment belongs to

    @cached_property
    def _tools(self) -> frozenset[str]:
        return frozenset(tool["name"] for tool in offered_tools(self._policy.request))

    def _fragment(self, fragment: _Fragment) -> None:
        call = self._known(fragment)
        if call is None or self._starts_another(call, fragment):
            call = self._new(fragment)
        elif call.repeated(fragment):
            return
        if call.done:
            if fragment.text.strip():
                raise BadAnswer(f"the upstream sent more arguments for tool {call.name} after they were complete")
            return
        self._close_block()
        self._label(call, fragment)
        self._append(call, fragment.text)
        self._advance()

    def _known(self, fragment: _Fragment) -> _Call | None:
        """The call with this index; without an index, the one with this id, or the newest one."""
        if fragment.index is not None:
            return self._places.get(fragment.index)
        if fragment.call_id:
            return next((call for call in reversed(self._calls) if call.call_id == fragment.call_id), None)
        return self._calls[-1] if self._calls else None

    def _starts_another(self, call: _Call, fragment: _Fragment) -> bool:
        """Whether a fragment in the place of a call begins another one there: indexes start again, or are missing.

        Only a fragment with a name can. It does not when it repeats the id, or when the names together are that of a
        tool, so that it brings the rest of the name.
        """
        if not fragment.name or not call.name or (fragment.call_id and fragment.call_id == call.call_id):
            return False
        known = call.name in self._tools and fragment.name in self._tools
        if call.filter is None and call.name + fragment.name in self._tools and not known:
            return False
        other_id = bool(fragment.call_id and call.call_id)
        if call.whole:
            return other_id or fragment.name != call.name or bool(fragment.text.strip())
        return call.blank and (other_id or (fragment.name != call.name and known))

    def _new(self, fragment: _Fragment) -> _Call:
        if len(self._calls) >= MAX_CALLS:
            raise BadAnswer(f"more than {MAX_CALLS} tool calls in one answer")
        self._close_block()
        self._close_whole()
        numbers = {call.number for call in self._calls}
        place = fragment.index if isinstance(fragment.index, int) else -1
        fits = 0 <= place < 4 * MAX_CALLS and place not in numbers
        call = _Call(place if fits else next(number for number in range(MAX_CALLS) if number not in numbers))
        self._calls.append(call)
        if fragment.index is not None:
            self._places[fragment.index] = call
        return call

    def _label(self, call: _Call, fragment: _Fragment) -> None:
        """Names and ids may come in pieces, or whole in every fragment."""
        if call.filter is None:
            call.call_id += fragment.call_id if fragment.call_id != call.call_id else ""
            call.name += fragment.name if fragment.name != call.name else ""
            if len(call.call_id) > MAX_LABEL or len(call.name) > MAX_LABEL:
                raise BadAnswer(f"the upstream sent a tool call with more than {MAX_LABEL} characters of name or id")
        elif fragment.name not in ("", call.name):
            raise BadAnswer(f"the upstream renamed a call of tool {call.name} to {fragment.name}")

    def _append(self, call: _Call, text: str) -> None:
        if not text:
            return
        self.produced, self.only_thinking = True, False
        call.text.append(text)
        call.size += len(text)
        self._arguments_size += len(text)
        if call.size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of tool {call.name} passed {MAX_ARGUMENTS} bytes")
        if self._arguments_size > MAX_HELD_BYTES:
            raise BadAnswer(f"the arguments of all tool calls passed {MAX_HELD_BYTES} bytes")

    # -- tool calls: one block after another

    def _advance(self) -> None:
        """Passes on what is known of the first call that is not complete; later ones wait for it."""
        call = next((call for call in self._calls if not call.done), None)
        if call is None:
            return
        if call.filter is not None or self._ready(call):
            self._pass(call)

    def _ready(self, call: _Call) -> bool:
        """Whether the client can be told of a call. A name that only begins one of a tool may not be all of it."""
        if not call.name or not (call.call_id or self._own_id is not None) or not call.object_begun:
            return False
        return call.name in self._tools or not any(tool.startswith(call.name) for tool in self._tools)

    def _pass(self, call: _Call) -> None:
        """Opens the block if need be, and lets out the arguments so far."""
        if call.filter is None:
            self.produced, self.only_thinking = True, False
            name = self._policy.names.get(call.name, call.name)
            wanted = self._own_id(call.number) if self._own_id is not None else call.call_id
            call_id = unique_id(wanted or f"call_{self._stream.message_id}_{call.number}", self._policy.used_ids)
            call.filter = ArgumentStream(self._policy.optional(name))
            call.key = self._open_block({"type": "tool_use", "id": call_id, "name": name, "input": {}})
        if not call.blank:
            for text in call.text[call.passed :]:
                self._send(call, call.filter.feed(text))
            call.passed = len(call.text)

    def _send(self, call: _Call, text: str) -> None:
        if text:
            self._stream.delta(call.key, {"type": "input_json_delta", "partial_json": text})

    def _close_whole(self) -> None:
        """Closes the first calls that are complete for certain. One without arguments may still get some."""
        for call in self._calls:
            if not call.done:
                if not call.whole or not call.name:
                    return
                self._close(call)

    def _close(self, call: _Call) -> None:
        if not call.name:
            raise BadAnswer("the upstream sent a tool call without a name")
        if not call.whole and not call.blank:
            raise BadAnswer(f"the upstream sent arguments of tool {call.name} that are not a JSON object")
        self._pass(call)
        if call.filter is not None:
            self._send(call, call.filter.end())
        self._stream.close(call.key)
        call.done = True

    # -- the end

    def _complete(self) -> None:
        self._close_block()
        reason = STOP_REASONS.get(self._finish or "stop", "end_turn")
        for call in self._calls:
            if call.done:
                continue
            if reason in _CUTTING and self._is_cut(call):
                self._leave_out(call, reason)
            else:
                self._close(call)
        if reason in ("end_turn", "tool_use"):  # some upstreams say `stop` after calls, or name calls that never came
            reason = "tool_use" if any(call.done for call in self._calls) else "end_turn"
        self.usage = chat_usage(self._usage)
        self.finished = True
        self._stream.finish(reason, self.usage)

    def _is_cut(self, call: _Call) -> bool:
        """Without arguments, the last call may have been cut before them."""
        return not call.name or not (call.whole or (call.blank and call is not self._calls[-1]))

    def _leave_out(self, call: _Call, reason: str) -> None:
        """A call that was cut. When nobody has seen it the client can go on without it; one that the client sees must
        not be closed, since that would run it."""
        if call.filter is not None:
            if reason == "max_tokens":
                raise CallCut(call.name, chat_usage(self._usage))
            raise BadAnswer(f"the answer ended ({reason}) inside the arguments of tool {call.name}")
        call.done = True


def _choices(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of the first answer; one upstream puts content and finish reason into two entries of it."""
    choices = chunk.get("choices")
    found = choices if isinstance(choices, list) else []
    return [choice for choice in found if isinstance(choice, Mapping) and choice.get("index") in (0, None)]


def _fragments(value: Any) -> list[_Fragment]:
    members = [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []
    return [_fragment_of(member) for member in members]


def _fragment_of(member: Mapping[str, Any]) -> _Fragment:
    function, index = member.get("function"), member.get("index")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    return _Fragment(
        index if isinstance(index, int | str) and not isinstance(index, bool) else None,
        _text(member.get("id")),
        _text(function.get("name")),
        arguments if isinstance(arguments, str) else "" if arguments is None else dump_json(arguments),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
