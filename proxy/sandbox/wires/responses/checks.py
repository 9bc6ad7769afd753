"""The checks of a Responses body that do not depend on whose backend it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.sandbox.wires.checking import Members, check_members, is_flag, is_text
from proxy.sandbox.wires.refusal import invalid
from proxy.sandbox.wires.responses.input_checks import check_input
from proxy.sandbox.wires.responses.tool_checks import check_choice, check_tools, flat_tools
from proxy.sandbox.wires.schema_checks import malformed, strict_fault

INCLUDABLE = (
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
)

_FORMAT_MEMBERS = {
    "text": frozenset({"type"}),
    "json_object": frozenset({"type"}),
    "json_schema": frozenset({"type", "name", "schema", "strict", "description"}),
}

_MEMBERS: Members = {
    "instructions": (is_text, "a string"),
    "prompt_cache_key": (is_text, "a string"),
    "parallel_tool_calls": (is_flag, "a boolean"),
    "service_tier": (is_text, "a string"),
}


def check_plain_members(body: Mapping[str, Any]) -> None:
    check_members(body, _MEMBERS)


def check_rest(body: Mapping[str, Any], efforts: tuple[str, ...], account_id: str, *, lite: bool = False) -> None:
    """Include, reasoning, text, tools, input and choice, in this order. Raises Refused."""
    _check_include(body.get("include"))
    _check_reasoning(body.get("reasoning"), efforts)
    _check_text(body.get("text"))
    if body.get("tools") is not None:
        check_tools(body["tools"], lite=lite)
    check_input(body.get("input"), account_id=account_id, lite=lite)
    if body.get("tool_choice") is not None:
        check_choice(body["tool_choice"], offered_tools(body))


def offered_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All tools of a request, flat: the top-level list, then those that travel in the input."""
    groups = [body.get("tools") or []]
    groups += [
        item.get("tools") or []
        for item in body.get("input") or ()
        if isinstance(item, dict) and item.get("type") == "additional_tools"
    ]
    return [tool for group in groups for tool in flat_tools(group)]


def _check_include(include: Any) -> None:
    if include is None:
        return
    if not isinstance(include, list):
        raise wrong_type("include", "an array of strings")
    for one in include:
        _one_of(one, INCLUDABLE, "include")


def _check_reasoning(reasoning: Any, efforts: tuple[str, ...]) -> None:
    if reasoning is None:
        return
    if not isinstance(reasoning, dict):
        raise wrong_type("reasoning", "an object")
    choices = {
        "effort": efforts,
        "summary": ("auto", "concise", "detailed"),
        "context": ("auto", "current_turn", "all_turns"),
    }
    for name, value in reasoning.items():
        if name not in choices:
            raise _unknown(f"reasoning.{name}")
        if value is not None:
            _one_of(value, choices[name], f"reasoning.{name}")


def _check_text(text: Any) -> None:
    if text is None:
        return
    if not isinstance(text, dict):
        raise wrong_type("text", "an object")
    for name in text:
        if name not in ("verbosity", "format"):
            raise _unknown(f"text.{name}")
    if text.get("verbosity") is not None:
        _one_of(text["verbosity"], ("low", "medium", "high"), "text.verbosity")
    if text.get("format") is not None:
        _check_format(text["format"])


def _check_format(wanted: Any) -> None:
    if not isinstance(wanted, dict):
        raise wrong_type("text.format", "an object")
    _one_of(wanted.get("type"), tuple(_FORMAT_MEMBERS), "text.format.type")
    for name in wanted:
        if name not in _FORMAT_MEMBERS[wanted["type"]]:
            raise _unknown(f"text.format.{name}")
    if wanted["type"] != "json_schema":
        return
    name = wanted.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise invalid("Missing or invalid 'text.format.name'.", code="invalid_value", param="text.format.name")
    if not isinstance(wanted.get("schema"), dict):
        raise wrong_type("text.format.schema", "an object")
    if not isinstance(wanted.get("strict"), bool | None):
        raise wrong_type("text.format.strict", "a boolean")
    fault = malformed(wanted["schema"]) or (strict_fault(wanted["schema"]) if wanted.get("strict") else None)
    if fault is not None:
        raise invalid(
            f"Invalid schema for response_format '{name}': {fault}",
            code="invalid_json_schema",
            param="text.format.schema",
        )


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        known = ", ".join(f"'{one}'" for one in choices)
        raise invalid(f"Invalid value: '{value}'. Supported values are: {known}.", code="invalid_value", param=where)


def wrong_type(where: str, expected: str) -> Exception:
    return invalid(f"Invalid type for '{where}': expected {expected}.", code="invalid_type", param=where)


def _unknown(where: str) -> Exception:
    return invalid(f"Unknown parameter: '{where}'.", code="unknown_parameter", param=where)
