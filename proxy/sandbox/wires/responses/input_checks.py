"""Checks of the items in `input`: kinds, members, roles, parts, pairs of calls and results, sealed reasoning."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from proxy.sandbox.wires.encrypted_content import check_encrypted
from proxy.sandbox.wires.refusal import Refused, detail, invalid
from proxy.sandbox.wires.responses.tool_checks import check_length, check_name, check_tools

MAX_CALL_ID = 64

#: Item type -> the members it may have beside `type`. None: known, not looked into.
ITEM_MEMBERS: dict[str, frozenset[str] | None] = {
    "message": frozenset({"id", "role", "content", "status", "phase"}),
    "reasoning": frozenset({"id", "summary", "content", "encrypted_content", "status"}),
    "function_call": frozenset({"id", "call_id", "name", "arguments", "status", "namespace"}),
    "function_call_output": frozenset({"id", "call_id", "output", "status"}),
    "custom_tool_call": frozenset({"id", "call_id", "name", "input", "status", "namespace"}),
    "custom_tool_call_output": frozenset({"id", "call_id", "output", "status"}),
    "web_search_call": frozenset({"id", "status", "action"}),
    "additional_tools": frozenset({"id", "role", "tools"}),
    "compaction": frozenset({"id", "encrypted_content"}),
    "compaction_trigger": frozenset(),
    "local_shell_call": None,
    "local_shell_call_output": None,
    "image_generation_call": None,
    "tool_search_call": None,
    "tool_search_output": None,
}

#: Part type -> its members beside `type`. `prompt_cache_breakpoint` is not among them.
PART_MEMBERS = {
    "input_text": frozenset({"text"}),
    "input_image": frozenset({"image_url", "file_id", "detail"}),
    "input_file": frozenset({"file_id", "file_data", "file_url", "filename"}),
    "output_text": frozenset({"text", "annotations", "logprobs"}),
    "refusal": frozenset({"refusal"}),
}

_INPUT_PARTS = ("input_text", "input_image", "input_file")

#: Role -> the part types it may carry.
ROLE_PARTS = {
    "user": _INPUT_PARTS,
    "developer": _INPUT_PARTS,
    "assistant": ("output_text", "refusal"),
}

#: Ids are optional; given, they must look like what the service issued.
ID_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}

_CALLS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_CALL_WORDS = {"function_call": "function call", "custom_tool_call": "custom tool call"}


def check_input(items: Any, *, account_id: str, lite: bool) -> None:
    """All of `input`. Raises Refused."""
    if not isinstance(items, list):
        raise detail("Input must be a list")
    if not items:
        raise invalid("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    open_calls: dict[tuple[str, str], bool] = {}  # (kind, call id) -> whether its result was seen
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = _check_shape(item, where)
        if kind == "message":
            check_message(item, where)
        elif kind in ("function_call", "custom_tool_call"):
            _check_call(item, kind, where)
            open_calls[kind, item["call_id"]] = False
        elif kind in _CALLS:
            _check_output(item, kind, where, open_calls)
        elif kind in ("reasoning", "compaction"):
            _check_sealed(item, kind, account_id, where)
        elif kind == "additional_tools":
            _check_additional_tools(item, where, lite=lite)
        elif kind == "compaction_trigger" and index != len(items) - 1:
            raise invalid("compaction_trigger must be the last input item.", code="invalid_value", param=where)
    _check_all_answered(open_calls)


def _check_shape(item: Any, where: str) -> str:
    """The type of the item, once its members are known to be legal. A message may leave its type out."""
    if not isinstance(item, dict):
        raise invalid(f"Invalid type for '{where}': expected an object.", code="invalid_type", param=where)
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "item_reference":
        raise not_stored(item.get("id"))
    if not isinstance(kind, str) or kind not in ITEM_MEMBERS:
        known = ", ".join(f"'{one}'" for one in ITEM_MEMBERS)
        raise invalid(
            f"Invalid value: '{kind}'. Supported values are: {known}.",
            code="invalid_value",
            param=f"{where}.type",
        )
    _check_members(item, ITEM_MEMBERS[kind], where)
    prefix, given = ID_PREFIXES.get(kind), item.get("id")
    if prefix is not None and given is not None and not (isinstance(given, str) and given.startswith(prefix)):
        raise invalid(
            f"Invalid '{where}.id': '{given}'. Expected an ID that begins with '{prefix}'.",
            code="invalid_value",
            param=f"{where}.id",
        )
    return kind


def _check_members(value: Mapping[str, Any], allowed: frozenset[str] | None, where: str) -> None:
    for member in value:
        if allowed is not None and member != "type" and member not in allowed:
            raise invalid(
                f"Unknown parameter: '{where}.{member}'.", code="unknown_parameter", param=f"{where}.{member}"
            )


def check_message(item: Mapping[str, Any], where: str) -> None:
    """Role and content of one message. Content is a text or a list of parts that fit the role."""
    role = item.get("role")
    if role == "system":
        raise detail("System messages are not allowed")
    if not isinstance(role, str) or role not in ROLE_PARTS:
        raise invalid(
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'developer', and 'user'.",
            code="invalid_value",
            param=f"{where}.role",
        )
    content = item.get("content")
    if not isinstance(content, str):
        _check_parts(content, ROLE_PARTS[role], f"{where}.content")


def _check_parts(parts: Any, allowed: tuple[str, ...], where: str) -> None:
    if not isinstance(parts, list):
        raise invalid(
            f"Invalid type for '{where}': expected a string or an array of objects.",
            code="invalid_type",
            param=where,
        )
    for index, part in enumerate(parts):
        here = f"{where}[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in allowed:
            known = [f"'{one}'" for one in allowed]
            raise invalid(
                f"Invalid value: '{kind}'. Supported values are: {', '.join(known[:-1])} and {known[-1]}.",
                code="invalid_value",
                param=here,
            )
        _check_members(part, PART_MEMBERS[kind], here)
        if kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            raise invalid(f"Missing required parameter: '{here}.text'.", code="missing_required_parameter", param=here)
        if kind == "input_image":
            _check_image(part, here)


def _check_image(part: Mapping[str, Any], where: str) -> None:
    """A data URL must hold base64 of an image type, any other URL must be https (or http)."""
    if part.get("detail") not in (None, "auto", "low", "high", "original"):
        raise invalid(f"Invalid value for '{where}.detail'.", code="invalid_value", param=f"{where}.detail")
    url = part.get("image_url")
    if url is None and isinstance(part.get("file_id"), str):
        return
    if not isinstance(url, str) or not _is_image_url(url):
        raise invalid(
            "The image data you provided does not represent a valid image. Please check your input and try again "
            "with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
            code="invalid_value",
            param=f"{where}.image_url",
        )


def _is_image_url(url: str) -> bool:
    if not url.startswith("data:"):
        return re.match(r"https?://[^/\s]+", url) is not None
    head, comma, data = url[5:].partition(",")
    if not comma or not re.fullmatch(r"image/[a-z0-9.+-]+;base64", head):
        return False
    try:
        return bool(base64.b64decode(data, validate=True))
    except binascii.Error:
        return False


def _check_call(item: Mapping[str, Any], kind: str, where: str) -> None:
    _check_call_id(item, where)
    check_name(item.get("name"), f"{where}.name")
    payload = "arguments" if kind == "function_call" else "input"
    if not isinstance(item.get(payload), str):
        raise invalid(
            f"Invalid type for '{where}.{payload}': expected a string.",
            code="invalid_type",
            param=f"{where}.{payload}",
        )


def _check_call_id(item: Mapping[str, Any], where: str) -> None:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise invalid(
            f"Missing required parameter: '{where}.call_id'.",
            code="missing_required_parameter",
            param=f"{where}.call_id",
        )
    check_length(call_id, f"{where}.call_id", MAX_CALL_ID)


def _check_output(item: Mapping[str, Any], kind: str, where: str, calls: dict[tuple[str, str], bool]) -> None:
    _check_call_id(item, where)
    call = (_CALLS[kind], item["call_id"])
    if call not in calls:
        words = _CALL_WORDS[call[0]]
        raise invalid(f"No tool call found for {words} output with call_id {call[1]}.", param="input")
    calls[call] = True
    if not isinstance(item.get("output"), str):
        _check_parts(item.get("output"), _INPUT_PARTS, f"{where}.output")


def _check_all_answered(calls: Mapping[tuple[str, str], bool]) -> None:
    for (kind, call_id), answered in calls.items():
        if not answered:
            raise invalid(f"No tool output found for {_CALL_WORDS[kind]} {call_id}.", param="input")


def _check_sealed(item: Mapping[str, Any], kind: str, account_id: str, where: str) -> None:
    content, item_id = item.get("encrypted_content"), item.get("id")
    if not isinstance(content, str) or not content:
        raise not_stored(item_id)
    if kind == "reasoning" and not isinstance(item.get("summary"), list):
        raise invalid(
            f"Missing required parameter: '{where}.summary'.",
            code="missing_required_parameter",
            param=f"{where}.summary",
        )
    # a thought is no compacted history
    check_encrypted(content, account_id, item_id, "cmp_" if kind == "compaction" else "")


def not_stored(item_id: Any) -> Refused:
    return invalid(
        f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        status=404,
        param="input",
    )


def _check_additional_tools(item: Mapping[str, Any], where: str, *, lite: bool) -> None:
    if not lite:
        raise invalid("additional_tools requires the Responses Lite lane.", code="unsupported_value", param=where)
    if item.get("role") != "developer":
        raise invalid(f"Invalid value for '{where}.role': expected 'developer'.", code="invalid_value", param=where)
    check_tools(item.get("tools"), lite=True)
