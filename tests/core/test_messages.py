"""MessageStream builds legal streams, Fold makes replies of them."""

from __future__ import annotations

from typing import Any

import pytest
from checks import check_message_stream
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.messages import Event, Fold, MessageStream
from proxy.core.token_usage import usage_of

TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}


def stream() -> MessageStream:
    return MessageStream("msg_1", "m", input_tokens=2)


def delta(text: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": text}


def kinds(events: list[Event]) -> list[str]:
    return [event["type"].removeprefix("content_block_") for event in events]


def test_the_start_is_said_once_and_carries_the_estimate() -> None:
    made = stream()
    made.start()
    made.ping()
    made.start()
    events = made.take()
    assert kinds(events) == ["message_start", "ping"]
    assert events[0]["message"]["usage"]["input_tokens"] == 2


def test_pings_do_not_pile_up() -> None:
    made = stream()
    made.ping()
    made.ping()
    assert kinds(made.take()) == ["message_start", "ping"]


def test_a_later_block_waits_for_the_earlier_one() -> None:
    made = stream()
    made.open("a", dict(TEXT))
    made.open("b", dict(CALL))
    made.delta("b", {"type": "input_json_delta", "partial_json": "{}"})
    made.close("b")
    assert kinds(made.take()) == ["message_start", "start"]
    made.delta("a", delta("x"))
    made.close("a")
    assert kinds(made.take()) == ["delta", "stop", "start", "delta", "stop"]


def test_a_held_place_keeps_what_follows_back() -> None:
    made = stream()
    made.hold("links")
    made.open("text", dict(TEXT))
    made.delta("text", delta("x"))
    assert made.take() == []
    assert made.begun == 0
    made.fill("links", {"type": "web_search_tool_result", "tool_use_id": "s", "content": []})
    assert kinds(made.take()) == ["message_start", "start", "stop", "start", "delta"]
    assert made.begun == 2


def test_a_key_is_free_again_once_its_block_is_out() -> None:
    made = stream()
    made.open("a", dict(TEXT))
    made.close("a")
    made.open("a", dict(TEXT))
    with pytest.raises(ValueError, match="not come out"):
        made.open("a", dict(TEXT))


def test_closing_what_is_not_there_does_nothing() -> None:
    made = stream()
    made.close("a")
    assert made.take() == []


def test_open_keys_are_in_order() -> None:
    made = stream()
    for key in "cab":
        made.open(key, dict(TEXT))
    made.close("a")
    assert made.open_keys == ["c", "b"]


def test_interrupt_closes_all_but_calls() -> None:
    made = stream()
    made.open("a", dict(TEXT))
    made.open("b", {"type": "thinking", "thinking": "", "signature": ""})
    made.open("c", dict(CALL))
    made.open("d", dict(TEXT))
    made.interrupt()
    events = made.take()
    assert kinds(events) == ["message_start", "start", "stop", "start", "stop", "start"]
    check_message_stream(events, cut=True)


def test_what_waits_is_bounded() -> None:
    made = MessageStream("msg_1", "m", max_held=20)
    made.open("a", dict(TEXT))
    made.open("b", dict(TEXT))
    made.delta("b", delta("12345"))
    with pytest.raises(OverflowError):
        made.delta("b", delta("12345"))  # the type word counts too


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "hold", "fill", "delta", "close", "ping"]), st.integers(0, 4)), max_size=40
    )
)
def test_any_use_gives_a_legal_stream(steps: list[tuple[str, int]]) -> None:
    made = stream()
    held: set[int] = set()
    for verb, key in steps:
        if verb == "ping":
            made.ping()
        elif verb in ("open", "hold") and key not in made._blocks:
            made.open(key, dict(TEXT)) if verb == "open" else made.hold(key)
            if verb == "hold":
                held.add(key)
        elif verb == "fill" and key in held:
            made.fill(key, dict(TEXT))
            held.discard(key)
        elif verb in ("delta", "close") and key not in held and key in made.open_keys:
            made.delta(key, delta("x")) if verb == "delta" else made.close(key)
    for key in sorted(held):
        made.fill(key, dict(TEXT))
    for key in made.open_keys:
        made.close(key)
    made.finish("end_turn", usage_of(1, 1))
    check_message_stream(made.take())


def folded(events: list[Event]) -> dict[str, Any]:
    fold = Fold()
    for event in events:
        fold.add([event])
    assert fold.complete
    return fold.message


def test_a_reply_has_the_content_of_the_stream() -> None:
    made = stream()
    made.open("t", {"type": "thinking", "thinking": "", "signature": ""})
    made.delta("t", {"type": "thinking_delta", "thinking": "hm"})
    made.delta("t", {"type": "signature_delta", "signature": "s"})
    made.close("t")
    made.open("x", dict(TEXT))
    made.close("x")
    made.open("c", dict(CALL))
    made.delta("c", {"type": "input_json_delta", "partial_json": '{"a":'})
    made.delta("c", {"type": "input_json_delta", "partial_json": "1}"})
    made.close("c")
    made.finish("tool_use", usage_of(9, 4, cache_read=1))
    reply = folded(made.take())
    assert reply["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "c", "name": "Bash", "input": {"a": 1}},
    ]
    assert (reply["stop_reason"], reply["usage"]["input_tokens"]) == ("tool_use", 9)


def test_keepalives_do_not_change_a_reply() -> None:
    made = stream()
    made.open("x", dict(TEXT))
    events = made.take()
    events += [
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": delta("")},
        {"type": "message_delta", "delta": {"stop_reason": None, "stop_sequence": None}, "usage": {"output_tokens": 0}},
    ]
    made.delta("x", delta("hi"))
    made.close("x")
    made.finish("end_turn", usage_of(9, 4))
    reply = folded(events + made.take())
    assert reply["content"] == [{"type": "text", "text": "hi"}]
    assert (reply["stop_reason"], reply["usage"]["output_tokens"]) == ("end_turn", 4)


def test_a_cut_stream_is_not_complete() -> None:
    fold = Fold()
    made = stream()
    made.open("x", dict(TEXT))
    fold.add(made.take())
    assert not fold.complete


@pytest.mark.parametrize(
    "said",
    [
        delta("x" * 100),
        {"type": "citations_delta", "citation": {"url": "x" * 100}},
        {"type": "signature_delta", "signature": "x" * 100},
    ],
)
def test_a_reply_is_bounded(said: dict[str, Any]) -> None:
    made = stream()
    kind = "thinking" if said["type"] == "signature_delta" else "text"
    made.open("x", {"type": kind, kind: ""})
    made.delta("x", said)
    events = made.take()
    Fold(max_chars=200).add(events)
    with pytest.raises(OverflowError):
        Fold(max_chars=99).add(events)
