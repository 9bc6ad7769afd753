"""Tool calls in a chat-completions stream: assigns fragments to calls and collects them.

Upstreams are careless: names come after arguments, indexes start again, ids repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from proxy.core.messages import MAX_HELD_BYTES
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tools.calls import ArgumentStream, are_readable, offered_tools, short_name
from proxy.core.tools.read_tool import MAX_ARGUMENTS

#: Maximum number of calls in one answer.
MAX_CALLS = 256
#: Longest name or id, in characters; they may come in pieces.
MAX_LABEL = 1024
#: Characters that are parsed, in all, to check whether the arguments of a call are complete. If every piece names its
#: tool, each piece that ends like JSON is followed by a check.
MAX_READ = 32 * 1024 * 1024
#: first character of a JSON value whose end is recognisable -> its last one.
_CLOSING = {"{": "}", "[": "]", '"': '"'}


@dataclass(frozen=True, slots=True)
class ToolCallFragment:
    """One entry of `tool_calls`."""

    index: int | str | None
    call_id: str
    name: str
    text: str


def fragments_of(value: Any) -> list[ToolCallFragment]:
    """The entries of the member `tool_calls` of a delta. Raises BadAnswer."""
    members = value or []
    if not isinstance(members, list) or not all(isinstance(member, Mapping) for member in members):
        raise BadAnswer("the upstream sent `tool_calls` that are not a list of objects")
    return [_fragment_of(member) for member in members]


def _fragment_of(member: Mapping[str, Any]) -> ToolCallFragment:
    function, index = member.get("function"), member.get("index")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    return ToolCallFragment(
        index if isinstance(index, int | str) and not isinstance(index, bool) else None,
        _text(member.get("id")),
        _text(function.get("name")),
        arguments if isinstance(arguments, str) else "" if arguments is None else dump_json(arguments),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@dataclass(slots=True)
class ToolCall:
    """An unfinished tool call. Its block opens when it is its turn and its name is known. Until then its arguments wait
    in `text`."""

    number: int
    call_id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list)
    size: int = 0
    passed: int = 0  # pieces of `text` that went through the filter
    filter: ArgumentStream | None = None  # set when the block is open
    key: int = -1
    done: bool = False  # closed, or left out
    looked: int = -1  # size at the last check whether it is whole, and the result
    is_whole: bool = False
    read: int = 0  # characters that were parsed for that
    begins_with: str = ""  # the first character that is no blank
    ends_with: str = ""  # the last one

    @property
    def blank(self) -> bool:
        """Whether there are no arguments yet; some upstreams write "null" for none."""
        return self.size < 100 and "".join(self.text).strip() in ("", "null")

    @property
    def whole(self) -> bool:
        """Whether the arguments are a complete object, list or text, so that nothing can follow."""
        if self.looked != self.size:
            self.looked = self.size
            self.is_whole = self.ends_with == _CLOSING.get(self.begins_with) and self._is_readable()
        return self.is_whole

    def _is_readable(self) -> bool:
        self.read += self.size
        if self.read > MAX_READ:
            raise BadAnswer(f"the upstream names tool {self.name} in too many pieces of its arguments")
        return are_readable("".join(self.text))

    def repeated(self, fragment: ToolCallFragment) -> bool:
        """Whether a fragment repeats the whole call, as some upstreams do at the end."""
        same = fragment.call_id == self.call_id != "" and len(fragment.text) == self.size
        return same and fragment.text == "".join(self.text) and self.whole

    @property
    def object_begun(self) -> bool:
        return self.begins_with == "{"

    def label(self, fragment: ToolCallFragment) -> None:
        """Takes the name and the id of a fragment, which come in pieces or whole in every fragment. Raises
        BadAnswer."""
        if self.filter is None:
            self.call_id += fragment.call_id if fragment.call_id != self.call_id else ""
            self.name += fragment.name if fragment.name != self.name else ""
            if len(self.call_id) > MAX_LABEL or len(self.name) > MAX_LABEL:
                raise BadAnswer(f"the upstream sent a tool call with more than {MAX_LABEL} characters of name or id")
        elif fragment.name not in ("", self.name):
            raise BadAnswer(f"the upstream renamed a call of tool {self.name} to {fragment.name}")


class ToolCalls:
    """The tool calls of one answer to `request`, in their order."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._calls: list[ToolCall] = []
        self._places: dict[int | str, ToolCall] = {}  # by upstream index; the newest call with that index
        self._size = 0

    @cached_property
    def _tools(self) -> frozenset[str]:
        """The upstream's names of the tools in the request; computed late, since most answers have no call."""
        return frozenset(short_name(tool["name"]) for tool in offered_tools(self._request))

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls)

    def is_newest(self, call: ToolCall) -> bool:
        return call is self._calls[-1]

    def find(self, fragment: ToolCallFragment) -> ToolCall | None:
        """The call that a fragment belongs to; None if it begins another one."""
        call = self._at(fragment)
        return None if call is None or self._starts_another(call, fragment) else call

    def _at(self, fragment: ToolCallFragment) -> ToolCall | None:
        """The call with this index; without an index, the one with this id, or the newest one."""
        if fragment.index is not None:
            return self._places.get(fragment.index)
        if fragment.call_id:
            return next((call for call in reversed(self._calls) if call.call_id == fragment.call_id), None)
        return self._calls[-1] if self._calls else None

    def _starts_another(self, call: ToolCall, fragment: ToolCallFragment) -> bool:
        """Whether a fragment in the place of a call begins another one: indexes may start again, or be missing.

        Only a fragment with a name can. It does not if it repeats the id, or if both names together are that of a tool,
        since then it has the rest of the name.
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

    def begin(self, fragment: ToolCallFragment) -> ToolCall:
        """Adds a new call after all others. Raises BadAnswer."""
        if len(self._calls) >= MAX_CALLS:
            raise BadAnswer(f"more than {MAX_CALLS} tool calls in one answer")
        numbers = {call.number for call in self._calls}
        place = fragment.index if isinstance(fragment.index, int) else -1
        fits = 0 <= place < 4 * MAX_CALLS and place not in numbers
        call = ToolCall(place if fits else next(number for number in range(MAX_CALLS) if number not in numbers))
        self._calls.append(call)
        if fragment.index is not None:
            self._places[fragment.index] = call
        return call

    def append(self, call: ToolCall, text: str) -> None:
        """Adds arguments to a call. Raises BadAnswer if they are too long."""
        call.text.append(text)
        call.begins_with = call.begins_with or text.lstrip()[:1]
        call.ends_with = text.rstrip()[-1:] or call.ends_with
        call.size += len(text)
        self._size += len(text)
        if call.size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of tool {call.name} passed {MAX_ARGUMENTS} bytes")
        if self._size > MAX_HELD_BYTES:
            raise BadAnswer(f"the arguments of all tool calls passed {MAX_HELD_BYTES} bytes")

    def can_be_shown(self, call: ToolCall, *, own_ids: bool) -> bool:
        """Whether a call can be shown to the client. A name that only begins that of a tool may be incomplete."""
        if not call.name or not (call.call_id or own_ids) or not call.object_begun:
            return False
        return call.name in self._tools or not any(tool.startswith(call.name) for tool in self._tools)
