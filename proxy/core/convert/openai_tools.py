"""Reads the tools that OpenAI-style bodies declare. For the choice among them see `openai_tool_choice`.

Functions exist on both routes; only the chat form wraps them. Codex CLI groups functions in namespaces, which no other
upstream knows: they become functions with flat names, and the original names are kept. Its custom tools, which take a
text, become functions with one member for it. Hosted tools are mapped if the provider has them. If not, those that
Codex always offers are left out, and any other kind of tool is refused in strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.custom_input import CUSTOM_INPUT
from proxy.core.convert.messages_to_responses import strict_function
from proxy.core.convert.openai_fields import Block, Members, needed_text, objects_of, optional_flag
from proxy.core.convert.openai_mode import Mode, invalid, is_text, unsupported
from proxy.core.ingress import HostedTool
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.tools.calls import MAX_NAME, short_name, unique_id
from proxy.core.tools.hosted import WEB_SEARCH
from proxy.core.tools.step_budget import ToolSteps

#: Maximum number of functions of one request, those in namespaces included.
MAX_TOOLS = 128

#: The member of chat bodies that asks for the hosted search.
SEARCH_OPTIONS = "web_search_options"
#: The date at the end of a hosted tool's type.
_DATE = re.compile(r"_\d{4}_\d{2}_\d{2}\Z")
_PREVIEW = "_preview"
#: Types that Codex CLI offers but does not need: they are left out in strict mode, too.
DISPENSABLE = frozenset({WEB_SEARCH, "tool_search"})
#: Types that are never hosted tools.
_OWN = frozenset({"function", "custom", "namespace"})

_FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})
#: `defer_loading` makes Codex CLI's functions available by search; here they are offered at once.
_FLAT_FUNCTION_KEYS = _FUNCTION_KEYS | {"type", "defer_loading"}
_CUSTOM_KEYS = frozenset({"type", "name", "description", "format", "defer_loading"})
_WRAPPER_KEYS = frozenset({"type", "function"})
_NAMESPACE_KEYS = frozenset({"type", "name", "description", "tools"})
#: Characters that the Responses API refuses in names. Plain functions keep such names, since only namespaced ones can
#: be mapped back.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
#: Length of what `unique_id` may add to a name.
_SUFFIX_ROOM = len(f"__u{MAX_TOOLS}")


def flat_name(namespace: str, name: str) -> str:
    """The name of a function in a namespace, in characters that every upstream accepts.

    >>> flat_name("multi_agent_v1", "close_agent"), flat_name("files.v2", "read all")
    ('multi_agent_v1__close_agent', 'files_v2__read_all')
    """
    return short_name(_NOT_IN_NAMES.sub("_", f"{namespace}__{name}"))


#: The path of a list of tools in the body, and the list.
Declared = tuple[str, Any]


@dataclass(slots=True)
class ToolSet:
    """The tools of a request.

    tools       the hub's declarations, in the caller's order
    paths       the path of each one's name in the caller's body
    functions   names that a tool choice may use
    hosted      type word of a hosted tool, see `hosted_type` -> its name
    namespaces  flat name -> (namespace, name)
    customs     flat names of tools that take a text
    left_out    type word of a hosted tool that the provider lacks -> its path
    """

    tools: list[Block] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    hosted: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    customs: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, tool: Block, path: str) -> None:
        self.tools.append(tool)
        self.paths.append(path)
        if len(self.tools) > MAX_TOOLS:
            raise _too_many()


def _too_many() -> InvalidRequest:
    return invalid("tools", f"has too many entries; the limit is {MAX_TOOLS}")


def read_tools(declared: Iterable[Declared], mode: Mode, *, wrapped: bool) -> ToolSet:
    """The tools of a body. Raises InvalidRequest.

    declared  `tools`, then the lists inside the input, which may repeat tools
    wrapped   whether functions have the chat form, which has no namespaces
    """
    reader = _ToolReader(mode, wrapped=wrapped)
    for path, value in declared:
        if value is None:
            continue
        if isinstance(value, list) and len(value) > MAX_TOOLS:
            raise _too_many()
        for at, entry in objects_of(value, path):
            reader.read(entry, at)
        reader.repeated = True
    return reader.result()


def hosted_type(kind: Any) -> str:
    """The type of a hosted tool as the rules name it; "" if `kind` is not a text.

    >>> hosted_type("web_search_preview_2025_03_11"), hosted_type("x_search"), hosted_type(None)
    ('web_search', 'x_search', '')
    """
    if not isinstance(kind, str):
        return ""
    word = _DATE.sub("", kind)
    return WEB_SEARCH if word == WEB_SEARCH + _PREVIEW else word


def asks_search(body: Mapping[str, Any]) -> bool:
    """Whether a body of either route may declare the hosted search.

    >>> asks_search({"tools": [{"type": "web_search_preview"}]}), asks_search({"input": "what is web_search?"})
    (True, False)
    """
    given = body.get("input")
    items = given if isinstance(given, list) else []
    lists = [body.get("tools"), *(item.get("tools") for item in items if isinstance(item, dict))]
    kinds = (tool.get("type") for tools in lists if isinstance(tools, list) for tool in tools if isinstance(tool, dict))
    return SEARCH_OPTIONS in body or any(hosted_type(kind) == WEB_SEARCH for kind in kinds)


class _ToolReader:
    """Collects the tools of one body.

    repeated  whether tools may be declared again, as in lists of tools inside the input
    """

    def __init__(self, mode: Mode, *, wrapped: bool) -> None:
        self._mode = mode
        self._wrapped = wrapped
        self._found = ToolSet()
        self._steps = ToolSteps()
        self._grouped: dict[tuple[str, str], Block] = {}  # by namespace and name
        self._texts: dict[int, Block] = {}  # functions for custom tools, by identity, since names come later
        self.repeated = False

    def read(self, entry: Members, path: str) -> None:
        kind, rules = entry.get("type"), self._mode.rules
        if isinstance(kind, str) and kind in (_CHAT_KINDS if self._wrapped else _KINDS):
            _KINDS[kind](self, entry, path)
        elif (word := hosted_type(kind)) in rules.hosted:
            self._hosted(word, rules.hosted[word], entry, path)
        elif not word or word in _OWN:
            raise unsupported(f"{path}.type", kind)
        elif word == WEB_SEARCH or (word in DISPENSABLE and not self._wrapped):
            self._mode.drop(f"{path}.type")
            self._found.left_out.setdefault(word, f"{path}.type")
        else:
            self._mode.leave_out(f"{path}.type", kind)
            self._found.left_out.setdefault(word, f"{path}.type")

    def result(self) -> ToolSet:
        _drop_covered(self._found)
        _name_grouped(self._found, self._grouped)
        self._found.customs = {tool["name"] for tool in self._found.tools if id(tool) in self._texts}
        return self._found

    def _function(self, entry: Members, path: str) -> None:
        if not self._wrapped:
            self._add(self._function_tool(entry, path, _FLAT_FUNCTION_KEYS), path)
            return
        self._mode.check_keys(entry, _WRAPPER_KEYS, path)
        path += ".function"
        if not isinstance(entry.get("function"), dict):
            raise invalid(path, "must be an object")
        self._add(self._function_tool(entry["function"], path, _FUNCTION_KEYS), path)

    def _custom(self, entry: Members, path: str) -> None:
        self._add(self._custom_tool(entry, path), path)

    def _add(self, tool: Block, path: str) -> None:
        path += ".name"
        if tool["name"] in self._found.functions:
            if self.repeated:
                return
            raise invalid(path, f"is a duplicate: there is another tool {shown(tool['name'])}")
        self._found.functions.add(tool["name"])
        self._found.add(tool, path)

    def _namespace(self, entry: Members, path: str) -> None:
        """Reads the tools of a namespace, under their own names for now. The namespace's description goes before that
        of its first tool."""
        self._mode.check_keys(entry, _NAMESPACE_KEYS, path)
        namespace, about = needed_text(entry, "name", path), _description(entry, path)
        for at, inner in objects_of(entry.get("tools"), f"{path}.tools"):
            kind = inner.get("type")
            if kind not in ("function", "custom"):
                raise unsupported(f"{at}.type", kind)
            function = kind == "function"
            tool = self._function_tool(inner, at, _FLAT_FUNCTION_KEYS) if function else self._custom_tool(inner, at)
            key = namespace, tool["name"]
            if key in self._grouped:
                if self.repeated:
                    continue
                raise invalid(f"{at}.name", f"is a duplicate: the namespace has another tool {shown(key[1])}")
            if about:
                tool["description"] = "\n\n".join(filter(None, (about, tool.get("description"))))
                about = None
            self._grouped[key] = tool
            self._found.add(tool, f"{at}.name")

    def _function_tool(self, function: Members, path: str, keys: frozenset[str]) -> Block:
        """The hub's form of a function. `strict` is passed on if the upstream supports it for this schema."""
        self._mode.check_keys(function, keys, path)
        tool: Block = {"name": needed_text(function, "name", path)}
        parameters, description = function.get("parameters"), _description(function, path)
        if parameters is not None and not isinstance(parameters, dict):
            raise invalid(f"{path}.parameters", "must be an object")
        tool["input_schema"] = {"type": "object"} if parameters is None else parameters
        if description is not None:
            tool["description"] = description
        if optional_flag(function.get("strict"), f"{path}.strict"):
            if parameters is None:  # a function that takes nothing
                tool["input_schema"] = {"type": "object", "properties": {}, "additionalProperties": False}
            if "strict" not in self._mode.rules.honours:
                self._mode.note(f"{path}.strict")
            elif strict_function(tool, self._steps)["strict"]:
                tool["strict"] = True
            else:
                self._mode.drop(f"{path}.strict")
        return tool

    def _custom_tool(self, entry: Members, path: str) -> Block:
        """A custom tool as a function. Its grammar becomes part of the description."""
        self._mode.check_keys(entry, _CUSTOM_KEYS, path)
        tool: Block = {"name": needed_text(entry, "name", path)}
        about = {"type": "string", "description": f"The whole input of the tool, as plain text.{_grammar(entry, path)}"}
        schema = {"type": "object", "properties": {CUSTOM_INPUT: about}, "required": [CUSTOM_INPUT]}
        tool["input_schema"] = {**schema, "additionalProperties": False}
        description = _description(entry, path)
        if description is not None:
            tool["description"] = description
        self._texts[id(tool)] = tool
        return tool

    def _hosted(self, word: str, hosted: HostedTool, entry: Members, path: str) -> None:
        tool: Block = {**hosted.tool, **self._options(hosted, entry, path)}
        if word not in self._found.hosted:
            self._found.hosted[word] = hosted.name
            self._found.add(tool, f"{path}.type")
        elif tool not in self._found.tools and not self.repeated:
            raise invalid(path, f"is a duplicate: there is another tool {shown(hosted.name)}")

    def _options(self, hosted: HostedTool, entry: Members, path: str) -> Block:
        """The options that narrow a hosted tool, by the hub's names."""
        filters = entry.get("filters")
        if filters is not None and not isinstance(filters, dict):
            raise invalid(f"{path}.filters", "must be an object")
        members = {name: entry[name] for name in entry.keys() & (hosted.options.keys() | hosted.refused)}
        members |= {f"filters.{name}": value for name, value in (filters or {}).items()}
        options: Block = {}
        for name in sorted(name for name, value in members.items() if value is not None):
            member = hosted.options.get(name)
            if member is None or member in options:
                self._mode.leave_out(f"{path}.{name}")
                continue
            _check_option(member, members[name], f"{path}.{name}")
            options[member] = members[name]
        if options.get("allowed_domains") and options.get("blocked_domains"):
            raise invalid(f"{path}.filters", "must not both allow and block domains")
        return options


_KINDS: dict[str, Callable[[_ToolReader, Members, str], None]] = {
    "function": _ToolReader._function,
    "custom": _ToolReader._custom,
    "namespace": _ToolReader._namespace,
}
_CHAT_KINDS = frozenset({"function"})


def _description(entry: Members, path: str) -> str | None:
    description = entry.get("description")
    if description is not None and not isinstance(description, str):
        raise invalid(f"{path}.description", "must be a string")
    return description


def _grammar(entry: Members, path: str) -> str:
    """A sentence about the grammar of a custom tool's input; "" without a grammar."""
    form = entry.get("format")
    if form is not None and not isinstance(form, dict):
        raise invalid(f"{path}.format", "must be an object")
    definition = (form or {}).get("definition")
    if not isinstance(definition, str) or not definition:
        return ""
    syntax = form.get("syntax") if form else None
    called = f"{syntax} grammar" if isinstance(syntax, str) and syntax else "grammar"
    return f" It must follow this {called}:\n{definition}"


def _name_grouped(found: ToolSet, grouped: Mapping[tuple[str, str], Block]) -> None:
    """Sets the flat names, once all plain ones are known, since those do not change."""
    taken = {tool["name"] for tool in found.tools if "input_schema" not in tool} | found.functions
    counts: dict[str, int] = {}
    for key, tool in grouped.items():
        name = flat_name(*key)
        if name in taken:
            name = unique_id(name[: MAX_NAME - _SUFFIX_ROOM], taken, counts)
        taken.add(name)
        tool["name"] = name
        found.namespaces[name] = key


def _check_option(member: str, value: Any, path: str) -> None:
    if member == "user_location":
        if not isinstance(value, dict):
            raise invalid(path, "must be an object")
    elif not isinstance(value, list) or not all(map(is_text, value)):
        raise invalid(path, "must be a list of strings")


def _drop_covered(found: ToolSet) -> None:
    """Drops hosted tools with the name of a function, since upstreams refuse two tools of one name."""
    for word, name in list(found.hosted.items()):
        if name in found.functions:
            del found.hosted[word]
            place = next(n for n, tool in enumerate(found.tools) if tool["name"] == name and "input_schema" not in tool)
            del found.tools[place], found.paths[place]
