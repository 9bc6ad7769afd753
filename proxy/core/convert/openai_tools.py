"""Tools of the OpenAI-style bodies: declarations, the choice among them, and what a provider with few tools allows.

Functions exist on both routes; only the chat form wraps them. Codex CLI groups functions in namespaces, which no other
upstream knows: they become functions with flat names, and the way back is kept. Hosted web search is mapped where the
provider has it. Any other kind of tool is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.openai_fields import (
    Block,
    Conversation,
    Members,
    check_keys,
    invalid,
    needed_text,
    not_one_of,
    objects_of,
    optional_flag,
    unsupported,
)
from proxy.core.ingress import IngressRules
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.tools.calls import MAX_NAME, short_name, unique_id

#: Functions of one request, those in namespaces included.
MAX_TOOLS = 128

#: Hosted search by its names on these routes; the hub's name for it.
SEARCH_TYPES = frozenset({"web_search", "web_search_preview", "web_search_preview_2025_03_11"})
SEARCH_TOOL = {"type": "web_search_20250305", "name": "web_search"}
#: They narrow a search; without them it would find what the caller wanted kept out.
_SEARCH_LIMITS = ("filters", "user_location")

_FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})
_FLAT_FUNCTION_KEYS = _FUNCTION_KEYS | {"type"}
_WRAPPER_KEYS = frozenset({"type", "function"})
_NAMESPACE_KEYS = frozenset({"type", "name", "description", "tools"})
#: The Responses API refuses such names. Plain ones stay: there is no way back from another.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
#: What `unique_id` may add to a name.
_SUFFIX_ROOM = len(f"__u{MAX_TOOLS}")


def flat_name(namespace: str, name: str) -> str:
    """The name of a function that stands in a namespace, in characters that every upstream takes.

    >>> flat_name("multi_agent_v1", "close_agent"), flat_name("files.v2", "read all")
    ('multi_agent_v1__close_agent', 'files_v2__read_all')
    """
    return short_name(_NOT_IN_NAMES.sub("_", f"{namespace}__{name}"))


@dataclass(slots=True)
class ToolSet:
    """The tools of a request.

    tools       the hub's declarations, in the caller's order
    paths       where the name of each stands in the caller's body
    functions   names that a tool choice may give
    namespaces  flat name -> (namespace, name)
    """

    tools: list[Block] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    namespaces: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, tool: Block, path: str) -> None:
        self.tools.append(tool)
        self.paths.append(path)
        if len(self.tools) > MAX_TOOLS:
            raise _too_many()


def _too_many() -> InvalidRequest:
    return invalid("tools", f"has too many entries; the limit is {MAX_TOOLS}")


def read_tools(value: Any, rules: IngressRules, *, wrapped: bool) -> ToolSet:
    """The tools of a body. `wrapped` says that functions have the chat form, which knows no namespaces."""
    found = ToolSet()
    if value is None:
        return found
    if isinstance(value, list) and len(value) > MAX_TOOLS:
        raise _too_many()
    grouped: dict[tuple[str, str], Block] = {}
    for path, entry in objects_of(value, "tools"):
        kind = entry.get("type")
        if kind == "function":
            _add_function(found, entry, path, wrapped=wrapped)
        elif kind == "namespace" and not wrapped:
            _add_namespace(found, grouped, entry, path)
        elif isinstance(kind, str) and kind in SEARCH_TYPES:
            if rules.search:
                _add_search(found, entry, path)
        else:
            raise unsupported(f"{path}.type", kind)
    _name_grouped(found, grouped)
    return found


def _add_function(found: ToolSet, entry: Members, path: str, *, wrapped: bool) -> None:
    if not wrapped:
        tool = _function(entry, path, _FLAT_FUNCTION_KEYS)
    else:
        check_keys(entry, _WRAPPER_KEYS, path)
        path += ".function"
        if not isinstance(entry.get("function"), dict):
            raise invalid(path, "must be an object")
        tool = _function(entry["function"], path, _FUNCTION_KEYS)
    _check_new(found, tool["name"], f"{path}.name")
    found.functions.add(tool["name"])
    found.add(tool, f"{path}.name")


def _check_new(found: ToolSet, name: str, path: str) -> None:
    searching = SEARCH_TOOL in found.tools and name == SEARCH_TOOL["name"]
    if searching or name in found.functions:
        raise invalid(path, f"is a duplicate: there is another tool {shown(name)}")


def _function(function: Members, path: str, keys: frozenset[str]) -> Block:
    """The hub's form of a function. `strict` is read and left out: no upstream of these routes can promise it."""
    check_keys(function, keys, path)
    tool: Block = {"name": needed_text(function, "name", path)}
    parameters, description = function.get("parameters"), function.get("description")
    if parameters is not None and not isinstance(parameters, dict):
        raise invalid(f"{path}.parameters", "must be an object")
    tool["input_schema"] = {"type": "object"} if parameters is None else parameters
    if description is not None:
        if not isinstance(description, str):
            raise invalid(f"{path}.description", "must be a string")
        tool["description"] = description
    optional_flag(function.get("strict"), f"{path}.strict")
    return tool


def _add_namespace(found: ToolSet, grouped: dict[tuple[str, str], Block], entry: Members, path: str) -> None:
    """The functions of a namespace, under their own names for now. What is said about the namespace stands before the
    description of its first function."""
    check_keys(entry, _NAMESPACE_KEYS, path)
    namespace, about = needed_text(entry, "name", path), entry.get("description")
    if about is not None and not isinstance(about, str):
        raise invalid(f"{path}.description", "must be a string")
    for inner_path, inner in objects_of(entry.get("tools"), f"{path}.tools"):
        if inner.get("type") != "function":
            raise unsupported(f"{inner_path}.type", inner.get("type"))
        tool = _function(inner, inner_path, _FLAT_FUNCTION_KEYS)
        key = namespace, tool["name"]
        if key in grouped:
            raise invalid(f"{inner_path}.name", f"is a duplicate: the namespace has another function {shown(key[1])}")
        if about:
            tool["description"] = "\n\n".join(filter(None, (about, tool.get("description"))))
            about = None
        grouped[key] = tool
        found.add(tool, f"{inner_path}.name")


def _name_grouped(found: ToolSet, grouped: Mapping[tuple[str, str], Block]) -> None:
    """Flat names, once all plain ones are known, since those stay as they are."""
    taken = {tool["name"] for tool in found.tools if "input_schema" not in tool} | found.functions
    for key, tool in grouped.items():
        name = flat_name(*key)
        if name in taken:
            name = unique_id(name[: MAX_NAME - _SUFFIX_ROOM], taken)
        taken.add(name)
        tool["name"] = name
        found.namespaces[name] = key


def _add_search(found: ToolSet, entry: Members, path: str) -> None:
    for name in _SEARCH_LIMITS:
        if entry.get(name) is not None:
            raise unsupported(f"{path}.{name}")
    if SEARCH_TOOL not in found.tools:
        _check_new(found, SEARCH_TOOL["name"], path)
        found.add(dict(SEARCH_TOOL), f"{path}.type")


# -- the choice

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def read_choice(value: Any, parallel: bool | None, tools: ToolSet, *, wrapped: bool) -> Block | None:
    """The hub's `tool_choice` of `tool_choice` and `parallel_tool_calls`; None to send neither.

    Without tools both say nothing, and strict upstreams refuse them; Codex CLI sends them all the same.
    """
    choice = _choice(value, tools, wrapped=wrapped)
    if not tools.tools:
        if choice is not None and choice["type"] == "any":
            raise invalid("tool_choice", "needs at least one tool")
        return None
    if parallel is None:
        return choice
    return {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not parallel}


def _choice(value: Any, tools: ToolSet, *, wrapped: bool) -> Block | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value not in _CHOICES:
            raise unsupported("tool_choice", value)
        return {"type": _CHOICES[value]}
    if not isinstance(value, dict):
        raise invalid("tool_choice", "must be a string or an object")
    if value.get("type") != "function":
        raise unsupported("tool_choice.type", value.get("type"))
    named = value.get("function") if wrapped else value
    name = named.get("name") if isinstance(named, dict) else None
    if not isinstance(name, str) or name not in tools.functions:
        raise invalid("tool_choice", f"must name one of the functions in `tools`, not {shown(name)}")
    return {"type": "tool", "name": name}


# -- providers with few tools


def check_rules(
    rules: IngressRules, conversation: Conversation, tools: ToolSet, *, stream: bool, session: str | None
) -> None:
    """Refuses what the provider cannot do, once everything else is known to be right.

    Bridged tools answer in a later request: they need a stream to hold open and a session to find it again.
    """
    if conversation.linked_image is not None and not rules.image_urls:
        raise unsupported(conversation.linked_image, "an http(s) address")
    if rules.tools is None or not tools.tools:
        return
    if not stream:
        raise invalid("stream", "must be true for this model when there are tools")
    if not session:
        raise invalid("tools", "need a session with this model: send a session id in the `session_id` header")
    for tool, path in zip(tools.tools, tools.paths, strict=True):
        if tool["name"] not in rules.tools:
            raise not_one_of(path, sorted(rules.tools), tool["name"])
