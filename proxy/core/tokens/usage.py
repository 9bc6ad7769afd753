"""Token usage in the four counters of the Messages API."""

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


def x_search_usage(web: int, x: int) -> dict[str, int]:
    """The same where searches of X are told beside all."""
    return {**search_usage(web + x), "x_search_requests": x}


#: No count is larger: clients add counts up, and past this a float is no longer exact.
MAX_COUNT = 2**53 - 1


def reported_count(value: Any) -> int | None:
    """A token count of an upstream, None for what is no such."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def count(value: Any) -> int:
    """A token count of an upstream, 0 for what is no such."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def with_thinking(usage: Usage, thought: int | None) -> Usage:
    """The usage with the reasoning among the output, where the upstream tells it; it is no more than the output.

    >>> with_thinking({"output_tokens": 9}, 4)
    {'output_tokens': 9, 'output_tokens_details': {'thinking_tokens': 4}}
    """
    if thought is not None:
        usage["output_tokens_details"] = {"thinking_tokens": min(thought, usage["output_tokens"])}
    return usage


def thinking_tokens(usage: Mapping[str, Any]) -> int | None:
    """The reasoning among the output of a Messages usage, None where it is not told."""
    return detail(usage, "output_tokens_details", "thinking_tokens")


def detail(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    """A count in the details of an upstream's usage, None where it is not told."""
    details = usage.get(part)
    return reported_count(details.get(name)) if isinstance(details, Mapping) else None
