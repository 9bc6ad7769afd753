"""Searches of earlier turns, for a model whose service has none: as calls of the function that it has, or in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proxy.core.content import blocks_of
from proxy.core.foreign_text import foreign
from proxy.core.search.blocks import outcome_of
from proxy.core.search.results import Found, in_words
from proxy.core.sizes import least_size

Block = dict[str, Any]

#: The call of a search.
SEARCH = "server_tool_use"
#: The results of searches -> where was searched.
RESULTS = {"web_search_tool_result": "web", "x_search_tool_result": "X"}
#: The names of searches; other tools of a server have calls of the same type.
_NAMES = frozenset({"web_search", "x_search"})
#: Most characters of the searches that one request is told again.
MAX_REMEMBERED = 2 * 1024 * 1024
#: The result block that the proxy itself makes.
_RESULT = "web_search_tool_result"


def with_remembered(messages: Sequence[Any], found: Callable[[str], Sequence[Mapping[str, Any]]]) -> Sequence[Any]:
    """The messages with the searches that were made before or beside calls of the client; `messages` itself if there
    are none. Each is told once, before the newest call with its id, and the newest come first while there is room.

    found  id of a call -> the blocks of the searches that belong to it
    """
    added, seen, room = {}, set[str](), MAX_REMEMBERED
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if not isinstance(message, Mapping) or message.get("role") != "assistant":
            continue
        content: list[Any] = []
        for block in reversed(blocks_of(message.get("content"))):
            content.append(block)
            call_id = block.get("id") if _kind(block) == "tool_use" else None
            if not isinstance(call_id, str) or call_id in seen:
                continue
            seen.add(call_id)
            blocks = found(call_id)
            room -= least_size(blocks, room)
            content += reversed(blocks if room >= 0 else ())
            if blocks and room >= 0:
                added[place] = content
    if not added:
        return messages
    return [
        {**message, "content": added[place][::-1]} if place in added else message
        for place, message in enumerate(messages)
    ]


def as_calls(messages: Sequence[Any], name: str) -> list[Any]:
    """The messages with each search and its result as a call of the function `name`: as the model saw them."""
    out: list[Any] = []
    waiting: list[Block] = []  # results whose user message is still to come
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        role = message.get("role") if isinstance(message, Mapping) else None
        if waiting and role == "user":
            message = {**message, "content": [*waiting, *blocks_of(content)]}
        elif waiting:
            out.append({"role": "user", "content": waiting})
        waiting = []
        if role != "assistant" or not _searches(content):
            out.append(message)
            continue
        steps = _steps(blocks_of(content), name)
        for blocks, results in steps[:-1]:
            out += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        blocks, waiting = steps[-1]
        out += [{**message, "content": blocks}] if blocks else []
    return [*out, {"role": "user", "content": waiting}] if waiting else out


def _searches(content: Any) -> bool:
    return isinstance(content, list) and any(_kind(block) == _RESULT for block in content)


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _steps(content: list[Any], name: str) -> list[tuple[list[Block], list[Block]]]:
    """An answer as steps: what the assistant said, with the calls at its end, and their results. The last step's
    results belong into the next message. After a call of the client no step ends, since its result comes later."""
    results = {_text(block, "tool_use_id"): block for block in content if _kind(block) == _RESULT}
    steps: list[tuple[list[Block], list[Block]]] = [([], [])]
    calls_client = False
    for block in content:
        kind = _kind(block)
        said, found = steps[-1]
        if kind == SEARCH and _text(block, "id") in results:
            said.append(_call(block, name))
            found.append(_result(results[_text(block, "id")]))
        elif kind == _RESULT or (kind == SEARCH and block.get("name") == "web_search"):
            continue  # told with its call; or without a result
        elif found and not calls_client:
            steps.append(([block], []))
        else:
            said.append(block)
        calls_client = calls_client or kind == "tool_use"
    return steps


def _text(block: Mapping[str, Any], member: str) -> str:
    """A member that should be a text, "" if it is none."""
    value = block.get(member)
    return value if isinstance(value, str) else ""


def _call(block: Mapping[str, Any], name: str) -> Block:
    query = block.get("input")
    return {
        "type": "tool_use",
        "id": _text(block, "id"),
        "name": name,
        "input": query if isinstance(query, dict) else {},
    }


def _result(block: Mapping[str, Any]) -> Block:
    told = in_words(outcome_of(block))
    return {"type": "tool_result", "tool_use_id": _text(block, "tool_use_id"), "content": told}


def search_text(block: Mapping[str, Any]) -> str:
    """A search of an earlier turn, or its result, in words: without the texts of the pages, which a model would take
    for its own words.

    >>> search_text({"type": "server_tool_use", "name": "web_search", "input": {"query": "rust"}})
    '[web search: rust]'
    """
    if block.get("type") == SEARCH:
        where = "X" if block.get("name") == "x_search" else "web"
        query = block.get("input")
        query = query.get("query") if isinstance(query, Mapping) else None
        return f"[{where} search: {query}]" if isinstance(query, str) else f"[{where} search]"
    outcome = outcome_of(block, carried=False)
    results = outcome.results if isinstance(outcome, Found) else ()
    links = [f"- {foreign(result.title)}: {foreign(result.url)}" for result in results]
    return "\n".join([f"[{RESULTS.get(str(block.get('type')), 'web')} search results]", *links])


def is_search(block: Block) -> bool:
    """Whether a block is a search of an earlier turn, or its result."""
    kind = block.get("type")
    if kind == SEARCH:
        name = block.get("name")
        return isinstance(name, str) and name in _NAMES
    return isinstance(kind, str) and kind in RESULTS


def with_searches_told(blocks: list[Block]) -> list[Block]:
    """The blocks of the assistant with searches as texts of their own; `blocks` itself if there are none."""
    if not any(map(is_search, blocks)):
        return blocks
    return [{"type": "text", "text": f"\n{search_text(block)}\n"} if is_search(block) else block for block in blocks]
