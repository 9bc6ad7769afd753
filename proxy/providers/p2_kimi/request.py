"""P2's decisions about a request: effort, body, what is sent when the body is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.effort import effort_asked
from proxy.core.routing import Added, is_auto_review
from proxy.providers.contract import Call, Target
from proxy.providers.p2_kimi.catalog import KimiModel, model_for
from proxy.providers.upstream.chat_wire import BodyFallback

DIALECT = ChatDialect(
    system="in_place",
    tool_images="inside",
    reasoning="calls",
    bare_calls=True,
    keep_auto=False,
    strict_input=False,
    typed=True,
    limit="max_completion_tokens",
)


def target_of(model: str, request: Mapping[str, Any], added: Added = ()) -> Target:
    """What a requested name comes to. The safety classifier is not to think: it is small, and waited for."""
    row = model_for(model, added)
    return Target(row.id, effort=None if is_auto_review(request) else row.effort(effort_asked(request)))


def chat_body(call: Call, row: KimiModel) -> dict[str, Any]:
    """The upstream body of a call, with the members that the vendor's own client sends. Raises InvalidRequest."""
    extra: dict[str, Any] = {"thinking": row.thinking(call.target.effort)}
    if call.cache_key:
        extra["prompt_cache_key"] = call.cache_key
    # the few tokens that the classifier asks for would go into reasoning where that cannot be switched off
    limit = row.max_tokens(None if is_auto_review(call.request) else call.request.get("max_tokens"))
    return messages_to_chat(call.request, ChatOptions(row.id, DIALECT, limit, extra), call.simplified)


def _other_choice(row: KimiModel, body: Mapping[str, Any]) -> dict[str, Any] | None:
    choice = body.get("tool_choice")
    if choice is None:
        return None
    rest = {name: value for name, value in body.items() if name != "tool_choice"}
    named = isinstance(choice, Mapping) and row.bears_required
    return {**rest, "tool_choice": "required"} if named else rest


def fallbacks(row: KimiModel) -> tuple[BodyFallback, ...]:
    """What some models refuse, and the body that is sent then."""
    return (BodyFallback(_refuses_the_choice, partial(_other_choice, row)),)


def _refuses_the_choice(text: str) -> bool:
    return "tool_choice" in text and "incompatible with thinking" in text
