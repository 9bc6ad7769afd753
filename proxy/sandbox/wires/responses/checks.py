"""The checks of a Responses body that are common to all backends: its input, and the other members.

Items: kinds, members, roles, parts, pairs of calls and results, encrypted reasoning.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.wires.encrypted_content import check_encrypted
from proxy.sandbox.wires.field_checks import (
    ByKind,
    Checked,
    Each,
    Field,
    Inside,
    Known,
    Table,
    by_type,
    check,
    demanded,
    fits,
    judged,
    matches,
    members,
    one_of,
    optional,
    place,
    required,
)
from proxy.sandbox.wires.refusal import MISSING, NOT_ONE_OF, UNKNOWN, WRONG_TYPE, WRONG_VALUE, Refusal, bare, invalid
from proxy.sandbox.wires.responses.tool_checks import CHOICE, NAME, NO_TOOLS, TOO_LONG, TOOLS, text, too_long
from proxy.sandbox.wires.schema_checks import malformed, strict_fault

_NOT_STORED = Refusal(
    "Item with id '{item[id]}' not found. Items are not persisted when `store` is set to false. "
    "Try again with `store` set to true, or remove this item from your input.",
    param="input",
    status=404,
)
_NO_TEXT = MISSING.about("{here}")
_BAD_ID = Refusal("Invalid '{where}': '{value}'. Expected an ID that begins with '{expected}'.", "invalid_value")
_BAD_DETAIL = Refusal("Invalid value for '{where}'.", "invalid_value")
_BAD_IMAGE = Refusal(
    "The image data you provided does not represent a valid image. Please check your input and try again "
    "with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
    "invalid_value",
)
_NO_LITE = Refusal("additional_tools requires the Responses Lite lane.", "unsupported_value", "{here}")
_NOT_LAST = Refusal("compaction_trigger must be the last input item.", "invalid_value")


def check_message(item: Mapping[str, Any], where: str) -> None:
    """Checks role and content of one message. Raises Refused."""
    check(item, _MESSAGE, where=where)


def _is_image(part: Any) -> bool:
    """Whether an image is valid: a data URL with base64 of an image type, an https (or http) URL, or a file."""
    url = part.get("image_url")
    if not isinstance(url, str):
        return url is None and isinstance(part.get("file_id"), str)
    if not url.startswith("data:"):
        return re.match(r"https?://[^/\s]+", url) is not None
    head, _, data = url[5:].partition(",")
    try:
        return bool(re.fullmatch(r"image/[a-z0-9.+-]+;base64", head) and base64.b64decode(data, validate=True))
    except binascii.Error:
        return False


def _called(item: Any, _where: str, seen: Checked) -> None:
    seen.open_calls[item["type"], item["call_id"]] = False


def _answered(item: Any, _where: str, seen: Checked) -> None:
    kind, call_id = item["type"].removesuffix("_output"), item["call_id"]
    if (kind, call_id) not in seen.open_calls:
        words = f"No tool call found for {kind.replace('_', ' ')} output with call_id {call_id}."
        raise invalid(words, param="input")
    seen.open_calls[kind, call_id] = True


def _all_answered(_body: Any, _where: str, seen: Checked) -> None:
    for (kind, call_id), answered in seen.open_calls.items():
        if not answered:
            raise invalid(f"No tool output found for {kind.replace('_', ' ')} {call_id}.", param="input")


def _sealed(item: Any, _where: str, seen: Checked) -> None:
    # reasoning is not a compacted history
    prefix = "cmp_" if item["type"] == "compaction" else ""
    check_encrypted(item["encrypted_content"], seen.rules.account_id, item.get("id"), prefix)


def _last(item: Any, seen: Checked) -> str | None:
    return None if seen.body["input"][-1] is item else ""


def typed(item: Any) -> Any:
    """The item with its type, which a message may omit."""
    return {"type": "message", **item} if isinstance(item, dict) and "role" in item else item


def _parts(path: str, kinds: str) -> Table:
    """A text, or a list of parts of these types."""
    known = one_of(*kinds.split(), last=" and ")
    words = fits(lambda value: isinstance(value, str | list), "a string or an array of objects")
    return (required(path, words, WRONG_TYPE), Each(path, by_type(_PARTS, NOT_ONE_OF.about("{here}"), known)))


def _id(prefix: str) -> Field:
    return optional("id", fits(lambda value: isinstance(value, str) and value.startswith(prefix), prefix), _BAD_ID)


#: Part type -> its checks. `prompt_cache_breakpoint` is not among the members.
_PARTS: dict[str, Table] = {
    "input_text": (Known("type text"), required("text", "text", _NO_TEXT)),
    "input_image": (
        Known("type image_url file_id detail"),
        optional("detail", one_of("auto", "low", "high", "original"), _BAD_DETAIL),
        required("", fits(_is_image), _BAD_IMAGE, at="image_url"),
    ),
    "input_file": (Known("type file_id file_data file_url filename"),),
    "output_text": (Known("type text annotations logprobs"), required("text", "text", _NO_TEXT)),
    "refusal": (Known("type refusal"),),
}

_INPUT = "input_text input_image input_file"

#: Role -> the content of its messages.
_CONTENTS = {
    "assistant": _parts("content", "output_text refusal"),
    "developer": _parts("content", _INPUT),
    "user": _parts("content", _INPUT),
}

_MESSAGE: Table = (
    required("role", fits(lambda role: role != "system"), bare("System messages are not allowed")),
    required("role", one_of(*_CONTENTS, last=", and "), NOT_ONE_OF),
    ByKind("role", _CONTENTS),
)

#: Notes of the vendor's own client on an item: the turn, the time, where each part comes from.
_NOTES = "internal_chat_message_metadata_passthrough"

_CALL_ID = text("call_id", "filled")


def _of_codex(item: Any, where: str, seen: Checked) -> None:
    """Refuses members that only the backend of the vendor's own client accepts."""
    if seen.rules.codex:
        return
    if item["type"] == "configuration_update":
        raise NOT_ONE_OF.fill(place(where, "type"), where, item["type"], "items of the API")
    if _NOTES in item:
        raise UNKNOWN.fill(place(where, _NOTES), where)


def _known(names: str) -> Known:
    return Known(f"type id {names} {_NOTES}")


def _call(prefix: str, payload: str) -> Table:
    known = _known(f"call_id name {payload} status namespace")
    return (known, _id(prefix), *_CALL_ID, *NAME, required(payload, "text", WRONG_TYPE), _called)


_OUTPUT: Table = (_known("call_id output status"), *_CALL_ID, _answered, *_parts("output", _INPUT))

_CONTENT = required("encrypted_content", "filled", _NOT_STORED)

#: Item type -> its checks; a type without any is not inspected.
_ITEMS: dict[str, Table] = {
    "message": (_known("role content status phase"), _id("msg"), *_MESSAGE),
    "reasoning": (
        _known("summary content encrypted_content status"),
        _id("rs"),
        _CONTENT,
        required("summary", "list"),
        _sealed,
    ),
    "function_call": _call("fc", "arguments"),
    "function_call_output": _OUTPUT,
    "custom_tool_call": _call("ctc", "input"),
    "custom_tool_call_output": _OUTPUT,
    "web_search_call": (_known("status action"),),
    "additional_tools": (
        _known("role tools"),
        required("", lambda _item, seen: None if seen.rules.lite else "", _NO_LITE),
        required("role", one_of("developer"), WRONG_VALUE.about("{here}")),
        required("tools", "list", NO_TOOLS),
        *TOOLS,
    ),
    "compaction": (_known("encrypted_content"), _CONTENT, _sealed),
    # another effort from here on, in a conversation that keeps its prompt's prefix
    "configuration_update": (
        _known("reasoning"),
        required("reasoning", "object", WRONG_TYPE),
        Inside("reasoning", (Known("effort"), required("effort", demanded("efforts", "'{}'", "', '"), NOT_ONE_OF))),
    ),
    "compaction_trigger": (_known(""), required("", _last, _NOT_LAST)),
    **dict.fromkeys(("local_shell_call", "local_shell_call_output", "image_generation_call"), ()),
    **dict.fromkeys(("tool_search_call", "tool_search_output"), ()),
}

_ITEM: Table = (
    required("", "object", WRONG_TYPE),
    required("type", fits(lambda kind: kind != "item_reference"), _NOT_STORED),
    *by_type(_ITEMS, NOT_ONE_OF, one_of(*_ITEMS, last=", ")),
    _of_codex,
    optional(_NOTES, "object", WRONG_TYPE),
)

INPUT: Table = (
    required("input", "list", bare("Input must be a list")),
    required("input", "filled list"),
    Each("input", _ITEM, typed),
    _all_answered,
)


@dataclass(frozen=True, slots=True)
class ResponsesRules:
    """A backend's rules besides the tables: the model's efforts, the owner of encrypted content, the lane, and whether
    it is the backend behind Codex, which knows that client's additions to items."""

    efforts: tuple[str, ...]
    account_id: str
    lite: bool = False
    codex: bool = False


_INCLUDABLE = (
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
)
_BAD_NAME = Refusal("Missing or invalid '{where}'.", "invalid_value")
_BAD_SCHEMA = Refusal(
    "Invalid schema for response_format '{item[name]}': {expected}", "invalid_json_schema", "{here}.schema"
)


def _words(path: str, *words: str) -> Table:
    return (optional(path, one_of(*words, last=", "), NOT_ONE_OF),)


def _schema_fault(wanted: Any) -> str | None:
    return malformed(wanted["schema"]) or (strict_fault(wanted["schema"]) if wanted.get("strict") else None)


_FORMATS: dict[str, Table] = {
    "text": (Known("type"),),
    "json_object": (Known("type"),),
    "json_schema": (
        Known("type name schema strict description"),
        required("name", matches(r"[a-zA-Z0-9_-]{1,64}"), _BAD_NAME),
        required("schema", "object", WRONG_TYPE),
        optional("strict", "boolean", WRONG_TYPE),
        required("", judged(_schema_fault), _BAD_SCHEMA),
    ),
}

_REASONING = Known(
    {
        "effort": (optional("effort", demanded("efforts", "'{}'", "', '"), NOT_ONE_OF),),
        "summary": _words("summary", "auto", "concise", "detailed"),
        "context": _words("context", "auto", "current_turn", "all_turns"),
    }
)

_TEXT: Table = (
    Known("verbosity format"),
    *_words("verbosity", "low", "medium", "high"),
    optional("format", "object", WRONG_TYPE),
    Inside("format", by_type(_FORMATS, NOT_ONE_OF, one_of(*_FORMATS, last=", "))),
)

PLAIN_MEMBERS: Table = (
    *members("instructions: text, prompt_cache_key: text, parallel_tool_calls: boolean, service_tier: text"),
    optional("prompt_cache_key", judged(too_long), TOO_LONG),
)

#: Checks after the plain members. For `ResponsesRules`, or an object with the same members.
REST: Table = (
    optional("include", fits(lambda value: isinstance(value, list), "an array of strings"), WRONG_TYPE),
    Each("include", (required("", one_of(*_INCLUDABLE, last=", "), NOT_ONE_OF.about("include")),)),
    optional("reasoning", "object", WRONG_TYPE),
    Inside("reasoning", (_REASONING,)),
    optional("text", "object", WRONG_TYPE),
    Inside("text", _TEXT),
    *TOOLS,
    *INPUT,
    *CHOICE,
)
