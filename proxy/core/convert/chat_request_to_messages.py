"""The body of `POST /v1/chat/completions` to a Messages request.

What is accepted, what is refused by name, and in which order: see `openai_fields`. `model` was checked by the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.core.convert.openai_fields import (
    CACHE_HINTS,
    TEXTS,
    Block,
    Conversation,
    Members,
    PartRules,
    call_input,
    check_fields,
    check_keys,
    effort_of,
    hub_request,
    invalid,
    needed_text,
    not_one_of,
    objects_of,
    optional_flag,
    text_block,
    token_limit,
    unsupported,
)
from proxy.core.convert.openai_tools import check_rules, read_choice, read_tools
from proxy.core.ingress import Ingress, IngressRules

_FIELDS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning_effort",
        "n",
    }
)
_STREAM_OPTIONS = frozenset({"include_usage", "include_obfuscation"})
_MESSAGE_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"})
#: What our own answers have beside their content, and what the SDK's message objects add: clients send all of it back.
ANSWER_KEYS = frozenset({"reasoning_content", "annotations", "parsed"})
_ASSISTANT_KEYS = _MESSAGE_KEYS | ANSWER_KEYS
#: The SDK's stream helper adds `index` and `parsed_arguments` to the calls that clients send back.
_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_CALL_FUNCTION_KEYS = frozenset({"name", "arguments", "parsed_arguments"})

_SYSTEM_PARTS = PartRules(TEXTS, empty=False)
_USER_PARTS = PartRules(frozenset({"text"}), image="image_url", empty=False)
_ASSISTANT_PARTS = PartRules(TEXTS)
_RESULT_PARTS = PartRules(TEXTS, image="image_url")


def chat_request_to_messages(body: Members, rules: IngressRules, *, session: str | None = None) -> Ingress:
    """The Messages request and what the reply needs to know. `session`: the caller's session id, if any.

    The body stays as it was; tool schemas and picture data are shared with it. Raises InvalidRequest.
    """
    check_fields(body, _FIELDS, CACHE_HINTS)
    stream = optional_flag(body.get("stream"), "stream") is True
    include_usage = _include_usage(body.get("stream_options"), stream=stream)
    conversation = _conversation(body.get("messages"))
    messages = conversation.messages("messages")
    _check_n(body.get("n"))
    parallel = optional_flag(body.get("parallel_tool_calls"), "parallel_tool_calls")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise invalid("max_completion_tokens", "cannot stand beside `max_tokens`")
    limit = token_limit(body, "max_tokens") or token_limit(body, "max_completion_tokens")
    tools = read_tools(body.get("tools"), rules, wrapped=True)
    choice = read_choice(body.get("tool_choice"), parallel, tools, rules, wrapped=True)
    effort = effort_of(body.get("reasoning_effort"), "reasoning_effort", rules)
    check_rules(rules, conversation, tools, stream=stream, session=session)
    asked = {"max_tokens": limit, "tools": tools.tools, "tool_choice": choice, "effort": effort}
    request = hub_request(body["model"], conversation.system, messages, asked)
    return Ingress(request, stream=stream, include_usage=include_usage)


def _include_usage(options: Any, *, stream: bool) -> bool:
    if options is None:
        return False
    if not stream:
        raise invalid("stream_options", "has a meaning only when `stream` is true")
    if not isinstance(options, dict):
        raise invalid("stream_options", "must be an object")
    check_keys(options, _STREAM_OPTIONS, "stream_options")
    if optional_flag(options.get("include_obfuscation"), "stream_options.include_obfuscation"):
        raise unsupported("stream_options.include_obfuscation", True)
    return optional_flag(options.get("include_usage"), "stream_options.include_usage") is True


def _check_n(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid("n", "must be the number 1")
    if value != 1:
        raise unsupported("n", value)


# -- messages


def _conversation(messages: Any) -> Conversation:
    conversation = Conversation()
    for path, message in objects_of(messages, "messages"):
        role = message.get("role")
        check_keys(message, _ASSISTANT_KEYS if role == "assistant" else _MESSAGE_KEYS, path)
        reader = _ROLES.get(role) if isinstance(role, str) else None
        if reader is None:
            raise not_one_of(f"{path}.role", sorted(_ROLES), role)
        reader(conversation, message, path)
    return conversation


def _system(conversation: Conversation, message: Members, path: str) -> None:
    content = _something(message, f"{path}.content")
    if not isinstance(content, str):
        content = _joined(conversation.parts(content, f"{path}.content", _SYSTEM_PARTS))
    conversation.instruct(content)


def _user(conversation: Conversation, message: Members, path: str) -> None:
    content = _something(message, f"{path}.content")
    if not isinstance(content, str):
        content = conversation.parts(content, f"{path}.content", _USER_PARTS)
    conversation.user(content)


def _something(message: Members, path: str) -> str | list[Any]:
    """Content that must be there."""
    content = message.get("content")
    if not isinstance(content, str | list) or not content:
        raise invalid(path, "must be a non-empty string or list of parts")
    return content


def _assistant(conversation: Conversation, message: Members, path: str) -> None:
    thinking, content = message.get("reasoning_content"), message.get("content")
    blocks: list[Block] = []
    if thinking is not None and not isinstance(thinking, str):
        raise invalid(f"{path}.reasoning_content", "must be a string")
    if thinking:
        blocks.append({"type": "thinking", "thinking": thinking})
    if isinstance(content, list):
        blocks += conversation.parts(content, f"{path}.content", _ASSISTANT_PARTS)
    elif isinstance(content, str):
        blocks += [text_block(content)] if content else []
    elif content is not None:
        raise invalid(f"{path}.content", "must be a string or a list of parts")
    calls = message.get("tool_calls")
    if not blocks and not calls:
        raise invalid(f"{path}.content", "must not be empty in a message without tool calls")
    conversation.assistant(blocks)
    for call_path, call in () if calls is None else objects_of(calls, f"{path}.tool_calls"):
        _call(conversation, call, call_path)


def _call(conversation: Conversation, call: Members, path: str) -> None:
    if call.get("type") != "function":
        raise unsupported(f"{path}.type", call.get("type"))
    check_keys(call, _CALL_KEYS, path)
    call_id, function = needed_text(call, "id", path), call.get("function")
    if not isinstance(function, dict):
        raise invalid(f"{path}.function", "must be an object")
    check_keys(function, _CALL_FUNCTION_KEYS, f"{path}.function")
    name = needed_text(function, "name", f"{path}.function")
    value = call_input(function.get("arguments"), f"{path}.function.arguments")
    conversation.call(call_id, name, value, f"{path}.id")


def _tool(conversation: Conversation, message: Members, path: str) -> None:
    """A result. An empty one is normal: many commands print nothing."""
    content = message.get("content")
    if isinstance(content, list):
        blocks = conversation.parts(content, f"{path}.content", _RESULT_PARTS)
        content = blocks if any(block["type"] != "text" for block in blocks) else _joined(blocks)
    elif content is not None and not isinstance(content, str):
        raise invalid(f"{path}.content", "must be a string or a list of parts")
    conversation.result(message.get("tool_call_id"), content or "", f"{path}.tool_call_id")


def _joined(blocks: list[Block]) -> str:
    return "".join(block["text"] for block in blocks)


_ROLES: dict[str, Callable[[Conversation, Members, str], None]] = {
    "system": _system,
    "developer": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
}
