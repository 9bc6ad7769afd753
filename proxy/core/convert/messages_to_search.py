"""Converts a search to a call of P1's search service, and its answer to what was found.

A Messages request that forces the search tool is such a search: Claude Code's WebSearch asks this way if it believes it
is talking to an older Claude model. Otherwise it leaves the choice to the model, and the hosted search of the Responses
API serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proxy.core.content import texts_of
from proxy.core.convert.messages_to_responses import search_filters
from proxy.core.invalid import InvalidRequest
from proxy.core.reducer import BadAnswer
from proxy.core.search.hosted import QUERY_PREFIX
from proxy.core.search.results import Found, Query, Result
from proxy.core.tokens.counting import Length
from proxy.core.tools.calls import is_web_search, offered_tools

MAX_OUTPUT_TOKENS = 2500
#: Most tokens of earlier assistant text in the context of a search.
ASSISTANT_BUDGET = 1000

Truncate = Callable[[str, int], str]


def forced_search(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The search tool that `tool_choice` names, None if the request is not a forced search."""
    choice = request.get("tool_choice")
    if not isinstance(choice, Mapping) or choice.get("type") != "tool":
        return None
    tools = [tool for tool in offered_tools(request) if is_web_search(tool)]
    return tools[0] if any(tool["name"] == choice.get("name") for tool in tools) else None


def forced_query(request: Mapping[str, Any], tool: Mapping[str, Any]) -> Query:
    """The search of a request that forces it, in the context of its conversation. Raises InvalidRequest."""
    lists = search_filters(tool)
    allowed, blocked = (tuple(lists.get(name, ())) for name in ("allowed_domains", "blocked_domains"))
    return Query(search_query(request), allowed, blocked, context=request.get("messages") or [])


def search_query(request: Mapping[str, Any]) -> str:
    """The query: the newest user message, without the client's phrase before it. Raises InvalidRequest."""
    for message in reversed(request.get("messages") or []):
        if message["role"] == "user" and (text := _text(message)):
            return text.removeprefix(QUERY_PREFIX).strip() or text
    raise InvalidRequest("a web search needs a user message with text: there is no query", param="messages")


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(texts_of(message["content"])).strip()


def search_body(query: Query, *, model: str, search_id: str, length: Length, truncate: Truncate) -> dict[str, Any]:
    """The body of the search call. `length` and `truncate` count tokens, so call it where counting is allowed."""
    settings: dict[str, Any] = {"allowed_callers": ["direct"], "external_web_access": True}
    if query.filters:
        settings = {"filters": query.filters, **settings}
    body: dict[str, Any] = {"id": search_id, "model": model}
    context = _context(query.context, length, truncate)
    if context:
        body["input"] = context
    return body | {
        "commands": {"search_query": [{"q": query.text}]},
        "settings": settings,
        "max_output_tokens": MAX_OUTPUT_TOKENS,
    }


def _context(messages: Sequence[Any], length: Length, truncate: Truncate) -> list[dict[str, Any]]:
    """The last two user messages with text, and the assistant's texts between them."""
    spoken = [message for message in messages if message["role"] in ("user", "assistant") and _text(message)]
    users = [index for index, message in enumerate(spoken) if message["role"] == "user"]
    if not users:
        return []
    items, budget = [], ASSISTANT_BUDGET
    for message in spoken[users[-2:][0] : users[-1] + 1]:
        text, kind = _text(message), "input_text"
        if message["role"] == "assistant":
            kind = "output_text"
            text = truncate(text, budget) if budget > 0 else ""
            budget -= length(text)
        if text:
            content = [{"type": kind, "text": text}]
            items.append({"type": "message", "role": message["role"], "content": content})
    return items


def found_in(answer: Mapping[str, Any]) -> Found:
    """What an answer found: each result with an address, each address once. Links in the prose are not scraped. Raises
    BadAnswer if there is no `output`."""
    output = answer.get("output")
    if not isinstance(output, str):
        raise BadAnswer("the search answer has no output")
    results = answer.get("results")
    found: dict[str, Result] = {}
    for result in results if isinstance(results, list) else ():
        if isinstance(result, Mapping) and isinstance(url := result.get("url"), str) and url:
            title = next((result[key] for key in ("title", "ref_id") if isinstance(result.get(key), str)), None)
            text = result.get("snippet")
            found.setdefault(url, Result(title or url, url, text if isinstance(text, str) else ""))
    return Found(tuple(found.values()), output)


def count_search_input(body: Mapping[str, Any], length: Length) -> int:
    """Estimated input tokens: the model, the queries, every text of the context, the domains; at least 1."""
    parts = [body["model"], *(query["q"] for query in body["commands"]["search_query"])]
    parts += _strings(body.get("input")) + _strings(body["settings"].get("filters"))
    return max(1, sum(length(part) for part in parts))


def count_search_output(answer: Mapping[str, Any], length: Length) -> int:
    """Estimated output tokens: the prose and every text of the results; at least 1."""
    return max(1, sum(length(part) for part in [*_strings(answer.get("output")), *_strings(answer.get("results"))]))


def _strings(value: Any) -> list[str]:
    """All texts inside a JSON value, in no particular order."""
    found, todo = [], [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found
