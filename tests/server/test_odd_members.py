"""Values of another kind than a member has, at every place of a body: refused or passed over, no error of ours."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from harness import Live, with_live
from samples import Extent
from wires import PICTURE

MARK = {"type": "ephemeral", "ttl": "1h"}
MESSAGES: dict[str, Any] = {
    "model": "",
    "max_tokens": 100,
    "stream": False,
    "system": [{"type": "text", "text": "be brief", "cache_control": MARK}],
    "tools": [
        {
            "name": "Read",
            "description": "d",
            "input_schema": {
                "type": "object",
                "properties": {
                    "file_path": {"type": "string", "enum": ["a"], "pattern": "^a$"},
                    "n": {"$ref": "#/$defs/N"},
                },
                "required": ["file_path"],
                "anyOf": [{"required": ["n"]}],
                "$defs": {"N": {"type": ["integer", "null"]}},
            },
            "cache_control": MARK,
            "strict": True,
        },
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 3,
            "allowed_domains": ["a.com"],
            "user_location": {"type": "approximate", "country": "DE"},
        },
        {"type": "bash_20250124", "name": "bash"},
        {"type": "custom", "name": "t", "input_schema": {"type": "object"}, "defer_loading": True},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
    "output_config": {
        "effort": "high",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    },
    "metadata": {"user_id": "u"},
    "temperature": 1,
    "top_p": 0.9,
    "top_k": 5,
    "stop_sequences": ["END"],
    "service_tier": "auto",
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "messages": [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {
                    "type": "text",
                    "text": "hi",
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "http://a",
                            "title": "t",
                            "cited_text": "c",
                            "encrypted_index": "e",
                        }
                    ],
                },
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "Read",
                    "input": {"file_path": "a"},
                    "caller": {"type": "direct"},
                },
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "url": "http://a",
                            "title": "t",
                            "encrypted_content": "e",
                            "page_age": "1",
                        }
                    ],
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "r"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                        {"type": "tool_reference", "tool_name": "Read"},
                        {
                            "type": "search_result",
                            "source": "http://s",
                            "title": "t",
                            "content": [{"type": "text", "text": "x"}],
                            "citations": {"enabled": True},
                        },
                    ],
                    "cache_control": MARK,
                },
                {"type": "text", "text": "q", "cache_control": MARK},
                {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}},
                {
                    "type": "document",
                    "title": "T",
                    "context": "C",
                    "source": {"type": "text", "media_type": "text/plain", "data": "doc"},
                    "citations": {"enabled": True},
                },
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "in"}]}},
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "sys"}]},
        {"role": "user", "content": "go on"},
    ],
}
CHAT: dict[str, Any] = {
    "model": "",
    "stream": False,
    "max_tokens": 50,
    "max_completion_tokens": 50,
    "temperature": 1,
    "top_p": 1,
    "n": 1,
    "stop": ["a"],
    "seed": 1,
    "user": "u",
    "metadata": {"a": "b"},
    "store": False,
    "parallel_tool_calls": True,
    "reasoning_effort": "high",
    "verbosity": "low",
    "service_tier": "auto",
    "prompt_cache_key": "k",
    "safety_identifier": "s",
    "logprobs": False,
    "top_logprobs": 0,
    "modalities": ["text"],
    "logit_bias": {},
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "prediction": None,
    "web_search_options": {},
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "strict": True,
            "description": "d",
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    },
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "d",
                "strict": True,
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "required": ["a"],
                    "additionalProperties": False,
                },
            },
        },
        {
            "type": "custom",
            "custom": {
                "name": "c",
                "description": "d",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}},
            },
        },
    ],
    "messages": [
        {"role": "system", "content": "s", "name": "n"},
        {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PICTURE, "detail": "auto"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                {"type": "input_audio", "input_audio": {"data": "aa", "format": "wav"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}],
            "refusal": None,
            "reasoning_content": "r",
            "annotations": [],
            "audio": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":"b"}'}},
                {"id": "c2", "type": "custom", "custom": {"name": "c", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "r"},
        {"role": "user", "content": "go"},
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "",
    "stream": False,
    "instructions": "i",
    "max_output_tokens": 100,
    "temperature": 1,
    "top_p": 1,
    "store": False,
    "user": "u",
    "metadata": {"a": "b"},
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "include": ["reasoning.encrypted_content"],
    "truncation": "auto",
    "background": False,
    "service_tier": "auto",
    "safety_identifier": "s",
    "max_tool_calls": 3,
    "top_logprobs": 0,
    "previous_response_id": None,
    "conversation": None,
    "prompt": None,
    "client_metadata": {"a": "b"},
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "n",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
    },
    "tool_choice": {"type": "function", "name": "f"},
    "tools": [
        {
            "type": "function",
            "name": "f",
            "description": "d",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["a.com"]},
            "user_location": {"type": "approximate", "country": "DE"},
            "search_context_size": "low",
        },
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
    "input": [
        {"role": "system", "content": "s"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": "data:image/png;base64," + PICTURE, "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            ],
        },
        {
            "type": "reasoning",
            "id": "r1",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "e",
            "content": [{"type": "reasoning_text", "text": "t"}],
        },
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
                    "annotations": [
                        {"type": "url_citation", "url": "http://a", "title": "t", "start_index": 0, "end_index": 1}
                    ],
                    "logprobs": [],
                },
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {
            "type": "web_search_call",
            "id": "w1",
            "status": "completed",
            "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "http://a"}]},
        },
        {
            "type": "function_call",
            "id": "f1",
            "call_id": "c1",
            "name": "f",
            "arguments": '{"a":"b"}',
            "status": "completed",
        },
        {"type": "function_call", "call_id": "c3", "name": "g", "namespace": "ns", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "c", "input": "x"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "r"},
                {"type": "input_image", "image_url": "data:image/png;base64," + PICTURE},
            ],
        },
        {"type": "function_call_output", "call_id": "c3", "output": "r"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "r"},
        {"type": "message", "role": "user", "content": "go"},
    ],
}

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
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", MESSAGES),
        ("/v1/messages/count_tokens", MESSAGES),
        ("/v1/chat/completions", CHAT),
        ("/v1/responses", RESPONSES),
    ],
)
async def test_a_value_of_another_kind_is_no_error_of_ours(live: Live, path: str, body: dict[str, Any]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def fault(place: Path, odd: Any) -> str | None:
        async with turns:
            answer = await live.post(with_odd({**body, "model": "kimi-for-coding"}, place, odd), path)
        refused = answer.status in (400, 404) and "messages" not in path.split("/")
        if answer.status < 500 and not (refused and not answer.json["error"].get("param")):
            return None
        return f"{place}: {odd!r}: {answer.status} {answer.raw.decode()[:200]}"

    told = await asyncio.gather(*(fault(place, odd) for place, odd in odd_at(body)))
    assert [one for one in told if one] == []
