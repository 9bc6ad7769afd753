"""Tool names, call ids, argument texts and open calls, about which upstreams and clients disagree."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.core.invalid import InvalidRequest
from proxy.core.long_json import Remembered
from proxy.core.sse import dump_json, dump_sorted_json, load_json
from proxy.core.tools.anthropic_tools import described
from proxy.core.tools.function_schema import function_schema
from proxy.core.tools.schema import accepts_null
from proxy.core.tools.step_budget import Steps, ToolWalk

#: Function names, call ids and cache keys longer than this are refused by the Responses API; MCP tools often are.
MAX_NAME = 64

#: The result of a call that an interrupted client never answered, since no upstream accepts a call without one.
NO_RESULT = "[no tool result]"

#: A dummy of Claude Code's tool search that can never be called.
PLACEHOLDER = "DeferredToolPlaceholder"

#: `tool_choice` of a Messages request -> `tool_choice` of an upstream of the OpenAI family, except a named tool.
CHOICES = {"auto": "auto", "none": "none", "any": "required", "required": "required"}

_UNIQUE = re.compile(r"__u[0-9]+\Z")


def is_web_search(tool: Any) -> bool:
    """Whether a tool entry is the hosted web search of the Messages API, in any of its dated versions."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith("web_search_")


def offered_tools(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The client's and hosted tools of a Messages request, all with their schema."""
    tools = request.get("tools")
    if not isinstance(tools, list):
        return []
    return [
        described(tool)
        for tool in tools
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and tool["name"] != PLACEHOLDER
    ]


#: Separators of the parts of a name, which models confuse.
_BETWEEN = re.compile(r"__|[.:/]+")
#: First part of the names of tools of MCP servers; the server's name follows.
_MCP = "mcp"
#: Longest name that is split into parts.
_MAX_PARTED = 256


class MisspelledNames:
    """Finds the tool that a model means by an unknown name: with parts left out, added before it, or joined by other
    separators. Only if exactly one tool matches.

    >>> names = MisspelledNames(["functions__exec", "web__find", "db__find"])
    >>> names.meant("exec"), names.meant("functions.exec"), names.meant("find"), names.meant("functions.web.find")
    ('functions__exec', 'functions__exec', None, 'web__find')
    """

    def __init__(self, offered: Iterable[str]) -> None:
        self._whole: dict[tuple[str, ...], set[str]] = {}
        self._ends: dict[tuple[str, ...], set[str]] = {}
        for name in offered:
            parts = _parts(name)
            self._whole.setdefault(parts, set()).add(name)
            for start in range(1, len(parts)):
                self._ends.setdefault(parts[start:], set()).add(name)

    def meant(self, said: str) -> str | None:
        """The one tool whose parts equal those said, or else end in them, or are their end; None without one. Nothing
        after `mcp` is dropped, since that names the server."""
        parts = _parts(said)
        last = parts.index(_MCP) if _MCP in parts else len(parts) - 1
        ends = [self._whole.get(parts[start:], set()) for start in range(1, last + 1)]
        found = self._whole.get(parts) or self._ends.get(parts, set()).union(*ends)
        return next(iter(found)) if len(found) == 1 else None


def _parts(name: str) -> tuple[str, ...]:
    return tuple(filter(None, _BETWEEN.split(name))) if len(name) <= _MAX_PARTED else (name,)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_name(name: str) -> str:
    """The name as the upstream gets it: unchanged, or its beginning and a hash if it is too long."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 9]}_{_digest(name)[:8]}"


def short_key(key: str) -> str:
    """A prompt cache key as the upstream gets it: unchanged, or its hash if it is too long.

    >>> short_key("session-1"), len(short_key("s" * 100))
    ('session-1', 64)
    """
    return key if len(key) <= MAX_NAME else _digest(key)


def long_names(request: Mapping[str, Any]) -> dict[str, str]:
    """shortened name -> name, for tools of a request with too long names; usually empty."""
    return {short_name(tool["name"]): tool["name"] for tool in offered_tools(request) if len(tool["name"]) > MAX_NAME}


def unique_id(call_id: str, used: set[str], counts: dict[str, int]) -> str:
    """A call id that no earlier call of the conversation has; recorded in `used`.

    Clients drop the second of two calls with the same id. `upstream_id` removes the suffix again.

    counts  id -> the last number given to it, since thousands of calls may have one id
    """
    candidate, count = call_id, counts.get(call_id, 1)
    while candidate in used or not candidate:
        count += 1
        candidate = f"{call_id or 'call'}__u{count}"
    used.add(candidate)
    counts[call_id] = count
    return candidate


def upstream_id(call_id: str, *, shorten: bool = True) -> str:
    """The id as the upstream knows it: without our suffix and, for the Responses API, shortened. Equal for a call and
    its result."""
    if "__u" in call_id:
        call_id = _UNIQUE.sub("", call_id)
    return short_id(call_id) if shorten else call_id


def short_id(call_id: str) -> str:
    """The id, or its hash if it is too long."""
    return call_id if len(call_id) <= MAX_NAME else f"call_{_digest(call_id)[:32]}"


def call_ids(messages: Iterable[Any]) -> set[str]:
    """All `tool_use` ids of a history."""
    return {
        block["id"]
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }


def function_of(tool: Mapping[str, Any], steps: Steps) -> dict[str, Any]:
    """A client tool as a function: `name`, `description` if there is one, `parameters`."""
    parameters, choice = function_schema(tool.get("input_schema"), steps)
    description = tool.get("description")
    function: dict[str, Any] = {"name": short_name(tool["name"])}
    if isinstance(description, str) or choice:
        said = description if isinstance(description, str) else ""
        function["description"] = "\n\n".join(filter(None, (said, choice))) if choice else said
    return {**function, "parameters": parameters}


def arguments_text(value: Any) -> str:
    """A tool input as the argument text of a function call; "{}" for a missing one.

    Keys are sorted at every level: a call has the same bytes each turn, which prompt caches need.
    """
    return "{}" if value is None else _written(value)


_written = Remembered(dump_sorted_json)
#: A tool input as JSON, in its own order.
input_text = Remembered(dump_json)


def _optional_properties(tool: Mapping[str, Any], steps: Steps) -> frozenset[str]:
    """Top-level properties of a tool that may be left out and do not allow null."""
    schema, _ = function_schema(tool.get("input_schema"), steps)
    needed = frozenset(schema.get("required", ()))
    return frozenset(
        name for name, child in schema["properties"].items() if name not in needed and not accepts_null(child)
    )


optional_properties = ToolWalk(_optional_properties)

_IN_STRING = re.compile(r'["\\]')
_IN_VALUE = re.compile(r'["{}\[\],]')
#: Possessive, so that it never goes back: a stuck model sends thousands of blanks here, one by one.
_MEMBER_HEAD = re.compile(r'\s*+(,?)\s*+("(?:[^"\\]|\\.)*+"\s*+:\s*+|\})', re.DOTALL)

#: A longer key is nonsense; the text is then passed on untouched instead of being held.
MAX_HELD = 4096


class ArgumentStream:
    """Passes argument text on to the client, without optional top-level members that are null.

    Models fill optional parameters with null, and clients refuse such calls. Text is passed on as it comes, except from
    a top-level comma to the beginning of the next value, where it is held since the member may still be dropped.

    >>> stream = ArgumentStream(frozenset({"timeout"}))
    >>> stream.feed('{"command":"ls","timeo'), stream.feed('ut":null}'), stream.end()
    ('{"command":"ls"', '}', '')
    """

    def __init__(self, droppable: frozenset[str]) -> None:
        self._droppable = droppable
        self._raw = ""  # text that is held
        self._depth = 0
        self._kept = 0  # members passed on so far
        self._passing = False  # whether inside a value at depth 1 or deeper, which is passed on
        self._in_string = False

    def feed(self, text: str) -> str:
        """The text that can be passed on now."""
        if not self._droppable:
            return text
        self._raw += text
        out: list[str] = []
        while self._raw and self._droppable and self._step(out):
            pass
        if not self._droppable or len(self._raw) > MAX_HELD:
            self._droppable = frozenset()
            self._take(len(self._raw), out)
        return "".join(out)

    def end(self) -> str:
        """The held text, at the end of the arguments."""
        rest, self._raw = self._raw, ""
        return rest

    def _step(self, out: list[str]) -> bool:
        """Moves one piece from the held text to `out`; False if more text is needed."""
        if self._depth == 0:
            return self._opening(out)
        return self._value(out) if self._passing else self._member(out)

    def _take(self, count: int, out: list[str]) -> None:
        out.append(self._raw[:count])
        self._raw = self._raw[count:]

    def _opening(self, out: list[str]) -> bool:
        at = len(self._raw) - len(self._raw.lstrip())
        if at == len(self._raw):
            return False
        if self._raw[at] != "{":  # not an object: nothing to drop
            self._droppable = frozenset()
            return False
        self._take(at + 1, out)
        self._depth = 1
        return True

    def _member(self, out: list[str]) -> bool:
        """Handles a key: keeps or drops the member once the beginning of its value is known."""
        match = _MEMBER_HEAD.match(self._raw)
        if match is None:
            return False
        comma, head = match.groups()
        if head == "}":  # the object is complete
            self._droppable = frozenset()
            return False
        value = self._raw[match.end() : match.end() + 5]
        if not value or (len(value) < 5 and "null".startswith(value[:4])):
            return False
        if value[:4] == "null" and value[4] in ",} \t\r\n" and _key(head) in self._droppable:
            self._raw = self._raw[match.end() + 4 :]
            return True
        if comma and not self._kept:  # everything before was dropped
            self._raw = self._raw.replace(",", "", 1)
            self._take(match.end() - 1, out)
        else:
            self._take(match.end(), out)
        self._kept += 1
        self._passing = True
        return True

    def _value(self, out: list[str]) -> bool:
        """Handles a value: passes text on up to the comma or brace that ends it."""
        position = 0
        while found := (_IN_STRING if self._in_string else _IN_VALUE).search(self._raw, position):
            char, position = found.group(), found.end()
            if char == "\\":
                if position == len(self._raw):  # the escaped character is still to come
                    self._take(position - 1, out)
                    return False
                position += 1
            elif char == '"':
                self._in_string = not self._in_string
            elif self._depth == 1 and char in ",}":
                self._take(position - 1, out)
                self._passing = False
                return True
            elif char != ",":
                self._depth += 1 if char in "{[" else -1
        self._take(len(self._raw), out)
        return False


def _key(head: str) -> str | None:
    try:
        key = json.loads(head.rstrip()[:-1])
    except ValueError:
        return None
    return key if isinstance(key, str) else None


def are_readable(text: str) -> bool:
    """Whether a client can read the arguments: JSON of any type, or blank. It answers a value that is no object with a
    result that explains this to the model."""
    if not text.strip():
        return True
    try:
        load_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The arguments as an object; {} for blank text and for null, None if they are no JSON object."""
    if not text.strip():
        return {}
    try:
        value = load_json(text)
    except (ValueError, RecursionError):
        return None
    return {} if value is None else value if isinstance(value, dict) else None


class OpenCalls:
    """The calls of one message by the client's ids, which may repeat, and the ids that they are sent with."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[str]] = {}
        self._sent: set[str] = set()
        self._counts: dict[str, int] = {}

    def begin(self, block: Mapping[str, Any]) -> tuple[str, str]:
        """The id and the name that a `tool_use` block is sent with. Raises InvalidRequest.

        >>> OpenCalls().begin({"id": "call_1__u2", "name": "Bash"})
        ('call_1', 'Bash')
        """
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not call_id or not isinstance(name, str) or not name:
            raise InvalidRequest("a `tool_use` block needs a string `id` and `name`", param="messages")
        # The upstream's own id, unless another call of this message has it.
        sent_as = unique_id(upstream_id(call_id, shorten=False), self._sent, self._counts)
        self._waiting.setdefault(call_id, deque()).append(sent_as)
        return sent_as, short_name(name)

    def answer(self, call_id: object) -> str | None:
        """The id that a result is sent with; None for one without its call, or for a second one."""
        sent_ids = self._waiting.get(call_id) if isinstance(call_id, str) else None
        return sent_ids.popleft() if sent_ids else None

    @property
    def unanswered(self) -> list[str]:
        """The ids, as they are sent, of calls without a result."""
        return [sent_as for sent_ids in self._waiting.values() for sent_as in sent_ids]


class WaitingCalls:
    """The calls of a conversation by the client's ids, which may repeat: a result belongs to the newest turn with such
    a call, and there to the first one.

    >>> calls = WaitingCalls()
    >>> for place, turn in enumerate((0, 1, 1)):
    ...     calls.add("a", f"a{place}", turn=turn, place=place)
    >>> calls.answer("a"), calls.unanswered(), calls.answer("b")
    ('a1', {0: 'a0', 2: 'a2'}, None)
    """

    def __init__(self) -> None:
        self._turns: dict[str, list[tuple[int, deque[tuple[int, str]]]]] = {}

    def add(self, call_id: str, sent_as: str, *, turn: int, place: int) -> None:
        turns = self._turns.setdefault(call_id, [])
        if not turns or turns[-1][0] != turn:
            turns.append((turn, deque()))
        turns[-1][1].append((place, sent_as))

    def answer(self, call_id: str) -> str | None:
        """The id that a result is sent with; None for one without its call, or for a second one."""
        turns = self._turns.get(call_id)
        if not turns:
            return None
        calls = turns[-1][1]
        _, sent_as = calls.popleft()
        if not calls:
            turns.pop()
        return sent_as

    def unanswered(self) -> dict[int, str]:
        """place of a call without a result -> the id it is sent with"""
        return dict(call for turns in self._turns.values() for _, calls in turns for call in calls)
