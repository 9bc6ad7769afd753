"""The blocks in which an answer shows a search: the call, and its result."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from proxy.core.blocks import INPUT_DELTA, SERVER_TOOL_RESULT, SERVER_TOOL_USE, TEXT, TEXT_DELTA
from proxy.core.messages import Event, MessageStream
from proxy.core.search.results import MAX_BYTES, Found, Outcome, Result, SearchFailure
from proxy.core.sse import dump_json, load_json
from proxy.core.tokens.usage import search_usage, usage_of

#: Begins what the proxy puts into `encrypted_content`, which clients send back with the conversation.
_PACKED = "mp1."
#: Longest such content that is read.
_MAX_PACKED = 2 * MAX_BYTES
_ERROR = "web_search_tool_result_error"


def result_content(outcome: Outcome, *, carried: bool) -> Any:
    """The content of the result block. `carried`: whether it has the texts for later turns, which clients do not
    read."""
    if isinstance(outcome, SearchFailure):
        return {"type": _ERROR, "error_code": outcome.code}
    return [
        {
            "type": "web_search_result",
            "title": result.title,
            "url": result.url,
            "encrypted_content": _pack(result, "" if place else outcome.answer) if carried else "",
            "page_age": None,
        }
        for place, result in enumerate(outcome.results)
    ]


def outcome_of(content: Any) -> Outcome:
    """The outcome that a result block of an earlier turn shows, with the texts that it carries."""
    if isinstance(content, Mapping):
        return SearchFailure(str(content.get("error_code") or "unavailable"), "it was made in an earlier turn")
    results, answer = [], ""
    for link in content if isinstance(content, list) else ():
        if isinstance(link, Mapping) and isinstance(link.get("url"), str):
            text, written = _unpack(link.get("encrypted_content"))
            title = link.get("title")
            results.append(Result(title if isinstance(title, str) and title else link["url"], link["url"], text))
            answer = answer or written
    return Found(tuple(results), answer)


def _pack(result: Result, answer: str) -> str:
    if not (result.text or answer):
        return ""
    carried = {"text": result.text} | ({"answer": answer} if answer else {})
    return _PACKED + base64.b64encode(dump_json(carried).encode()).decode()


def _unpack(content: Any) -> tuple[str, str]:
    """The text and the written answer in a packed content; empty if it is another service's."""
    if not isinstance(content, str) or not content.startswith(_PACKED) or len(content) > _MAX_PACKED:
        return "", ""
    try:
        carried = load_json(base64.b64decode(content.removeprefix(_PACKED), validate=True).decode())
    except (ValueError, RecursionError, binascii.Error):
        return "", ""
    carried = carried if isinstance(carried, Mapping) else {}
    text, answer = (carried.get(name) for name in ("text", "answer"))
    return text if isinstance(text, str) else "", answer if isinstance(answer, str) else ""


def search_events(stream: MessageStream, outcome: Outcome, *, query: str, block_id: str, text: str) -> list[Event]:
    """The rest of an answer that is one search: the call, its result, and a text."""
    stream.open("call", SERVER_TOOL_USE.start(id=block_id, name="web_search"))
    stream.delta("call", INPUT_DELTA.of(dump_json({"query": query})))
    stream.close("call")
    content = result_content(outcome, carried=False)
    stream.open("result", SERVER_TOOL_RESULT.start(tool_use_id=block_id, content=content))
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
