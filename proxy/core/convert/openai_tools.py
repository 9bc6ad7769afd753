"""Tools of the OpenAI-style bodies: declarations, the choice among them, and what a provider with few tools allows.

Functions exist on both routes; only the chat form wraps them. Codex CLI groups functions in namespaces, which no other
upstream knows: they become functions with flat names, and the way back is kept. Hosted tools are mapped where the
provider has them; web search is left out where it has none. Any other kind of tool is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.openai_fields import (
    UNSUPPORTED,
    Block,
    Conversation,
    Members,
    check_keys,
    invalid,
    is_text,
    needed_text,
    objects_of,
    optional_flag,
    unsupported,
)
from proxy.core.ingress import BridgedTools, HostedTool, IngressRules
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.tools.calls import MAX_NAME, short_name, unique_id

#: Functions of one request, those in namespaces included.
MAX_TOOLS = 128

#: Hosted search by its first name on these routes; previews and dates of it are the same.
WEB_SEARCH_TYPE = "web_search"
_WEB_SEARCH = re.compile(WEB_SEARCH_TYPE + r"(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?")

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
    hosted      type word of a hosted tool, see `hosted_type` -> its name
    namespaces  flat name -> (namespace, name)
    """

    tools: list[Block] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    hosted: dict[str, str] = field(default_factory=dict)
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
        elif (word := hosted_type(kind)) in rules.hosted:
            _add_hosted(found, word, rules.hosted[word], entry, path)
        elif word != WEB_SEARCH_TYPE:
            raise unsupported(f"{path}.type", kind)
    _drop_covered(found)
    _name_grouped(found, grouped)
    return found


def hosted_type(kind: Any) -> str:
    """The word by which the rules know the type of a hosted tool; "" for what is no type.

    >>> hosted_type("web_search_preview_2025_03_11"), hosted_type("x_search"), hosted_type(None)
    ('web_search', 'x_search', '')
    """
    if not isinstance(kind, str):
        return ""
    return WEB_SEARCH_TYPE if _WEB_SEARCH.fullmatch(kind) else kind


def _add_function(found: ToolSet, entry: Members, path: str, *, wrapped: bool) -> None:
    if not wrapped:
        tool = _function(entry, path, _FLAT_FUNCTION_KEYS)
    else:
        check_keys(entry, _WRAPPER_KEYS, path)
        path += ".function"
        if not isinstance(entry.get("function"), dict):
            raise invalid(path, "must be an object")
        tool = _function(entry["function"], path, _FUNCTION_KEYS)
    path += ".name"
    if tool["name"] in found.functions:
        raise invalid(path, f"is a duplicate: there is another tool {shown(tool['name'])}")
    found.functions.add(tool["name"])
    found.add(tool, path)


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


def _add_hosted(found: ToolSet, word: str, hosted: HostedTool, entry: Members, path: str) -> None:
    tool: Block = {**hosted.tool, **_options(hosted, entry, path)}
    if word not in found.hosted:
        found.hosted[word] = hosted.name
        found.add(tool, f"{path}.type")
    elif tool not in found.tools:
        raise invalid(path, f"is a duplicate: there is another tool {shown(hosted.name)}")


def _options(hosted: HostedTool, entry: Members, path: str) -> Block:
    """What narrows a hosted tool, by the hub's names."""
    filters = entry.get("filters")
    if filters is not None and not isinstance(filters, dict):
        raise invalid(f"{path}.filters", "must be an object")
    members = {name: entry[name] for name in entry.keys() & (hosted.options.keys() | hosted.refused)}
    members |= {f"filters.{name}": value for name, value in (filters or {}).items()}
    options: Block = {}
    for name in sorted(name for name, value in members.items() if value is not None):
        member = hosted.options.get(name)
        if member is None or member in options:
            raise unsupported(f"{path}.{name}")
        _check_option(member, members[name], f"{path}.{name}")
        options[member] = members[name]
    if options.get("allowed_domains") and options.get("blocked_domains"):
        raise invalid(f"{path}.filters", "must not both allow and block domains")
    return options


def _check_option(member: str, value: Any, path: str) -> None:
    if member == "user_location":
        if not isinstance(value, dict):
            raise invalid(path, "must be an object")
    elif not isinstance(value, list) or not all(map(is_text, value)):
        raise invalid(path, "must be a list of strings")


def _drop_covered(found: ToolSet) -> None:
    """A hosted tool that has the name of a function is left out: upstreams refuse two tools of one name."""
    for word, name in list(found.hosted.items()):
        if name in found.functions:
            del found.hosted[word]
            place = next(n for n, tool in enumerate(found.tools) if tool["name"] == name and "input_schema" not in tool)
            del found.tools[place], found.paths[place]


# -- the choice

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def read_choice(
    value: Any, parallel: bool | None, tools: ToolSet, rules: IngressRules, *, wrapped: bool
) -> Block | None:
    """The hub's `tool_choice` of `tool_choice` and `parallel_tool_calls`; None to send neither.

    Without tools both say nothing, and strict upstreams refuse them; Codex CLI sends them all the same.
    """
    choice = _choice(value, tools, rules, wrapped=wrapped)
    if not tools.tools:
        if choice is not None and choice["type"] == "any":
            raise invalid("tool_choice", "needs at least one tool")
        return None
    if parallel is None:
        return choice
    return {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not parallel}


def _choice(value: Any, tools: ToolSet, rules: IngressRules, *, wrapped: bool) -> Block | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value not in _CHOICES:
            raise unsupported("tool_choice", value)
        return {"type": _CHOICES[value]}
    if not isinstance(value, dict):
        raise invalid("tool_choice", "must be a string or an object")
    kind = value.get("type")
    if (word := hosted_type(kind)) in rules.hosted:
        if word not in tools.hosted:
            raise invalid("tool_choice", f"must name one of the tools in `tools`, not {shown(kind)}")
        return {"type": "tool", "name": tools.hosted[word]}
    if kind != "function":
        raise unsupported("tool_choice.type", kind)
    named = value.get("function") if wrapped else value
    name = named.get("name") if isinstance(named, dict) else None
    if not isinstance(name, str) or name not in tools.functions:
        raise invalid("tool_choice", f"must name one of the functions in `tools`, not {shown(name)}")
    return {"type": "tool", "name": name}


# -- providers with few tools


def check_rules(
    rules: IngressRules, conversation: Conversation, tools: ToolSet, *, stream: bool, session: str | None
) -> None:
    """Refuses what the provider cannot do, once everything else is known to be right."""
    if conversation.linked_image is not None and not rules.image_urls:
        raise _linked(conversation.linked_image)
    if rules.tools is None or not tools.tools:
        return
    product = rules.tools.product
    if not stream:
        raise InvalidRequest(f"{product} tools require 'stream' to be true", param="stream")
    if not session:
        rule = "send the same `session_id` header with every request of a conversation"
        raise InvalidRequest(f"{product} tools require a stable session header: {rule}", param="tools")
    for tool, path in zip(tools.tools, tools.paths, strict=True):
        if tool["name"] not in rules.tools.names:
            raise _unbridged(rules.tools, tool["name"], path)


def _linked(path: str) -> InvalidRequest:
    message = f"`{path}` is not supported with an http(s) address: send the picture as a data URL in base64"
    return InvalidRequest(message, param=path, code=UNSUPPORTED)


def _unbridged(bridged: BridgedTools, name: str, path: str) -> InvalidRequest:
    """Told by the place that the name has in the chat form, on both routes."""
    place = f"{path.rpartition('.')[0].removesuffix('.function')}.function.name"
    rule = f"`{place}` must be one of {', '.join(sorted(bridged.names))}"
    return InvalidRequest(f"{bridged.product} cannot bridge tool {shown(name)}: {rule}", param=place)
