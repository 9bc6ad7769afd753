"""Checks of `tools`, of tools inside the input, and of `tool_choice`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from proxy.sandbox.wires.field_checks import (
    ByKind,
    Checked,
    Each,
    Field,
    Inside,
    Known,
    Table,
    by_type,
    fits,
    judged,
    look,
    matches,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import MISSING, NOT_ONE_OF, UNKNOWN, WRONG_TYPE, Refusal, bare
from proxy.sandbox.wires.schema_checks import bad_pattern, function_fault, malformed, strict_fault

HOSTED = ("web_search", "web_search_preview", "local_shell", "image_generation", "tool_search")
_SEARCHES = ("web_search", "web_search_preview")

NO_TOOLS = Refusal("Invalid type for 'tools': expected an array of objects.", "invalid_type", "tools")
_IN_TOOL = MISSING.about("{here}")
_NO_KIND = Refusal("Unsupported tool type: {value}", "unsupported_value")
_NO_FORMAT = Refusal("Invalid value for '{here}': {value}.", "invalid_value", "{here}")
_NO_GRAMMAR = Refusal("Invalid value for '{where}'.", "invalid_value")
_NO_MODE = Refusal("Invalid 'tool_choice': mode and tools are needed.", "invalid_value", "{here}")
_NO_CHOICE = Refusal("Invalid value for 'tool_choice': {value}", "invalid_value", "tool_choice")
_NO_CHOICE_AT_ALL = Refusal("Invalid value for 'tool_choice': None", "invalid_value")
_BAD_SCHEMA = Refusal("Invalid schema for function '{item[name]}': {expected}", "invalid_function_parameters", "tools")
_NO_DOMAINS = Refusal("Invalid '{where}': expected a list of domains.", "invalid_value", "{here}")
TOO_LONG = Refusal("Invalid '{where}': string too long. Expected a string with {expected}.", "string_above_max_length")
_NO_MATCH = Refusal(
    "Invalid '{where}': string does not match pattern. Expected a string that matches the pattern {expected}.",
    "invalid_value",
)
#: The service omits the index here.
_NO_MEMBER = Refusal("Unknown parameter: 'tools.{value}'.", "unknown_parameter", "tools.{value}")


def too_long(value: str) -> str | None:
    """The fault of a text of more than 64 characters."""
    return f"maximum length 64, but got a string with length {len(value)} instead" if len(value) > 64 else None


def text(path: str, kind: str = "text") -> tuple[Field, ...]:
    """Rows for a text of limited length."""
    return (required(path, kind), optional(path, judged(too_long), TOO_LONG))


#: A function name: 1 to 64 of letters, digits, `_` and `-`.
NAME = (*text("name"), optional("name", matches(r"[a-zA-Z0-9_-]+", "'^[a-zA-Z0-9_-]+$'"), _NO_MATCH))


def _function_fault(tool: Any) -> str | None:
    schema, strict = tool.get("parameters"), tool.get("strict")
    if not isinstance(schema, dict | None) or not isinstance(strict, bool | None):
        return "parameters must be an object and strict a boolean."
    if schema is None:
        return None
    pattern = bad_pattern(schema)
    if pattern is not None:
        return f"'{pattern}' is not a 'regex'."
    return function_fault(schema) or malformed(schema) or (strict_fault(schema) if strict else None)


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(one, str) for one in values)


def _format(kind: str, *members: str) -> Table:
    """A format with exactly these members, all of them texts."""
    exact = fits(lambda wanted: set(wanted) == {"type", *members} and _all_text(wanted[one] for one in members))
    return (required("", exact, Refusal(f"Invalid '{{where}}': a {kind} has {members}.", "invalid_value")),)


#: Format of a freeform tool: `{"type":"text"}`, or `{"type":"grammar","syntax":"lark","definition":"start: …"}`.
_FORMATS: dict[str, Table] = {
    "text": _format("text"),
    "grammar": (*_format("grammar", "syntax", "definition"), required("syntax", one_of("lark", "regex"), _NO_GRAMMAR)),
}

_DOMAINS = fits(lambda value: isinstance(value, list) and value and _all_text(value))
_LISTS: dict[str, Table] = {
    name: (required(name, _DOMAINS, _NO_DOMAINS),) for name in ("allowed_domains", "blocked_domains")
}


def _known(names: str) -> Known:
    return Known(f"type {names}", _NO_MEMBER)


#: Tool type -> its checks; a type without any is not inspected.
_TOOLS: dict[str, Table] = {
    "function": (
        _known("name description parameters strict"),
        *NAME,
        required("", judged(_function_fault), _BAD_SCHEMA),
    ),
    "custom": (
        _known("name description format"),
        *NAME,
        Inside("format", by_type(_FORMATS, _NO_FORMAT)),
    ),
    "web_search": (
        _known("external_web_access search_content_types filters user_location search_context_size"),
        optional("filters", "object", WRONG_TYPE),
        Inside("filters", (Known(_LISTS, UNKNOWN.about("{here}")),)),
    ),
    "web_search_preview": (_known("user_location search_context_size"),),
    "local_shell": (),
    "image_generation": (),
    "tool_search": (_known("execution description parameters"),),
}

_TOOL: Table = (
    required("type", "text", _IN_TOOL),
    required("type", one_of(*_TOOLS, "namespace"), _NO_KIND),
    required("type", fits(lambda kind: kind not in HOSTED), _NO_KIND, when="lite"),
    ByKind("type", _TOOLS),
)

_TOOLS["namespace"] = (
    _known("name description tools"),
    *NAME,
    required("tools", "list", _IN_TOOL),
    Each("tools", (*_TOOL, required("type", one_of("function", "custom"), _NO_KIND))),
)

#: For an object with `tools`; the messages are the same wherever it is.
TOOLS: Table = (optional("tools", "list", NO_TOOLS), Each("tools", _TOOL, top=True))


def flat_tools(tools: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The tools, with namespaces replaced by their tools."""
    for tool in tools:
        if isinstance(tool, dict) and tool.get("type") == "namespace":
            yield from flat_tools(tool.get("tools") or ())
        elif isinstance(tool, dict):
            yield tool


def _offered(seen: Checked) -> list[dict[str, Any]]:
    """All tools of a request, flat: the top-level list, then those in the input."""
    holders = [seen.body, *(item for item in seen.body["input"] if item.get("type") == "additional_tools")]
    return [tool for holder in holders for tool in flat_tools(holder.get("tools") or ())]


def _missing_tools(choice: str, seen: Checked) -> str | None:
    return "" if choice == "required" and not _offered(seen) else None


def _missing_tool(wanted: Any, seen: Checked) -> str | None:
    kind, name = look(wanted, "type"), look(wanted, "name")
    kinds = _SEARCHES if kind in _SEARCHES else (kind,)
    found = any(tool.get("type") in kinds and tool.get("name") == name for tool in _offered(seen))
    return None if found and isinstance(wanted, dict) else ""


#: A choice of a missing tool breaks the real backend instead of being refused.
_BROKEN: Table = (required("", _missing_tool, bare("Bad Gateway", 502)),)

_NAMED: Table = (required("", _missing_tool, Refusal("Tool choice '{item[type]}' not found in 'tools' parameter.")),)

_ALLOWED: Table = (
    required("mode", one_of("auto", "required"), _NO_MODE),
    required("tools", "filled list", _NO_MODE),
    Each("tools", _BROKEN),
)

_WORD: Table = (
    required("", one_of("none", "auto", "required", last=", and "), NOT_ONE_OF),
    required("", _missing_tools, Refusal("Tool choice 'required' must be specified with 'tools' parameter.")),
)

_OBJECT: Table = (
    required("type", one_of("function", "custom", "allowed_tools", *HOSTED), _NO_CHOICE),
    ByKind("type", {"function": _NAMED, "custom": _NAMED, "allowed_tools": _ALLOWED}, other=_BROKEN),
)

#: `tool_choice` is a known word, or names a tool that is offered anywhere.
CHOICE: Table = (
    optional("tool_choice", fits(lambda choice: isinstance(choice, str | dict)), _NO_CHOICE_AT_ALL),
    Inside("tool_choice", _WORD, str),
    Inside("tool_choice", _OBJECT, dict),
)
