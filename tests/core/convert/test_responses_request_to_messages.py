"""Responses bodies to Messages requests: what only this route has. Whole bodies: see test_openai_fields."""

from __future__ import annotations

from typing import Any

import pytest
from samples import rows

from core.openai_bodies import RULES, parse, refusal

UNSUPPORTED = "unsupported_parameter"
SOURCES = {"include": ["web_search_call.action.sources"]}

#: What clients send that changes nothing.
HARMLESS: list[dict[str, Any]] = [
    {"include": []},
    {"include": ["reasoning.encrypted_content"]},
    {"client_metadata": {"a": "b"}},
    *({"reasoning": {"summary": summary}} for summary in ("auto", "concise", "detailed", "none", None)),
    *({"reasoning": {"generate_summary": summary}} for summary in ("auto", "concise", "detailed", "none", None)),
    {"reasoning": {"context": "all_turns"}},
    {"reasoning": {"context": "auto"}},
    {"reasoning": {}},
    {"reasoning": None},
    {"stream_options": {}},
    {"stream_options": {"include_obfuscation": False}},
    {"truncation": "disabled"},
    {"background": False},
    {"service_tier": "auto"},
    {"service_tier": "default"},
    {"store": False},
    {"text": {}},
    {"instructions": None},
]


@rows("members", HARMLESS)
def test_hints_change_nothing(members: dict[str, Any]) -> None:
    ingress = parse("responses", **members)
    assert ingress.request == parse("responses").request
    assert {**ingress.echo, "text": None} == {**parse("responses").echo, "text": None}


@pytest.mark.parametrize(
    "text", [{"format": {"type": "text"}}, {"verbosity": "low"}, {"format": None, "verbosity": None}]
)
def test_prose_may_be_asked_for(text: dict[str, Any]) -> None:
    ingress = parse("responses", text=text)
    assert ingress.request == parse("responses").request
    assert ingress.echo["text"] == text


@rows(
    "members, param, code",
    [
        ({"include": ["message.output_text.logprobs"]}, "include", UNSUPPORTED),
        ({"include": ["reasoning.encrypted_content", "file_search_call.results"]}, "include", UNSUPPORTED),
        ({"include": [["x"]]}, "include", UNSUPPORTED),
        ({"include": "reasoning.encrypted_content"}, "include", UNSUPPORTED),
        (SOURCES, "include", UNSUPPORTED),
        ({"client_metadata": "x"}, "client_metadata", UNSUPPORTED),
        ({"reasoning": "low"}, "reasoning", None),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary", None),
        ({"reasoning": {"summary": ["auto"]}}, "reasoning.summary", None),
        ({"reasoning": {"generate_summary": True}}, "reasoning.generate_summary", None),
        ({"reasoning": {"context": 5}}, "reasoning.context", None),
        ({"reasoning": {"budget": 5}}, "reasoning.budget", UNSUPPORTED),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}}, "text", UNSUPPORTED),
        ({"text": {"format": {"type": "json_object"}}}, "text", UNSUPPORTED),
        ({"text": {"format": "text"}}, "text", UNSUPPORTED),
        ({"text": {"x": 1}}, "text", UNSUPPORTED),
        ({"text": "x"}, "text", UNSUPPORTED),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options", UNSUPPORTED),
        ({"stream_options": {"include_usage": True}}, "stream_options", UNSUPPORTED),
        ({"stream_options": []}, "stream_options", UNSUPPORTED),
        ({"truncation": "auto"}, "truncation", UNSUPPORTED),
        ({"background": True}, "background", UNSUPPORTED),
        ({"background": 0}, "background", UNSUPPORTED),
        ({"service_tier": "flex"}, "service_tier", UNSUPPORTED),
        ({"service_tier": "priority"}, "service_tier", UNSUPPORTED),
        ({"store": True}, "store", UNSUPPORTED),
        ({"store": "no"}, "store", None),
        ({"instructions": ""}, "instructions", None),
        ({"instructions": ["x"]}, "instructions", None),
        ({"input": None}, "input", None),
        ({"input": ""}, "input", None),
        ({"input": {}}, "input", None),
        ({"input": []}, "input", None),
        ({"input": ["hi"]}, "input[0]", None),
        ({"input": [{"role": "system", "content": "s"}]}, "input", None),
        ({"input": [{"role": "user", "content": ""}]}, "input", None),
    ],
)
def test_a_bad_field(members: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal("responses", **members) == (param, code)


def test_sources_may_be_asked_for_where_there_is_a_search() -> None:
    assert parse("responses", "p3", **SOURCES) == parse("responses", "p3")


def test_the_reply_repeats_the_request() -> None:
    assert parse("responses").echo == {
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "instructions": None,
        "max_output_tokens": None,
        "reasoning": {"effort": None, "summary": None},
    }
    given = {
        "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "strict": True}],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "instructions": "be brief",
        "max_output_tokens": 5,
    }
    echo = parse("responses", **given, reasoning={"effort": "low", "summary": "auto"}).echo
    assert echo == {**given, "reasoning": {"effort": "low", "summary": None}}


@rows(
    "item, param, code",
    [
        ({"type": "item_reference", "id": "x"}, "type", UNSUPPORTED),
        ({"type": "custom_tool_call"}, "call_id", None),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f"}, "input", None),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "", "x": 1}, "x", UNSUPPORTED),
        ({"type": "local_shell_call"}, "call_id", None),
        ({"type": "computer_call"}, "type", UNSUPPORTED),
        ({"type": "mcp_call"}, "type", UNSUPPORTED),
        ({"type": "compaction_trigger"}, "type", UNSUPPORTED),
        ({"type": "additional_tools", "tools": 5}, "tools", None),
        ({"type": "additional_tools", "tools": [{"type": "mcp"}]}, "tools[0].type", UNSUPPORTED),
        ({}, "role", None),
        ({"type": 5, "role": "tool"}, "role", None),
        ({"role": {}}, "role", None),
        ({"role": "user"}, "content", None),
        ({"role": "user", "content": {}}, "content", None),
        ({"role": "user", "content": "x", "name": "n"}, "name", UNSUPPORTED),
        ({"role": "user", "content": ["x"]}, "content[0]", None),
        ({"role": "user", "content": [{"type": "input_file"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "image_url"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "input_text"}]}, "content[0].text", None),
        ({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}, "content[0].image_url", None),
        ({"role": "assistant", "content": [{"type": "refusal"}]}, "content[0].refusal", None),
        ({"role": "assistant", "content": [{"type": "input_image"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "developer", "content": [{"type": "input_image"}]}, "content[0].type", UNSUPPORTED),
        ({"type": "function_call", "name": "f", "arguments": ""}, "call_id", None),
        ({"type": "function_call", "name": "f", "arguments": "", "call_id": 5, "id": "x"}, "call_id", None),
        ({"type": "function_call", "call_id": "a", "arguments": ""}, "name", None),
        ({"type": "function_call", "call_id": "a", "name": "f"}, "arguments", None),
        ({"type": "function_call", "call_id": "a", "name": "f", "arguments": "[x"}, "arguments", None),
        ({"type": "function_call", "call_id": "a", "name": "f", "arguments": "", "namespace": ""}, "namespace", None),
        ({"type": "function_call", "call_id": "a", "name": "f", "arguments": "", "x": 1}, "x", UNSUPPORTED),
        ({"type": "function_call_output", "output": "x"}, "call_id", None),
        ({"type": "function_call_output", "output": "x", "call_id": "gone"}, "call_id", None),
        ({"type": "function_call_output", "output": "x", "call_id": ["a"]}, "call_id", None),
        ({"type": "function_call_output", "call_id": "gone"}, "output", None),
        ({"type": "function_call_output", "call_id": "a", "output": "x", "name": "f"}, "name", UNSUPPORTED),
        ({"type": "function_call_output", "output": [{"type": "input_image"}]}, "output[0].image_url", None),
        ({"type": "reasoning", "x": 1}, "x", UNSUPPORTED),
        ({"type": "reasoning", "summary": "x"}, "summary", None),
        ({"type": "reasoning", "content": ["x"]}, "content[0]", None),
    ],
)
def test_a_bad_item(item: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal("responses", input=[{"role": "user", "content": "u"}, item]) == (f"input[1].{param}", code)


@rows("rules", RULES)
def test_what_the_sdk_adds_to_parsed_items_is_ignored(rules: str) -> None:
    part = {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}], "logprobs": [], "parsed": {}}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "parsed_arguments": {}}
    output = {"type": "function_call_output", "call_id": "c", "output": "1", "status": None}
    messages = parse("responses", rules, input=[{**message, "phase": "final_answer"}, call, output]).request["messages"]
    said = [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]
    assert messages[0] == {"role": "assistant", "content": said}
