"""One run as the service plays it: how it ends, what it is answered, and how long anybody waits for what."""

from __future__ import annotations

import asyncio
import base64
import threading
from dataclasses import replace
from typing import Any

import pytest
from cursor_talk import Talk, all_over, calls, folded, result, said
from harness import Live, ask, texts, until, with_live
from samples import each, rows

from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.p5_cursor.wire import envelopes
from proxy.sandbox.play.actions import Reply

Step = dict[str, Any]

END: Step = {"type": "end"}
CONTEXT: Step = {"type": "exec", "kind": "context", "exec_id": "e0"}
TURN: Step = {"type": "turn_ended", "output_tokens": 4}


def text(words: str) -> Step:
    return {"type": "text_delta", "text": words}


def beats(count: int) -> list[Step]:
    """Signs of life, and nothing else."""
    return [{"type": "heartbeat"}, {"pause_s": 0.03}] * count


def plays(live: Live, *events: Step, then: str = "end", **members: Any) -> None:
    live.sandbox.p5.script.extend([{"provider": "p5", "events": list(events), "then": then, **members}])


async def asked(live: Live, **members: Any) -> Any:
    return await live.post(ask("hello", model="cursor", **members))


# -- ends

GOOD_ENDS: dict[str, tuple[list[Step], str]] = {
    "turn and end": ([text("Hi"), TURN, END], "end"),
    "turn never ends: the end of the turn is not told": ([text("Hi"), END], "end"),
    "turn never ends: the body stays open behind the end": ([text("Hi"), TURN, END], "stall"),
    "turn never ends: the end of the stream does not come": ([text("Hi"), TURN], "stall"),
    "neither, and the body ends": ([text("Hi")], "end"),
    "the connection breaks behind the end of the turn": ([text("Hi"), TURN], "cut"),
    "an error behind the end of the turn": ([text("Hi"), TURN, {"type": "end", "error": {"code": "internal"}}], "end"),
    "text and the end of the turn in one envelope": (
        [{"type": "payload", "hex": "0a0a0a040a02486972021004"}, END],
        "end",
    ),
    "a packed end": ([text("Hi"), {"type": "end", "gzip": True}], "end"),
    "packed text": ([{**text("Hi"), "gzip": True}, END], "end"),
    "unknown members and updates": (
        [{"type": "strange_message", "text": "no"}, {"type": "strange_update", "text": "no"}, text("Hi"), END],
        "end",
    ),
    "call ids in the answer text: display records say nothing": (
        [{"type": "tool_call_started", "call_id": "call-77"}, text("Hi"), {"type": "summary", "text": "no"}, TURN, END],
        "end",
    ),
}


@each(1)
@with_live(tuning=(RunTimers(after_end=0.05),))
@pytest.mark.parametrize("name", GOOD_ENDS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_good_end(live: Live, name: str, stream: bool) -> None:
    events, then = GOOD_ENDS[name]
    plays(live, CONTEXT, *events, then=then)
    answer = await asked(live, stream=stream)
    message = folded(answer) if stream else answer.json
    assert said(message) == "Hi" and message["stop_reason"] == "end_turn"


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


BROKEN: dict[str, tuple[list[Step], str]] = {
    "a connection that is cut": ([text("Hi")], "cut"),
    "half an envelope": ([text("Hi"), {"raw_base64": "AAAAAAgKBg=="}], "end"),
    "a length of 4 GiB": ([text("Hi"), {"raw_base64": "AP////8="}], "end"),
    "an envelope that is no message": ([text("Hi"), {"type": "payload", "hex": "0a0541"}], "end"),
    "an end with an error": ([text("Hi"), {"type": "end", "error": {"code": "internal", "message": "m"}}], "end"),
    "an end with an error that says nothing": ([text("Hi"), {"type": "end", "error": {}}], "end"),
}


@rows("name", BROKEN)
async def test_a_broken_run_never_looks_like_a_complete_answer(live: Live, name: str) -> None:
    events, then = BROKEN[name]
    for stream in (True, False):
        plays(live, CONTEXT, *events, then=then)
        answer = await asked(live, stream=stream)
        if stream:
            assert texts(answer.events) == "Hi" and answer.events[-1]["type"] == "error"
            assert answer.events[-1]["error"]["type"] == "api_error"
        else:
            assert answer.status == 502 and answer.error["provider"] == "p5"
    assert live.sandbox.p5.total_requests == 2


async def test_200_and_nothing_names_the_agent_host(live: Live) -> None:
    plays(live)
    answer = await asked(live)
    assert answer.status == 502 and "p5.baseUrl" in answer.error["message"]


async def test_an_empty_assistant_message_is_an_error(live: Live) -> None:
    plays(live, CONTEXT, TURN, END)
    answer = await asked(live)
    assert answer.status == 502 and "empty" in answer.error["message"] and live.sandbox.p5.total_requests == 1


async def test_a_document_in_place_of_the_stream(live: Live) -> None:
    plays(live, {"raw": '{"code":"x","message":"m"}'})
    answer = await asked(live)
    assert answer.status == 502 and answer.error["message"] == "p5: m"


# -- what only one more run cures


async def test_a_limit_that_is_a_failing_network_is_tried_again_in_a_new_run(live: Live) -> None:
    error = {"code": "resource_exhausted", "message": "Network Error"}
    plays(live, {"type": "end", "error": error})
    assert (await asked(live)).status == 200
    first, second = live.sandbox.p5.runs
    assert first.request_id != second.request_id and live.sleeps == [1.5]


async def test_not_once_something_was_said(live: Live) -> None:
    error = {"code": "resource_exhausted", "message": "Network Error"}
    plays(live, text("Hi"), {"type": "end", "error": error})
    answer = await asked(live, stream=True)
    assert answer.events[-1]["error"]["type"] == "rate_limit_error" and live.sandbox.p5.total_requests == 1


@rows("times", [1, 2])
async def test_internal_error_behind_a_blob_that_is_not_held(live: Live, times: int) -> None:
    """`internal: Error` on a later turn."""
    blob = {"type": "get_blob", "id": 5, "blob_id": "ab" * 32}
    plays(
        live,
        CONTEXT,
        blob,
        {"pause_s": 0.05},
        {"type": "end", "error": {"code": "internal", "message": "Error"}},
        times=times,
    )
    answer = await asked(live)
    assert answer.status == (200 if times == 1 else 502) and live.sandbox.p5.total_requests == 2


async def test_bad_model_name_of_a_model_that_exists_only_with_an_effort(live: Live) -> None:
    live.sandbox.p5.options.suffixed = frozenset({"claude-opus-4-8"})
    answer = await live.post(ask("hello", model="cursor:claude-opus-4-8"))
    assert answer.status == 200
    assert live.sandbox.p5.requests[-1].body["model"] == "claude-opus-4-8-high" and live.sandbox.p5.total_requests == 2


async def test_not_found_without_a_word_of_the_model(live: Live) -> None:
    plays(live, {"type": "end", "error": {"code": "not_found", "message": "Error"}})
    assert (await live.post(ask("hello", model="cursor:claude-opus-4-8"))).status == 200
    assert live.sandbox.p5.requests[-1].body["model"] == "claude-opus-4-8-high"


async def test_a_model_that_does_not_exist(live: Live) -> None:
    error = {"code": "not_found", "message": "Unknown model ID: nope"}
    plays(live, {"type": "end", "error": error}, times=2)
    answer = await live.post(ask("hello", model="cursor:nope"))
    assert answer.status == 400 and "nope" in answer.error["message"] and live.sandbox.p5.total_requests == 1


async def test_a_refused_token_is_renewed_once(live: Live) -> None:
    live.sandbox.p5.tokens.revoke_access()
    assert (await asked(live)).status == 200


@rows("fault", ["append_fails", "append_cut"])
async def test_an_append_that_fails_is_never_sent_again(live: Live, fault: str) -> None:
    """Tool executed twice."""
    live.sandbox.p5.script.extend([{"provider": "p5", "fault": fault, "number": 2}])
    answer = await asked(live)
    assert answer.status == 502 and live.sandbox.p5.total_requests == 1
    assert max(live.sandbox.p5.runs[-1].appends.values()) == 1


async def test_a_result_that_could_not_be_sent_is_told_in_a_new_run(live: Live) -> None:
    talk = Talk(live, "use Bash: ls")
    call = calls(await talk.turn())[0]
    run = live.sandbox.p5.runs[0]
    run.replies[len(run.appends)] = Reply(502, "bad gateway")
    assert "told again" in said(await talk.turn(result(call, "told again")))
    assert max(run.appends.values()) == 1 and live.sandbox.p5.total_requests == 2


# -- time


SHORT = RunTimers(first=0.15, silence=0.2, quiet_end=0.1, progress=0.4, heartbeat=0.05, exec_heartbeat=0.02, cancel=0.2)

WAITS: dict[str, tuple[list[Step], int, str]] = {
    "nothing comes": ([{"pause_s": 3}], 504, "proxy on the way"),
    "then silence": ([CONTEXT, {"pause_s": 3}], 504, "silent"),
}


@with_live(tuning=(SHORT,))
@rows("name", WAITS)
async def test_connection_works_but_nothing_arrives(live: Live, name: str) -> None:
    live.sandbox.p5.options.heartbeat_s = 10
    events, status, words = WAITS[name]
    plays(live, *events)
    answer = await asked(live)
    assert answer.status == status and words in answer.error["message"]
    await all_over(live)


@with_live(tuning=(SHORT,))
async def test_connection_works_but_only_heartbeats_arrive(live: Live) -> None:
    plays(live, CONTEXT, *beats(60))
    answer = await asked(live)
    assert answer.status == 504 and "signs of life" in answer.error["message"]


@with_live(tuning=(SHORT,))
async def test_silence_behind_a_text_ends_the_turn(live: Live) -> None:
    live.sandbox.p5.options.heartbeat_s = 10
    plays(live, CONTEXT, text("Hi"), then="stall")
    assert said(folded(await asked(live, stream=True))) == "Hi"
    await all_over(live)


@with_live(tuning=(SHORT,))
async def test_answer_cut_in_the_middle_while_the_model_thinks(live: Live) -> None:
    plays(live, CONTEXT, text("H"), *beats(10), text("i"), TURN, END)
    assert said(folded(await asked(live, stream=True))) == "Hi"


SLOWLY = bytes.fromhex("000000000c0a0a0a080a06736c6f776c79")


@with_live(tuning=(replace(SHORT, silence=1.0),))  # many times a pause: a busy machine makes it longer
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
    live.sandbox.p5.script.extend([{"provider": "p5", "fault": "silence_before_head", "seconds": 0.3}])
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


# -- tools


@with_live(tuning=(RunTimers(stalled=0.2, exec_heartbeat=0.05),))
async def test_a_tool_result_that_nobody_hears_is_told_in_a_new_run(live: Live) -> None:
    live.sandbox.p5.options.heartbeat_s = 0.05
    shell = {"type": "exec", "kind": "shell_stream", "id": 1, "exec_id": "e1", "command": "ls"}
    plays(live, CONTEXT, shell, {"pause_s": 5}, then="stall")
    talk = Talk(live, "hello")
    call = calls(await talk.turn())[0]
    assert "heard at last" in said(await talk.turn(result(call, "heard at last")))
    assert live.sandbox.p5.total_requests == 2


async def test_an_upstream_that_dies_during_a_tool(live: Live) -> None:
    shell = {"type": "exec", "kind": "shell_stream", "id": 1, "exec_id": "e1", "command": "ls"}
    plays(live, CONTEXT, shell, {"pause_s": 0.1}, then="cut")
    talk = Talk(live, "hello")
    call = calls(await talk.turn())[0]
    await all_over(live)
    assert "still here" in said(await talk.turn(result(call, "still here")))


async def test_a_call_that_is_taken_back(live: Live) -> None:
    shell = {"type": "exec", "kind": "shell_stream", "id": 1, "exec_id": "e1", "command": "ls"}
    plays(live, CONTEXT, shell, {"type": "abort", "id": 1}, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    message = await talk.turn()
    if calls(message):
        message = await talk.turn(result(calls(message)[0], "too late"))
    assert said(message) == "never mind" and live.sandbox.p5.total_requests == 1
    await until(lambda: live.sandbox.p5.active == 0)


async def test_the_result_of_a_call_that_was_taken_back_is_not_sent(live: Live) -> None:
    shell = {"type": "exec", "kind": "shell_stream", "id": 1, "exec_id": "e1", "command": "ls"}
    back: list[Step] = [{"pause_s": 0.1}, {"type": "abort", "id": 1}, {"pause_s": 0.5}]
    plays(live, CONTEXT, shell, *back, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    call = calls(await talk.turn())[0]
    await asyncio.sleep(0.25)
    assert said(await talk.turn(result(call, "too late"))) == "never mind"
    # that of the context
    assert list(live.sandbox.p5.runs[0].received).count("exec_client_message") == 1
    await all_over(live)


async def test_two_calls_at_once_are_offered_one_after_the_other(live: Live) -> None:
    read = {"type": "exec", "kind": "read", "path": "/a"}
    plays(
        live,
        CONTEXT,
        {**read, "id": 1, "exec_id": "e1"},
        {**read, "id": 2, "exec_id": "e2"},
        {"pause_s": 0.3},
        text("ok"),
        TURN,
        END,
    )
    talk = Talk(live, "hello")
    first = await talk.turn()
    second = await talk.turn(result(calls(first)[0]))
    assert len(calls(first)) == len(calls(second)) == 1
    assert said(await talk.turn(result(calls(second)[0]))) == "ok"
    assert live.sandbox.p5.total_requests == 1


async def test_line_numbers_are_not_written_into_user_files(live: Live) -> None:
    talk = Talk(live, "use Read: /etc/motd")
    call = calls(await talk.turn())[0]
    message = await talk.turn(result(call, "     1→one\n     2→two\n\n<system-reminder>x</system-reminder>"))
    assert '"one two"' in " ".join(said(message).split()) or "one\ntwo" in said(message)
    await all_over(live)


async def a_moment(_seconds: float) -> None:
    await asyncio.sleep(0.1)


@with_live(sleep=a_moment)
async def test_the_wait_after_a_lost_run_is_told_as_that(live: Live) -> None:
    plays(live, {"type": "end", "error": {"code": "resource_exhausted", "message": "Network Error"}})
    assert (await asked(live)).status == 200
    [told] = live.notes.all("request_completed")
    assert told["retryMs"] >= 90
