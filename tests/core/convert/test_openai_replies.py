"""What both OpenAI-style replies refuse to read, whichever wire they speak."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_streams import check_response_events

from core.reply_cases import answer, chat_reply, responses_reply
from core.strategies import members, mostly, texts
from proxy.core.convert import openai_replies
from proxy.core.messages import Event
from proxy.core.reducer import BadAnswer

START: Event = {"type": "message_start", "message": {"usage": {}}}
END: Event = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP: Event = {"type": "message_stop"}


def begun(block: Any, index: Any = 0) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any = 0, **members: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": members}


def ended(index: Any = 0) -> Event:
    return {"type": "content_block_stop", "index": index}


TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
A = delta(type="text_delta", text="a")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([{"type": "message_start"}], "without its message"),
        ([{"type": "surprise"}], "unknown event"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}], "too busy"),
        ([{"type": "error"}], "reported an error"),
        ([START, begun({"type": "image"})], "unknown type"),
        ([START, begun({})], "unknown type"),
        ([START, begun(None)], "unknown type"),
        ([START, begun(TEXT, -1)], "index -1"),
        ([START, begun(TEXT, "0")], "index '0'"),
        ([START, begun(TEXT, True)], "index True"),
        ([START, begun(TEXT, None)], "index None"),
        ([START, begun(TEXT), ended(), begun(TEXT)], "index 0 after 0"),
        ([START, begun(TEXT), begun(TEXT, 1)], "inside another"),
        ([begun(TEXT)], "before its answer"),
        ([START, begun({**CALL, "id": ""})], "without an id or a name"),
        ([START, begun({**CALL, "name": None})], "without an id or a name"),
        ([START, A], "no open block"),
        ([START, begun(TEXT), delta(1, type="text_delta", text="a")], "no open block"),
        ([START, begun(TEXT), ended(), A], "no open block"),
        ([START, begun(TEXT), delta(type="thinking_delta", thinking="a")], "thinking_delta in a text block"),
        ([START, begun(TEXT), delta(type="input_json_delta", partial_json="a")], "input_json_delta in a text block"),
        ([START, begun(TEXT), delta(type="signature_delta", signature="a")], "signature_delta in a text block"),
        ([START, begun(CALL), delta(type="citations_delta", citation={})], "citations_delta in a tool_use block"),
        ([START, begun({"type": "redacted_thinking"}), A], "text_delta in a redacted_thinking block"),
        ([START, begun({"type": "x_search_tool_result"}), A], "text_delta in a x_search_tool_result block"),
        ([START, begun(TEXT), ended(1)], "not open"),
        ([START, begun(CALL), delta(type="input_json_delta", partial_json="[1]"), ended()], "not a JSON object"),
        ([START, begun(SEARCH), delta(type="input_json_delta", partial_json="{"), ended()], "not a JSON object"),
        ([START, begun(TEXT), END], "inside a block"),
        ([START, begun(CALL), END], "inside a block"),
        ([START, begun(TEXT), {**END, "delta": {"stop_reason": "max_tokens"}}], "inside a block"),
        ([START, begun(SEARCH), {**END, "delta": {"stop_reason": "max_tokens"}}], "inside a block"),
        ([START, begun(CALL), {**END, "delta": {"stop_reason": None}}, STOP], "inside a block"),
        ([END], "before it began"),
        ([STOP], "before it began"),
        ([START, {"type": "message_delta"}], "out of order"),
        ([START, begun(TEXT), delta()], "out of order"),
        ([START, begun(TEXT), delta(type="text_delta", text=7)], "out of order"),
    ],
)
def test_what_is_no_messages_stream_is_refused(events: list[Event], words: str) -> None:
    for reply in (chat_reply(), responses_reply()):
        with pytest.raises(BadAnswer, match=words):
            reply.feed(events)
        assert not reply.finished


@pytest.mark.parametrize(
    "events",
    [
        [START, begun({"type": "redacted_thinking"}), ended(), END, STOP],
        [START, begun({"type": "code_execution_tool_result"}, 3), ended(3), END, STOP],
        [{"type": "ping"}, START, {"type": "ping"}, END, {"type": "ping"}, STOP],
        [START, {"type": "message_delta", "delta": {}}, STOP],
    ],
)
def test_what_says_nothing_is_read_over(events: list[Event]) -> None:
    chat, responses = chat_reply(), responses_reply()
    assert len(chat.feed(events)) == 2  # the role, and the end
    assert len(responses.feed(events)) == 3
    assert chat.completion["choices"][0]["message"]["content"] is None and responses.response["output"] == []


@pytest.mark.parametrize(
    "block",
    [
        ("text", "x" * 3000),
        ("text", *["x"] * 3000),
        ("text", *[{"url": "", "title": ""}] * 12),
        ("text", {"url": "x" * 3000}),
        ("thinking", "x" * 3000),
        ("call", "c", "f" * 3000),
        ("call", "c", "f", "{" + " " * 3000 + "}"),
        ("search", "x" * 3000),
    ],
)
def test_what_is_kept_is_bounded(block: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_replies, "MAX_REPLY_CHARS", 3000)
    for reply in (chat_reply(), responses_reply()):
        with pytest.raises(BadAnswer, match="3000 characters"):
            reply.feed(answer(block))


def test_empty_blocks_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_replies, "MAX_REPLY_CHARS", 3000)
    for reply in (chat_reply(), responses_reply()):
        with pytest.raises(BadAnswer, match="3000 characters"):
            reply.feed(answer(*[("search", None)] * 12))


def test_repeated_ids_become_different_ones() -> None:
    """The SDK refuses two calls with one id."""
    events = answer(*[("call", "c", "f", "{}")] * 3, stop="tool_use")
    chat, responses = chat_reply(), responses_reply()
    chat.feed(events)
    responses.feed(events)
    calls = chat.completion["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["c", "c__u2", "c__u3"]
    assert [item["call_id"] for item in responses.response["output"]] == ["c", "c__u2", "c__u3"]


_blocks = members(
    type=st.sampled_from(["text", "thinking", "tool_use", "server_tool_use", "web_search_tool_result", "image"]),
    id=st.sampled_from(["c", ""]),
    name=texts,
    input=st.sampled_from([{}, {"a": 1}]),
)
_deltas = members(
    type=st.sampled_from(["text_delta", "thinking_delta", "input_json_delta", "citations_delta", "signature_delta"]),
    text=texts,
    thinking=texts,
    partial_json=st.sampled_from(["{", "}", "{}", ""]),
    citation=members(url=texts, title=texts, start_index=st.integers()),
    stop_reason=st.sampled_from(["end_turn", "max_tokens", None]),
)
_events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "ping",
            ]
        )
    },
    optional={
        "index": mostly(st.sampled_from([0, 0, 1, 2])),
        "content_block": mostly(_blocks),
        "delta": mostly(_deltas),
        "usage": mostly(members(input_tokens=st.integers(), output_tokens=st.integers())),
    },
)


@given(st.lists(_events, max_size=12))
def test_of_any_events_nothing_illegal_comes(events: list[Event]) -> None:
    """Whatever is read, an answer is refused, unfinished or legal."""
    chat, responses = chat_reply(), responses_reply()
    out: list[Event] = []
    for event in [START, *events]:
        try:
            chat.feed([event])
            out += responses.feed([event])
        except BadAnswer:
            break
    check_response_events(out + responses.fail("server_error", "m"))
