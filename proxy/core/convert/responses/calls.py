"""Function calls in a Responses stream, from the item that begins one to its complete arguments.

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
from proxy.core.sse import dump_json, dump_sorted_json
from proxy.core.tools.calls import ArgumentStream, are_readable, parse_arguments
from proxy.core.tools.read_tool import MAX_ARGUMENTS, STALL_BLANKS, repair_arguments, stalled_arguments
from proxy.core.tools.read_tool import NAME as READ

#: Maximum number of calls that are open at once.
MAX_OPEN = 128
#: Longest arguments, in characters, of a call under `AnswerRules.exact`, and of all calls without a name.
MAX_EXACT = 1024 * 1024


@dataclass(slots=True)
class FunctionCall:
    """An unfinished function call. `text` is what the upstream sent, `sent` whether the client has seen any of it."""

    key: object
    sent_as: str  # the upstream's own call id
    call_id: str
    name: str
    filter: ArgumentStream
    buffered: bool
    limit: int
    text: list[str] = field(default_factory=list)
    size: int = 0
    sent: bool = False
    blanks: int = 0  # length of the run of blanks at the end
    next_look: int = STALL_BLANKS
    cut: bool = False  # the upstream ended it before its arguments were complete
    shown: bool | None = True  # whether arguments are shown; None until it is known whether they begin an object

    def append(self, text: str) -> None:
        """Adds a piece of the arguments. Raises BadAnswer if they are too long."""
        self.text.append(text)
        self.size += len(text)
        if self.size > self.limit:
            raise BadAnswer(f"the arguments of tool {self.name} passed {self.limit} bytes")

    def is_other_than(self, item: Mapping[str, Any]) -> bool:
        """Whether an item is another call than this one."""
        return isinstance(item.get("call_id"), str) and item["call_id"] not in ("", self.sent_as)


class FunctionCalls:
    """The calls of one answer.

    begun     number of calls
    doubtful  whether a call may be incomplete, or more calls may follow
    """

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._numbers = count()
        self._open: dict[int, FunctionCall] = {}  # by place
        self._done: set[tuple[int, str]] = set()  # (place, the upstream's call id)
        self._unnamed: dict[int, list[str]] = {}  # arguments of calls that wait for their name, by place
        self._waiting = 0  # characters of all these
        self._exact = policy.rules.exact
        self.begun = 0
        self.doubtful = False

    @property
    def are_open(self) -> bool:
        return bool(self._open or self._unnamed)

    @property
    def under_way(self) -> FunctionCall | None:
        """The first call that is not closed."""
        return next(iter(self._open.values()), None)

    @property
    def any_done(self) -> bool:
        return bool(self._done)

    # -- the beginning

    def begins(self, index: int, item: Mapping[str, Any]) -> bool:
        """Whether an item is a call that was not added yet."""
        return index not in self._open or self._open[index].is_other_than(item)

    def add(self, index: int, item: Mapping[str, Any]) -> None:
        """Opens a call, unless it is known. An earlier unfinished one in this place must be complete by now."""
        known = (index, _call_id(item))
        if self._exact:  # it is another call, even if it looks alike
            self._done.discard(known)
        elif known[1] and known in self._done:
            return
        earlier = self._open.get(index)
        if earlier is not None:
            if self._exact:
                raise BadAnswer(f"the upstream began another call inside that of tool {earlier.name}")
            if not earlier.is_other_than(item):
                return
            if not earlier.text:
                raise BadAnswer(f"the upstream never ended the call of tool {earlier.name}")
            self._complete(index, earlier, "".join(earlier.text))
            self.doubtful = True
        if self._is_named(item):
            self._begin(index, item)
        else:
            self._unnamed.setdefault(index, [])

    def _is_named(self, item: Mapping[str, Any]) -> bool:
        """Whether a block can begin: there is a name and, if calls are checked strictly, an id."""
        call_id = item.get("call_id")
        return bool(_name(item)) and (not self._exact or (isinstance(call_id, str) and bool(call_id)))

    def begin_late(self, index: int, item: Mapping[str, Any]) -> None:
        """Opens a call whose end is its first event, or the first with its name. Raises BadAnswer."""
        waited = self._unnamed.pop(index, [])
        if not _name(item):
            raise BadAnswer("the upstream sent a tool call without a name")
        self.add(index, item) if self._is_named(item) else self._begin(index, item)
        for delta in waited if index in self._open else ():
            self.add_arguments(index, self._open[index], delta)

    def _begin(self, index: int, item: Mapping[str, Any]) -> None:
        upstreams = _call_id(item)
        twice = self._exact and any(call.sent_as == upstreams for call in self._open.values())
        if twice or len(self._open) >= MAX_OPEN:
            raise BadAnswer("the upstream began a call twice" if twice else f"more than {MAX_OPEN} calls are open")
        name = self._policy.name(_name(item))
        call_id = self._policy.unique_id(upstreams)
        self.begun += 1
        key = ("call", next(self._numbers))
        self._open[index] = FunctionCall(
            key=key,
            sent_as=upstreams,
            call_id=call_id,
            name=name,
            filter=ArgumentStream(self._policy.optional(name)),
            buffered=name == READ and self._policy.offsets is not None,
            limit=MAX_EXACT if self._exact else MAX_ARGUMENTS,
            shown=None if self._exact else True,
        )
        self._stream.open(key, TOOL_USE.start(id=call_id, name=name))

    # -- arguments

    def open_at(self, index: int | None) -> FunctionCall | None:
        return self._open.get(index) if index is not None else None

    def add_stray(self, index: int | None, delta: str) -> None:
        """Keeps arguments where no call is open: of a call that waits for its name, else a mistake. Raises
        BadAnswer."""
        if index is not None and index in self._unnamed:
            self._unnamed[index].append(delta)
            self._waiting += len(delta)
            if self._waiting > MAX_EXACT:
                raise BadAnswer(f"the arguments of tools without a name passed {MAX_EXACT} bytes")
            return
        if self._exact and delta.strip():
            raise BadAnswer("the upstream sent arguments of a call that is not open")
        self.doubtful = True

    def add_arguments(self, index: int, call: FunctionCall, delta: str) -> bool:
        """Adds arguments. Returns True if the model will not end the call by itself; it is then complete and closed."""
        call.append(delta)
        if call.buffered:
            return self._close_if_stalled(index, call, delta)
        if call.shown is None and (begun := delta.lstrip()):
            call.shown, delta = begun[0] == "{", begun
        if call.shown:
            self._send(call, call.filter.feed(delta))
        return False

    def whole_arguments(self, index: int | None, event: Mapping[str, Any]) -> None:
        """Takes the arguments in one piece if no delta brought any. Raises BadAnswer."""
        call = self._open.get(index) if index is not None else None
        text = _final_arguments(event)
        if call is None or not text:
            return
        if not call.text:
            call.append(text)
        elif self._exact and not _are_equal("".join(call.text), text):
            raise BadAnswer(f"the upstream sent two versions of the arguments of tool {call.name}")

    def _send(self, call: FunctionCall, text: str) -> None:
        if text:
            call.sent = True
            self._stream.delta(call.key, INPUT_DELTA.of(text))

    def _close_if_stalled(self, index: int, call: FunctionCall, delta: str) -> bool:
        """Closes a complete call whose model emits endless blanks, since that would never end it."""
        call.blanks = call.blanks + len(delta) if delta.isspace() else len(delta) - len(delta.rstrip())
        if call.blanks < call.next_look:
            return False
        call.next_look *= 2  # an incomplete text is not parsed again for every blank
        arguments = stalled_arguments("".join(call.text))
        if arguments is None:
            return False
        self._complete(index, call, arguments)
        return True

    # -- the end

    def is_repeated(self, index: int, item: Mapping[str, Any]) -> bool:
        """Whether an item repeats a call that is done."""
        call_id = _call_id(item)
        return (index, call_id) in self._done and bool(call_id or index not in self._open)

    def done(self, index: int, item: Mapping[str, Any]) -> None:
        """Handles the upstream's end of a call."""
        call = self._open[index]
        self._done.add((index, _call_id(item) or call.sent_as))
        self.doubtful = self.doubtful or item.get("status") not in (None, "completed")
        if not call.text:
            call.append(_final_arguments(item))
        text = "".join(call.text)
        if item.get("status") == "incomplete" and (not text.strip() or parse_arguments(text) is None):
            call.cut = True  # the last event has the reason
            return
        self._complete(index, call, text)

    def complete(self) -> None:
        """Closes all calls, since nothing follows. Raises BadAnswer if one is incomplete."""
        if self._unnamed:
            raise BadAnswer("the upstream sent a tool call without a name")
        if self._exact and self.under_way is not None:
            raise BadAnswer(f"the upstream never ended the call of tool {self.under_way.name}")
        for index, call in list(self._open.items()):
            self._complete(index, call, "".join(call.text))

    def end_cut(self) -> None:
        """Ends the calls of an answer that the token limit cut: complete ones are closed, others stay open with the
        arguments so far. At least `{` is sent, since nothing would look like a call without arguments."""
        for index, call in list(self._open.items()):
            text = "".join(call.text)
            if parse_arguments(text) is not None and text.strip():
                call.cut = False
                self._complete(index, call, text)
            elif not call.sent:
                fits = call.shown or text.lstrip()[:1] == "{"
                self._send(call, text if fits and text.strip() else "{")

    def _complete(self, index: int, call: FunctionCall, text: str) -> None:
        """Closes a call whose arguments have all arrived. Raises BadAnswer if the client's tool cannot read them."""
        if call.cut:
            raise BadAnswer(f"the answer ended before the arguments of tool {call.name}")
        if not are_readable(text):
            raise BadAnswer(f"the upstream sent arguments of tool {call.name} that are not JSON")
        if self._exact:
            text = _object_text(text, call.name)
        if call.buffered and self._policy.offsets is not None:
            text = repair_arguments(text, call.call_id, self._policy.offsets)
        if call.sent:
            self._send(call, call.filter.end())
        elif text.strip():
            whole = ArgumentStream(self._policy.optional(call.name))
            self._send(call, whole.feed(text) + whole.end())
        self._stream.close(call.key)
        del self._open[index]


def _name(item: Mapping[str, Any]) -> str:
    name = item.get("name")
    return name if isinstance(name, str) else ""


def _call_id(item: Mapping[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _final_arguments(holder: Mapping[str, Any]) -> str:
    """The whole arguments of a call as text. Some upstreams send the object itself."""
    arguments = holder.get("arguments")
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dump_json(arguments)


def _are_equal(pieces: str, whole: str) -> bool:
    """Whether two texts are the same arguments, apart from blanks."""
    if pieces == whole:
        return True
    first, second = parse_arguments(pieces), parse_arguments(whole)
    if first is None or second is None:
        return "".join(pieces.split()) == "".join(whole.split())
    return dump_sorted_json(first) == dump_sorted_json(second)


def _object_text(text: str, name: str) -> str:
    """The text of arguments that are an object, "" for null. Raises BadAnswer for every other value."""
    arguments = parse_arguments(text)
    if arguments is None:
        raise BadAnswer(f"the upstream sent arguments of tool {name} that are not a JSON object")
    return text if arguments else text if text.strip()[:1] == "{" else ""
