"""Token usage in the four counters of the Messages API."""

from __future__ import annotations

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


def x_search_usage(web: int, x: int) -> dict[str, int]:
    """The same where searches of X are told beside all."""
    return {**search_usage(web + x), "x_search_requests": x}


def told_count(value: Any) -> int | None:
    """A token count of an upstream, None for what is no such."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def count(value: Any) -> int:
    """The same, 0 for what is no such."""
    return told_count(value) or 0
