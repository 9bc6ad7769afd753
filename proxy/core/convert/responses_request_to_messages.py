"""The body of `POST /v1/responses` to a Messages request.

What is accepted, what is refused by name, and in which order: see `openai_fields`. `model` was checked by the server.
Codex CLI is the client to serve here: it repeats the whole conversation as items every turn, with hints, namespaces of
tools and its reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from proxy.core.convert.openai_fields import (
    CACHE_HINTS,
    TEXTS,
    Block,
    Conversation,
    Members,
    PartRules,
    anything,
    call_input,
    check_fields,
    check_keys,
    check_length,
    effort_of,
    hub_request,
    invalid,
    is_text,
    needed_text,
    not_one_of,
    objects_of,
    optional_flag,
    text_block,
    token_limit,
    unsupported,
)
from proxy.core.convert.openai_tools import WEB_SEARCH_TYPE, ToolSet, check_rules, flat_name, read_choice, read_tools
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.invalid import InvalidRequest, shown
from proxy.core.sse import dump_json

_FIELDS = frozenset(
    {
        "model",
        "input",
        "instructions",
        "stream",
        "max_output_tokens",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
    }
)
#: What may be asked to be included, as it stays out without a loss; the second where the provider can search.
_INCLUDES = ("reasoning.encrypted_content", "web_search_call.action.sources")


def _is_needless(rules: IngressRules, value: Any) -> bool:
    known = _INCLUDES if WEB_SEARCH_TYPE in rules.hosted else _INCLUDES[:1]
    return isinstance(value, list) and all(entry in known for entry in value)


def _is_plain_text(value: Any) -> bool:
    """Whether `text` asks for nothing but prose; its verbosity is a wish that only some models know."""
    if not isinstance(value, dict) or any(value[key] is not None for key in value.keys() - {"format", "verbosity"}):
        return False
    form = value.get("format")
    return form is None or (isinstance(form, dict) and form.get("type") == "text")


def _is_no_stream_option(value: Any) -> bool:
    return isinstance(value, dict) and not any(
        member not in (None, False) or name != "include_obfuscation" for name, member in value.items()
    )


#: name -> whether its value can be left out without changing the answer
_HINTS: Mapping[str, Callable[[Any], bool]] = {
    **CACHE_HINTS,
    "background": lambda value: value is False,
    "client_metadata": lambda value: isinstance(value, dict),
    "service_tier": lambda value: value in ("auto", "default"),
    "stream_options": _is_no_stream_option,
    "text": _is_plain_text,
    "truncation": lambda value: value == "disabled",
}
#: Summaries come whenever the provider gives reasoning, in its own length.
_SUMMARIES = ("auto", "concise", "detailed", "none")
_REASONING: Mapping[str, Callable[[Any], bool]] = {
    "effort": anything,  # by the provider's rules
    "summary": lambda value: value in _SUMMARIES,
    "generate_summary": lambda value: value in _SUMMARIES,
    "context": is_text,
}

_PARTS = PartRules(TEXTS)
_USER_PARTS = PartRules(TEXTS, image="input_image")

_MESSAGE_KEYS = frozenset({"type", "role", "content", "id", "status", "phase"})
#: `parsed_arguments`: the SDK's parsed calls have it, and clients send them back.
_CALL_KEYS = frozenset({"type", "id", "call_id", "name", "arguments", "status", "namespace", "parsed_arguments"})
_OUTPUT_KEYS = frozenset({"type", "id", "call_id", "output", "status"})
_REASONING_KEYS = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})


def responses_request_to_messages(body: Members, rules: IngressRules, *, session: str | None = None) -> Ingress:
    """The Messages request and what the reply needs to know. `session`: the caller's session id, if any.

    The body stays as it was; tool schemas and picture data are shared with it. Raises InvalidRequest.
    """
    check_fields(body, _FIELDS, {**_HINTS, "include": partial(_is_needless, rules)})
    stream = optional_flag(body.get("stream"), "stream") is True
    items = _InputReader()
    items.read(body)
    messages = items.conversation.messages("input")
    parallel = optional_flag(body.get("parallel_tool_calls"), "parallel_tool_calls")
    if optional_flag(body.get("store"), "store"):
        raise unsupported("store", True)
    limit = token_limit(body, "max_output_tokens")
    tools = read_tools(body.get("tools"), rules, wrapped=False)
    items.rename(tools)
    choice = read_choice(body.get("tool_choice"), parallel, tools, rules, wrapped=False)
    effort = _effort(body.get("reasoning"), rules)
    check_rules(rules, items.conversation, tools, stream=stream, session=session)
    asked = {"max_tokens": limit, "tools": tools.tools, "tool_choice": choice, "effort": effort}
    request = hub_request(body["model"], items.conversation.system, messages, asked)
    return Ingress(request, stream=stream, echo=_echo(body, effort), namespaces=tools.namespaces)


def _effort(reasoning: Any, rules: IngressRules) -> str | None:
    if reasoning is None:
        return None
    if not isinstance(reasoning, dict):
        raise invalid("reasoning", "must be an object")
    check_keys(reasoning, frozenset(_REASONING), "reasoning")
    for name, accepts in _REASONING.items():
        if reasoning.get(name) is not None and not accepts(reasoning[name]):
            raise invalid(f"reasoning.{name}", f"has the unknown value {shown(reasoning[name])}")
    return effort_of(reasoning.get("effort"), "reasoning.effort", rules)


def _echo(body: Members, effort: str | None) -> dict[str, Any]:
    """What the response object repeats: the caller's values, not what became of them."""
    parallel = body.get("parallel_tool_calls")
    echo = {
        "tools": body.get("tools") or [],
        "tool_choice": body.get("tool_choice") or "auto",
        "parallel_tool_calls": True if parallel is None else parallel,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "reasoning": {"effort": effort, "summary": None},
    }
    return echo if body.get("text") is None else {**echo, "text": body["text"]}


# -- input


class _InputReader:
    """Reads `instructions` and `input` into a conversation."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self._grouped: list[tuple[Block, tuple[str, str]]] = []  # calls of functions in namespaces

    def read(self, body: Members) -> None:
        if body.get("instructions") is not None:
            if not isinstance(body["instructions"], str) or not body["instructions"]:
                raise invalid("instructions", "must be a non-empty string")
            self.conversation.instruct(body["instructions"])
        given = body.get("input")
        if isinstance(given, str) and given:
            self.conversation.user(given)
            return
        if not isinstance(given, list):
            raise invalid("input", "must be a non-empty string or a list of items")
        for path, item in objects_of(given, "input"):
            kind = item.get("type")
            reader = _KINDS.get(kind) if isinstance(kind, str) else _InputReader._message
            if reader is None:
                raise unsupported(f"{path}.type", kind)
            reader(self, item, path)

    def rename(self, tools: ToolSet) -> None:
        """Gives earlier calls the names that the functions have in this request."""
        names = {key: name for name, key in tools.namespaces.items()}
        for block, key in self._grouped:
            block["name"] = names.get(key, block["name"])

    def _message(self, item: Members, path: str) -> None:
        check_keys(item, _MESSAGE_KEYS, path)
        role, content = item.get("role"), item.get("content")
        if role not in _ROLES:
            raise not_one_of(f"{path}.role", _ROLES, role)
        if isinstance(content, str):
            blocks = [text_block(content)] if content else []
        elif isinstance(content, list):
            rules = _USER_PARTS if role == "user" else _PARTS
            blocks = self.conversation.parts(content, f"{path}.content", rules)
        else:
            raise invalid(f"{path}.content", "must be a string or a list of parts")
        if role == "user":
            self.conversation.user(blocks)
        elif role == "assistant":
            self.conversation.assistant(blocks)
        else:
            self.conversation.instruct("".join(block["text"] for block in blocks))

    def _call(self, item: Members, path: str) -> None:
        check_keys(item, _CALL_KEYS, path)
        call_id = item.get("id") if item.get("call_id") is None else item["call_id"]
        if not isinstance(call_id, str) or not call_id:
            raise invalid(f"{path}.call_id", "must be a non-empty string")
        name = needed_text(item, "name", path)
        value = _input(item, f"{path}.arguments")
        if item.get("namespace") is None:
            self.conversation.call(call_id, name, value, f"{path}.call_id")
            return
        key = needed_text(item, "namespace", path), name
        block = self.conversation.call(call_id, flat_name(*key), value, f"{path}.call_id")
        self._grouped.append((block, key))

    def _output(self, item: Members, path: str) -> None:
        check_keys(item, _OUTPUT_KEYS, path)
        if "output" not in item:
            raise invalid(f"{path}.output", "is missing")
        output = item["output"]
        if isinstance(output, list):
            output = self._output_parts(output, f"{path}.output")
        elif not isinstance(output, str):
            output = dump_json(output)
        self.conversation.result(item.get("call_id"), output, f"{path}.call_id")

    def _output_parts(self, parts: list[Any], path: str) -> str | list[Block]:
        """Texts and pictures as blocks, anything else as the text of its JSON."""
        check_length(parts, path)
        blocks: list[Block] = []
        for index, part in enumerate(parts):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "input_image":
                blocks.append(self.conversation.image(part, f"{path}[{index}]"))
            elif isinstance(kind, str) and kind in TEXTS and isinstance(part.get("text"), str):
                blocks += [text_block(part["text"])] if part["text"] else []
            else:
                blocks.append(text_block(dump_json(part)))
        return blocks or ""

    def _reasoning(self, item: Members, path: str) -> None:
        """Earlier reasoning, which some models want back with their calls. Encrypted content is another service's."""
        check_keys(item, _REASONING_KEYS, path)
        texts = [*_texts(item, "summary", "summary_text", path), *_texts(item, "content", "reasoning_text", path)]
        if texts:
            self.conversation.assistant([{"type": "thinking", "thinking": "\n\n".join(texts)}])

    def _nothing(self, item: Members, path: str) -> None:
        """A search that the provider made: its findings are in the text behind it."""


def _input(item: Members, path: str) -> Block:
    """The input of a call. One that the token limit cut has arguments that cannot be read: it never ran, and without
    them the conversation can go on."""
    try:
        return call_input(item.get("arguments"), path)
    except InvalidRequest:
        if item.get("status") == "incomplete" and isinstance(item.get("arguments"), str):
            return {}
        raise


def _texts(item: Members, name: str, kind: str, path: str) -> list[str]:
    """The non-empty texts of the parts of one type."""
    if item.get(name) is None:
        return []
    parts = [part for _, part in objects_of(item[name], f"{path}.{name}")]
    return [part["text"] for part in parts if part.get("type") == kind and is_text(part.get("text")) and part["text"]]


_ROLES = ("user", "assistant", "system", "developer")
_KINDS: dict[str, Callable[[_InputReader, Members, str], None]] = {
    "message": _InputReader._message,
    "function_call": _InputReader._call,
    "function_call_output": _InputReader._output,
    "reasoning": _InputReader._reasoning,
    "web_search_call": _InputReader._nothing,
}
