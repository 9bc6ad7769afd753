"""Tools of the client: a run waits for each, and goes on with what it brought."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from cursor_talk import TOOLS, TURN, Talk, all_over, calls, fault, folded, open_runs, plays, result, said, shell, text
from harness import STATE, Fake, Live, ask, configured, played, until, use, with_live
from plan_clients import shown

from proxy.errors import UpstreamError
from proxy.observe.lifecycle import Progress
from proxy.providers.p5_cursor.bridge.results import result_text
from proxy.providers.p5_cursor.run import run as run_module
from proxy.providers.p5_cursor.run.watch import RunTimers

#: A run without a call in its beginning.
PLAIN = "hello there"
BASH = "use Bash: ls -la"


def runs(live: Live) -> int:
    return live.sandbox.p5.total_requests


async def test_three_calls_in_one_run(live: Live) -> None:
    talk = Talk(live, 'use Bash: ls and then use Read: /etc/hosts and then use Write: {"path": "/a", "text": "x"}')
    message = await talk.turn()
    for number in range(3):
        assert message["stop_reason"] == "tool_use" and len(calls(message)) == 1
        message = await talk.turn(result(calls(message)[0], f"result {number}"))
    assert message["stop_reason"] == "end_turn" and runs(live) == 1
    assert [f"result {number}" in said(message) for number in (0, 1)] == [True, True]
    await all_over(live)
    assert max(live.sandbox.p5.runs[0].appends.values()) == 1


async def test_a_tool_that_the_service_does_not_know_is_written_and_ends_the_run(live: Live) -> None:
    talk = Talk(live, "use Grep: needle")
    message = await talk.turn()
    assert calls(message)[0]["name"] == "Grep" and calls(message)[0]["input"] == {"pattern": "needle"}
    await all_over(live)
    assert "found it" in said(await talk.turn(result(calls(message)[0], "found it"))) and runs(live) == 2


@pytest.mark.parametrize("members", [{"tool_choice": {"type": "none"}}, {"tools": [TOOLS[1]]}], ids=str)
async def test_a_call_that_cannot_be_bridged_is_refused_and_the_model_goes_on(
    live: Live, members: dict[str, Any]
) -> None:
    answer = await Talk(live, BASH).ask(**members)
    assert answer.status == 200 and b'"type":"tool_use"' not in answer.raw
    await all_over(live)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("session", ["s1", None])
async def test_neither_a_stream_nor_a_session_is_needed(live: Live, session: str | None, stream: bool) -> None:
    talk = Talk(live, "use Bash: ls and then use Read: /etc/hosts", session=session, stream=stream)
    message = await talk.turn()
    for number in range(2):
        assert message["stop_reason"] == "tool_use" and len(calls(message)) == 1
        message = await talk.turn(result(calls(message)[0], f"result {number}"))
    assert message["stop_reason"] == "end_turn" and runs(live) == 1 and "result 0" in said(message)
    await all_over(live)


async def test_a_client_with_a_shell_only_is_asked_for_a_file_by_commands(live: Live) -> None:
    talk = Talk(live, "use Read: /etc/hosts", tools=[TOOLS[0]])
    (call,) = calls(await talk.turn())
    assert call["name"] == "Bash" and "cat '/etc/hosts'" in call["input"]["command"]
    message = await talk.turn(result(call, shown(call["input"]["command"], b"one 1\n")))
    assert "one 1" in said(message) and runs(live) == 1
    await all_over(live)


async def test_a_request_of_the_service_may_take_several_calls(live: Live) -> None:
    talk = Talk(live, "use Read: /etc/hosts", tools=[TOOLS[0]])
    (call,) = calls(await talk.turn())
    cut = shown(call["input"]["command"], b"one 1\n").partition("\n[end")[0]
    (more,) = calls(await talk.turn(result(call, cut)))
    assert "base64" in more["input"]["command"] and more["id"] != call["id"]
    message = await talk.turn(result(more, shown(more["input"]["command"], b"one 1\n")))
    assert "one 1" in said(message) and runs(live) == 1
    await all_over(live)


# -- what the client does instead


async def test_words_in_place_of_the_result_end_the_run_that_waits(live: Live) -> None:
    talk = Talk(live, BASH)
    await talk.turn()
    talk.goes_on(PLAIN)
    await talk.turn()
    assert runs(live) == 2 and live.sandbox.p5.runs[0].cancelled
    await all_over(live)


async def test_another_conversation_of_the_session_leaves_the_run_that_waits(live: Live) -> None:
    talk, other = Talk(live, BASH), Talk(live, "use Bash: pwd")
    call, beside = calls(await talk.turn())[0], calls(await other.turn())[0]
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert "another result" in said(await other.turn(result(beside, "another result"))) and runs(live) == 2
    await all_over(live)


async def test_two_conversations_with_the_same_words_have_runs_of_their_own(live: Live) -> None:
    talk, other = Talk(live, BASH), Talk(live, BASH)
    call, beside = calls(await talk.turn())[0], calls(await other.turn())[0]
    assert "another result" in said(await other.turn(result(beside, "another result")))
    assert "the result" in said(await talk.turn(result(call, "the result"))) and runs(live) == 2
    await all_over(live)


async def test_new_words_beside_the_result_are_heard_in_a_new_run(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    message = await talk.turn(result(call, "interrupted", is_error=True), "stop that and greet me")
    assert runs(live) == 2 and "greet me" in live.sandbox.p5.requests[-1].body["prompt"]
    assert message["stop_reason"] in ("end_turn", "tool_use")


async def test_a_reminder_beside_the_result_is_no_new_word(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await talk.turn(result(call), "<system-reminder>be brief</system-reminder>")
    assert runs(live) == 1
    await all_over(live)


async def test_second_request_of_the_same_session_without_tools_leaves_the_first_alone(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    aside = await live.post(ask("a title for this", model="cursor", stream=True), headers=talk.headers)
    assert folded(aside)["stop_reason"] == "end_turn" and len(open_runs(live)) == 1
    assert "the result" in said(await talk.turn(result(call, "the result")))
    assert runs(live) == 2
    await all_over(live)


async def test_sessions_and_agents_have_runs_of_their_own(live: Live) -> None:
    talks = [Talk(live, BASH), Talk(live, BASH, session="s2"), Talk(live, BASH, agent="a1")]
    messages = [await talk.turn() for talk in talks]
    assert len(open_runs(live)) == 3
    for number, (talk, message) in reversed(list(enumerate(zip(talks, messages, strict=True)))):
        assert f"from {number}" in said(await talk.turn(result(calls(message)[0], f"from {number}")))
    assert runs(live) == 3
    await all_over(live)


async def test_a_newer_request_with_tools_leaves_the_older_answer_alone(live: Live) -> None:
    live.sandbox.p5.options.word_delay_s = 0.02
    older = asyncio.create_task(Talk(live, "stream 40 words").ask())
    await until(lambda: any(isinstance(event, Progress) for told in live.watcher.told.values() for event in told))
    live.sandbox.p5.options.word_delay_s = 0.0
    await Talk(live, PLAIN).turn()
    assert "word40" in said(folded(await older)) and runs(live) == 2
    await all_over(live)


#: Of Claude Code 2.1.330: a message of the role system stands behind it.
SIDE_QUESTION = "<system-reminder>This is a side question from the user. You must answer this question directly."


async def test_a_side_question_of_the_same_session_leaves_an_answer_alone(live: Live) -> None:
    live.sandbox.p5.options.word_delay_s = 0.02
    older = asyncio.create_task(Talk(live, "stream 40 words").ask())
    await until(lambda: len(open_runs(live)) == 1)
    beside = Talk(live, f"{SIDE_QUESTION}</system-reminder>\n\nuse Bash: ls")
    beside.messages.append({"role": "system", "content": "# Environment"})
    message = await beside.turn()
    assert not calls(message) and message["stop_reason"] == "end_turn"
    assert "word40" in said(folded(await older)) and runs(live) == 2
    await all_over(live)


async def test_a_side_question_leaves_a_run_alone_that_waits(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await Talk(live, f"{SIDE_QUESTION}</system-reminder> what is this?").turn()
    assert "the result" in said(await talk.turn(result(call, "the result"))) and runs(live) == 2
    await all_over(live)


async def test_a_large_result_is_read_beside_the_loop(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def noted(block: Any) -> str:
        threads.append(threading.current_thread())
        return result_text(block)

    monkeypatch.setattr(run_module, "result_text", noted)
    lines = "".join(f"{number:6}→some line\n" for number in range(1, 10_000))
    for content in (lines, "short"):
        talk = Talk(live, "use Read: /etc/hosts")
        await talk.turn(result(calls(await talk.turn())[0], content))
    assert [thread is threading.main_thread() for thread in threads] == [False, True]
    await all_over(live)


async def test_a_client_that_leaves_while_its_result_is_read_leaves_no_run(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over = threading.Event(), threading.Event()

    def slow(block: Any) -> str:
        begun.set()
        over.wait(5)
        return result_text(block)

    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    monkeypatch.setattr(run_module, "result_text", slow)
    talk.messages.append({"role": "user", "content": [result(call, "x" * 200_000)]})
    leaving = asyncio.create_task(talk.ask())
    await until(begun.is_set)
    leaving.cancel()
    try:
        await all_over(live)
    finally:
        over.set()
    assert live.sandbox.p5.runs[0].cancelled


async def test_a_request_that_is_repeated_while_its_run_goes_on_gets_a_run_of_its_own(live: Live) -> None:
    plays(live, shell(), {"pause_s": 0.5}, text("late"), TURN)
    talk = Talk(live, PLAIN)
    call = calls(await talk.turn())[0]
    talk.messages.append({"role": "user", "content": [result(call)]})
    older = asyncio.create_task(talk.ask())
    await until(lambda: live.sandbox.p5.runs[0].appends.get(6))
    newer = folded(await talk.ask())
    assert newer["stop_reason"] == "end_turn" and "late" in said(folded(await older)) and runs(live) == 2
    await all_over(live)


@with_live(sleep=lambda seconds: asyncio.sleep(seconds / 5))
async def test_a_request_that_tries_again_does_not_end_a_newer_one(live: Live) -> None:
    fault(live, "rate_limit", seconds=2)
    older = asyncio.create_task(Talk(live, PLAIN).ask())
    await until(lambda: live.sandbox.p5.total_requests == 1)
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    assert (await older).status == 200 and runs(live) == 3
    assert "the result" in said(await talk.turn(result(call, "the result"))) and runs(live) == 3
    await all_over(live)


async def test_a_result_is_read_as_the_call_was_made_whatever_the_next_request_offers(live: Live) -> None:
    """The tool takes no range; that it gave the part that was asked for would be wrong."""
    talk = Talk(live, 'use Read: {"file_path": "/a", "offset": 2}')
    call = calls(await talk.turn())[0]
    assert call["input"] == {"file_path": "/a"}
    talk.messages.append({"role": "user", "content": [result(call, "1\tone\n2\ttwo")]})
    assert (await talk.ask(stream=False)).status == 200
    (read,) = [one for one in live.sandbox.p5.runs[0].ledger.asked if one.number == 7]
    (success,) = [answer.sub(7, 1) for answer in read.answers]
    assert success is not None and success.text(2) == "one\ntwo" and not success.has(8)
    await all_over(live)


async def test_a_run_asks_for_what_the_newest_request_offers(live: Live) -> None:
    talk = Talk(live, "use Bash: ls and then use Read: /a")
    talk.messages.append({"role": "user", "content": [result(calls(await talk.turn())[0])]})
    message = folded(await talk.ask(tools=[TOOLS[2]]))
    assert message["stop_reason"] == "end_turn" and not calls(message) and runs(live) == 1
    await all_over(live)


async def test_a_result_without_tools_beside_it_finds_its_run(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    talk.messages.append({"role": "user", "content": [result(call, "the result")]})
    assert "the result" in said(folded(await talk.ask(tools=[]))) and runs(live) == 1
    await all_over(live)


async def test_a_run_goes_on_although_its_user_signed_out(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    (live.root / "p5" / "auth.json").unlink()
    assert "the result" in said(await talk.turn(result(call, "the result"))) and runs(live) == 1
    assert (await Talk(live, BASH, session="s2").ask()).status == 401
    await all_over(live)


async def test_a_repeated_result_begins_a_new_run(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await talk.turn(result(call, "once"))
    del talk.messages[-1]
    assert "once" in said(await talk.turn()) and runs(live) == 2
    await all_over(live)


async def test_a_client_that_leaves_stops_its_run_within_a_second(live: Live) -> None:
    live.sandbox.p5.options.word_delay_s = 0.02
    async with live.open(Talk(live, "stream 400 words").body, headers={"x-claude-code-session-id": "s1"}) as response:
        await response.content.readany()
    await live.sandbox.p5.idle(1.0)
    assert live.sandbox.p5.runs[0].cancelled
    await all_over(live)


async def test_a_client_that_leaves_during_its_tool_may_come_back(live: Live) -> None:
    talk = Talk(live, BASH)
    async with live.open(talk.body, headers=talk.headers) as response:
        raw = await response.content.read(100_000)
    await asyncio.sleep(0.6)
    assert b"message_stop" in raw and len(open_runs(live)) == 1


async def test_a_conversation_that_went_to_another_provider_leaves_no_run(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await live.post(ask("a side request", model="gpt-5.5"), headers=talk.headers)
    assert len(open_runs(live)) == 1
    talk.members["model"] = "gpt-5.5"
    await talk.turn(result(call))
    await all_over(live)


# -- what becomes of a run that waits


@with_live(tuning=(RunTimers(pause=0.1, exec_heartbeat=0.05),))
async def test_a_tool_that_never_comes_back_ends_the_run(live: Live) -> None:
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await all_over(live)
    assert live.sandbox.p5.runs[0].cancelled
    assert "late" in said(await talk.turn(result(call, "late"))) and runs(live) == 2


@with_live(tuning=(RunTimers(pause=0.4),))
async def test_a_long_run_of_short_tools_outlives_the_runs_of_others(live: Live) -> None:
    talk = Talk(live, " and then ".join(["use Bash: ls"] * 3))
    message = await talk.turn()
    for _ in range(2):
        await asyncio.sleep(0.25)
        message = await talk.turn(result(calls(message)[0]))
    await Talk(live, PLAIN, session="s2").turn()
    await talk.turn(result(calls(message)[0]))
    assert runs(live) == 2
    await all_over(live)


async def test_a_run_whose_stream_broke_behind_its_call_is_not_kept(live: Live) -> None:
    plays(live, shell(), {"raw": "no envelope"})
    talk = Talk(live, PLAIN)
    call = calls(await talk.turn())[0]
    await until(lambda: not open_runs(live))
    assert "told again" in said(await talk.turn(result(call, "told again"))) and runs(live) == 2


@with_live(tuning=(RunTimers(exec_heartbeat=0.1, heartbeat=0.5),))
async def test_a_tool_at_work_is_told_of_as_often_as_it_should(live: Live) -> None:
    live.sandbox.p5.options.exec_heartbeat_s = 0.9  # a machine may stand still for a while
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await asyncio.sleep(1.4)
    await talk.turn(result(call))
    await all_over(live)


@with_live(
    tuning=(RunTimers(silence=0.15, quiet_end=0.15, progress=0.3, stalled=0.2, exec_heartbeat=0.02, heartbeat=0.03),)
)
async def test_bridge_lost_during_a_long_bash_command(live: Live) -> None:
    live.sandbox.p5.options.heartbeat_s = 0.05
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    await asyncio.sleep(0.8)
    assert "after long work" in said(await talk.turn(result(call, "after long work"))) and runs(live) == 1
    await all_over(live)


async def test_a_stop_of_the_proxy_ends_the_runs_that_wait(live: Live) -> None:
    await Talk(live, BASH).turn()
    await live.app[STATE].providers["p5"].close()
    await live.sandbox.p5.idle(1.0)
    assert live.sandbox.p5.runs[0].cancelled and not open_runs(live)


@pytest.mark.parametrize("others", [(), ("cursor",)], ids=["it fails", "the run's model serves instead"])
async def test_a_result_that_another_service_could_not_take_still_finds_its_run(
    live: Live, others: tuple[str, ...]
) -> None:
    live.config = configured(live.config, fallback=(("kimi-for-coding", others),) if others else ())
    use(live, Fake("p2", played(UpstreamError("busy", kind="overloaded", provider="p2"))))
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    talk.members["model"] = "kimi-for-coding"
    talk.messages.append({"role": "user", "content": [result(call, "it is here")]})
    answer = await talk.ask()
    if not others:
        assert answer.status == 529 and open_runs(live)
        answer = await talk.ask(model="cursor")
    assert "it is here" in said(folded(answer)) and runs(live) == 1


async def test_a_result_that_another_service_answers_ends_its_run(live: Live) -> None:
    use(live, Fake("p2"))
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    talk.members["model"] = "kimi-for-coding"
    await talk.turn(result(call, "it is here"))
    await all_over(live)
    assert live.notes.all("cursor_conversation_moved")
