"""Requests of any shape as bodies for P3. What single requests become stands in tests/vectors/messages_to_grok."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from core.strategies import hub_requests, json_values, requests
from core.vector_cases import REQUESTS
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples, rows

from proxy.core.bodies.decode import decode_body
from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import check_request
from proxy.providers.contract import Call
from proxy.providers.p3_grok.request import count, responses_body, target_of
from proxy.providers.p3_grok.settings import GrokSettings
from proxy.sandbox.p3.checks import check_body

SETTINGS = (
    (GrokSettings(), "system_prompt"),
    (GrokSettings(tool_image="reattach", hosted_search=True, encrypted_reasoning=True), "warning"),
    (GrokSettings(tool_image="inline", hosted_search=True), "system_prompt"),
    (GrokSettings(tool_image="reject", encrypted_reasoning=True), "reject"),
)


def body_of(request: dict[str, Any], grok: GrokSettings = SETTINGS[0][0], policy: str = "system_prompt") -> Any:
    call = Call(request=request, model="grok-4.5", target=target_of("grok-4.5", request), request_id="r")
    return responses_body(call, grok, policy).body


def check_pairs(items: list[dict[str, Any]]) -> None:
    """The service refuses a result without its call, an id that is used twice, and open calls before the last turn."""
    waiting: set[str] = set()
    seen: set[str] = set()
    for item in items:
        if item["type"] == "function_call":
            assert item["call_id"] not in seen and 0 < len(item["call_id"]) <= 64 and 0 < len(item["name"]) <= 64
            assert isinstance(json.loads(item["arguments"]), dict)
            waiting.add(item["call_id"])
            seen.add(item["call_id"])
        elif item["type"] == "function_call_output":
            waiting.remove(item["call_id"])
        elif item["type"] == "reasoning":
            assert item.keys() == {"type", "id", "summary", "encrypted_content"} and item["encrypted_content"]
        else:
            assert item["content"] and item["role"] in ("user", "assistant", "system")
            kind = "output_text" if item["role"] == "assistant" else "input_"
            assert all(part["type"].startswith(kind) for part in item["content"])
    last = max((at for at, item in enumerate(items) if item.get("role") in ("user", "system")), default=0)
    assert waiting <= {item.get("call_id") for item in items[last:]}


def check_tools(body: dict[str, Any]) -> None:
    """The service refuses two tools of one name, a choice without tools, and the choice of one that is not there."""
    tools = body.get("tools", [])
    names = [tool.get("name", tool["type"]) for tool in tools]
    assert len(set(names)) == len(names)
    assert names or not body.keys() & {"tools", "tool_choice", "parallel_tool_calls"}
    choice = body.get("tool_choice", "auto")
    assert choice in ("auto", "none", "required") if isinstance(choice, str) else choice["name"] in names
    for tool in tools:
        assert tool["type"] != "function" or tool["parameters"]["type"] == "object"
        assert all(1 <= len(domains) <= 5 for domains in tool.get("filters", {}).values())


def everything(request: Any) -> None:
    body = decode_body(json.dumps(request).encode())
    check_request(body)
    for grok, policy in SETTINGS:
        with suppress(InvalidRequest):
            written = body_of(body, grok, policy)
            json.dumps(written, allow_nan=False, ensure_ascii=False).encode()
            assert count(written) > 0
            check_pairs(written["input"])
            check_tools(written)


@settings(max_examples=examples(300))
@given(requests)
def test_any_request_is_translated_or_refused(request: dict[str, Any]) -> None:
    with suppress(InvalidRequest):
        everything(request)


@given(st.dictionaries(st.sampled_from(["messages", "system", "tools", "tool_choice", "output_config"]), json_values))
def test_any_object_is_translated_or_refused(request: dict[str, Any]) -> None:
    with suppress(InvalidRequest):
        everything({"messages": [{"role": "user", "content": "x search"}], **request})


#: a model that the simulator has not, and reasoning that it did not make
FOREIGN = ("effort-9-max", "reasoning-replayed")


@rows("case", [case for case in REQUESTS["messages_to_grok"].cases() if case not in FOREIGN])
def test_the_simulated_service_takes_the_body_of_every_vector(case: str) -> None:
    found = REQUESTS["messages_to_grok"].result(REQUESTS["messages_to_grok"].vector(case))
    if "body" in found:
        check_body(found["body"], "user")


@given(hub_requests(mixed=True))
def test_every_conversation_of_the_other_routes_is_taken(request: dict[str, Any]) -> None:
    tools = request.get("tools", [])
    written = body_of({**request, "tools": [tool for tool in tools if not tool["name"].startswith("Deferred")]})
    check_pairs(written["input"])
    check_tools(written)


def test_a_longer_conversation_begins_with_the_same_bytes() -> None:
    """The prompt cache lives on it, also across a call that was interrupted and pictures that are too many."""
    call = {"type": "tool_use", "id": "a", "name": "Read", "input": {"b": 1, "a": 2}}
    messages: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}, call]},
        {"role": "user", "content": [{"type": "text", "text": "stop"}]},
        {"role": "assistant", "content": [call, {**call, "id": "b"}]},
        {"role": "system", "content": "note"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ]
    whole = body_of({"messages": messages})["input"]
    for end in (1, 3, 6, 7):
        part = body_of({"messages": messages[:end]})["input"]
        assert whole[: len(part)] == part


@pytest.mark.parametrize("grok", [GrokSettings(), GrokSettings(encrypted_reasoning=True)])
def test_an_answer_of_another_provider_can_be_continued(grok: GrokSettings) -> None:
    """Models change within a conversation: ids, signatures and searches of each are met by the others."""
    history: list[Any] = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a", "signature": "model-proxy:p1:v1:cnNfMQ:enc"},
                {"type": "thinking", "thinking": "b", "signature": "model-proxy:p2:v1"},
                {"type": "thinking", "thinking": "c", "signature": "EqQBCgIYAhIM"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "https://a"}]},
                {"type": "text", "text": "r", "citations": None},
                {"type": "tool_use", "id": "functions.Bash:0", "name": "Bash", "input": {}},
                {"type": "tool_use", "id": "toolu_" + "x" * 80, "name": "Bash", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call_id, "content": "r"}
                for call_id in ("toolu_" + "x" * 80, "functions.Bash:0")
            ],
        },
    ]
    written = body_of({"messages": history}, grok)["input"]
    assert [item["type"] for item in written] == [
        *("message", "message", "function_call", "function_call", "function_call_output", "function_call_output")
    ]
    check_pairs(written)


def test_an_answer_of_p3_can_be_continued_elsewhere() -> None:
    content = [
        {"type": "thinking", "thinking": "a", "signature": "model-proxy:p3:v1:cnNfMQ:enc"},
        {"type": "server_tool_use", "id": "srvtoolu_ctc_1", "name": "x_search", "input": {"query": "outage"}},
        {"type": "x_search_tool_result", "tool_use_id": "srvtoolu_ctc_1", "content": [{"url": "https://x.com/1"}]},
        {"type": "text", "text": "Yes"},
    ]
    items = messages_to_responses({"messages": [{"role": "assistant", "content": content}]}, ResponsesOptions("m"))
    [message] = items["input"]
    assert [part["text"] for part in message["content"]] == [
        "[X search: outage]",
        "[X search results]\n- https://x.com/1: https://x.com/1",
        "Yes",
    ]
