"""Messages requests of any shape to chat bodies; whole ones stand on disk."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.vector_cases import DIALECTS
from proxy.core.bodies.decode import decode_body
from proxy.core.convert.messages_to_chat import NO_RESULT, ChatOptions, messages_to_chat
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import check_request
from proxy.core.tokens.heuristic import heuristic_count


def check_conversation(messages: list[dict[str, Any]], dialect: str) -> None:
    """What chat servers refuse: a call that is not answered at once, a result without a call, empty parts."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
        assert role != "system" or message["content"]
        assert DIALECTS[dialect].system != "front" or role != "system" or at == 0
        content = message.get("content")
        if isinstance(content, list):
            assert content
            assert all(part["type"] in ("text", "image_url", "video_url") and part[part["type"]] for part in content)
            assert role == "user" or (role == "tool" and DIALECTS[dialect].tool_images == "inside")
        else:
            assert isinstance(content, str) or (role == "assistant" and message["tool_calls"])
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            assert len(set(waiting)) == len(waiting)
            assert all(isinstance(call["function"]["arguments"], str) for call in message.get("tool_calls", ()))
            wanted = DIALECTS[dialect].reasoning
            assert wanted != "always" or "reasoning_content" in message
            assert wanted != "calls" or not waiting or message["reasoning_content"]
    assert not waiting


def everything(request: dict[str, Any]) -> None:
    body = decode_body(json.dumps(request).encode())
    check_request(body)
    assert heuristic_count(body) >= 0
    for name, dialect in DIALECTS.items():
        try:
            result = messages_to_chat(body, ChatOptions("m", dialect, 5, {"x": 1}))
        except InvalidRequest:
            continue
        json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
        check_conversation(result["messages"], name)
        assert result["stream"] is True and result["x"] == 1
        assert result.get("tools") != []


turn_blocks = st.one_of(
    st.builds(lambda n: {"type": "tool_use", "id": n, "name": "T", "input": {}}, st.sampled_from(["a", "a__u2", "b"])),
    st.builds(lambda n: {"type": "tool_result", "tool_use_id": n, "content": "r"}, st.sampled_from(["a", "b", "x"])),
    st.just({"type": "text", "text": "t"}),
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "assistant", "assistant", "system"]),
                "content": st.lists(turn_blocks, max_size=4),
            }
        ),
        max_size=8,
    )
)
def test_every_call_is_answered_at_once(messages: list[dict[str, Any]]) -> None:
    everything({"messages": messages})


def test_many_calls_cost_little() -> None:
    calls = [{"type": "tool_use", "id": f"c{number}", "name": "T", "input": {}} for number in range(20_000)]
    body = {"messages": [{"role": "assistant", "content": calls}]}
    result = messages_to_chat(body, ChatOptions("m", DIALECTS["p2"], 5, {}))
    assert [message["content"] for message in result["messages"][1:]] == [NO_RESULT] * 20_000


def test_calls_in_two_messages_are_answered_together() -> None:
    calls = [{"type": "tool_use", "id": name, "name": "B", "input": {}} for name in "ab"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in "ab"]
    body = {
        "messages": [
            *({"role": "assistant", "content": [call]} for call in calls),
            {"role": "user", "content": results},
        ]
    }
    sent = messages_to_chat(body, ChatOptions("m", DIALECTS["p2"], 5, {}))["messages"]
    assert [call["id"] for call in sent[0]["tool_calls"]] == ["a", "b"]
    assert [(message["tool_call_id"], message["content"]) for message in sent[1:]] == [("a", "a"), ("b", "b")]
