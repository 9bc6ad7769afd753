"""P1's own form of a chat request: every rule by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.core.invalid import MAX_SHOWN, InvalidRequest
from proxy.providers.p1_codex.chat import chat_request

USER = {"role": "user", "content": "hello"}
UNSUPPORTED, BAD_VALUE = "unsupported_parameter", "unsupported_value"


def parse(*, lite: bool = False, **members: Any) -> Any:
    return chat_request({"model": "gpt-5.5", "messages": [USER], **members}, lite=lite)


def refused(**members: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse(**members)
    return caught.value


def refusal(**members: Any) -> tuple[str | None, str | None]:
    error = refused(**members)
    assert error.param is None or error.param in error.message
    return error.param, error.code


REFUSED = """
n store tools max_tokens max_completion_tokens stop logprobs top_logprobs seed parallel_tool_calls tool_choice
functions function_call frequency_penalty presence_penalty logit_bias metadata modalities audio prediction
service_tier verbosity web_search_options prompt_cache_key safety_identifier
"""


@pytest.mark.parametrize("name", REFUSED.split())
def test_a_field_beyond_the_list_is_refused_whatever_its_value(name: str) -> None:
    for value in (1, False, [], {}, "x"):
        assert refusal(**{name: value}) == (name, UNSUPPORTED)
    assert parse(**{name: None}).request["messages"]


@pytest.mark.parametrize(
    ("messages", "param", "code"),
    [
        (None, "messages", None),
        ({}, "messages", None),
        ([], "messages", None),
        ([USER] * 8193, "messages", None),
        (["x"], "messages[0]", None),
        ([USER, {**USER, "tool_calls": []}], "messages[1].tool_calls", UNSUPPORTED),
        ([{"content": "x"}], "messages[0].role", None),
        ([{"role": 1, "content": "x"}], "messages[0].role", None),
        ([{"role": "tool", "content": "x"}], "messages[0].role", BAD_VALUE),
        ([{"role": "function", "content": "x"}], "messages[0].role", BAD_VALUE),
        ([{"role": "user"}], "messages[0].content", None),
        ([{"role": "user", "content": None}], "messages[0].content", None),
        ([{"role": "user", "content": ""}], "messages[0].content", None),
        ([{"role": "user", "content": []}], "messages[0].content", None),
        ([{"role": "user", "content": 7}], "messages[0].content", None),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0]", None),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type", BAD_VALUE),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0].type", BAD_VALUE),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text", None),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "messages[0].content[0].text", None),
    ],
)
def test_messages(messages: Any, param: str, code: str | None) -> None:
    assert refusal(messages=messages) == (param, code)


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({"stream": "yes"}, "stream", None),
        ({"stream_options": 1}, "stream_options", None),
        (
            {"stream": True, "stream_options": {"include_obfuscation": True}},
            "stream_options.include_obfuscation",
            UNSUPPORTED,
        ),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage", None),
        ({"stream_options": {"include_usage": True}}, "stream_options", None),
        ({"reasoning_effort": "minimal"}, "reasoning_effort", BAD_VALUE),
        ({"reasoning_effort": 3}, "reasoning_effort", None),
        ({"response_format": "json"}, "response_format", None),
        ({"response_format": {}}, "response_format.type", None),
        ({"response_format": {"type": "xml"}}, "response_format.type", BAD_VALUE),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", None),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
            None,
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "response_format.json_schema.schema",
            None,
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": 1}}},
            "response_format.json_schema.strict",
            None,
        ),
        ({"temperature": "hot"}, "temperature", None),
        ({"temperature": True}, "temperature", None),
        ({"temperature": float("inf")}, "temperature", None),
        ({"temperature": 2.1}, "temperature", "invalid_value"),
        ({"top_p": -0.1}, "top_p", "invalid_value"),
        ({"top_p": 1.5}, "top_p", "invalid_value"),
        ({"temperature": 1, "lite": True}, "temperature", UNSUPPORTED),
        ({"top_p": 1, "lite": True}, "top_p", UNSUPPORTED),
        ({"user": ""}, "user", None),
        ({"user": 7}, "user", None),
        ({"user": "ü" * 33}, "user", None),
    ],
)
def test_members(members: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal(**members) == (param, code)


ANSWER = {"role": "assistant", "content": "b", "reasoning_content": "t", "annotations": [{}], "parsed": {"a": 1}}
NOTHING = {"refusal": None, "audio": None, "function_call": None, "tool_calls": None}


def test_an_answer_comes_back_with_all_that_it_had() -> None:
    messages = parse(messages=[USER, {**ANSWER, **NOTHING}, USER]).request["messages"]
    assert messages[1] == {"role": "assistant", "content": [{"type": "text", "text": "b"}]}


@pytest.mark.parametrize("name", ["reasoning_content", "annotations", "parsed"])
def test_nobody_but_the_assistant_has_what_an_answer_has(name: str) -> None:
    assert refusal(messages=[{**USER, name: ANSWER[name]}]) == (f"messages[0].{name}", UNSUPPORTED)


@pytest.mark.parametrize(
    "members",
    [
        {"messages": [{"role": "hosted", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "hosted"}]}]},
        {"reasoning_effort": "hosted"},
        {"response_format": {"type": "hosted"}},
        {"hosted": 1},
        {"messages": [{**USER, "hosted": 1}]},
    ],
)
def test_a_refusal_names_the_value_and_repeats_little_of_it(members: dict[str, Any]) -> None:
    assert "hosted" in refused(**members).message
    long = json.loads(json.dumps(members).replace("hosted", "h" * 1_000_000))
    assert len(refused(**long).message) < 3 * MAX_SHOWN and len(refused(**long).param or "") <= MAX_SHOWN


def test_the_hub_request() -> None:
    ingress = parse(
        messages=[{"role": "system", "content": "a"}, {"role": "assistant", "name": "n", "content": "b"}, USER],
        stream=True,
        stream_options={"include_usage": True},
        temperature=2,
        top_p=0,
        user="me",
    )
    assert ingress.stream and ingress.include_usage
    assert ingress.request == {
        "model": "gpt-5.5",
        "stream": True,
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        ],
        "output_config": {"effort": "medium"},
    }


@pytest.mark.parametrize(
    ("members", "config"),
    [
        ({"reasoning_effort": "xhigh"}, {"effort": "xhigh"}),
        ({"reasoning_effort": "none"}, None),
        ({"response_format": {"type": "text"}}, {"effort": "medium"}),
        ({"response_format": {"type": "json_object"}}, {"effort": "medium", "format": {"type": "json_object"}}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"a": 1}, "strict": True},
                }
            },
            {"effort": "medium", "format": {"type": "json_schema", "name": "n", "schema": {"a": 1}, "strict": True}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {}, "description": "d"},
                }
            },
            {"effort": "medium", "format": {"type": "json_schema", "name": "n", "schema": {}, "strict": None}},
        ),
    ],
)
def test_effort_and_format(members: dict[str, Any], config: dict[str, Any] | None) -> None:
    assert parse(**members).request.get("output_config") == config
