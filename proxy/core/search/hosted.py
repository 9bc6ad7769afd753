"""Reads the hosted search of a request whose model has none, and gives the model a function in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import messages_of, texts_of
from proxy.core.invalid import InvalidRequest, cut
from proxy.core.search.domains import domain_of
from proxy.core.search.history import as_calls
from proxy.core.search.results import MAX_QUERY, Query, clean
from proxy.core.tools.hosted import WEB_SEARCH, hosted_kind

#: Claude Code's words before the query of its WebSearch, which it sends as a request of its own.
QUERY_PREFIX = "Perform a web search for the query:"
#: Searches of one answer if the request names no number, and the largest number that it may name.
USES, MAX_USES = 8, 20
#: Longest list of domains.
MAX_DOMAINS = 1_000
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
#: Rounds after the last search, in which the model may notice that there are no more.
MORE_ROUNDS = 2

_ABOUT = (
    "Searches the web and returns the titles, addresses and texts of what it finds. Use it for anything that may have"
    " changed since your training, and for what you do not know."
)
_QUERY = {"type": "string", "description": "What to look for, in the words of a search engine."}
_SCHEMA = {"type": "object", "properties": {"query": _QUERY}, "required": ["query"], "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a request with a hosted search is served.

    request  as the model gets it: with a function in place of the search, and earlier searches as its calls. Further
             hosted searches stay, for the route to leave out like all tools that the service lacks
    name     of the function
    allowed, blocked  see `Query`
    uses     maximum number of searches of the answer
    only     the query of a request that does nothing but search; None for any other
    """

    request: Mapping[str, Any]
    name: str
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    uses: int = USES
    only: str | None = None

    def query(self, text: str) -> Query:
        """The search for a text within the domains of the request."""
        return Query(text, self.allowed, self.blocked)

    @property
    def rounds(self) -> int:
        """Maximum number of times that the model is asked."""
        return self.uses + MORE_ROUNDS


def hosted_searches(tools: Any) -> list[Mapping[str, Any]]:
    """The hosted searches among the tools of a Messages request.

    >>> hosted_searches([{"type": "web_search_20250305"}, {"name": "web_search", "input_schema": {}}])
    [{'type': 'web_search_20250305'}]
    """
    return [tool for tool in tools if hosted_kind(tool) == WEB_SEARCH] if isinstance(tools, list) else []


def search_plan(request: Mapping[str, Any]) -> SearchPlan | None:
    """The plan for a request; None if it has no hosted search, or another tool has its name. Raises InvalidRequest.

    >>> search_plan({"messages": [], "tools": [{"type": "web_search_20250305", "name": "web_search"}]}).uses
    8
    """
    tools, searches = request.get("tools"), hosted_searches(request.get("tools"))
    if not isinstance(tools, list) or not searches:
        return None
    search, others = searches[0], [tool for tool in tools if hosted_kind(tool) != WEB_SEARCH]
    name = search.get("name") or WEB_SEARCH
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong("name", "must have letters, digits, `_` and `-` only, at most 64")
    if any(isinstance(tool, Mapping) and tool.get("name") == name for tool in others):
        return None
    replaced = [_function(search, name) if tool is search else tool for tool in tools]
    messages = request.get("messages")
    changed = {"tools": replaced, "messages": as_calls(messages, name) if isinstance(messages, list) else messages}
    uses = max_uses(search)
    return SearchPlan(
        {**request, **changed},
        name,
        allowed=_domains(search, "allowed_domains"),
        blocked=_domains(search, "blocked_domains"),
        uses=USES if uses is None else min(uses, MAX_USES),
        only=None if others else _only(request),
    )


def _wrong(member: str, words: str) -> InvalidRequest:
    return InvalidRequest(f"`{member}` of a search tool {words}", param="tools")


def _function(search: Mapping[str, Any], name: str) -> dict[str, Any]:
    mark = {"cache_control": search["cache_control"]} if search.get("cache_control") else {}
    return {"name": name, "description": _ABOUT, "input_schema": _SCHEMA, **mark}


def _domains(search: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of domains in the normal form. Raises InvalidRequest: a domain that is not understood would be open."""
    given = search.get(name)
    given = [one for one in given if isinstance(one, str) and one.strip()] if isinstance(given, list) else []
    if len(given) > MAX_DOMAINS:
        raise _wrong(name, f"has more than {MAX_DOMAINS} domains")
    found = {one: domain_of(one) for one in given}
    for one, domain in found.items():
        if domain is None:
            raise _wrong(name, f"has no domain in {cut(repr(one))}: write it like example.com or example.com/docs")
    return tuple({f"{domain[0]}{domain[1]}": None for domain in found.values() if domain})


def max_uses(search: Mapping[str, Any]) -> int | None:
    """The number of searches that a tool allows, None if it names none. Raises InvalidRequest."""
    uses = search.get("max_uses")
    if uses is not None and (type(uses) is not int or uses < 1):
        raise _wrong("max_uses", "must be a whole number from 1")
    return uses


def _only(request: Mapping[str, Any]) -> str | None:
    """The query of a request in the form of Claude Code's WebSearch."""
    messages = messages_of(request)
    choice = request.get("tool_choice")
    if len(messages) != 1 or (isinstance(choice, Mapping) and choice.get("type") == "none"):
        return None
    text = "\n".join(texts_of(messages[0].get("content"))).strip()
    query = text.removeprefix(QUERY_PREFIX)
    return asked_query(query) or None if query != text else None


def asked_query(text: str) -> str:
    """A query as it is asked.

    >>> asked_query(" rust\\ud800 ")
    'rust?'
    """
    return clean(text[:MAX_QUERY]).strip()


def after_search(choice: Any) -> Any:
    """The tool choice once a search was made: what was forced has happened.

    >>> after_search({"type": "tool", "name": "web_search", "disable_parallel_tool_use": True})
    {'type': 'auto', 'disable_parallel_tool_use': True}
    """
    if isinstance(choice, Mapping) and choice.get("type") in ("tool", "any"):
        return {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
    return choice
