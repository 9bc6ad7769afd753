"""One run as the service plays it, where the table of faults says too little: what is sent and when, and what users
report of this service, under their own words."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import Any

import pytest
from cursor_talk import CONTEXT, END, TURN, Step, Talk, all_over, calls, fault, folded, plays, result, said, shell, text
from harness import Live, ask, kinds, texts, until, watch_often, with_live

from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.p5_cursor.wire import envelopes
from proxy.sandbox.play.actions import Reply


async def asked(live: Live, **members: Any) -> Any:
    return await live.post(ask("hello", model="cursor", **members))


async def test_what_is_packed_and_long_is_unpacked_beside_the_loop(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def noted(payload: bytes) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return unpacked(payload)

    unpacked = envelopes._unpacked
    monkeypatch.setattr(envelopes, "_unpacked", noted)
    long = " ".join(map(str, range(10_000)))
    plays(live, CONTEXT, {**text("Hi "), "gzip": True}, {"pause_s": 0.1}, {**text(long), "gzip": True}, TURN, END)
    assert said((await asked(live)).json) == f"Hi {long}" and threads == [True, False]


# -- what only one more run cures


async def test_bad_model_name_of_a_model_that_exists_only_with_an_effort(live: Live) -> None:
    live.sandbox.p5.options.suffixed = frozenset({"claude-opus-4-8"})
    answer = await live.post(ask("hello", model="cursor:claude-opus-4-8"))
    assert answer.status == 200
    assert live.sandbox.p5.requests[-1].body["model"] == "claude-opus-4-8-high" and live.sandbox.p5.total_requests == 2


async def test_not_found_without_a_word_of_the_model(live: Live) -> None:
    plays(live, {"type": "end", "error": {"code": "not_found", "message": "Error"}})
    assert (await live.post(ask("hello", model="cursor:claude-opus-4-8"))).status == 200
    assert live.sandbox.p5.requests[-1].body["model"] == "claude-opus-4-8-high"


async def test_a_result_that_could_not_be_sent_is_told_in_a_new_run(live: Live) -> None:
    talk = Talk(live, "use Bash: ls")
    call = calls(await talk.turn())[0]
    run = live.sandbox.p5.runs[0]
    run.replies[len(run.appends)] = Reply(502, "bad gateway")
    assert "told again" in said(await talk.turn(result(call, "told again")))
    assert max(run.appends.values()) == 1 and live.sandbox.p5.total_requests == 2


# -- time


SLOWLY = bytes.fromhex("000000000c0a0a0a080a06736c6f776c79")


@with_live(tuning=(RunTimers(silence=1.0, quiet_end=0.1, cancel=0.2),))  # silence: a busy machine makes pauses longer
async def test_answer_cut_in_the_middle_while_an_envelope_comes_slowly(live: Live) -> None:
    live.sandbox.p5.options.heartbeat_s = 10
    pieces: list[Step] = []
    for at in range(0, len(SLOWLY), 3):
        pieces += [{"raw_base64": base64.b64encode(SLOWLY[at : at + 3]).decode()}, {"pause_s": 0.04}]
    plays(live, CONTEXT, text("Hi "), *pieces, TURN, END)
    assert said(folded(await asked(live, stream=True))) == "Hi slowly"
    plays(live, CONTEXT, text("Hi "), pieces[0], then="stall")
    assert (await asked(live, stream=True)).events[-1]["error"]["type"] == "timeout_error"
    await all_over(live)


@with_live(tuning=(RunTimers(early=0.05),))
async def test_sse_never_starts_behind_a_proxy_that_holds_the_head(live: Live) -> None:
    fault(live, "silence_before_head", seconds=0.3)
    assert (await asked(live)).status == 200
    assert live.notes.all("cursor_stream_head_late")


@with_live(tuning=(RunTimers(heartbeat=0.05),))
async def test_heartbeats_go_on_and_end_with_the_run(live: Live) -> None:
    """Stray connection errors after a finished chat."""
    plays(live, CONTEXT, {"pause_s": 0.3}, text("Hi"), TURN, END)
    assert (await asked(live)).status == 200
    run = live.sandbox.p5.runs[0]
    assert 4 <= run.heartbeats <= 8
    await all_over(live)
    beats = run.heartbeats
    await asyncio.sleep(0.2)
    assert run.heartbeats == beats


@with_live(tuning=(RunTimers(heartbeat=1.0, after_end=0.05),))
async def test_no_heartbeat_follows_the_turn_while_a_client_reads_slowly(live: Live) -> None:
    plays(live, CONTEXT, text("x " * 6_000_000), TURN, then="stall")
    async with live.open(ask("hello", model="cursor", stream=True)):
        await until(lambda: live.sandbox.p5.runs and live.sandbox.p5.active == 0)  # our end of the stream is closed
        await asyncio.sleep(1.2)
        assert live.sandbox.p5.runs[0].heartbeats == 1  # that of the beginning
    await all_over(live)


async def test_an_envelope_that_is_no_message_never_ends_in_a_whole_answer(live: Live) -> None:
    plays(live, CONTEXT, text("Hi"), {"type": "payload", "hex": "0a0541"})
    events = (await Talk(live, "hello").ask()).events
    assert texts(events) == "Hi" and kinds(events)[-1] == "error"
    await all_over(live)


# -- tools


async def test_a_call_may_be_taken_back_before_its_client_runs_it(live: Live) -> None:
    plays(live, CONTEXT, shell(), {"type": "abort", "id": 1}, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    message = await talk.turn()
    if calls(message):  # it was offered already
        message = await talk.turn(result(calls(message)[0], "too late"))
    assert said(message) == "never mind" and live.sandbox.p5.total_requests == 1
    await all_over(live)


async def test_the_result_of_a_call_that_was_taken_back_is_not_sent(live: Live) -> None:
    back: list[Step] = [{"pause_s": 0.1}, {"type": "abort", "id": 1}, {"pause_s": 0.5}]
    plays(live, CONTEXT, shell(), *back, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    call = calls(await talk.turn())[0]
    await asyncio.sleep(0.25)
    assert said(await talk.turn(result(call, "too late"))) == "never mind"
    # that of the context
    assert list(live.sandbox.p5.runs[0].received).count("exec_client_message") == 1
    await all_over(live)


async def a_moment(_seconds: float) -> None:
    await asyncio.sleep(0.1)


@with_live(sleep=a_moment)
async def test_the_wait_after_a_lost_run_is_told_as_that(live: Live) -> None:
    plays(live, {"type": "end", "error": {"code": "resource_exhausted", "message": "Network Error"}})
    assert (await asked(live)).status == 200
    [told] = live.notes.all("request_completed")
    assert told["retryMs"] >= 90


# -- what users report


async def test_blob_not_found_and_conversation_data_missing(live: Live) -> None:
    """Every run begins with an empty state, though the session and its id stay: nothing is asked of an earlier one."""
    talk = Talk(live, "hello")
    for _ in range(2):
        fault(live, "set_blobs", count=20, size=40)
        assert "20 blobs were kept, 0 refused" in said(await talk.turn())
        talk.goes_on("hello again")
    first, second = (seen.body for seen in live.sandbox.p5.requests)
    assert first["conversation_id"] == second["conversation_id"]
    await all_over(live)  # where a state that is sent is a violation


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
async def test_tool_executed_twice(live: Live, cut: int) -> None:
    """The service took a part of the result and its answer was lost: that part is not sent again, in no run."""
    talk = Talk(live, "use Bash: ls")
    call = calls(await talk.turn())[0]
    run = live.sandbox.p5.runs[0]
    run.cuts[len(run.appends) + cut] = False
    await talk.ask()
    await talk.turn(result(call, "once"))
    assert all(count == 1 for one in live.sandbox.p5.runs for count in one.appends.values())
    await all_over(live)


async def test_empty_continuation_after_a_tool_result(live: Live) -> None:
    """The service reads its blobs back behind a result, and goes on."""
    talk = Talk(live, "use Bash: ls")
    fault(live, "set_blobs", count=3)
    message = await talk.turn()
    assert "it is here" in said(await talk.turn(result(calls(message)[0], "it is here")))
    assert live.sandbox.p5.total_requests == 1


@with_live(tuning=(RunTimers(heartbeat=0.05), watch_often(keepalive=0.1)))
async def test_client_aborts_with_stream_idle_timeout_after_long_thinking(live: Live) -> None:
    """While the service sends signs of life and nothing else, so do we."""
    live.sandbox.p5.options.heartbeat_s = 0.05
    beats = [{"type": "heartbeat"}, {"pause_s": 0.03}] * 20
    plays(live, {"type": "thinking_delta", "text": "hm"}, *beats, text("Done"), TURN, END)
    answer = await Talk(live, "hello").ask()
    assert said(folded(answer)) == "Done"
    assert [event.get("delta") for event in answer.events].count({"type": "thinking_delta", "thinking": ""}) >= 3


async def test_auto_compaction_triggered_at_once(live: Live) -> None:
    """The counters of the service are those of a bill; a client takes them for the size of its conversation."""
    answer = await Talk(live, "hello").ask()
    usages = [event.get("usage") or event["message"]["usage"] for event in answer.events if "usage" in str(event)]
    assert len(usages) == 2 and usages[0]["input_tokens"] == usages[1]["input_tokens"] < 1000
    for usage in usages:
        assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0
    counted = await live.post(
        {name: value for name, value in Talk(live, "hello").body.items() if name not in ("max_tokens", "stream")},
        "/v1/messages/count_tokens",
    )
    assert counted.json["input_tokens"] == usages[0]["input_tokens"]


async def test_bare_resource_exhausted_of_a_huge_prompt(live: Live) -> None:
    """A client can do something about its size; the words say nothing of that."""
    fault(live, "end_error", code="resource_exhausted")
    answer = await live.post(ask("x " * 500_000, model="cursor"))
    assert answer.status == 413 and "prompt is too long" in answer.error["message"]
