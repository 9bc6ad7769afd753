"""The shared checkers refuse what they should refuse."""

from __future__ import annotations

import pytest
from checks import IllegalStream, check_message_stream
from events import Event, closed, delta, opened
from harness import whole_message
from samples import rows

START, *_, REASON, STOP = whole_message("m", "a")
PING: Event = {"type": "ping"}
ERROR: Event = {"type": "error", "error": {"type": "api_error", "message": "broken"}}


def text(index: int = 0, value: str = "a") -> Event:
    return delta(value, index=index)


def arguments(value: str, index: int = 0) -> Event:
    return delta(value, "input_json_delta", index)


HM, SIGNED = delta("hm", "thinking_delta"), delta("s", "signature_delta")


def reason(value: str | None = "end_turn", sequence: str | None = None) -> Event:
    return {**REASON, "delta": {"stop_reason": value, "stop_sequence": sequence}}


ENDING = [reason(), STOP]
BLOCK = [opened(), text(), closed()]
THOUGHT, CALL, RESULT = opened("thinking"), opened("tool_use"), opened("web_search_tool_result")

LEGAL = {
    "text": [START, PING, *BLOCK, *ENDING],
    "nothing": [START, *ENDING],
    "ping before the start": [PING, START, *BLOCK, *ENDING],
    "ping before the end": [START, *BLOCK, reason(), PING, STOP],
    "an empty block": [START, opened(), closed(), *ENDING],
    "thinking": [START, THOUGHT, HM, SIGNED, closed(), *ENDING],
    "only a signature": [START, THOUGHT, SIGNED, closed(), *ENDING],
    "a call": [START, CALL, arguments('{"a"'), arguments(":1}"), closed(), *ENDING],
    "a call without arguments": [START, CALL, closed(), reason("tool_use"), STOP],
    "two blocks": [START, *BLOCK, opened("tool_use", 1), closed(1), *ENDING],
    "a block that starts whole": [START, RESULT, closed(), *ENDING],
    "keepalive deltas": [START, reason(None), opened(), text(0, ""), reason(None), closed(), *ENDING],
    "a stop sequence": [START, *BLOCK, reason("stop_sequence", "</b>"), STOP],
    "an error first": [ERROR],
    "an error between blocks": [START, *BLOCK, ERROR],
    "an error inside a call": [START, *BLOCK, opened("tool_use", 1), arguments('{"a', 1), ERROR],
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
    "an index that does not start at 0": [START, opened(index=1), closed(1), *ENDING],
    "a gap": [START, *BLOCK, opened(index=2), closed(2), *ENDING],
    "an index again": [START, *BLOCK, *BLOCK, *ENDING],
    "two open blocks": [START, opened(), opened(index=1), closed(), closed(1), *ENDING],
    "an open block at the end": [START, opened(), text(), *ENDING],
    "a delta without a block": [START, text(), *ENDING],
    "a delta after the stop": [START, *BLOCK, text(), *ENDING],
    "a delta for another block": [START, opened(), text(1), closed(), *ENDING],
    "a stop without a block": [START, closed(), *ENDING],
    "text in a call": [START, CALL, text(), closed(), *ENDING],
    "arguments in a text": [START, opened(), arguments("{}"), closed(), *ENDING],
    "a delta in a block that starts whole": [START, RESULT, text(), closed(), *ENDING],
    "two signatures": [START, THOUGHT, SIGNED, SIGNED, closed(), *ENDING],
    "thinking after the signature": [START, THOUGHT, SIGNED, HM, closed(), *ENDING],
    "broken arguments": [START, CALL, arguments('{"a":'), closed(), *ENDING],
    "a block behind broken arguments": [START, CALL, arguments('{"a":'), closed(), opened(), closed(), *ENDING],
    "an error behind broken arguments": [START, CALL, arguments('{"a":'), closed(), ERROR],
    "an error inside a text": [START, opened(), text(), ERROR],
    "an error without words": [START, {"type": "error", "error": {"type": "api_error", "message": ""}}],
    "an unknown event": [START, {"type": "message_pause"}, *ENDING],
    "an event without a type": [START, {"index": 0}, *ENDING],
    "an unknown reason": [START, reason("done"), STOP],
    "a sequence without its reason": [START, reason("end_turn", "x"), STOP],
    "a call without an id": [START, opened("tool_use", id=""), closed(), *ENDING],
    "text in the start of a block": [START, opened(text="lost"), closed(), *ENDING],
    "a counter missing": [START, {**reason(), "usage": {"input_tokens": 1}}, STOP],
}


@rows("case", LEGAL)
def test_a_legal_stream_passes_and_so_does_one_that_is_cut(case: str) -> None:
    check_message_stream(LEGAL[case])
    for size in range(len(LEGAL[case])):
        check_message_stream(LEGAL[case][:size], cut=True)


@rows("case", ILLEGAL)
def test_an_illegal_stream_is_refused(case: str) -> None:
    with pytest.raises(IllegalStream):
        check_message_stream(ILLEGAL[case])
