"""The blocks in which an answer shows a search: the call, and its result."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from proxy.core.blocks import INPUT_DELTA, SERVER_TOOL_RESULT, SERVER_TOOL_USE, TEXT, TEXT_DELTA
from proxy.core.messages import Event, MessageStream
from proxy.core.search.results import MAX_ANSWER, MAX_TEXT, Found, Outcome, Query, Result, SearchFailure, bounded
from proxy.core.sse import dump_json, load_json
from proxy.core.tokens.usage import search_usage, usage_of

#: Begins what the proxy puts into `encrypted_content`, which clients send back with the conversation.
_PACKED = "mp1."
#: Longest such content that is read: that of the longest texts, each of whose characters may take four bytes.
_MAX_PACKED = 6 * (MAX_ANSWER + MAX_TEXT)
_ERROR = "web_search_tool_result_error"


def result_block(block_id: str, outcome: Outcome, *, carried: bool) -> dict[str, Any]:
    """The block of a result. `carried`: whether it has the texts for later turns, which clients do not read. If there
    is no link to carry the written answer, the block itself does."""
    block = {"tool_use_id": block_id}
    if isinstance(outcome, SearchFailure):
        return SERVER_TOOL_RESULT.start(**block, content={"type": _ERROR, "error_code": outcome.code})
    links = [
        {
            "type": "web_search_result",
            "title": result.title,
            "url": result.url,
            "encrypted_content": _pack(result.text, "" if place else outcome.answer) if carried else "",
            "page_age": None,
        }
        for place, result in enumerate(outcome.results)
    ]
    if carried and outcome.answer and not links:
        block["encrypted_content"] = _pack("", outcome.answer)
    return SERVER_TOOL_RESULT.start(**block, content=links)


def outcome_of(block: Mapping[str, Any], *, carried: bool = True) -> Outcome:
    """The outcome that a result block of an earlier turn shows: clients may change it, so it is bounded again.
    `carried`: with the texts that it carries."""
    content = block.get("content")
    if isinstance(content, Mapping):
        return SearchFailure(str(content.get("error_code") or "unavailable"), "it was made in an earlier turn")
    results, (_, answer) = [], _unpack(block.get("encrypted_content") if carried else None)
    for link in content if isinstance(content, list) else ():
        if isinstance(link, Mapping) and isinstance(link.get("url"), str):
            text, written = _unpack(link.get("encrypted_content") if carried else None)
            title = link.get("title")
            results.append(Result(title if isinstance(title, str) else "", link["url"], text))
            answer = answer or written
    return bounded(Found(tuple(results), answer), Query(""))


def _pack(text: str, answer: str) -> str:
    carried = {name: value for name, value in (("text", text), ("answer", answer)) if value}
    return _PACKED + base64.b64encode(dump_json(carried).encode()).decode() if carried else ""


def _unpack(content: Any) -> tuple[str, str]:
    """The text and the written answer in a packed content; empty if it is another service's."""
    if not isinstance(content, str) or not content.startswith(_PACKED) or len(content) > _MAX_PACKED:
        return "", ""
    try:
        carried = load_json(base64.b64decode(content.removeprefix(_PACKED), validate=True).decode())
    except (ValueError, RecursionError):
        return "", ""
    carried = carried if isinstance(carried, Mapping) else {}
    text, answer = (carried.get(name) for name in ("text", "answer"))
    return text if isinstance(text, str) else "", answer if isinstance(answer, str) else ""


def search_events(stream: MessageStream, outcome: Outcome, *, query: str, block_id: str, text: str) -> list[Event]:
    """The rest of an answer that is one search: the call, its result, and a text."""
    stream.open("call", SERVER_TOOL_USE.start(id=block_id, name="web_search"))
    stream.delta("call", INPUT_DELTA.of(dump_json({"query": query})))
    stream.close("call")
    stream.open("result", result_block(block_id, outcome, carried=False))
    stream.close("result")
    if text:
        stream.open("text", TEXT.start())
        stream.delta("text", TEXT_DELTA.of(text))
        stream.close("text")
    cost = outcome.usage if isinstance(outcome, Found) else {}
    searches = outcome.searches if isinstance(outcome, Found) else 0
    usage = usage_of(stream.input_tokens, 0) | cost
    stream.finish("end_turn", {**usage, "server_tool_use": search_usage(searches)})
    return stream.take()
