"""The checks of a Messages body, as a server that knows only what is generally available runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.sandbox.wires.checking import (
    Members,
    check_members,
    extra,
    is_flag,
    is_list,
    is_number,
    is_object,
    is_positive,
    missing,
    wrong,
)
from proxy.sandbox.wires.refusal import invalid
from proxy.sandbox.wires.schema_checks import malformed

_MEMBERS: Members = {
    "max_tokens": (is_positive, "a number from 1"),
    "stream": (is_flag, "a boolean"),
    "system": (lambda value: isinstance(value, str | list), "a string or a list of blocks"),
    "tools": (is_list, "a list"),
    "tool_choice": (is_object, "an object"),
    "temperature": (is_number, "a number"),
    "top_p": (is_number, "a number"),
    "top_k": (is_number, "a number"),
    "stop_sequences": (is_list, "a list"),
    "metadata": (is_object, "an object"),
    "thinking": (is_object, "an object"),
    "output_config": (is_object, "an object"),
    "service_tier": (lambda value: isinstance(value, str), "a string"),
}

#: What else stands at the top level belongs to a beta, and the header that would switch it on does not come through.
_TOP_LEVEL = frozenset({"model", "messages", *_MEMBERS})

_BLOCKS = {
    "user": ("text", "image", "video", "document", "tool_result", "search_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
}

#: Whether a thinking block may come back.
CheckSignature = Callable[[str], bool]


def check_messages(body: Mapping[str, Any], signed: CheckSignature | None) -> None:
    """Raises Refused for the first rule that the body breaks. `signed` None: signatures are not looked at."""
    for name in body:
        if name not in _TOP_LEVEL:
            raise extra(name)
    check_members(body, _MEMBERS)
    if body.get("max_tokens") is None:
        raise missing("max_tokens")
    if isinstance(body.get("system"), list):
        for number, block in enumerate(body["system"]):
            _check_block(block, ("text",), f"system[{number}]")
    if (body.get("thinking") or {"type": "disabled"}).get("type") not in ("enabled", "adaptive", "disabled"):
        raise wrong("thinking.type", "'enabled', 'adaptive' or 'disabled'")
    _check_tools(body.get("tools") or ())
    _check_choice(body.get("tool_choice"), body.get("tools") or ())
    _check_turns(body.get("messages"), signed)


def _check_tools(tools: Any) -> None:
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
            raise missing(f"{where}.name")
        if tool.get("type", "custom") not in (None, "custom"):
            raise wrong(f"{where}.type", "'custom'")
        if not isinstance(tool.get("input_schema"), dict):
            raise missing(f"{where}.input_schema")
        fault = malformed(tool["input_schema"])
        if fault is not None:
            raise invalid(f"{where}.input_schema: {fault}")


def _check_choice(choice: Any, tools: Any) -> None:
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise wrong("tool_choice.type", "'auto', 'any', 'tool' or 'none'")
    if not tools:
        raise invalid("tool_choice may only be specified while providing tools")
    if kind == "tool" and choice.get("name") not in [tool["name"] for tool in tools]:
        raise invalid(f"Tool '{choice.get('name')}' not found in provided tools")
    if not isinstance(choice.get("disable_parallel_tool_use", False), bool):
        raise wrong("tool_choice.disable_parallel_tool_use", "a boolean")


def _check_turns(messages: Any, signed: CheckSignature | None) -> None:
    """Roles, blocks, and that every call is answered in the next message, where alone its result may stand."""
    if not isinstance(messages, list) or not messages:
        raise missing("messages")
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            raise wrong(f"{where}.role", "'user' or 'assistant'")
        for name in message:
            if name not in ("role", "content"):
                raise extra(f"{where}.{name}")
        blocks = _check_content(message.get("content"), role, f"{where}.content", signed)
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        for call_id in sorted(answered - open_calls):
            raise invalid(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}")
        for call_id in sorted(open_calls - answered):
            raise invalid(f"{where}: `tool_use` ids were found without `tool_result` blocks: {call_id}")
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    if open_calls:
        raise invalid(f"`tool_use` ids were found without `tool_result` blocks: {sorted(open_calls)[0]}")


def _check_content(content: Any, role: str, where: str, signed: CheckSignature | None) -> list[dict[str, Any]]:
    """The blocks."""
    if isinstance(content, str) and content:
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise wrong(where, "text or blocks")
    for number, block in enumerate(content):
        here = f"{where}[{number}]"
        _check_block(block, _BLOCKS[role], here)
        if block["type"] == "thinking" and signed is not None and not signed(block["signature"]):
            raise invalid(f"{here}: Invalid `signature` in `thinking` block")
        if block["type"] == "tool_result" and not isinstance(block.get("content"), str | None):
            _check_results(block["content"], f"{here}.content")
    return content


def _check_results(content: Any, where: str) -> None:
    if not isinstance(content, list):
        raise wrong(where, "text or blocks")
    for number, block in enumerate(content):
        _check_block(block, None, f"{where}[{number}]")


#: Block type -> the members that must be there, each with its type.
_NEEDED: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "image": {"source": dict},
}


def _check_block(block: Any, allowed: tuple[str, ...] | None, where: str) -> None:
    """`allowed` None: any block that has a type."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or (allowed is not None and kind not in allowed):
        raise wrong(f"{where}.type", " or ".join(allowed or ("a block",)))
    for name, expected in _NEEDED.get(kind, {}).items():
        if not isinstance(block.get(name), expected):
            raise missing(f"{where}.{name}")
    if kind == "image":
        _check_source(block["source"], f"{where}.source")


def _check_source(source: Mapping[str, Any], where: str) -> None:
    member = {"base64": "data", "url": "url"}.get(str(source.get("type")))
    if member is None:
        raise wrong(f"{where}.type", "'base64' or 'url'")
    for name in (member, "media_type") if member == "data" else (member,):
        if not isinstance(source.get(name), str) or not source[name]:
            raise missing(f"{where}.{name}")
