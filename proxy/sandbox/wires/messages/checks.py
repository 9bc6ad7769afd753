"""The checks of a Messages body, by a server that knows only what is generally available."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.sandbox.wires.field_checks import (
    ByKind,
    Checked,
    Each,
    Inside,
    Known,
    Table,
    by_type,
    check,
    fits,
    judged,
    members,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import EXTRA, WRONG_VALUE, invalid
from proxy.sandbox.wires.schema_checks import malformed

#: Whether a thinking block with this signature may come back.
CheckSignature = Callable[[str], bool]


def check_messages(body: Mapping[str, Any], signed: CheckSignature | None) -> None:
    """Raises Refused for the first rule that the body violates. `signed` None: signatures are not checked."""
    check(body, MESSAGES, signed)


def _paired(message: Any, where: str, seen: Checked) -> None:
    """Requires one result for each call, at the beginning of the next message and nowhere else."""
    blocks = message["content"] if isinstance(message["content"], list) else []
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for call_id in sorted(set(results) - seen.open_calls.keys()):
        raise invalid(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}")
    for call_id in sorted(seen.open_calls.keys() - set(results)):
        raise invalid(f"{where}: `tool_use` ids were found without `tool_result` blocks: {call_id}")
    if len(set(results)) < len(results):
        raise invalid(f"{where}: each tool_use must have a single result")
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        raise invalid(f"{where}: `tool_result` blocks must stand before other content")
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if len(set(calls)) < len(calls):
        raise invalid(f"{where}: `tool_use` ids must be unique")
    seen.open_calls = dict.fromkeys(calls, True)


def _all_answered(_body: Any, _where: str, seen: Checked) -> None:
    if seen.open_calls:
        raise invalid(f"`tool_use` ids were found without `tool_result` blocks: {min(seen.open_calls)}")


def _offered(name: Any, seen: Checked) -> str | None:
    return None if name in [tool["name"] for tool in seen.body["tools"]] else ""


def _signed(signature: str, seen: Checked) -> str | None:
    return None if seen.rules is None or seen.rules(signature) else ""


def _any_tools(_choice: Any, seen: Checked) -> str | None:
    return None if seen.body.get("tools") else ""


_EMPTY = "{here}: text content blocks must be non-empty"

#: Members of a breakpoint of the prompt cache without a beta header.
_MARKED = Inside("cache_control", (required("", "object", WRONG_VALUE), Known("type ttl", EXTRA)))

#: Blocks allowed in a result.
_IN_RESULT = one_of("text", "image", "video", "document", "search_result", expected="a block of a result")
_CONTENT = fits(lambda value: isinstance(value, str | list) and value, "text or blocks")
_MODES = fits(
    lambda value: not value or value.get("type") in ("enabled", "adaptive", "disabled"),
    "'enabled', 'adaptive' or 'disabled'",
)
_ONE_BY_ONE = fits(lambda choice: isinstance(choice.get("disable_parallel_tool_use", False), bool), "a boolean")

_SOURCES: dict[str, Table] = {
    "base64": (required("data", "filled"), required("media_type", "filled")),
    "url": (required("url", "filled"),),
}

#: Block type -> its required members, wherever it is.
_BLOCKS: dict[str, Table] = {
    "text": (required("text", "text"), optional("text", "filled", _EMPTY)),
    "thinking": (required("thinking", "text"), required("signature", "text")),
    "tool_use": (required("id", "text"), required("name", "text"), required("input", "object")),
    "tool_result": (required("tool_use_id", "text"),),
    "image": (required("source", "object"), Inside("source", by_type(_SOURCES))),
}

#: Block type -> further checks for blocks of a message.
_IN_MESSAGES: dict[str, Table] = {
    "thinking": (optional("signature", _signed, "{here}: Invalid `signature` in `thinking` block"),),
    "tool_result": (
        optional("content", fits(lambda value: isinstance(value, str | list), "text or blocks")),
        Each("content", (*by_type(_BLOCKS, known=_IN_RESULT), _MARKED)),
    ),
}


def _block(*kinds: str) -> Table:
    return (*by_type(_BLOCKS, known=one_of(*kinds, expected=" or ".join(kinds))), ByKind("type", _IN_MESSAGES), _MARKED)


_TOOL: Table = (
    required("name", "filled"),
    Known("name type description input_schema cache_control", EXTRA),
    optional("type", one_of("custom")),
    _MARKED,
    required("input_schema", "object"),
    optional("input_schema", judged(malformed), "{where}: {expected}"),
)

_CHOICE: Table = (
    required("type", one_of("auto", "any", "tool", "none"), WRONG_VALUE),
    optional("", _any_tools, "tool_choice may only be specified while providing tools"),
    ByKind("type", {"tool": (required("name", _offered, "Tool '{value}' not found in provided tools"),)}),
    optional("", _ONE_BY_ONE, at="disable_parallel_tool_use"),
)

#: Role -> the blocks of its messages.
_CONTENTS: dict[str, Table] = {
    "user": (Each("content", _block("text", "image", "video", "document", "tool_result", "search_result")),),
    "assistant": (Each("content", _block("text", "thinking", "redacted_thinking", "tool_use")),),
}

_MESSAGE: Table = (
    required("role", one_of(*_CONTENTS), WRONG_VALUE),
    Known("role content", EXTRA),
    required("content", _CONTENT, WRONG_VALUE),
    ByKind("role", _CONTENTS),
    _paired,
)

_MEMBERS = members(
    "max_tokens: positive, stream: boolean, system: texts or list, tools: list, tool_choice: object, "
    "temperature: number, top_p: number, top_k: number, stop_sequences: list, metadata: object, thinking: object, "
    "output_config: object, service_tier: text"
)

MESSAGES: Table = (
    # other top-level members belong to a beta, whose header does not get through
    Known(f"model messages {' '.join(row.path for row in _MEMBERS)}", EXTRA),
    *_MEMBERS,
    required("max_tokens", "anything"),
    Each("system", _block("text")),
    optional("thinking", _MODES, at="thinking.type"),
    Inside("thinking", (Known("type budget_tokens", EXTRA),)),
    Each("tools", _TOOL),
    Inside("tool_choice", _CHOICE),
    required("messages", "filled list"),
    Each("messages", _MESSAGE),
    _all_answered,
)
