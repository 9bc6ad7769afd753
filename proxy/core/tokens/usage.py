"""Token usage in the four counters of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Usage = dict[str, Any]


CACHED = "cache_read_input_tokens"
#: The members of a usage that add up to its input.
INPUTS = ("input_tokens", CACHED, "cache_creation_input_tokens")


def usage_of(input_tokens: int, output_tokens: int, *, cache_read: int = 0, cache_creation: int = 0) -> Usage:
    """The Messages counters. Clients add them up, so each token must count only once."""
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": cache_creation,
        "cache_read_input_tokens": cache_read,
        "output_tokens": output_tokens,
    }


def search_usage(searches: int) -> dict[str, int]:
    """The counts of server tool use; newer clients want both members."""
    return {"web_search_requests": searches, "web_fetch_requests": 0}


def x_search_usage(web: int, x: int) -> dict[str, int]:
    """The counts of server tool use, with searches of X counted separately as well."""
    return {**search_usage(web + x), "x_search_requests": x}


#: Largest count: clients add counts up, and beyond this a float is not exact.
MAX_COUNT = 2**53 - 1


def reported_count(value: Any) -> int | None:
    """A token count of an upstream, None if it is invalid."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def count(value: Any) -> int:
    """A token count of an upstream, 0 if it is invalid."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def spent(usage: Mapping[str, Any]) -> tuple[int, int]:
    """All input and output tokens of a Messages usage.

    >>> spent({"input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4}), spent({})
    ((5, 4), (0, 0))
    """
    return sum(count(usage.get(name)) for name in INPUTS), count(usage.get("output_tokens"))


def with_thinking(usage: Usage, thought: int | None) -> Usage:
    """The usage with the reasoning tokens, at most the output tokens, if the upstream reports them.

    >>> with_thinking({"output_tokens": 9}, 4)
    {'output_tokens': 9, 'output_tokens_details': {'thinking_tokens': 4}}
    """
    if thought is not None:
        usage["output_tokens_details"] = {"thinking_tokens": min(thought, usage["output_tokens"])}
    return usage


def thinking_tokens(usage: Mapping[str, Any]) -> int | None:
    """The reasoning tokens of a Messages usage, None if they are not reported."""
    return detail(usage, "output_tokens_details", "thinking_tokens")


def search_count(usage: Mapping[str, Any]) -> int | None:
    """The searches of a Messages usage, None if they are not reported."""
    return detail(usage, "server_tool_use", "web_search_requests")


def detail(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    """A count in the details of an upstream's usage, None if it is not reported."""
    details = usage.get(part)
    return reported_count(details.get(name)) if isinstance(details, Mapping) else None
