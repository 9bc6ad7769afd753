"""Chat bodies to Messages requests: what only this route has. Whole bodies: see test_openai_fields."""

from __future__ import annotations

from typing import Any

from samples import rows

from core.openai_bodies import parse, refusal

USER = {"role": "user", "content": "u"}
UNSUPPORTED = "unsupported_parameter"


@rows(
    "members, param, code",
    [
        ({"messages": None}, "messages", None),
        ({"messages": {}}, "messages", None),
        ({"messages": "hi"}, "messages", None),
        ({"messages": []}, "messages", None),
        ({"messages": ["hi"]}, "messages[0]", None),
        ({"n": 2}, "n", UNSUPPORTED),
        ({"n": 0}, "n", UNSUPPORTED),
        ({"n": 1.5}, "n", UNSUPPORTED),
        ({"n": "1"}, "n", None),
        ({"n": True}, "n", None),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "max_completion_tokens", None),
        ({"stream_options": {}}, "stream_options", None),
        ({"stream": False, "stream_options": {}}, "stream_options", None),
        ({"stream": True, "stream_options": []}, "stream_options", None),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", None),
        ({"stream": True, "stream_options": {"include_obfuscation": 1}}, "stream_options.include_obfuscation", None),
        (
            {"stream": True, "stream_options": {"include_obfuscation": True}},
            "stream_options.include_obfuscation",
            UNSUPPORTED,
        ),
        ({"stream": True, "stream_options": {"a": 1}}, "stream_options.a", UNSUPPORTED),
    ],
)
def test_a_bad_field(members: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal("chat", **members) == (param, code)


@rows(
    "options, usage",
    [
        (None, False),
        ({}, False),
        ({"include_usage": None}, False),
        ({"include_usage": False}, False),
        ({"include_usage": True, "include_obfuscation": False, "x": None}, True),
    ],
)
def test_the_usage_chunk_is_asked_for(options: Any, usage: bool) -> None:
    assert parse("chat", stream=True, stream_options=options).include_usage is usage


def test_nothing_of_the_request_is_repeated() -> None:
    assert parse("chat").echo == {} and parse("chat").namespaces == {}


@rows(
    "message, param, code",
    [
        ({}, "role", None),
        ({"role": ""}, "role", None),
        ({"role": 5}, "role", None),
        ({"role": ["user"]}, "role", None),
        ({"role": "function", "content": "x"}, "role", None),
        ({"role": "user", "content": "x", "cache_control": {}}, "cache_control", UNSUPPORTED),
        ({"role": "user", "content": "x", "annotations": []}, "annotations", UNSUPPORTED),
        ({"role": "assistant", "content": "x", "refusal": {}}, "refusal", None),
        ({"role": "assistant", "content": "x", "audio": {"id": "a"}}, "audio", UNSUPPORTED),
        ({"role": "assistant", "content": "x", "function_call": {}}, "function_call", UNSUPPORTED),
        ({"role": "system"}, "content", None),
        ({"role": "system", "content": ""}, "content", None),
        ({"role": "developer", "content": []}, "content", None),
        ({"role": "developer", "content": [{"type": "text", "text": ""}]}, "content[0].text", None),
        ({"role": "system", "content": [{"type": "image_url"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": None}, "content", None),
        ({"role": "user", "content": ""}, "content", None),
        ({"role": "user", "content": []}, "content", None),
        ({"role": "user", "content": {"type": "text"}}, "content", None),
        ({"role": "user", "content": ["x"]}, "content[0]", None),
        ({"role": "user", "content": [{}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "file"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0].text", None),
        ({"role": "user", "content": [{"type": "text", "text": ""}]}, "content[0].text", None),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "https://a"}]}, "content[0].image_url", None),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "content[0].image_url.url", None),
        ({"role": "assistant", "content": 5}, "content", None),
        ({"role": "assistant", "content": "x", "reasoning_content": 5}, "reasoning_content", None),
        ({"role": "assistant", "content": [{"type": "image_url"}]}, "content[0].type", UNSUPPORTED),
        ({"role": "assistant", "content": [{"type": "refusal"}]}, "content[0].refusal", None),
        ({"role": "assistant", "content": "x", "tool_calls": {}}, "tool_calls", None),
        ({"role": "assistant", "tool_calls": ["x"]}, "tool_calls[0]", None),
        ({"role": "tool", "content": "x"}, "tool_call_id", None),
        ({"role": "tool", "content": "x", "tool_call_id": 5}, "tool_call_id", None),
        ({"role": "tool", "content": "x", "tool_call_id": "gone"}, "tool_call_id", None),
        ({"role": "tool", "content": {}, "tool_call_id": "gone"}, "content", None),
        ({"role": "tool", "content": [{"type": "file"}], "tool_call_id": "gone"}, "content[0].type", UNSUPPORTED),
    ],
)
def test_a_bad_message(message: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal("chat", messages=[USER, message]) == (f"messages[1].{param}", code)


@rows(
    "change, param, code",
    [
        ({"type": None}, "type", UNSUPPORTED),
        ({"type": "custom"}, "type", UNSUPPORTED),
        ({"x": 1}, "x", UNSUPPORTED),
        ({"id": None}, "id", None),
        ({"id": ""}, "id", None),
        ({"function": None}, "function", None),
        ({"function": {"arguments": "{}"}}, "function.name", None),
        ({"function": {"name": "", "arguments": "{}"}}, "function.name", None),
        ({"function": {"name": "f", "arguments": "{}", "x": 1}}, "function.x", UNSUPPORTED),
        ({"function": {"name": "f"}}, "function.arguments", None),
        ({"function": {"name": "f", "arguments": {}}}, "function.arguments", None),
        ({"function": {"name": "f", "arguments": "x{"}}, "function.arguments", None),
    ],
)
def test_a_bad_call(change: dict[str, Any], param: str, code: str | None) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **change}
    message = {"role": "assistant", "content": "x", "tool_calls": [call]}
    assert refusal("chat", messages=[USER, message]) == (f"messages[1].tool_calls[0].{param}", code)
