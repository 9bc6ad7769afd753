"""Token accounts: from each upstream's form to the four counters of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Usage = dict[str, Any]


def usage_of(input_tokens: int, output_tokens: int, *, cache_read: int = 0, cache_creation: int = 0) -> Usage:
    """The Messages counters. Clients add them up, so nothing may be counted twice."""
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": cache_creation,
        "cache_read_input_tokens": cache_read,
        "output_tokens": output_tokens,
    }


def search_usage(searches: int) -> dict[str, int]:
    """Server tool use; newer clients want both members."""
    return {"web_search_requests": searches, "web_fetch_requests": 0}


def count(value: Any) -> int:
    """A token count of an upstream: a non-negative whole number, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def responses_usage(usage: Any, *, searches: int = 0) -> Usage:
    """`response.usage` of a Responses stream.

    The upstream's `input_tokens` include the cached ones; here they stand beside each other. Reasoning is part of
    `output_tokens` on both sides.
    """
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    total, cached = count(usage.get("input_tokens")), count(details.get("cached_tokens"))
    written = min(count(details.get("cache_write_tokens")), max(0, total - cached))
    result = usage_of(
        max(0, total - cached - written),
        count(usage.get("output_tokens")),
        cache_read=cached,
        cache_creation=written,
    )
    if searches:
        result["server_tool_use"] = search_usage(searches)
    return result


def chat_usage(usage: Any) -> Usage:
    """`usage` of a chat-completions stream. Cached tokens stand in the details, or beside the totals."""
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    cached = count(details.get("cached_tokens")) or count(usage.get("cached_tokens"))
    return usage_of(
        max(0, count(usage.get("prompt_tokens")) - cached), count(usage.get("completion_tokens")), cache_read=cached
    )
