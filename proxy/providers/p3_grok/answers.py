"""In what the answers of P3 differ from those of other upstreams on the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.convert.responses.searches import search_of
from proxy.core.invalid import cut
from proxy.core.reducer import AnswerRules
from proxy.providers.p3_grok.settings import GrokSettings

#: A failure that names nothing known is not asked for again: a search may have been made.
_UNNAMED = ("upstream", 502)


def answer_rules(grok: GrokSettings, *, converted: bool) -> AnswerRules:
    """The rules for one answer. `converted`: see `Call`; other APIs have items for searches, whatever the setting."""
    return AnswerRules(
        search="blocks" if converted or grok.search_blocks == "native" else "text",
        cites=True,
        parts=True,
        exact=True,
        any_limit=True,
        told_usage=True,
        unnamed=_UNNAMED,
        unexplained=_UNNAMED,
    )


#: Parts of an answer, and what becomes of each: the events that the vendor's own client knows.
_LIVES = {
    "output_item": "added done",
    "content_part": "added done",
    "output_text": "delta done annotation.added",
    "refusal": "delta done",
    "function_call_arguments": "delta done",
    "reasoning_summary_part": "added done",
    "reasoning_summary_text": "delta done",
    "reasoning_text": "delta done",
    "web_search_call": "in_progress searching completed",
    "x_search_call": "in_progress searching completed",
    "custom_tool_call_input": "delta done",
}
_WHOLE = "created queued in_progress completed failed incomplete doom_loop_check"
_KNOWN = frozenset(
    {
        *("error", "keepalive", "ping", "rate_limits.updated"),
        *(f"response.{name}" for name in _WHOLE.split()),
        *(f"response.{part}.{step}" for part, steps in _LIVES.items() for step in steps.split()),
    }
)


def not_shown(event: Mapping[str, Any]) -> str | None:
    """What of an event the client never sees, in words for the log; None for what is shown, or says nothing.

    >>> not_shown({"type": "response.mcp_call.completed"}), not_shown({"type": "response.created"})
    ('event response.mcp_call.completed', None)
    """
    kind, item = event.get("type"), event.get("item")
    if not isinstance(kind, str):
        return None
    if kind not in _KNOWN:
        return f"event {cut(kind)}"
    is_call = (
        kind == "response.output_item.done" and isinstance(item, Mapping) and item.get("type") == "custom_tool_call"
    )
    return f"call of {cut(str(item.get('name')))}" if is_call and item and search_of(item) is None else None
