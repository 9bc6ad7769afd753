"""Values of another kind than a member has, at every place of a body: refused or passed over, no error of ours."""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest
from harness import Live, with_live
from samples import Extent
from wires import PICTURE

sys.path.insert(0, str(FilePath(__file__).parents[2] / "scripts" / "lib"))

from fuzz.requests import CHAT, COUNT, MESSAGES, RESPONSES, full

MODEL = "kimi-for-coding"
MARK = {"type": "ephemeral", "ttl": "1h"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
CITED = {
    "type": "web_search_result_location",
    "url": "http://a",
    "title": "t",
    "cited_text": "c",
    "encrypted_index": "e",
}
FOUND = {"type": "web_search_result", "url": "http://a", "title": "t", "encrypted_content": "e", "page_age": "1"}
TURN: list[dict[str, Any]] = [
    {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a"}, "caller": {"type": "direct"}},
    {"type": "text", "text": "hi", "citations": [CITED]},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [FOUND]},
]
SEARCH_RESULT = {
    "type": "search_result",
    "source": "http://s",
    "title": "t",
    "citations": {"enabled": True},
    "content": [{"type": "text", "text": "x"}],
}
SHOWN: list[dict[str, Any]] = [
    {
        "type": "tool_result",
        "tool_use_id": "c1",
        "is_error": False,
        "cache_control": MARK,
        "content": [{"type": "tool_reference", "tool_name": "Read"}, SEARCH_RESULT],
    },
    {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}},
    *(
        {"type": "document", "context": "C", "source": source, "citations": {"enabled": True}}
        for source in (
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            {"type": "content", "content": [{"type": "text", "text": "in"}]},
        )
    ),
]
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.com"]}
PLACE = {"user_location": {"type": "approximate", "country": "DE"}}
#: Of each route: members that a request of the fuzzer has not, and what is added to its conversation and its tools.
MORE: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    MESSAGES: (
        {
            "stream": False,
            "service_tier": "auto",
            "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        },
        [
            *({"role": "assistant", "content": TURN}, {"role": "user", "content": SHOWN}),
            *({"role": "system", "content": [{"type": "text", "text": "sys"}]}, {"role": "user", "content": "go on"}),
        ],
        [
            {"name": "Strict", "description": "d", "input_schema": SCHEMA, "cache_control": MARK, "strict": True},
            {"name": "Any", "input_schema": {"type": "object", "anyOf": [{"required": ["n"]}]}},
            {**SEARCH, **PLACE},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "custom", "name": "t", "input_schema": {"type": "object"}, "defer_loading": True},
        ],
    ),
    CHAT: (
        {
            "stream": False,
            "max_tokens": 50,
            "top_p": 1,
            "seed": 1,
            "store": False,
            "verbosity": "low",
            "service_tier": "auto",
            "safety_identifier": "s",
            "logprobs": False,
            "modalities": ["text"],
            **dict.fromkeys(("top_logprobs", "presence_penalty", "frequency_penalty"), 0),
            "logit_bias": {},
            "prediction": None,
            "web_search_options": {},
        },
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                    },
                    {"type": "input_audio", "input_audio": {"data": "aa", "format": "wav"}},
                ],
            },
            {
                "role": "assistant",
                "refusal": None,
                "annotations": [],
                "audio": None,
                "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}],
                "tool_calls": [{"id": "c2", "type": "custom", "custom": {"name": "c", "input": "x"}}],
            },
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "r"}]},
            {"role": "user", "content": "go", "name": "n"},
        ],
        [
            {"type": "function", "function": {"name": "f", "description": "d", "strict": True, "parameters": SCHEMA}},
            {
                "type": "custom",
                "custom": {
                    "name": "c",
                    "description": "d",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}},
                },
            },
        ],
    ),
    RESPONSES: (
        {
            "stream": False,
            "temperature": 1,
            "top_p": 1,
            "user": "u",
            "parallel_tool_calls": True,
            "background": False,
            "service_tier": "auto",
            "safety_identifier": "s",
            "max_tool_calls": 3,
            "top_logprobs": 0,
            "client_metadata": {"a": "b"},
            **dict.fromkeys(("previous_response_id", "conversation", "prompt")),
        },
        [
            {
                "type": "message",
                "role": "assistant",
                "id": "m1",
                "status": "completed",
                "phase": "final_answer",
                "content": [
                    {
                        "type": "output_text",
                        "text": "a",
                        "logprobs": [],
                        "annotations": [
                            {"type": "url_citation", "url": "http://a", "title": "t", "start_index": 0, "end_index": 1}
                        ],
                    },
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {"type": "reasoning", "id": "r1", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
            {
                "type": "web_search_call",
                "id": "w1",
                "status": "completed",
                "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "http://a"}]},
            },
            {"type": "function_call", "call_id": "c3", "name": "g", "namespace": "ns", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c3",
                "output": [{"type": "input_image", "image_url": "data:image/png;base64," + PICTURE}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
                ],
            },
        ],
        [
            {"type": "function", "name": "f", "description": "d", "strict": True, "parameters": SCHEMA},
            {"type": "web_search", "filters": {"allowed_domains": ["a.com"]}, **PLACE, "search_context_size": "low"},
            {
                "type": "custom",
                "name": "c",
                "description": "d",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
            },
            {
                "type": "namespace",
                "name": "ns",
                "tools": [{"type": "function", "name": "g", "parameters": {"type": "object"}}],
            },
        ],
    ),
}


def body_of(route: str) -> dict[str, Any]:
    """One that has every member that any of our readers knows."""
    body, (members, turns, tools) = full(route, MODEL), MORE[route]
    talk = "input" if route == RESPONSES else "messages"
    return {**body, **members, talk: [*body[talk], *turns], "tools": [*body["tools"], *tools]}


ODD: tuple[Any, ...] = ([], {}, [[]], 1, None, True)
Path = tuple[str | int, ...]
#: Requests under way at a time.
AT_ONCE = 16


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        yield from places(inner, (*path, name))


def with_odd(body: dict[str, Any], path: Path, odd: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = odd
    return changed


def odd_at(body: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Each place with each odd value, in a sample with one in turn."""
    for number, place in enumerate(places(body)):
        odd = ODD if Extent.everything else [ODD[number % len(ODD)]]
        yield from ((place, value) for value in odd)


@with_live(openai_routes=True, openai_mode="lenient")
@pytest.mark.parametrize("path", [MESSAGES, COUNT, CHAT, RESPONSES])
async def test_a_value_of_another_kind_is_no_error_of_ours(live: Live, path: str) -> None:
    turns, body = asyncio.Semaphore(AT_ONCE), body_of(MESSAGES if path == COUNT else path)

    async def fault(place: Path, odd: Any) -> str | None:
        async with turns:
            answer = await live.post(with_odd(body, place, odd), path)
        refused = answer.status in (400, 404) and "messages" not in path.split("/")
        if answer.status < 500 and not (refused and not answer.json["error"].get("param")):
            return None
        return f"{place}: {odd!r}: {answer.status} {answer.raw.decode()[:200]}"

    told = await asyncio.gather(*(fault(place, odd) for place, odd in odd_at(body)))
    assert [one for one in told if one] == []
