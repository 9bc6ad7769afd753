"""P3's own search: which options a caller may set, and when a conversation asks for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.core.auto_mode.own_words import own_words
from proxy.core.blocks import SERVER_TOOL_RESULT
from proxy.core.content import blocks_of, texts_of
from proxy.core.convert.history.responses_dialect import Item
from proxy.core.invalid import InvalidRequest, cut
from proxy.core.search.blocks import outcome_of
from proxy.core.search.hosted import QUERY_PREFIX, max_uses
from proxy.core.search.results import Found, Query
from proxy.core.sse import dump_sorted_json
from proxy.core.tools.hosted import WEB_SEARCH

WEB = WEB_SEARCH
X = "x_search"

#: Longer lists of domains are refused, and go into the instructions.
MAX_DOMAINS = 5

#: client's name -> the upstream's
_DOMAINS = {"allowed_domains": "allowed_domains", "blocked_domains": "excluded_domains"}
_PLACE = ("city", "region", "country", "timezone")
#: Members of a declaration that do not constrain the search.
_FLAGS = frozenset(
    {
        *("type", "name", "description", "input_schema", "max_uses", "cache_control", "eager_input_streaming"),
        *("strict", "defer_loading", "allowed_callers", "input_examples"),
    }
)
#: Option that cannot be sent -> its sentence in the instructions.
_SENTENCES = {
    "allowed_domains": "Use only sources from the domains in {}.",
    "blocked_domains": "Never use sources from the domains in {}.",
    "user_location": "Search as for a user at {}.",
}
_OTHER_SENTENCE = "For web searches this applies: {}."

#: Added to the instructions while P3's own search replaces the client's.
WEB_GUIDANCE = (
    "Search the web with the hosted web_search tool. Do not use a shell, an HTTP client or another local tool for a"
    " general search."
)
X_GUIDANCE = (
    "Search X (Twitter) with the hosted x_search tool; it can be narrowed by allowed_x_handles, excluded_x_handles,"
    " from_date and to_date. Do not use a shell, an HTTP client or a general web search for posts on X."
)


def search_item(tool: Mapping[str, Any], policy: str, notes: list[str]) -> tuple[Item, list[str]]:
    """A declared web search in the upstream's form, and sentences for the instructions.

    policy  how to treat options that cannot be sent: `system_prompt`, `warning`, `reject`
    Raises InvalidRequest."""
    _check_uses(tool, notes)
    filters, overflow, unsent = _domains(tool)
    item: Item = {"type": WEB}
    place = tool.get("user_location")
    if isinstance(place, Mapping):
        item["user_location"] = {"type": "approximate", **_place(place)}
    elif place is not None:
        unsent.append("user_location")
    if filters:
        item["filters"] = filters
    unsent += sorted(key for key in tool.keys() - _FLAGS - _SENTENCES.keys() if tool[key] is not None)
    if unsent and policy == "reject":
        raise InvalidRequest(
            f"the web search of this model has no such options: {cut(', '.join(unsent))}; leave them out, or set"
            " PROXY_SEARCH_CONSTRAINTS to system_prompt",
            param="tools",
        )
    if unsent and policy == "warning":
        notes.append(f"search options left out: {cut(', '.join(unsent))}")
        unsent = []
    worded = [name for name in _SENTENCES if name in overflow or name in unsent]
    worded += [name for name in unsent if name not in _SENTENCES]
    return item, [_SENTENCES.get(name, _OTHER_SENTENCE).format(f"{name}={_value(tool[name])}") for name in worded]


def _check_uses(tool: Mapping[str, Any], notes: list[str]) -> None:
    if max_uses(tool) is not None:
        notes.append("max_uses of the search left out: it has no such limit")


def _domains(tool: Mapping[str, Any]) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """The filters, the names of lists that are too long for them, and of options that are not lists."""
    given = {name: tool[name] for name in _DOMAINS if tool.get(name) is not None}
    lists = {name: value for name, value in given.items() if isinstance(value, list) and value}
    if len(lists) > 1:
        raise InvalidRequest(
            "`allowed_domains` and `blocked_domains` of a search tool exclude each other: send one of them",
            param="tools",
        )
    fitting = {
        _DOMAINS[name]: [domain for domain in value if isinstance(domain, str) and domain.strip()]
        for name, value in lists.items()
        if len(value) <= MAX_DOMAINS
    }
    filters = {name: domains for name, domains in fitting.items() if domains}
    overflow = [name for name, value in lists.items() if len(value) > MAX_DOMAINS]
    return filters, overflow, [name for name, value in given.items() if not isinstance(value, list)]


def _place(place: Mapping[str, Any]) -> dict[str, str]:
    known = {name: place[name].strip() for name in _PLACE if isinstance(place.get(name), str)}
    return {name: value for name, value in known.items() if value}


def _value(value: Any) -> str:
    return f"{{{value}}}" if isinstance(value, str) else dump_sorted_json(value)


# -- what the user asks for

_PHRASES = {
    X: (
        *("search x for", "search on x", "search twitter", "search tweets", "x search", "posts on x", "posts from x"),
        *("tweets about", "twitter posts"),
    ),
    WEB: ("search online", "search the web", "web search", "look up online", "look up on the web"),
}
_WORD = "[a-z0-9_]"
#: The search -> its phrases, each with a pattern that finds it as separate words. The pattern begins with the phrase,
#: since only such a search is fast.
_INTENTS = {
    search: [(phrase.encode(), re.compile(f"{phrase}(?<!{_WORD}{phrase})(?!{_WORD})".encode())) for phrase in phrases]
    for search, phrases in _PHRASES.items()
}
#: Each phrase contains one of these.
_HINTS = (b"search", b"posts", b"tweets", b"look up")


def _ascii_lower(text: str) -> bytes:
    """Lowers ASCII letters only, as `lower` of bytes does."""
    return text.encode("utf-8", "replace").lower()


def search_asked(messages: list[Any]) -> str | None:
    """The search that the newest user message asks for in words, X before the web; None when it asks for none.

    >>> search_asked([{"role": "user", "content": "Search Twitter for the outage"}])
    'x_search'
    >>> search_asked([{"role": "user", "content": "regex search the tree"}])
    """
    newest = next((message for message in reversed(messages) if message["role"] == "user"), None)
    if newest is None:
        return None
    texts = [
        block["text"]
        for block in blocks_of(newest["content"])
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    # finding tags in long texts takes a while
    if not any(hint in raw for raw in map(_ascii_lower, texts) for hint in _HINTS):
        return None
    said = _ascii_lower(" ".join(map(own_words, texts)))  # text that the client inserts is not the user's wish
    return next(
        (
            search
            for search, phrases in _INTENTS.items()
            if any(phrase in said and pattern.search(said) for phrase, pattern in phrases)
        ),
        None,
    )


# -- searches for others

#: Longest answer of a search, in characters.
MAX_ANSWER_CHARS = 512 * 1024
_REPORT = (
    "Search the web for the query. Then report what the pages say about it, with the facts and their addresses. Answer"
    " with the report alone."
)


def search_request(query: Query, model: str) -> dict[str, Any]:
    """A request that does nothing but search."""
    tool = {"type": "web_search_20250305", "name": WEB, **query.filters}
    if len(query.filters) > 1:  # the service takes one of the lists; the results are checked by both
        del tool["blocked_domains"]
    return {
        "model": model,
        "system": _REPORT,
        "messages": [{"role": "user", "content": f"{QUERY_PREFIX} {query.text}"}],
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": WEB},
        "output_config": {"effort": "low"},
    }


def found_in(message: Mapping[str, Any]) -> Found:
    """What the answer to such a request found: every link once, and the text."""
    content, usage = message.get("content") or [], dict(message.get("usage") or {})
    outcomes = [outcome_of(block) for block in content if block["type"] == SERVER_TOOL_RESULT.name]
    found = [result for outcome in outcomes if isinstance(outcome, Found) for result in outcome.results]
    results = {result.url: result for result in found}
    counted = usage.pop("server_tool_use", None) or {}
    searches = counted.get("web_search_requests") or 1
    return Found(tuple(results.values()), "".join(texts_of(content)), searches, usage)
