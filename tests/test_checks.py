"""The shared checkers refuse what they should refuse."""

from __future__ import annotations

from typing import Any

import pytest
from checks import IllegalStream, check_message_stream

Event = dict[str, Any]

USAGE = {
    "input_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
START: Event = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    },
}
PING: Event = {"type": "ping"}
STOP: Event = {"type": "message_stop"}
ERROR: Event = {"type": "error", "error": {"type": "api_error", "message": "broken"}}


def opened(index: int, kind: str = "text") -> Event:
    blocks: dict[str, Event] = {
        "text": {"type": "text", "text": ""},
        "thinking": {"type": "thinking", "thinking": "", "signature": ""},
        "tool_use": {"type": "tool_use", "id": f"c{index}", "name": "Bash", "input": {}},
        "web_search_tool_result": {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    }
    return {"type": "content_block_start", "index": index, "content_block": blocks[kind]}


def text(index: int, value: str = "a") -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": value}}


def thinking(index: int) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "thinking_delta", "thinking": "hm"}}


def signature(index: int) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": "s"}}


def arguments(index: int, value: str) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": value}}


def closed(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def reason(value: str | None = "end_turn", sequence: str | None = None) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": value, "stop_sequence": sequence}, "usage": USAGE}


ENDING = [reason(), STOP]
BLOCK = [opened(0), text(0), closed(0)]

LEGAL = {
    "text": [START, PING, *BLOCK, *ENDING],
    "nothing": [START, *ENDING],
    "ping before the start": [PING, START, *BLOCK, *ENDING],
    "ping before the end": [START, *BLOCK, reason(), PING, STOP],
    "an empty block": [START, opened(0), closed(0), *ENDING],
    "thinking": [START, opened(0, "thinking"), thinking(0), signature(0), closed(0), *ENDING],
    "only a signature": [START, opened(0, "thinking"), signature(0), closed(0), *ENDING],
    "a call": [START, opened(0, "tool_use"), arguments(0, '{"a"'), arguments(0, ":1}"), closed(0), *ENDING],
    "a call without arguments": [START, opened(0, "tool_use"), closed(0), reason("tool_use"), STOP],
    "two blocks": [START, *BLOCK, opened(1, "tool_use"), closed(1), *ENDING],
    "a block that starts whole": [START, opened(0, "web_search_tool_result"), closed(0), *ENDING],
    "keepalive deltas": [START, reason(None), opened(0), text(0, ""), reason(None), closed(0), *ENDING],
    "a stop sequence": [START, *BLOCK, reason("stop_sequence", "</b>"), STOP],
    "an error first": [ERROR],
    "an error between blocks": [START, *BLOCK, ERROR],
    "an error inside a call": [START, *BLOCK, opened(1, "tool_use"), arguments(1, '{"a'), ERROR],
}

ILLEGAL = {
    "nothing at all": [],
    "no start": [*BLOCK, *ENDING],
    "two starts": [START, START, *ENDING],
    "no end": [START, *BLOCK],
    "no reason": [START, *BLOCK, STOP],
    "no message_stop": [START, *BLOCK, reason()],
    "two reasons": [START, reason(), reason(), STOP],
    "a block after the reason": [START, reason(), *BLOCK, STOP],
    "a ping after the end": [START, *ENDING, PING],
    "an error after the end": [START, *ENDING, ERROR],
    "something after an error": [START, ERROR, *ENDING],
    "two errors": [START, ERROR, ERROR],
    "an index that does not start at 0": [START, opened(1), closed(1), *ENDING],
    "a gap": [START, *BLOCK, opened(2), closed(2), *ENDING],
    "an index again": [START, *BLOCK, *BLOCK, *ENDING],
    "two open blocks": [START, opened(0), opened(1), closed(0), closed(1), *ENDING],
    "an open block at the end": [START, opened(0), text(0), *ENDING],
    "a delta without a block": [START, text(0), *ENDING],
    "a delta after the stop": [START, *BLOCK, text(0), *ENDING],
    "a delta for another block": [START, opened(0), text(1), closed(0), *ENDING],
    "a stop without a block": [START, closed(0), *ENDING],
    "text in a call": [START, opened(0, "tool_use"), text(0), closed(0), *ENDING],
    "arguments in a text": [START, opened(0), arguments(0, "{}"), closed(0), *ENDING],
    "a delta in a block that starts whole": [START, opened(0, "web_search_tool_result"), text(0), closed(0), *ENDING],
    "two signatures": [START, opened(0, "thinking"), signature(0), signature(0), closed(0), *ENDING],
    "thinking after the signature": [START, opened(0, "thinking"), signature(0), thinking(0), closed(0), *ENDING],
    "broken arguments": [START, opened(0, "tool_use"), arguments(0, '{"a":'), closed(0), *ENDING],
    "arguments that are a list": [START, opened(0, "tool_use"), arguments(0, "[]"), closed(0), *ENDING],
    "an error inside a text": [START, opened(0), text(0), ERROR],
    "an error without words": [START, {"type": "error", "error": {"type": "api_error", "message": ""}}],
    "an unknown event": [START, {"type": "message_pause"}, *ENDING],
    "an event without a type": [START, {"index": 0}, *ENDING],
    "an unknown reason": [START, reason("done"), STOP],
    "a sequence without its reason": [START, reason("end_turn", "x"), STOP],
    "a call without an id": [
        START,
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "", "name": "Bash", "input": {}},
        },
        closed(0),
        *ENDING,
    ],
    "text in the start of a block": [
        START,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "lost"}},
        closed(0),
        *ENDING,
    ],
    "a counter missing": [START, {**reason(), "usage": {"output_tokens": 1}}, STOP],
}


@pytest.mark.parametrize("case", LEGAL)
def test_a_legal_stream_passes(case: str) -> None:
    check_message_stream(LEGAL[case])


@pytest.mark.parametrize("case", ILLEGAL)
def test_an_illegal_stream_is_refused(case: str) -> None:
    with pytest.raises(IllegalStream):
        check_message_stream(ILLEGAL[case])


@pytest.mark.parametrize("case", LEGAL)
def test_a_cut_stream_is_legal_as_far_as_it_goes(case: str) -> None:
    for size in range(len(LEGAL[case])):
        check_message_stream(LEGAL[case][:size], cut=True)
