"""What happens to a run at the wrong moment: nothing is left behind, and nothing looks whole that is not."""

from __future__ import annotations

import asyncio

import pytest
from cursor_talk import (
    CONTEXT,
    END,
    SESSION,
    TURN,
    Talk,
    all_over,
    calls,
    fault,
    folded,
    open_runs,
    plays,
    result,
    said,
    shell,
    text,
)
from harness import Live, texts, until, with_live

from proxy.providers.p5_cursor.run.calls import MAX_OPEN_CALLS
from proxy.providers.p5_cursor.run.events import MAX_WAITING_CHARS, WaitingEvents
from proxy.providers.p5_cursor.run.watch import RunTimers

# -- a call that nobody will answer


async def test_a_stop_sequence_in_front_of_a_call_leaves_no_run_behind(live: Live) -> None:
    """Text and call come in one piece; the client sees the text up to its word, and never the call."""
    plays(live, CONTEXT, text("one STOP two"), shell(1), then="stall")
    answer = await Talk(live, "hello", stop_sequences=["STOP"]).ask()
    assert answer.events[-2]["delta"]["stop_reason"] == "stop_sequence" and texts(answer.events) == "one "
    await all_over(live)


@pytest.mark.parametrize("then", ["cut", "end"])
async def test_a_stream_that_breaks_as_it_asks_for_a_call_leaves_no_run_behind(live: Live, then: str) -> None:
    """The client may get the call; it need not come back for the run to end."""
    plays(live, CONTEXT, text("Hi"), shell(1), then=then)
    await Talk(live, "hello").ask()
    await all_over(live)


async def test_a_turn_that_ends_while_two_calls_are_open_takes_the_result_into_a_new_run(live: Live) -> None:
    plays(live, CONTEXT, shell(1), shell(2), {"pause_s": 0.15}, TURN, END)
    talk = Talk(live, "hello")
    [call] = calls(await talk.turn())
    await all_over(live)
    assert "still heard" in said(await talk.turn(result(call, "still heard")))
    assert live.sandbox.p5.total_requests == 2


async def test_what_was_said_before_the_turn_ended_during_a_call_is_not_lost(live: Live) -> None:
    plays(live, CONTEXT, shell(1), {"pause_s": 0.15}, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    [call] = calls(await talk.turn())
    await live.sandbox.p5.idle()
    assert said(await talk.turn(result(call, "too late"))) == "never mind"
    assert live.sandbox.p5.total_requests == 1
    await all_over(live)


@with_live(tuning=(RunTimers(pause=0.4),))
async def test_what_was_said_then_is_not_kept_for_ever(live: Live) -> None:
    plays(live, CONTEXT, shell(1), {"pause_s": 0.05}, text("never mind"), TURN, END)
    talk = Talk(live, "hello")
    [call] = calls(await talk.turn())
    await live.sandbox.p5.idle()
    assert len(open_runs(live)) == 1
    await all_over(live)
    assert "told again" in said(await talk.turn(result(call, "told again")))
    assert live.sandbox.p5.total_requests == 2


# -- many calls


async def test_more_calls_than_may_be_open_are_refused(live: Live) -> None:
    plays(live, CONTEXT, *map(shell, range(1, MAX_OPEN_CALLS + 3)), then="stall")
    talk = Talk(live, "hello")
    [call] = calls(await talk.turn())
    assert call["input"]["command"] == "echo 1"
    ledger = live.sandbox.p5.runs[0].ledger
    await until(lambda: [one.id for one in ledger.asked if one.done] == [0, MAX_OPEN_CALLS + 1, MAX_OPEN_CALLS + 2])
    assert "too many calls" in ledger.asked[-1].outcome.text
    talk.goes_on("hello again")
    await talk.turn()
    await all_over(live)


async def test_calls_with_equal_ids_are_all_answered_and_a_repeated_one_once(live: Live) -> None:
    plays(live, CONTEXT, shell(1, "a"), shell(1, "b"), shell(1, "a"), {"pause_s": 0.5}, text("Done"), TURN, END)
    talk = Talk(live, "hello")
    message = await talk.turn()
    for number in range(2):
        [call] = calls(message)
        message = await talk.turn(result(call, f"result {number}"))
    assert said(message) == "Done" and live.sandbox.p5.total_requests == 1


# -- nobody reads


@with_live(tuning=(RunTimers(heartbeat=0.05, exec_heartbeat=0.05),))
async def test_a_call_during_which_too_much_is_said_stops_the_reading_and_nothing_is_lost(live: Live) -> None:
    size, count = 100_000, 300
    plays(live, CONTEXT, shell(1), *[text("x" * size)] * count, TURN, END)
    talk = Talk(live, "hello")
    [call] = calls(await talk.turn())
    await asyncio.sleep(0.3)
    assert len(open_runs(live)) == live.sandbox.p5.active == 1  # not all of it was taken
    message = await talk.turn(result(call, "done"))
    assert len(said(message)) == size * count and live.sandbox.p5.total_requests == 1
    await all_over(live)


async def test_a_client_that_does_not_read_stops_the_reading(live: Live) -> None:
    size, count = 1 << 20, 40
    plays(live, CONTEXT, *[text("x" * size)] * count, TURN, END)
    async with live.open(Talk(live, "hello").body, headers={SESSION: "s1"}) as response:
        await until(lambda: live.sandbox.p5.active == 1)
        await asyncio.sleep(0.5)
        assert live.sandbox.p5.active == 1  # not all of it was taken
        raw = await response.content.read()
    assert raw.count(b"x") >= size * count and b"message_stop" in raw
    await all_over(live)


def test_many_small_events_are_as_much_as_few_large_ones() -> None:
    """Each takes some hundred bytes, whatever it says."""
    events = WaitingEvents()
    for _ in range(MAX_WAITING_CHARS // 100):
        events.say({"type": "text", "text": "x"})
    assert events.full


# -- silence


@with_live(tuning=(RunTimers(silence=0.2, quiet_end=0.1, cancel=0.1),))
async def test_silence_behind_a_thought_is_no_end_of_the_turn(live: Live) -> None:
    """A message of thoughts alone would look whole, and be empty."""
    live.sandbox.p5.options.heartbeat_s = 10
    plays(live, CONTEXT, {"type": "thinking_delta", "text": "hm"}, then="stall")
    answer = await Talk(live, "hello").ask()
    error = answer.events[-1]["error"]
    assert error["type"] == "timeout_error" and "fell silent" in error["message"]
    await all_over(live)


# -- a client that leaves at any moment


@pytest.mark.parametrize("moment_ms", range(0, 60, 4))
async def test_a_client_that_leaves_at_any_moment_leaves_nothing(live: Live, moment_ms: int) -> None:
    """While the head is awaited, while a message is sent, between the blobs, in the text, while a result is taken."""
    p5 = live.sandbox.p5
    fault(live, "silence_before_head", seconds=0.01)
    talk = Talk(live, "hello and then use Bash: ls")
    task = asyncio.create_task(talk.ask())
    await asyncio.sleep(moment_ms / 1000)
    task.cancel()
    await asyncio.wait({task})
    await until(lambda: not any(run.answering for run in p5.runs))
    talk.goes_on("hello")
    assert folded(await talk.ask())["stop_reason"] == "end_turn"
    await all_over(live)


@pytest.mark.parametrize("moment_ms", range(0, 30, 3))
async def test_a_client_that_leaves_while_its_result_is_told_may_bring_it_again(live: Live, moment_ms: int) -> None:
    talk = Talk(live, "use Bash: ls")
    [call] = calls(await talk.turn())
    talk.messages.append({"role": "user", "content": [result(call, "seen " * 20_000)]})
    task = asyncio.create_task(talk.ask())
    await asyncio.sleep(moment_ms / 1000)
    task.cancel()
    await asyncio.wait({task})
    assert "seen" in said(folded(await talk.ask()))
    await all_over(live)
    assert all(count == 1 for run in live.sandbox.p5.runs for count in run.appends.values())
