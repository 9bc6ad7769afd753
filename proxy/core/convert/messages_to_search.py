"""Converts a Messages request that forces the search tool to one search call, and its answer to a reply.

Claude Code's WebSearch asks this way if it believes it is talking to an older Claude model; otherwise it leaves the
choice to the model, and the hosted search of the Responses API serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.blocks import INPUT_DELTA, SERVER_TOOL_RESULT, SERVER_TOOL_USE, TEXT, TEXT_DELTA
from proxy.core.content import texts_of
from proxy.core.convert.messages_to_responses import search_filters
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import Length
from proxy.core.tokens.usage import search_usage, usage_of
from proxy.core.tools.calls import is_web_search, offered_tools

QUERY_PREFIX = "Perform a web search for the query:"
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


def search_query(request: Mapping[str, Any]) -> str:
    """The query: the newest user message, without the client's phrase before it. Raises InvalidRequest."""
    for message in reversed(request.get("messages") or []):
        if message["role"] == "user" and (text := _text(message)):
            return text.removeprefix(QUERY_PREFIX).strip() or text
    raise InvalidRequest("a web search needs a user message with text: there is no query", param="messages")


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(texts_of(message["content"])).strip()


def search_body(
    request: Mapping[str, Any],
    tool: Mapping[str, Any],
    *,
    model: str,
    search_id: str,
    length: Length,
    truncate: Truncate,
) -> dict[str, Any]:
    """The body of the search call. `length` and `truncate` count tokens, so call it where counting is allowed."""
    settings: dict[str, Any] = {"allowed_callers": ["direct"], "external_web_access": True}
    filters = search_filters(tool)
    if filters:
        settings = {"filters": filters, **settings}
    body: dict[str, Any] = {"id": search_id, "model": model}
    context = _context(request.get("messages") or [], length, truncate)
    if context:
        body["input"] = context
    return body | {
        "commands": {"search_query": [{"q": search_query(request)}]},
        "settings": settings,
        "max_output_tokens": MAX_OUTPUT_TOKENS,
    }


def _context(messages: list[Any], length: Length, truncate: Truncate) -> list[dict[str, Any]]:
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


def search_links(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """`{"title", "url"}` of each result that has an address, each address once. Links in the prose are not scraped."""
    results = answer.get("results")
    links: dict[str, str] = {}
    for result in results if isinstance(results, list) else ():
        if isinstance(result, Mapping) and isinstance(url := result.get("url"), str) and url:
            title = next((result[key] for key in ("title", "ref_id") if isinstance(result.get(key), str)), None)
            links.setdefault(url, title or url)
    return [{"title": title, "url": url} for url, title in links.items()]


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


def search_events(
    stream: MessageStream, answer: Mapping[str, Any], *, query: str, block_id: str, output_tokens: int
) -> list[Event]:
    """The whole reply: the call, its result, the prose. Raises BadAnswer if there is no `output`."""
    output = answer.get("output")
    if not isinstance(output, str):
        raise BadAnswer("the search answer has no output")
    links = search_links(answer)
    stream.open("call", SERVER_TOOL_USE.start(id=block_id, name="web_search"))
    stream.delta("call", INPUT_DELTA.of(dump_json({"query": query})))
    stream.close("call")
    content = [{"type": "web_search_result", **link, "encrypted_content": "", "page_age": None} for link in links]
    stream.open("result", SERVER_TOOL_RESULT.start(tool_use_id=block_id, content=content))
    stream.close("result")
    if output:
        stream.open("text", TEXT.start())
        stream.delta("text", TEXT_DELTA.of(output))
        stream.close("text")
    usage = usage_of(stream.input_tokens, output_tokens)
    stream.finish("end_turn", {**usage, "server_tool_use": search_usage(1)})
    return stream.take()
