"""P1's own form of a chat request: every rule by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import rows

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


@rows("name", REFUSED.split())
def test_a_field_beyond_the_list_is_refused_whatever_its_value(name: str) -> None:
    for value in (1, False, [], {}, "x"):
        assert refusal(**{name: value}) == (name, UNSUPPORTED)
    assert parse(**{name: None}).request["messages"]


def said(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def options(**members: Any) -> dict[str, Any]:
    return {"stream_options": members}


def schema(**members: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": members}}


@rows(
    "members, param, code",
    [
        *(({"messages": messages}, "messages", None) for messages in (None, {}, [], [USER] * 8193)),
        ({"messages": ["x"]}, "messages[0]", None),
        ({"messages": [USER, {**USER, "tool_calls": []}]}, "messages[1].tool_calls", UNSUPPORTED),
        ({"messages": [{"content": "x"}]}, "messages[0].role", None),
        ({"messages": [{"role": 1, "content": "x"}]}, "messages[0].role", None),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", BAD_VALUE),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role", BAD_VALUE),
        ({"messages": [{"role": "user"}]}, "messages[0].content", None),
        *((said(content), "messages[0].content", None) for content in (None, "", [], 7)),
        (said(["x"]), "messages[0].content[0]", None),
        (said([{"type": "image_url"}]), "messages[0].content[0].type", BAD_VALUE),
        (said([{"type": "input_audio"}]), "messages[0].content[0].type", BAD_VALUE),
        (said([{"type": "text"}]), "messages[0].content[0].text", None),
        (said([{"type": "text", "text": ""}]), "messages[0].content[0].text", None),
        ({"stream": "yes"}, "stream", None),
        ({"stream_options": 1}, "stream_options", None),
        ({"stream": True, **options(include_obfuscation=True)}, "stream_options.include_obfuscation", UNSUPPORTED),
        ({"stream": True, **options(include_usage=1)}, "stream_options.include_usage", None),
        (options(include_usage=True), "stream_options", None),
        ({"reasoning_effort": "minimal"}, "reasoning_effort", BAD_VALUE),
        ({"reasoning_effort": 3}, "reasoning_effort", None),
        ({"response_format": "json"}, "response_format", None),
        ({"response_format": {}}, "response_format.type", None),
        ({"response_format": {"type": "xml"}}, "response_format.type", BAD_VALUE),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", None),
        (schema(schema={}), "response_format.json_schema.name", None),
        (schema(name="n"), "response_format.json_schema.schema", None),
        (schema(name="n", schema={}, strict=1), "response_format.json_schema.strict", None),
        *(({"temperature": value}, "temperature", None) for value in ("hot", True, float("inf"))),
        ({"temperature": 2.1}, "temperature", "invalid_value"),
        ({"top_p": -0.1}, "top_p", "invalid_value"),
        ({"top_p": 1.5}, "top_p", "invalid_value"),
        ({"temperature": 1, "lite": True}, "temperature", UNSUPPORTED),
        ({"top_p": 1, "lite": True}, "top_p", UNSUPPORTED),
        *(({"user": user}, "user", None) for user in ("", 7, "ü" * 33)),
    ],
)
def test_what_is_refused(members: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal(**members) == (param, code)


ANSWER = {"role": "assistant", "content": "b", "reasoning_content": "t", "annotations": [{}], "parsed": {"a": 1}}
NOTHING = {"refusal": None, "audio": None, "function_call": None, "tool_calls": None}


def test_an_answer_comes_back_with_all_that_it_had() -> None:
    messages = parse(messages=[USER, {**ANSWER, **NOTHING}, USER]).request["messages"]
    assert messages[1] == {"role": "assistant", "content": [{"type": "text", "text": "b"}]}


@rows(
    "answer, said",
    [
        ({"content": ""}, []),
        ({"content": None}, []),
        ({}, []),
        ({"content": None, "refusal": "No."}, ["No."]),
        ({"content": "b", "refusal": "No."}, ["b"]),
    ],
)
def test_an_answer_with_nothing_in_it_says_nothing(answer: dict[str, Any], said: list[str]) -> None:
    messages = parse(messages=[USER, {"role": "assistant", **answer}, USER]).request["messages"]
    assert [message["content"][0]["text"] for message in messages[1:-1]] == said
    if not said:
        assert refusal(messages=[{"role": "assistant", **answer}]) == ("messages", None)


@pytest.mark.parametrize("name", ["reasoning_content", "annotations", "parsed"])
def test_nobody_but_the_assistant_has_what_an_answer_has(name: str) -> None:
    assert refusal(messages=[{**USER, name: ANSWER[name]}]) == (f"messages[0].{name}", UNSUPPORTED)


@rows(
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


def form(kind: str = "json_schema", **members: Any) -> dict[str, Any]:
    return {"effort": "medium", "format": {"type": kind, **members}}


@rows(
    "members, config",
    [
        ({"reasoning_effort": "xhigh"}, {"effort": "xhigh"}),
        ({"reasoning_effort": "none"}, None),
        ({"response_format": {"type": "text"}}, {"effort": "medium"}),
        ({"response_format": {"type": "json_object"}}, form("json_object")),
        (schema(name="n", schema={"a": 1}, strict=True), form(name="n", schema={"a": 1}, strict=True)),
        (schema(name="n", schema={}, description="d"), form(name="n", schema={}, strict=None)),
    ],
)
def test_effort_and_format(members: dict[str, Any], config: dict[str, Any] | None) -> None:
    assert parse(**members).request.get("output_config") == config
