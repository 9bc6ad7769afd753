"""Reads the hosted search of a request whose model has none, and gives the model a function in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import messages_of, texts_of
from proxy.core.search.history import as_calls
from proxy.core.search.results import MAX_QUERY, Query
from proxy.core.tools.hosted import hosted_kind

WEB_SEARCH = "web_search"
#: What each body with a hosted search, or with earlier ones, has.
SEARCH_WORD = WEB_SEARCH.encode()
#: Claude Code's words before the query of its WebSearch, which it sends as a request of its own.
QUERY_PREFIX = "Perform a web search for the query:"
#: Searches of one answer if the request names no number, and the largest number that it may name.
USES, MAX_USES = 8, 20
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

    request  as the model gets it: with a function in place of the search, and earlier searches as its calls
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
        return Query(text[:MAX_QUERY], self.allowed, self.blocked)

    @property
    def rounds(self) -> int:
        """Maximum number of times that the model is asked."""
        return self.uses + MORE_ROUNDS


def search_plan(request: Mapping[str, Any]) -> SearchPlan | None:
    """The plan for a request; None if it has no hosted search, or another tool has its name.

    >>> search_plan({"messages": [], "tools": [{"type": "web_search_20250305", "name": "web_search"}]}).uses
    8
    """
    tools = request.get("tools")
    tools = tools if isinstance(tools, list) else []
    searches = [tool for tool in tools if hosted_kind(tool) == WEB_SEARCH]
    if not searches:
        return None
    search, others = searches[0], [tool for tool in tools if hosted_kind(tool) != WEB_SEARCH]
    name = search.get("name") if isinstance(search.get("name"), str) and search["name"] else WEB_SEARCH
    if any(isinstance(tool, Mapping) and tool.get("name") == name for tool in others):
        return None
    function = _function(search, name)
    replaced = [function if tool is search else tool for tool in tools if tool is search or tool not in searches]
    messages = request.get("messages")
    changed = {"tools": replaced, "messages": as_calls(messages, name) if isinstance(messages, list) else messages}
    return SearchPlan(
        {**request, **changed},
        name,
        allowed=_domains(search, "allowed_domains"),
        blocked=_domains(search, "blocked_domains"),
        uses=_uses(search.get("max_uses")),
        only=None if others else _only(request),
    )


def _function(search: Mapping[str, Any], name: str) -> dict[str, Any]:
    mark = {"cache_control": search["cache_control"]} if search.get("cache_control") else {}
    return {"name": name, "description": _ABOUT, "input_schema": _SCHEMA, **mark}


def _domains(search: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = search.get(name)
    return tuple(one for one in given if isinstance(one, str) and one.strip()) if isinstance(given, list) else ()


def _uses(given: Any) -> int:
    return min(given, MAX_USES) if type(given) is int and given > 0 else USES


def _only(request: Mapping[str, Any]) -> str | None:
    """The query of a request in the form of Claude Code's WebSearch."""
    messages = messages_of(request)
    choice = request.get("tool_choice")
    if len(messages) != 1 or (isinstance(choice, Mapping) and choice.get("type") == "none"):
        return None
    text = "\n".join(texts_of(messages[0].get("content"))).strip()
    query = text.removeprefix(QUERY_PREFIX)
    return query.strip() or None if query != text else None


def after_search(choice: Any) -> Any:
    """The tool choice once a search was made: what was forced has happened.

    >>> after_search({"type": "tool", "name": "web_search", "disable_parallel_tool_use": True})
    {'type': 'auto', 'disable_parallel_tool_use': True}
    """
    if isinstance(choice, Mapping) and choice.get("type") in ("tool", "any"):
        return {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
    return choice
