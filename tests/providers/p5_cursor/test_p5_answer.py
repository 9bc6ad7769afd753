"""What a run says, as Messages events."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from checks import check_message_stream

from proxy.core.messages import Event, Fold, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.providers.p5_cursor.answer import CursorToMessages
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.steps import Workplace
from proxy.providers.p5_cursor.bridge.tool_forms import client_tools
from proxy.providers.p5_cursor.run.calls import OpenCall
from proxy.providers.p5_cursor.run.events import RunOutput

END = {"type": "end", "output_tokens": None, "parked": ""}


class Answer:
    """A reducer, and what came out of it."""

    def __init__(self, *tools: str, output: RunOutput | None = None) -> None:
        numbers = itertools.count(1)
        self.output = output or RunOutput()
        self.offered: list[tuple[OpenCall, str]] = []
        stream = MessageStream("msg_1", "cursor", input_tokens=12)
        self.reducer = CursorToMessages(stream, tools, self._offer, lambda: f"{next(numbers):032x}", self.output)
        self.events: list[Event] = []

    def _offer(self, call: OpenCall, tool_use_id: str) -> None:
        self.offered.append((call, tool_use_id))

    def feed(self, *events: dict[str, Any]) -> Answer:
        for event in events:
            if not self.reducer.finished:
                self.output.chars += len(event.get("text", ""))
                self.events += self.reducer.feed(event)
        return self

    @property
    def message(self) -> dict[str, Any]:
        check_message_stream(self.events, hub=True)
        fold = Fold()
        fold.add(self.events)
        return fold.message

    @property
    def content(self) -> list[Any]:
        return [block.get("text") or block.get("thinking") or block["name"] for block in self.message["content"]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thought(words: str) -> dict[str, Any]:
    return {"type": "thinking", "text": words}


def call() -> dict[str, Any]:
    request = ExecRequest(1, "e1", "read_args", {"path": "/a"})
    plan = plan_for(request, Workplace(client_tools([{"name": "Read"}])))
    assert plan is not None
    return {"type": "tool", "call": OpenCall(request, plan, next(plan), 0.0, 0.0)}


def test_a_stream_without_tools_event_by_event() -> None:
    answer = Answer().feed(thought("a"), thought("b"), text("Hi"), {**END, "output_tokens": 7})
    start, *blocks, delta, stop = answer.events
    usage = {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    assert start["message"] == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "cursor",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 0},
    }
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    assert blocks == [
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 1},
    ]
    assert delta["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert delta["usage"] == {**usage, "output_tokens": 7} and stop == {"type": "message_stop"}


def test_thoughts_behind_a_text_are_a_block_of_their_own() -> None:
    assert Answer().feed(text("a"), thought("b"), text("c"), text("d"), END).content == ["a", "b", "cd"]


def test_a_call_of_the_clients_tool_ends_the_answer() -> None:
    answer = Answer("Read").feed(text("I read it. <tool_u"), call(), text("never seen"))
    assert answer.content == ["I read it. <tool_u", "Read"]
    block = answer.message["content"][-1]
    assert answer.message["stop_reason"] == "tool_use" and answer.reducer.paused
    assert block["id"] == answer.offered[0][1] == f"call_cursor_{1:032x}" and block["input"] == {"file_path": "/a"}
    assert [event["type"] for event in answer.events[-6:-2]] == [
        *("content_block_stop", "content_block_start", "content_block_delta", "content_block_stop")
    ]


def test_raw_tool_use_text_in_the_answer_is_the_call_that_it_means() -> None:
    pieces = ("before <to", 'ol_use name="Grep" id=\'x\'>{"pattern":"a"}</tool', "_use> and an invented <tool_result>")
    answer = Answer("Grep").feed(*map(text, pieces), END)
    assert answer.content == ["before ", "Grep"] and not answer.reducer.paused
    assert answer.message["content"][1]["input"] == {"pattern": "a"}
    assert answer.message["stop_reason"] == "tool_use"


@pytest.mark.parametrize("tools", [(), ("Read",)])
def test_what_is_no_call_of_an_offered_tool_stays_text(tools: tuple[str, ...]) -> None:
    words = '<tool_use name="Grep">{}</tool_use> <tool_use name="Read">'
    assert Answer(*tools).feed(text(words), END).content == [words]


def test_an_empty_turn_is_an_error() -> None:
    with pytest.raises(BadAnswer, match="empty answer"):
        Answer().feed(END)


def test_a_turn_of_thoughts_alone_is_an_answer() -> None:
    answer = Answer().feed(thought("hm"), END)
    assert answer.content == ["hm"]


def test_answer_missing_although_the_turn_ended_is_taken_from_the_store() -> None:
    assert Answer().feed({**END, "parked": "from a blob"}).content == ["from a blob"]
    assert Answer().feed(text("said"), {**END, "parked": "from a blob"}).content == ["said"]


def test_an_answer_in_the_store_follows_what_was_thought_and_is_counted() -> None:
    answer = Answer().feed(thought("hm"), {**END, "parked": "from a blob, twenty."})
    assert answer.content == ["hm", "from a blob, twenty."]
    assert answer.message["usage"]["output_tokens"] == 5


def test_output_is_counted_once_over_all_answers_of_a_run() -> None:
    output = RunOutput(tokens=30)
    first = Answer("Read", output=output).feed(text("a"), call())
    assert first.message["usage"]["output_tokens"] == 30
    assert Answer(output=output).feed(text("b"), {**END, "output_tokens": 50}).message["usage"]["output_tokens"] == 20
    assert Answer(output=output).feed(text("c"), {**END, "output_tokens": 40}).message["usage"]["output_tokens"] == 0


def test_without_any_count_it_is_a_quarter_of_the_characters() -> None:
    assert Answer().feed(text("a" * 41), END).message["usage"]["output_tokens"] == 10


def test_a_break_closes_what_is_open_and_nothing_more() -> None:
    answer = Answer("Read").feed(text("half <tool_use"))
    answer.events += answer.reducer.interrupt()
    assert [event["type"] for event in answer.events] == [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop")
    ]
