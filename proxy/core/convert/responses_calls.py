"""Function calls in a Responses stream: from the item that begins one to the arguments that are whole.

A call is closed only when its arguments are complete JSON, since the client runs it at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from proxy.core.blocks import INPUT_DELTA, TOOL_USE
from proxy.core.messages import MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tools.calls import ArgumentStream, are_readable, parse_arguments, unique_id
from proxy.core.tools.read_tool import MAX_ARGUMENTS, STALL_BLANKS, repair_arguments, stalled_arguments
from proxy.core.tools.read_tool import NAME as READ


@dataclass(slots=True)
class FunctionCall:
    """A function call under way. `text` is what the upstream sent, `sent` whether the client has seen any of it."""

    key: object
    sent_as: str  # the upstream's own call id
    call_id: str
    name: str
    filter: ArgumentStream
    buffered: bool
    text: list[str] = field(default_factory=list)
    size: int = 0
    sent: bool = False
    blanks: int = 0  # length of the run of blanks at the end
    next_look: int = STALL_BLANKS
    cut: bool = False  # the upstream ended it before its arguments were whole

    def append(self, text: str) -> None:
        """Raises BadAnswer when the arguments are too long."""
        self.text.append(text)
        self.size += len(text)
        if self.size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of tool {self.name} passed {MAX_ARGUMENTS} bytes")

    def is_other_than(self, item: Mapping[str, Any]) -> bool:
        """Whether an item is another call than this one."""
        return isinstance(item.get("call_id"), str) and item["call_id"] not in ("", self.sent_as)


class FunctionCalls:
    """The calls of one answer.

    begun     whether there was any
    doubtful  whether a call may not be complete, or not be the last one
    """

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._numbers = count()
        self._open: dict[int, FunctionCall] = {}  # by output_index
        self._done: set[tuple[int, str]] = set()  # (output_index, the upstream's call id)
        self.begun = False
        self.doubtful = False

    @property
    def under_way(self) -> FunctionCall | None:
        """The first call that is not closed."""
        return next(iter(self._open.values()), None)

    @property
    def any_done(self) -> bool:
        return bool(self._done)

    def of_event(self, event: Mapping[str, Any]) -> FunctionCall | None:
        """The call that an arguments event belongs to; one that does not say so belongs to none."""
        index = event.get("output_index")
        return self._open.get(index) if isinstance(index, int) else None

    # -- the beginning

    def begins(self, index: int, item: Mapping[str, Any]) -> bool:
        """Whether an item is a call that was not added."""
        return index not in self._open or self._open[index].is_other_than(item)

    def add(self, index: int, item: Mapping[str, Any]) -> None:
        """Opens a call, unless it is known. One that never ended in this place must be complete by now."""
        call_id = _call_id(item)
        if call_id and (index, call_id) in self._done:
            return
        earlier = self._open.get(index)
        if earlier is not None:
            if not earlier.is_other_than(item):
                return
            if not earlier.text:
                raise BadAnswer(f"the upstream never ended the call of tool {earlier.name}")
            self._complete(index, earlier, "".join(earlier.text))
            self.doubtful = True
        self._begin(index, item)

    def _begin(self, index: int, item: Mapping[str, Any]) -> None:
        name = item.get("name") if isinstance(item.get("name"), str) else ""
        if not name:
            raise BadAnswer("the upstream sent a tool call without a name")
        name = self._policy.names.get(name, name)
        call_id = unique_id(_call_id(item), self._policy.used_ids)
        self.begun = True
        key = ("call", next(self._numbers))
        self._open[index] = FunctionCall(
            key=key,
            sent_as=_call_id(item),
            call_id=call_id,
            name=name,
            filter=ArgumentStream(self._policy.optional(name)),
            buffered=name == READ and self._policy.offsets is not None,
        )
        self._stream.open(key, TOOL_USE.start(id=call_id, name=name))

    # -- arguments

    def add_arguments(self, index: int, call: FunctionCall, delta: str) -> bool:
        """More arguments; True when the model will not end the call by itself, which is complete and closed then."""
        call.append(delta)
        if call.buffered:
            return self._close_if_stalled(index, call, delta)
        self._send(call, call.filter.feed(delta))
        return False

    def whole_arguments(self, call: FunctionCall, event: Mapping[str, Any]) -> None:
        """The arguments in one piece, taken when no delta brought any."""
        text = _final_arguments(event)
        if not call.text and text:
            call.append(text)

    def _send(self, call: FunctionCall, text: str) -> None:
        if text:
            call.sent = True
            self._stream.delta(call.key, INPUT_DELTA.of(text))

    def _close_if_stalled(self, index: int, call: FunctionCall, delta: str) -> bool:
        """A model that emits blanks without end will not close its call: what is complete is taken."""
        call.blanks = call.blanks + len(delta) if delta.isspace() else len(delta) - len(delta.rstrip())
        if call.blanks < call.next_look:
            return False
        call.next_look *= 2  # a text that is not complete is not looked at again for every blank
        arguments = stalled_arguments("".join(call.text))
        if arguments is None:
            return False
        self._complete(index, call, arguments)
        return True

    # -- the end

    def is_repeated(self, index: int, item: Mapping[str, Any]) -> bool:
        """Whether a call that is done is told once more."""
        call_id = _call_id(item)
        return (index, call_id) in self._done and bool(call_id or index not in self._open)

    def done(self, index: int, item: Mapping[str, Any]) -> None:
        """The upstream ended a call."""
        call = self._open[index]
        self._done.add((index, _call_id(item) or call.sent_as))
        self.doubtful = self.doubtful or item.get("status") not in (None, "completed")
        if not call.text:
            call.append(_final_arguments(item))
        text = "".join(call.text)
        if item.get("status") == "incomplete" and (not text.strip() or parse_arguments(text) is None):
            call.cut = True  # the last event tells why
            return
        self._complete(index, call, text)

    def complete(self) -> None:
        """Closes all calls: nothing follows. Raises BadAnswer when one is not whole."""
        for index, call in list(self._open.items()):
            self._complete(index, call, "".join(call.text))

    def end_cut(self) -> None:
        """The token limit ended the answer: calls that are whole are closed, the others stay open, with all that is
        known of their arguments. That is never nothing, which would be taken for a call without arguments."""
        for index, call in list(self._open.items()):
            text = "".join(call.text)
            if parse_arguments(text) is not None and text.strip():
                call.cut = False
                self._complete(index, call, text)
            elif not call.sent:
                self._send(call, text if text.strip() else "{")

    def _complete(self, index: int, call: FunctionCall, text: str) -> None:
        """Closes a call whose arguments have all arrived. What is not JSON must not reach the client's tool."""
        if call.cut:
            raise BadAnswer(f"the answer ended before the arguments of tool {call.name}")
        if not are_readable(text):
            raise BadAnswer(f"the upstream sent arguments of tool {call.name} that are not JSON")
        if call.buffered and self._policy.offsets is not None:
            text = repair_arguments(text, call.call_id, self._policy.offsets)
        if call.sent:
            self._send(call, call.filter.end())
        elif text.strip():
            whole = ArgumentStream(self._policy.optional(call.name))
            self._send(call, whole.feed(text) + whole.end())
        self._stream.close(call.key)
        del self._open[index]


def _call_id(item: Mapping[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _final_arguments(holder: Mapping[str, Any]) -> str:
    """The whole arguments of a call, as text: some upstreams send the object itself."""
    arguments = holder.get("arguments")
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dump_json(arguments)
