"""Checks of `tools`, of the tools that travel inside the input, and of `tool_choice`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from proxy.sandbox.wires.refusal import Refused, detail, invalid
from proxy.sandbox.wires.schema_checks import bad_pattern, malformed, strict_fault

NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME = 64

#: Tool type -> the members it may have beside `type`. None: known, not looked into.
TOOL_MEMBERS: dict[str, frozenset[str] | None] = {
    "function": frozenset({"name", "description", "parameters", "strict"}),
    "custom": frozenset({"name", "description", "format"}),
    "namespace": frozenset({"name", "description", "tools"}),
    "web_search": frozenset(
        {"external_web_access", "search_content_types", "filters", "user_location", "search_context_size"}
    ),
    "web_search_preview": frozenset({"user_location", "search_context_size"}),
    "local_shell": None,
    "image_generation": None,
    "tool_search": frozenset({"execution", "description", "parameters"}),
}

#: What may stand in a namespace.
_NAMED = ("function", "custom")

#: Format of a freeform tool -> its members beside `type`, all of them texts that must be there.
_FORMATS = {"text": (), "grammar": ("syntax", "definition")}

HOSTED = ("web_search", "web_search_preview", "local_shell", "image_generation", "tool_search")
_SEARCHES = ("web_search", "web_search_preview")


def check_tools(tools: Any, *, lite: bool) -> None:
    """Each tool is of a known type, has known members only, a legal name, and a schema that compiles."""
    if not isinstance(tools, list):
        raise invalid("Invalid type for 'tools': expected an array of objects.", code="invalid_type", param="tools")
    for index, tool in enumerate(tools):
        _check_tool(tool, f"tools[{index}]", lite=lite)


def _check_tool(tool: Any, where: str, *, lite: bool) -> None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        raise invalid(f"Missing required parameter: '{where}.type'.", code="missing_required_parameter", param=where)
    if kind not in TOOL_MEMBERS or (lite and kind in HOSTED):
        raise invalid(f"Unsupported tool type: {kind}", code="unsupported_value", param=f"{where}.type")
    allowed = TOOL_MEMBERS[kind]
    for member in tool:
        if allowed is not None and member != "type" and member not in allowed:
            # the service leaves the index out of this one
            raise invalid(f"Unknown parameter: 'tools.{member}'.", code="unknown_parameter", param=f"tools.{member}")
    if "name" in (allowed or ()):
        check_name(tool.get("name"), f"{where}.name")
    if kind == "function":
        _check_function(tool)
    elif kind == "custom":
        _check_freeform(tool.get("format"), f"{where}.format")
    elif kind == "namespace":
        _check_namespace(tool, where, lite=lite)
    elif kind == "web_search":
        _check_filters(tool.get("filters"), where)


def _check_namespace(tool: dict[str, Any], where: str, *, lite: bool) -> None:
    if not isinstance(tool.get("tools"), list):
        raise invalid(f"Missing required parameter: '{where}.tools'.", code="missing_required_parameter", param=where)
    for index, inner in enumerate(tool["tools"]):
        here = f"{where}.tools[{index}]"
        _check_tool(inner, here, lite=lite)
        if inner["type"] not in _NAMED:
            raise invalid(f"Unsupported tool type: {inner['type']}", code="unsupported_value", param=f"{here}.type")


def _check_freeform(wanted: Any, where: str) -> None:
    """`{"type":"text"}`, or a grammar: `{"type":"grammar","syntax":"lark","definition":"start: …"}`."""
    if wanted is None:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if not isinstance(kind, str) or kind not in _FORMATS:
        raise invalid(f"Invalid value for '{where}': {kind}.", code="invalid_value", param=where)
    members = _FORMATS[kind]
    if set(wanted) != {"type", *members} or not all(isinstance(wanted[one], str) for one in members):
        raise invalid(f"Invalid '{where}': a {kind} has {members}.", code="invalid_value", param=where)
    if kind == "grammar" and wanted["syntax"] not in ("lark", "regex"):
        raise invalid(f"Invalid value for '{where}.syntax'.", code="invalid_value", param=f"{where}.syntax")


def check_name(name: Any, where: str) -> None:
    """A function name: 1 to 64 of letters, digits, `_` and `-`."""
    if not isinstance(name, str):
        raise invalid(f"Missing required parameter: '{where}'.", code="missing_required_parameter", param=where)
    check_length(name, where, MAX_NAME)
    if not NAME.fullmatch(name):
        raise invalid(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            code="invalid_value",
            param=where,
        )


def check_length(text: str, where: str, most: int) -> None:
    if len(text) > most:
        raise invalid(
            f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but got a string "
            f"with length {len(text)} instead.",
            code="string_above_max_length",
            param=where,
        )


def _check_function(tool: dict[str, Any]) -> None:
    name, schema = tool["name"], tool.get("parameters")
    if not isinstance(schema, dict | None) or not isinstance(tool.get("strict", False), bool | None):
        raise _bad_schema(name, "parameters must be an object and strict a boolean.")
    if schema and schema.get("type", "object") != "object":
        raise _bad_schema(
            name, f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema['type']}\"'."
        )
    pattern = bad_pattern(schema)
    if pattern is not None:
        raise _bad_schema(name, f"'{pattern}' is not a 'regex'.")
    fault = malformed(schema) or (strict_fault(schema) if tool.get("strict") else None)
    if fault is not None:
        raise _bad_schema(name, fault)


def _bad_schema(name: str, reason: str) -> Refused:
    return invalid(f"Invalid schema for function '{name}': {reason}", code="invalid_function_parameters", param="tools")


def _check_filters(filters: Any, where: str) -> None:
    """`{"allowed_domains":[…],"blocked_domains":[…]}`, each a non-empty list of texts when present."""
    if filters is None:
        return
    where = f"{where}.filters"
    if not isinstance(filters, dict):
        raise invalid(f"Invalid type for '{where}': expected an object.", code="invalid_type", param=where)
    for member, domains in filters.items():
        if member not in ("allowed_domains", "blocked_domains"):
            raise invalid(f"Unknown parameter: '{where}.{member}'.", code="unknown_parameter", param=where)
        if not isinstance(domains, list) or not domains or not all(isinstance(one, str) for one in domains):
            raise invalid(f"Invalid '{where}.{member}': expected a list of domains.", code="invalid_value", param=where)


def flat_tools(tools: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The tools with those inside of namespaces in place of them."""
    for tool in tools:
        if isinstance(tool, dict) and tool.get("type") == "namespace":
            yield from flat_tools(tool.get("tools") or ())
        elif isinstance(tool, dict):
            yield tool


def check_choice(choice: Any, tools: list[dict[str, Any]]) -> None:
    """`tool_choice` must be a known word, or name something that `tools` (flat, from all places) offers."""
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            raise invalid(
                f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
                code="invalid_value",
                param="tool_choice",
            )
        if choice == "required" and not tools:
            raise invalid("Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice")
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind in ("function", "custom"):
        if not _offers(tools, choice):
            raise invalid(f"Tool choice '{kind}' not found in 'tools' parameter.", param="tool_choice")
    elif kind == "allowed_tools":
        _check_allowed(choice, tools)
    elif kind in HOSTED:
        _need_hosted(choice, tools)
    else:
        raise invalid(f"Invalid value for 'tool_choice': {kind}", code="invalid_value", param="tool_choice")


def _check_allowed(choice: dict[str, Any], tools: list[dict[str, Any]]) -> None:
    allowed = choice.get("tools")
    if choice.get("mode") not in ("auto", "required") or not isinstance(allowed, list) or not allowed:
        raise invalid("Invalid 'tool_choice': mode and tools are needed.", code="invalid_value", param="tool_choice")
    for one in allowed:
        _need_hosted(one, tools)


def _need_hosted(wanted: Any, tools: list[dict[str, Any]]) -> None:
    # a choice of something that is not there breaks the real backend rather than being refused by it
    if not isinstance(wanted, dict) or not _offers(tools, wanted):
        raise detail("Bad Gateway", 502)


def _offers(tools: list[dict[str, Any]], wanted: dict[str, Any]) -> bool:
    kind, name = wanted.get("type"), wanted.get("name")
    kinds = _SEARCHES if kind in _SEARCHES else (kind,)
    return any(tool.get("type") in kinds and tool.get("name") == name for tool in tools)
