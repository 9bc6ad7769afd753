"""The checks of a chat completions body: what every such server demands, and what some models demand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.wires.checking import (
    Members,
    check_members,
    is_flag,
    is_list,
    is_number,
    is_object,
    is_positive,
    is_text,
    missing,
    wrong,
)
from proxy.sandbox.wires.refusal import invalid
from proxy.sandbox.wires.schema_checks import malformed, untyped

ROLES = ("system", "developer", "user", "assistant", "tool")

#: What a message may carry: part type -> the member that holds its content.
_PARTS = {"text": "text", "image_url": "image_url", "video_url": "video_url"}

_MEMBERS: Members = {
    "stream": (is_flag, "a boolean"),
    "stream_options": (is_object, "an object"),
    "max_tokens": (is_positive, "a number from 1"),
    "max_completion_tokens": (is_positive, "a number from 1"),
    "temperature": (is_number, "a number"),
    "tools": (is_list, "a list"),
    "parallel_tool_calls": (is_flag, "a boolean"),
    "reasoning_effort": (is_text, "a string"),
    "thinking": (is_object, "an object"),
    "response_format": (is_object, "an object"),
    "prompt_cache_key": (is_text, "a string"),
}


@dataclass(frozen=True, slots=True)
class ChatRules:
    """What one model demands.

    `thinking` says whether this request makes it think; then, with `recalls_thoughts`, it wants the reasoning of
    every assistant message that has calls back ("calls": not empty) or that of every assistant message at all ("all").
    `forcible` are the forced choices of a tool that it bears while thinking ("required", "specified").
    """

    thinking: bool = False
    recalls_thoughts: str | None = None  # calls | all
    forcible: tuple[str, ...] = ("required", "specified")
    system_role: bool = True
    typed_schemas: bool = False
    filled_texts: bool = False  # refuses empty text parts
    filled_content: bool = False  # and an empty content beside calls
    efforts: tuple[str, ...] | None = None  # None: any
    one_effort: bool = False  # `thinking` and `reasoning_effort` exclude each other
    temperatures: tuple[float, ...] | None = None
    media: tuple[str, ...] | None = None  # parts it takes beside text; None: any, if only to ignore them


def check_chat(body: Mapping[str, Any], rules: ChatRules) -> None:
    """Raises Refused for the first rule that the body breaks."""
    check_members(body, _MEMBERS)
    _check_thinking(body, rules)
    _check_tools(body.get("tools") or (), rules)
    _check_choice(body.get("tool_choice"), rules)
    _check_messages(body.get("messages"), rules)


def _check_thinking(body: Mapping[str, Any], rules: ChatRules) -> None:
    thinking = body.get("thinking") or {}
    if body.get("thinking") is not None and thinking.get("type") not in ("enabled", "disabled"):
        raise wrong("thinking.type", "'enabled' or 'disabled'")
    if rules.one_effort and thinking and body.get("reasoning_effort") is not None:
        raise invalid("cannot specify both 'thinking' and 'reasoning_effort'")
    efforts = {"reasoning_effort": body.get("reasoning_effort"), "thinking.effort": thinking.get("effort")}
    for name, effort in efforts.items():
        if effort is not None and rules.efforts is not None and effort not in rules.efforts:
            raise wrong(name, f"one of {', '.join(rules.efforts)}")
    temperature = body.get("temperature")
    if temperature is not None and rules.temperatures is not None and temperature not in rules.temperatures:
        allowed = " or ".join(f"{one:g}" for one in rules.temperatures)
        raise invalid(f"invalid temperature: only {allowed} is allowed for this model")


def _check_tools(tools: Any, rules: ChatRules) -> None:
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in ("function", "builtin_function"):
            raise wrong(f"{where}.type", "'function'")
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            raise missing(f"{where}.function.name")
        if not isinstance(function.get("description"), str | None):
            raise wrong(f"{where}.function.description", "a string")
        if not isinstance(function.get("parameters"), dict | None):
            raise wrong(f"{where}.function.parameters", "an object")
        fault = malformed(function.get("parameters"))
        if fault is not None:
            raise invalid(f"Invalid schema for function '{function['name']}': {fault}")
        place = untyped(function.get("parameters")) if rules.typed_schemas else None
        if place is not None:
            raise invalid(f"At path '{place}': type is not defined")


def _check_choice(choice: Any, rules: ChatRules) -> None:
    if choice in (None, "auto", "none"):
        return
    function = choice.get("function") if isinstance(choice, dict) and choice.get("type") == "function" else None
    named = isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"]
    if choice != "required" and not named:
        raise wrong("tool_choice", "'auto', 'none', 'required' or a function with a name")
    kind = "required" if choice == "required" else "specified"
    if rules.thinking and kind not in rules.forcible:
        raise invalid(f"tool_choice '{kind}' is incompatible with thinking enabled")


def _check_messages(messages: Any, rules: ChatRules) -> None:
    if not isinstance(messages, list) or not messages:
        raise missing("messages")
    unanswered: set[str] = set()  # calls of the last assistant message
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            raise wrong(f"{where}.role", f"one of {', '.join(ROLES)}")
        if role in ("system", "developer") and not rules.system_role:
            raise invalid(f"{where}: role '{role}' is not supported by this model")
        if role == "tool":
            _check_answer(message, where, unanswered)
        else:
            _check_all_answered(unanswered)
        _check_content(message, where, rules)
        if role == "assistant":
            _check_thought(message, index, rules)
            unanswered = _check_calls(message, where)
    _check_all_answered(unanswered)


def _check_answer(message: Mapping[str, Any], where: str, unanswered: set[str]) -> None:
    """Answers stand directly behind the message with their calls, each once."""
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise missing(f"{where}.tool_call_id")
    if call_id not in unanswered:
        raise invalid(f"Invalid request: tool_call_id {call_id} is not found")
    unanswered.remove(call_id)


def _check_all_answered(unanswered: set[str]) -> None:
    if unanswered:
        raise invalid(
            "Invalid request: an assistant message with 'tool_calls' must be followed by tool messages responding to "
            f"each 'tool_call_id'. The following tool_call_ids did not have response messages: {sorted(unanswered)[0]}"
        )


def _check_content(message: Mapping[str, Any], where: str, rules: ChatRules) -> None:
    content = message.get("content")
    has_calls = bool(message.get("tool_calls"))
    if isinstance(content, str) or (content is None and message["role"] == "assistant"):
        if content == "" and has_calls and rules.filled_content:
            raise invalid("text content is empty")
        return
    if not isinstance(content, list):
        raise wrong(f"{where}.content", "a string or a list of parts")
    for number, part in enumerate(content):
        _check_part(part, f"{where}.content[{number}]", rules)


def _check_part(part: Any, where: str, rules: ChatRules) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in _PARTS:
        raise invalid(f"invalid content part at {where}: type is missing or unknown")
    if kind == "text":
        if not isinstance(part.get("text"), str):
            raise missing(f"{where}.text")
        if not part["text"] and rules.filled_texts:
            raise invalid("text content is empty")
        return
    if rules.media is not None and kind not in rules.media:
        raise invalid(f"invalid content part at {where}: this model has no {kind.partition('_')[0]} input")
    source = part.get(kind)
    url = source.get("url") if isinstance(source, dict) else None
    if not isinstance(url, str) or not url.startswith(("data:", "http://", "https://", "ms://")):
        raise wrong(f"{where}.{kind}.url", "a data URL or an address")


def _check_thought(message: Mapping[str, Any], index: int, rules: ChatRules) -> None:
    reasoning = message.get("reasoning_content")
    if not isinstance(reasoning, str | None):
        raise wrong(f"messages[{index}].reasoning_content", "a string")
    if not rules.thinking:
        return
    if rules.recalls_thoughts == "calls" and message.get("tool_calls") and not reasoning:
        raise invalid(
            f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
        )
    if rules.recalls_thoughts == "all" and reasoning is None:
        raise invalid("The reasoning_content in the thinking mode must be passed back to the API.")


def _check_calls(message: Mapping[str, Any], where: str) -> set[str]:
    """The ids of the calls."""
    calls = message.get("tool_calls")
    if calls is None:
        return set()
    if not isinstance(calls, list) or not calls:
        raise wrong(f"{where}.tool_calls", "a list of calls")
    ids = set()
    for number, call in enumerate(calls):
        here = f"{where}.tool_calls[{number}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            raise wrong(here, "a call of a function")
        if not isinstance(call.get("id"), str) or not call["id"]:
            raise missing(f"{here}.id")
        if not isinstance(function.get("name"), str) or not function["name"]:
            raise missing(f"{here}.function.name")
        if not isinstance(function.get("arguments"), str):
            raise wrong(f"{here}.function.arguments", "a string")
        ids.add(call["id"])
    return ids
