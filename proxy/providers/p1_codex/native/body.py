"""The body that the native Responses route sends: the caller's body, with the members that the backend requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.convert.responses.signatures import is_ours
from proxy.core.tools.calls import short_key
from proxy.core.tools.hosted import WEB_SEARCH
from proxy.providers.contract import Target
from proxy.providers.p1_codex.catalog import CodexModel

#: Tools that the lite lane has: those that the caller runs. Namespaces contain such tools.
_OWN_TOOLS = frozenset({"function", "custom", "namespace"})


@dataclass(frozen=True, slots=True)
class NativeBody:
    """The body that is sent, and whether it uses the lite lane."""

    body: dict[str, Any]
    lite: bool


def served_target(target: Target, body: Mapping[str, Any], row: CodexModel) -> Target:
    """The model that serves the body. Hosted search exists on the full lane only, which the smallest models lack:
    larger ones replace them."""
    if row.search is None or not any(kind.startswith(WEB_SEARCH) for kind in _hosted(body)):
        return target
    return Target(row.search, target.tier, target.effort)


def native_body(body: Mapping[str, Any], target: Target, row: CodexModel) -> NativeBody:
    """The body with the members that the backend requires.

    On the lite lane tools and instructions are part of the input, calls come one at a time, and hosted tools do not
    exist. The vendor's own client knows that; other bodies are adapted. If a model has both lanes, a body that needs
    the full lane goes there."""
    lite = row.lite and not (row.full and (_hosted(body) or body.get("parallel_tool_calls") is True))
    result = {**body, "model": row.id, "stream": True}
    if result.get("store") is None:
        result["store"] = False
    if isinstance(body.get("input"), str):
        content = [{"type": "input_text", "text": body["input"]}]
        result["input"] = [{"type": "message", "role": "user", "content": content}]
    elif isinstance(body.get("input"), list):
        result["input"] = [item for item in body["input"] if not _is_hollow(item)]
    if lite:
        _fit_lite(result)
    elif result.get("instructions") is None:
        result["instructions"] = ""
    if isinstance(key := result.get("prompt_cache_key"), str):
        result["prompt_cache_key"] = short_key(key)
    if target.tier and result.get("service_tier") is None:
        result["service_tier"] = target.tier
    return NativeBody(result, lite)


def _hosted(body: Mapping[str, Any]) -> list[str]:
    """The types of the tools that the backend would run itself."""
    tools = body.get("tools")
    kinds = [tool.get("type") for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    return [kind for kind in kinds if isinstance(kind, str) and kind not in _OWN_TOOLS]


def _fit_lite(body: dict[str, Any]) -> None:
    """Moves tools and instructions into the input, in that order. Wrong types stay, for the backend to refuse."""
    prefix: list[dict[str, Any]] = []
    tools, instructions = body.get("tools"), body.get("instructions")
    if tools is None or isinstance(tools, list):
        body.pop("tools", None)
        if tools:
            prefix.append({"type": "additional_tools", "role": "developer", "tools": tools})
    if instructions is None or isinstance(instructions, str):
        body.pop("instructions", None)
        if instructions:
            content = [{"type": "input_text", "text": instructions}]
            prefix.append({"type": "message", "role": "developer", "content": content})
    if isinstance(body.get("input"), list) and body["input"]:  # an empty input stays empty, which the backend refuses
        body["input"] = prefix + body["input"]
    if body.get("parallel_tool_calls") is None:
        body["parallel_tool_calls"] = False


def _is_hollow(item: Any) -> bool:
    """Whether this is reasoning that the backend cannot use, as in other providers' answers. Without encrypted content
    the backend would look for the item among kept ones, and it keeps none. Content encrypted by others it cannot
    read."""
    if not isinstance(item, Mapping) or item.get("type") != "reasoning":
        return False
    content = item.get("encrypted_content")
    return not content or (isinstance(content, str) and is_ours(content))
