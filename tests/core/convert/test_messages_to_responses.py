"""Requests of any shape: translated, or refused as the caller's fault, never anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import rows

from core.strategies import schemas
from proxy.config import Config
from proxy.core.bodies.decode import MAX_DEPTH, decode_body
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.convert.messages_to_search import forced_query, forced_search, search_body
from proxy.core.effort import is_compaction
from proxy.core.identity import session_in_metadata
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import MAX_MESSAGES, check_request
from proxy.core.reducer import AnswerPolicy
from proxy.core.routing import is_auto_review
from proxy.core.stops import stops_of
from proxy.core.tokens.counting import count_responses, rough_length
from proxy.core.tools.read_tool import ReadOffsets
from proxy.providers.contract import Call
from proxy.providers.p1_codex.request import prepare, resolve

OPTIONS = (
    ResponsesOptions(model="m", offsets=ReadOffsets()),
    ResponsesOptions(model="m", lite=True, effort="high", pdf=True, reasoning=False),
)


def everything(request: dict[str, Any]) -> None:
    """All that a request meets in the core and in P1's decisions, from its bytes on."""
    body = decode_body(json.dumps(request).encode())
    check_request(body)
    session_in_metadata(body.get("metadata"))
    is_compaction(body)
    is_auto_review(body)
    stops_of(body)
    for options in OPTIONS:
        first = messages_to_responses(body, options)
        json.dumps(first, allow_nan=False, ensure_ascii=False).encode()
        assert count_responses(first, rough_length) > 0
        check_pairs(first["input"])
    tool = forced_search(body)
    if tool is not None:
        query = forced_query(body, tool)
        search_body(query, model="m", search_id="s", length=len, truncate=lambda text, limit: text[:limit])
    target = resolve("gpt-5.6-sol", body, Config(), auto_review=False)
    prepare(Call(request=body, model="gpt-5.6-sol", target=target, request_id="r"), Config(), ReadOffsets())
    policy = AnswerPolicy(body)
    assert isinstance(policy.used_ids, set) and policy.name("") == ""


def check_pairs(items: list[dict[str, Any]]) -> None:
    """The upstream refuses a result without its call, a call without its result, and reasoning without content."""
    waiting: list[str] = []
    for item in items:
        if item["type"] == "function_call":
            waiting.append(item["call_id"])
            assert len(item["call_id"]) <= 64 and len(item["name"]) <= 64
        elif item["type"] == "function_call_output":
            waiting.remove(item["call_id"])
        elif item["type"] == "reasoning":
            assert item["id"] and item["encrypted_content"]
        elif item["type"] == "message":
            assert item["content"]
            kind = "output_text" if item["role"] == "assistant" else "input_"
            assert all(part["type"].startswith(kind) for part in item["content"])
    assert not waiting


@given(schemas, schemas)
def test_any_schema_is_passed_on(tool: dict[str, Any], answer: dict[str, Any]) -> None:
    request = {
        "messages": [],
        "tools": [{"name": "Read", "input_schema": tool}],
        "output_config": {"format": {"type": "json_schema", "schema": answer}},
    }
    everything(request)
    AnswerPolicy(request).optional("Read")


@given(st.binary(max_size=40))
@example(b"0")
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(decode_body(raw), dict)
    except InvalidRequest as error:
        assert error.message.startswith("Invalid JSON:")
        assert error.code == (None if "expected an object" in error.message else "invalid_json")


@pytest.mark.parametrize(
    "nest", [lambda inner: [inner], lambda inner: {"items": inner}, lambda inner: {"anyOf": [inner]}]
)
def test_nesting_is_served_up_to_a_limit_and_refused_beyond(nest: Any) -> None:
    for member in ("tools", "system", "tool_choice", "output_config", "metadata"):
        value: Any = {}
        for _ in range(MAX_DEPTH // 2 - 8):
            value = nest(value)
        holder: dict[str, Any] = {
            "tools": [{"name": "Bash", "input_schema": value}],
            "system": value,
            "tool_choice": value,
            "output_config": {"format": {"type": "json_schema", "schema": value}},
            "metadata": {"user_id": value},
        }
        everything({"messages": [{"role": "user", "content": [value]}], member: holder[member]})
        for _ in range(MAX_DEPTH):
            value = nest(value)
        with pytest.raises(InvalidRequest, match="nested deeper"):
            decode_body(json.dumps({"messages": [], member: value}).encode())


@rows(
    "raw",
    [
        b"",
        b"  \n",
        b"{",
        b"[]",
        b"3",
        b'"x"',
        b"{} {}",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\ud800"}',
        b'{"a":"\\uDC00x"}',
        b'{"a":"\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xef\xbb\xbf{}",
    ],
)
def test_bytes_that_are_no_request_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest, match="Invalid JSON:"):
        decode_body(raw)


def test_blanks_around_a_body_do_no_harm() -> None:
    assert decode_body(b' \r\n\t{"a": 1.5, "b": "\\ud83d\\ude00"}\n ') == {"a": 1.5, "b": "😀"}


@rows(
    "body, param",
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 2**32}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [{"role": "user", "content": ""}] * (MAX_MESSAGES + 1)}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": 1, "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0]"),
        ({"thread": {"type": "continue"}}, "thread"),
        ({"thread": {"type": "create"}}, "thread"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_request(body)
    assert caught.value.param == param


@rows(
    "body",
    [
        {},
        {"stream": None, "max_tokens": None},
        {"max_tokens": 2**32 - 1},
        {"messages": [{"role": "anything", "content": None}]},
        {"thinking": 3, "foo": []},
    ],
)
def test_what_is_not_ours_to_judge_is_let_through(body: dict[str, Any]) -> None:
    check_request(body)


def test_a_choice_of_a_tool_needs_its_name() -> None:
    with pytest.raises(InvalidRequest) as caught:
        messages_to_responses({"tool_choice": {"type": "tool"}}, OPTIONS[0])
    assert caught.value.param == "tool_choice.name"


def test_a_choice_of_the_search_without_hosted_search_is_auto() -> None:
    request = {
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "tool", "name": "web_search"},
    }
    assert messages_to_responses(request, OPTIONS[1])["tool_choice"] == "auto"


CLOSED = {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}, "required": ["a"]}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}


@rows(
    "knows, asked, schema, strict",
    [
        (True, True, CLOSED, True),
        (True, True, {**CLOSED, "additionalProperties": False}, True),
        (True, True, OPEN, False),
        (True, True, {"type": "object", "additionalProperties": True}, False),
        (True, False, CLOSED, False),
        (True, None, CLOSED, False),
        (True, "true", CLOSED, False),
        (False, True, CLOSED, False),
    ],
)
def test_a_function_is_strict_where_it_is_asked_for_and_means_the_same(
    knows: bool, asked: Any, schema: dict[str, Any], strict: bool
) -> None:
    tool = {"name": "f", "input_schema": schema, "strict": asked}
    request = {"messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    [function] = messages_to_responses(request, ResponsesOptions("m", strict=knows))["tools"]
    assert function["strict"] is strict
    assert not strict or function["parameters"] == {**CLOSED, "additionalProperties": False}
