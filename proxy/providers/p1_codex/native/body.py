"""What the native Responses route sends: the caller's body, with the members that the backend insists on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.providers.contract import Target
from proxy.providers.p1_codex.catalog import MODELS

#: What a body on the lite lane cannot have.
_FULL_LANE_MEMBERS = ("instructions", "tools", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class NativeBody:
    """What is sent, and whether it goes out on the lite lane."""

    body: dict[str, Any]
    lite: bool


def native_body(body: Mapping[str, Any], target: Target) -> NativeBody:
    """The body with the members that the backend insists on.

    On the lite lane tools and instructions stand inside the input, calls come one at a time, and hosted search does not
    exist. The vendor's own client knows that; a body that does not fit goes over the full lane, where a model that has
    none is stood in for by its sibling.
    """
    row = MODELS[target.model]
    lite = row.lite and not any(body.get(name) for name in _FULL_LANE_MEMBERS)
    result = {**body, "model": row.id if lite or row.full or row.search is None else row.search, "stream": True}
    if result.get("store") is None:
        result["store"] = False
    if isinstance(body.get("input"), str):
        content = [{"type": "input_text", "text": body["input"]}]
        result["input"] = [{"type": "message", "role": "user", "content": content}]
    elif isinstance(body.get("input"), list):
        result["input"] = [item for item in body["input"] if not _is_hollow(item)]
    if not lite and result.get("instructions") is None:
        result["instructions"] = ""
    if target.tier and result.get("service_tier") is None:
        result["service_tier"] = target.tier
    return NativeBody(result, lite)


def _is_hollow(item: Any) -> bool:
    """Reasoning without its encrypted content, as other providers' answers hold it: the backend would look for the item
    among those it kept, and it keeps none."""
    return isinstance(item, Mapping) and item.get("type") == "reasoning" and not item.get("encrypted_content")
