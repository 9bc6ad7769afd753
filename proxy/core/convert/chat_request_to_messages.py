"""Converts the body of `POST /v1/chat/completions` to a Messages request.

See `openai_mode` for what is accepted and what is refused by name. The server has checked `model`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from proxy.core.convert.openai_fields import (
    TEXTS,
    Block,
    Conversation,
    Members,
    PartRules,
    call_input,
    check_length,
    hub_request,
    joined,
    needed_text,
    objects_of,
    optional_flag,
    text_block,
    token_limit,
)
from proxy.core.convert.openai_formats import chat_format
from proxy.core.convert.openai_mode import CACHE_HINTS, Mode, invalid, not_one_of, unsupported
from proxy.core.convert.openai_tool_choice import check_rules, read_choice
from proxy.core.convert.openai_tools import SEARCH_OPTIONS, Declared, read_tools
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.invalid import shown
from proxy.core.sse import dump_json
from proxy.core.tools.hosted import WEB_SEARCH

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
#: The API's predecessors of tools. Lenient mode reads them as tools, and answers in the same form. Such calls have no
#: ids: a result names its function.
_FUNCTIONS, _FUNCTION_CALL = "functions", "function_call"
_CALL_WORDS = ("none", "auto")
_STREAM_OPTIONS = frozenset({"include_usage", "include_obfuscation"})
_MESSAGE_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"})
#: Members besides `content` of our own answers and of the SDK's message objects: clients send all of them back.
ANSWER_KEYS = frozenset({"reasoning_content", "annotations", "parsed", "refusal"})
_ASSISTANT_KEYS = _MESSAGE_KEYS | ANSWER_KEYS
#: The SDK's stream helper adds `index` and `parsed_arguments` to the calls that clients send back.
_CALL_KEYS = frozenset({"id", "type", "function", "index"})
_OLDER_CALL_KEYS = frozenset({"name", "arguments"})
_CALL_FUNCTION_KEYS = frozenset({"name", "arguments", "parsed_arguments"})

_SYSTEM_PARTS = PartRules(TEXTS, empty=False)
_USER_PARTS = PartRules(frozenset({"text"}), image="image_url", empty=False)
_ASSISTANT_PARTS = PartRules(TEXTS, refusals=True)
_RESULT_PARTS = PartRules(TEXTS, image="image_url")


def chat_request_to_messages(
    body: Members, rules: IngressRules, *, session: str | None = None, lenient: bool = False
) -> Ingress:
    """The Messages request and what the reply needs to know. `session`: the caller's session id, if any.

    The body is not changed; tool schemas and picture data are shared with it. Raises InvalidRequest.
    """
    mode = Mode(rules, lenient=lenient)
    search: list[Declared] = []
    own = {"response_format": partial(chat_format, mode), SEARCH_OPTIONS: partial(_search, mode, search)}
    older = _takes_functions(mode)
    mode.check_fields(body, _FIELDS | {_FUNCTION_CALL, _FUNCTIONS} if older else _FIELDS, CACHE_HINTS, own)
    stream = optional_flag(body.get("stream"), "stream") is True
    include_usage = _include_usage(body.get("stream_options"), mode, stream=stream)
    conversation = _conversation(body.get("messages"), mode)
    messages = conversation.messages("messages")
    _check_n(body.get("n"))
    parallel = optional_flag(body.get("parallel_tool_calls"), "parallel_tool_calls")
    limit = _limit(body, mode)
    functions = _functions(body) if older else []
    wanted = _chosen_function(body, functions) if older else None
    declared = functions or [("tools", body.get("tools"))]
    tools = read_tools([*declared, *search], mode, wrapped=not functions)
    if wanted is None:
        wanted = body.get("tool_choice")
    choice = read_choice(wanted, False if functions else parallel, tools, mode, wrapped=not functions)
    effort = mode.effort(body.get("reasoning_effort"), "reasoning_effort")
    check_rules(mode, conversation, tools, stream=stream, session=session)
    asked = {"max_tokens": limit, "tools": tools.tools, "tool_choice": choice, "effort": effort}
    request = hub_request(body["model"], conversation, messages, asked)
    return Ingress(
        request,
        stream=stream,
        include_usage=include_usage,
        functions=bool(functions),
        ignored=tuple(mode.ignored),
    )


def _search(mode: Mode, found: list[Declared], options: Any) -> None:
    """Reads `web_search_options` as a hosted search, if the provider has one. Its location is in a member of its
    own."""
    if not mode.lenient or WEB_SEARCH not in mode.rules.hosted:
        mode.leave_out(SEARCH_OPTIONS)
        return
    if not isinstance(options, dict):
        raise invalid(SEARCH_OPTIONS, "must be an object")
    tool: Block = {"type": WEB_SEARCH}
    place = options.get("user_location")
    if isinstance(place, dict) and isinstance(place.get("approximate"), dict):
        place = {"type": "approximate", **place["approximate"]}
    if place is not None and "user_location" in mode.rules.hosted[WEB_SEARCH].options:
        tool["user_location"] = place
    elif place is not None:
        mode.note(f"{SEARCH_OPTIONS}.user_location")
    found.append((SEARCH_OPTIONS, [tool]))


def _include_usage(options: Any, mode: Mode, *, stream: bool) -> bool:
    if options is None:
        return False
    if not stream:
        if mode.lenient:
            mode.note("stream_options")
            return False
        raise invalid("stream_options", "has a meaning only when `stream` is true")
    if not isinstance(options, dict):
        raise invalid("stream_options", "must be an object")
    mode.check_keys(options, _STREAM_OPTIONS, "stream_options")
    if optional_flag(options.get("include_obfuscation"), "stream_options.include_obfuscation"):
        mode.leave_out("stream_options.include_obfuscation", True)
    return optional_flag(options.get("include_usage"), "stream_options.include_usage") is True


def _limit(body: Members, mode: Mode) -> int | None:
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise invalid("max_completion_tokens", "cannot be used together with `max_tokens`")
    name = "max_tokens" if body.get("max_tokens") is not None else "max_completion_tokens"
    return mode.limit(name, token_limit(body, name))


def _check_n(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid("n", "must be the number 1")
    if value != 1:
        raise unsupported("n", value)


# -- functions


def _takes_functions(mode: Mode) -> bool:
    """Whether bodies may use `functions`. A run that waits for its tools needs results with ids."""
    return mode.lenient and mode.rules.tools is None


def _functions(body: Members) -> list[Declared]:
    """The functions as tools in their flat form; empty if the body has none. Raises InvalidRequest."""
    functions = body.get(_FUNCTIONS)
    if functions is None:
        return []
    entries: list[Block] = [{**entry, "type": "function"} for _, entry in objects_of(functions, _FUNCTIONS)]
    if entries and body.get("tools"):
        raise invalid(_FUNCTIONS, "cannot be used together with `tools`")
    return [(_FUNCTIONS, entries)] if entries else []


def _chosen_function(body: Members, declared: list[Declared]) -> Any:
    """`function_call` of a body as a tool choice, also among `tools` if there is no `tool_choice`; None if there is
    none. Raises InvalidRequest."""
    value = body.get(_FUNCTION_CALL)
    if value is None or value in _CALL_WORDS:
        return value if declared or (body.get("tools") and body.get("tool_choice") is None) else None
    name = value.get("name") if isinstance(value, dict) else None
    if not any(entry.get("name") == name for _, entries in declared for entry in entries):
        raise invalid(
            _FUNCTION_CALL, f"must be one of {', '.join(_CALL_WORDS)}, or name one of the functions, not {shown(value)}"
        )
    return {"type": "function", "name": name}


# -- messages


def _conversation(messages: Any, mode: Mode) -> Conversation:
    conversation = Conversation(mode)
    older = _takes_functions(mode)
    readers = {**_ROLES, "function": _function_result} if older else _ROLES
    answer_keys = _ASSISTANT_KEYS | {_FUNCTION_CALL} if older else _ASSISTANT_KEYS
    for path, message in objects_of(messages, "messages"):
        role = message.get("role")
        mode.check_keys(message, answer_keys if role == "assistant" else _MESSAGE_KEYS, path)
        reader = readers.get(role) if isinstance(role, str) else None
        if reader is None:
            raise not_one_of(f"{path}.role", sorted(_ROLES), role)
        reader(conversation, message, path)
    return conversation


def _system(conversation: Conversation, message: Members, path: str) -> None:
    content = _something(conversation.mode, message, f"{path}.content")
    if not isinstance(content, str):
        content = _texts(conversation.parts(content, f"{path}.content", _SYSTEM_PARTS))
    conversation.instruct(content)


def _user(conversation: Conversation, message: Members, path: str) -> None:
    content = _something(conversation.mode, message, f"{path}.content")
    if not isinstance(content, str):
        content = conversation.parts(content, f"{path}.content", _USER_PARTS)
    conversation.user(content)


def _something(mode: Mode, message: Members, path: str) -> str | list[Any]:
    """Content that must be present; in lenient mode it may be empty."""
    content = message.get("content")
    if not isinstance(content, str | list) or not (content or mode.lenient):
        raise invalid(path, "must be a non-empty string or list of parts")
    return content


def _assistant(conversation: Conversation, message: Members, path: str) -> None:
    """Adds an earlier answer, unless it is empty."""
    thinking, content, refusal = message.get("reasoning_content"), message.get("content"), message.get("refusal")
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
    if refusal is not None and not isinstance(refusal, str):
        raise invalid(f"{path}.refusal", "must be a string")
    if refusal:
        blocks.append(text_block(refusal))
    conversation.assistant(blocks)
    if message.get(_FUNCTION_CALL) is not None:
        _function_call(conversation, message[_FUNCTION_CALL], path)
    calls = message.get("tool_calls")
    for call_path, call in () if calls is None else objects_of(calls, f"{path}.tool_calls"):
        _call(conversation, call, call_path)


def _call(conversation: Conversation, call: Members, path: str) -> None:
    if call.get("type") != "function":
        raise unsupported(f"{path}.type", call.get("type"))
    mode = conversation.mode
    mode.check_keys(call, _CALL_KEYS, path)
    call_id, function = needed_text(call, "id", path), call.get("function")
    if not isinstance(function, dict):
        raise invalid(f"{path}.function", "must be an object")
    mode.check_keys(function, _CALL_FUNCTION_KEYS, f"{path}.function")
    name = needed_text(function, "name", f"{path}.function")
    value = call_input(function.get("arguments"), f"{path}.function.arguments")
    conversation.call(call_id, name, value, f"{path}.id")


def _tool(conversation: Conversation, message: Members, path: str) -> None:
    """Adds a result. An empty one is normal: many commands print nothing."""
    content = message.get("content")
    if isinstance(content, list):
        content = _result(conversation, content, f"{path}.content")
    elif content is not None and not isinstance(content, str):
        raise invalid(f"{path}.content", "must be a string or a list of parts")
    conversation.result(message.get("tool_call_id"), content or "", f"{path}.tool_call_id")


def _result(conversation: Conversation, content: list[Any], path: str) -> str | list[Block]:
    """The content of a result: its parts, or the JSON of a list that is the result itself."""
    check_length(content, path)
    if not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content):
        return dump_json(content)
    blocks = conversation.parts(content, path, _RESULT_PARTS)
    return blocks if any(block["type"] != "text" for block in blocks) else _texts(blocks)


def _function_call(conversation: Conversation, call: Any, path: str) -> None:
    """Adds the function call of an earlier answer; `path` is that of its message."""
    at = f"{path}.{_FUNCTION_CALL}"
    if not isinstance(call, dict):
        raise invalid(at, "must be an object")
    conversation.mode.check_keys(call, _OLDER_CALL_KEYS, at)
    call_id = f"function_{path.partition('[')[2].removesuffix(']')}"  # the same every turn, for prompt caches
    conversation.call(call_id, needed_text(call, "name", at), call_input(call.get("arguments"), f"{at}.arguments"), at)


def _function_result(conversation: Conversation, message: Members, path: str) -> None:
    content, name = message.get("content"), needed_text(message, "name", path)
    if content is not None and not isinstance(content, str):
        raise invalid(f"{path}.content", "must be a string")
    waiting = conversation.waiting(name)
    if waiting is None:
        raise invalid(f"{path}.name", f"must name an earlier call that has no result yet, not {shown(name)}")
    conversation.result(waiting, content or "", f"{path}.name")


def _texts(blocks: list[Block]) -> str:
    return joined(block["text"] for block in blocks)


_ROLES: dict[str, Callable[[Conversation, Members, str], None]] = {
    "system": _system,
    "developer": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
}
