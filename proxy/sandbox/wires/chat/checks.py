"""The checks of a chat completions body: those of every such server, and those of some models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.wires.field_checks import (
    ByKind,
    Checked,
    Each,
    Inside,
    Table,
    by_type,
    check,
    demanded,
    fits,
    is_filled,
    judged,
    look,
    members,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import WRONG_VALUE, invalid
from proxy.sandbox.wires.schema_checks import malformed, untyped


@dataclass(frozen=True, slots=True)
class ChatRules:
    """The rules of one model for one request, with or without thinking.

    `unforcible` are the forced tool choices that it refuses ("required", "specified"). It may require non-empty
    reasoning with every assistant message that has calls, or with every assistant message."""

    unforcible: tuple[str, ...] = ()
    recalls_of_calls: bool = False
    recalls_of_all: bool = False
    no_developer_role: bool = False
    typed_schemas: bool = False
    filled_texts: bool = False  # refuses empty text parts
    filled_content: bool = False  # and an empty content beside calls
    efforts: tuple[str, ...] | None = None  # None: any
    one_effort: bool = False  # `thinking` and `reasoning_effort` exclude each other
    temperatures: tuple[float, ...] | None = None
    media: tuple[str, ...] | None = None  # parts that it accepts besides text; None: any, even if it ignores them


def check_chat(body: Mapping[str, Any], rules: ChatRules) -> None:
    """Raises Refused for the first rule that the body violates."""
    check(body, CHAT, rules)


def _is_choice(choice: Any) -> bool:
    named = look(choice, "type") == "function" and is_filled(look(choice, "function.name"))
    return named or choice in ("auto", "none", "required")


def _forced(choice: Any, seen: Checked) -> str | None:
    kind = choice if isinstance(choice, str) else "specified"
    return kind if kind in seen.rules.unforcible else None


def _is_content(message: Any) -> bool:
    content = message.get("content")
    return isinstance(content, str | list) or (content is None and message["role"] == "assistant")


def _is_call(call: Any) -> bool:
    return look(call, "type") == "function" and isinstance(call.get("function"), dict)


def _recalls(message: Any) -> bool:
    return bool(message.get("reasoning_content") or not message.get("tool_calls"))


def _one_effort(body: Any) -> bool:
    return body.get("thinking") is None or body.get("reasoning_effort") is None


def _answered(message: Any, _where: str, seen: Checked) -> None:
    """Answers directly follow the message with their calls, each once."""
    if seen.open_calls.pop(message["tool_call_id"], None) is None:
        raise invalid(f"Invalid request: tool_call_id {message['tool_call_id']} is not found")


def _all_answered(_item: Any, _where: str, seen: Checked) -> None:
    if seen.open_calls:
        raise invalid(
            "Invalid request: an assistant message with 'tool_calls' must be followed by tool messages responding to "
            f"each 'tool_call_id'. The following tool_call_ids did not have response messages: {min(seen.open_calls)}"
        )


def _called(message: Any, _where: str, seen: Checked) -> None:
    seen.open_calls = {call["id"]: True for call in message.get("tool_calls") or ()}


_ROLES = ("system", "developer", "user", "assistant", "tool")
_ADDRESS = fits(
    lambda url: is_filled(url) and url.startswith(("data:", "http://", "https://", "ms://")),
    "a data URL or an address",
)

_EMPTY = "text content is empty"
_BAD_SCHEMA = "Invalid schema for function '{item[function][name]}': {expected}"
_BAD_TEMPERATURE = "invalid temperature: only {expected} is allowed for this model"
_NO_ROLE = "{here}: role '{value}' is not supported by this model"
_NO_MEDIA = "invalid content part at {here}: this model has no %s input"
_NO_THOUGHT = "The reasoning_content in the thinking mode must be passed back to the API."
_NO_THOUGHT_OF_CALL = (
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
)

_TOOL: Table = (
    required("type", one_of("function", "builtin_function", expected="'function'"), WRONG_VALUE),
    required("function.name", "filled"),
    optional("function.description", "text"),
    optional("function.parameters", "object"),
    optional("function.parameters", judged(malformed), _BAD_SCHEMA),
    optional("function.parameters", judged(untyped), "At path '{expected}': type is not defined", when="typed_schemas"),
)

#: Part type -> its checks.
_PARTS: dict[str, Table] = {
    "text": (required("text", "text"), optional("text", "filled", _EMPTY, when="filled_texts")),
    **{
        f"{kind}_url": (
            optional("type", demanded("media"), _NO_MEDIA % kind),
            required(f"{kind}_url.url", _ADDRESS, WRONG_VALUE),
        )
        for kind in ("image", "video")
    },
}

_PART: Table = by_type(_PARTS, "invalid content part at {here}: type is missing or unknown")

_CALL: Table = (
    required("", fits(_is_call, "a call of a function"), WRONG_VALUE),
    required("id", "filled"),
    required("function.name", "filled"),
    required("function.arguments", "text", WRONG_VALUE),
)

_ASSISTANT: Table = (
    optional("reasoning_content", "text"),
    optional("", fits(_recalls), _NO_THOUGHT_OF_CALL, when="recalls_of_calls"),
    required("reasoning_content", "anything", _NO_THOUGHT, when="recalls_of_all"),
    optional("tool_calls", fits(lambda calls: isinstance(calls, list) and calls, "a list of calls")),
    Each("tool_calls", _CALL),
    _called,
)

_MESSAGE: Table = (
    required("role", one_of(*_ROLES, expected=f"one of {', '.join(_ROLES)}"), WRONG_VALUE),
    optional("role", fits(lambda role: role != "developer"), _NO_ROLE, when="no_developer_role"),
    ByKind("role", {"tool": (required("tool_call_id", "filled"), _answered)}, other=(_all_answered,)),
    optional("", fits(_is_content, "a string or a list of parts"), at="content"),
    optional(
        "", fits(lambda one: one.get("content") != "" or not one.get("tool_calls")), _EMPTY, when="filled_content"
    ),
    Each("content", _PART),
    ByKind("role", {"assistant": _ASSISTANT}),
)

CHAT: Table = (
    *members(
        "stream: boolean, stream_options: object, max_tokens: positive, max_completion_tokens: positive, "
        "temperature: number, top_p: number, tools: list, parallel_tool_calls: boolean, reasoning_effort: text, "
        "thinking: object, response_format: object, prompt_cache_key: text"
    ),
    Inside("thinking", (required("type", one_of("enabled", "disabled"), WRONG_VALUE), optional("keep", "text"))),
    optional("", fits(_one_effort), "cannot specify both 'thinking' and 'reasoning_effort'", when="one_effort"),
    optional("reasoning_effort", demanded("efforts", "one of {}")),
    optional("thinking.effort", demanded("efforts", "one of {}")),
    optional("temperature", demanded("temperatures", between=" or "), _BAD_TEMPERATURE),
    Each("tools", _TOOL),
    optional("tool_choice", fits(_is_choice, "'auto', 'none', 'required' or a function with a name")),
    optional("tool_choice", _forced, "tool_choice '{expected}' is incompatible with thinking enabled"),
    required("messages", "filled list"),
    Each("messages", _MESSAGE),
    _all_answered,
)
