"""P1's own compaction end to end: what is sent, what stays when something fails, and who owns it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from checks import check_message_stream
from harness import (
    Answer,
    Fake,
    Live,
    ask,
    configured,
    kinds,
    parse_events,
    played,
    texts,
    until,
    use,
    watch_often,
    with_live,
)
from p1_events import call_events, completed, delta, done
from p1_faults import play
from samples import rows

from proxy.core.effort import TASK_MARKER, TEXT_ONLY_MARKER
from proxy.core.messages import Event
from proxy.errors import UpstreamError
from proxy.providers.p1_codex.compaction.flow import CompactionFlow, CompactionFlowLimits, _AnswerEnd
from proxy.sandbox.wires.encrypted_content import encrypt
from proxy.server.request.state import STATE

INSTRUCTION = f"{TEXT_ONLY_MARKER}\n\n{TASK_MARKER} the conversation so far."
SUMMARY = "The user wants a parser for dates; it is half done."
MODEL = "gpt-5.6-sol"
SESSION = {"x-claude-code-session-id": "s1"}
ENCRYPTED = encrypt("acct-sandbox", "cmp_1")
COMPACTED = {"type": "compaction", "encrypted_content": ENCRYPTED}
TRIGGERED = {"contains": "compaction_trigger"}


def said(role: str, *parts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": part} for part in parts]}


TURN = [said("user", "first"), said("assistant", "answer")]
BOUNDARY = ask([*TURN, said("user", "second", INSTRUCTION)], model=MODEL, system="Be brief.")
AFTER = ask(
    [said("user", f"Continued: {SUMMARY}"), said("assistant", "on it"), said("user", "third")],
    model=MODEL,
    system="Be brief.",
)


def after(first: str) -> dict[str, Any]:
    """The next request, but with another first message."""
    return {**AFTER, "messages": [said("user", first), *AFTER["messages"][1:]]}


def spoken(text: str, **response: Any) -> list[dict[str, Any]]:
    return [delta(text), completed(**response)]


ITEM = {"id": "cmp_1", **COMPACTED}
COMPACTS = {"match": TRIGGERED, "events": [{"type": "response.created"}, done(ITEM), completed()]}
FOR_SUMMARY = {"contains": TASK_MARKER}
SUMMARISES = {"match": FOR_SUMMARY, "events": spoken(f"<analysis>hm</analysis><summary>{SUMMARY}</summary>")}
TOO_LONG = {"incomplete_details": {"reason": "max_output_tokens"}}


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"p1_server_compaction": True}


async def compacted(live: Live, headers: dict[str, str] = SESSION) -> None:
    """A summary as it should go."""
    play(live, COMPACTS, SUMMARISES)
    answer = await live.stream(BOUNDARY, headers=headers)
    assert answer.status == 200 and SUMMARY in texts(answer.events)


def inputs(live: Live) -> list[list[dict[str, Any]]]:
    return [seen.body["input"] for seen in live.sandbox.p1.requests]


def reasons(live: Live, msg: str = "failed") -> list[str]:
    return [fields["reason"] for fields in live.notes.all(f"server_compaction_{msg}")]


def is_native(items: list[dict[str, Any]]) -> bool:
    return COMPACTED in items


async def follows(live: Live, body: dict[str, Any] = AFTER, headers: dict[str, str] = SESSION) -> bool:
    """Sends the next request; whether it went out with the encrypted item."""
    answer = await live.stream(body, headers=headers)
    assert answer.status == 200
    check_message_stream(answer.events)
    return is_native(inputs(live)[-1])


# -- as it should go


async def test_a_summary_is_asked_for_in_both_ways_and_the_item_is_sent_later(live: Live) -> None:
    await compacted(live)
    compaction, summary = inputs(live)
    assert [item.get("role") for item in compaction] == ["user", "assistant", "user", None]
    assert compaction[-1] == {"type": "compaction_trigger"} and TASK_MARKER not in str(compaction)
    assert "instructions" not in live.sandbox.p1.requests[0].body and TASK_MARKER in str(summary)
    assert live.sandbox.p1.requests[0].headers["session-id"] == "s1"

    for _ in range(2):
        assert await follows(live)
        envelope, first, second, item, *rest = inputs(live)[-1]
        assert (envelope["role"], item) == ("developer", COMPACTED)
        said = [message["content"][0]["text"] for message in (first, second, *rest)]
        assert said == ["first", "second", "on it", "third"]
        assert SUMMARY not in str(inputs(live)[-1])
    assert not reasons(live) and not reasons(live, "dropped")


async def test_the_sandbox_plays_along_without_a_script(live: Live) -> None:
    """Its own model makes the item, checks it when it comes back, and writes the summary."""
    answer = (await live.post(BOUNDARY, headers=SESSION)).json["content"][-1]["text"]
    summary = answer.partition("<summary>")[2].partition("</summary>")[0].strip()
    assert (await live.post(after(f"Continued: {summary}"), headers=SESSION)).status == 200
    assert [item["type"] for item in inputs(live)[-1]].count("compaction") == 1 and not reasons(live)


async def test_what_the_log_tells(live: Live) -> None:
    await compacted(live)
    (triggered,) = live.notes.all("server_compaction_triggered")
    (completed,) = live.notes.all("server_compaction_completed")
    assert triggered == {"reqId": triggered["reqId"], "model": MODEL, "items": 4}
    assert completed["items"] == 3 and completed["ms"] >= 0
    told = str(live.notes.records)
    assert SUMMARY not in told and ENCRYPTED not in told and not re.search(r"\bfirst\b", told)
    assert live.watcher.names.count("UpstreamStarted") == 1  # that of the summary
    assert live.watcher.names.index("CompactionStarted") < live.watcher.names.index("UpstreamStarted")


async def test_the_estimate_counts_the_history_and_not_the_summary(live: Live) -> None:
    await compacted(live)
    answer = await live.stream(after(f"Continued: {SUMMARY}" + " word" * 5000), headers=SESSION)
    assert is_native(inputs(live)[-1]) and answer.events[0]["message"]["usage"]["input_tokens"] < 500


async def test_it_is_asked_for_again_like_any_other_answer(live: Live) -> None:
    play(live, {"match": TRIGGERED, "fault": "server_error"}, {"match": TRIGGERED, "fault": "failed"})
    await compacted(live)
    assert live.sleeps == [1.5, 3.0] and len(live.notes.all("codex_upstream_request_failed")) == 2
    assert await follows(live)


async def test_a_refused_token_is_renewed_for_it(live: Live) -> None:
    live.sandbox.p1.revoke_access()
    await compacted(live)
    assert live.sandbox.p1.refreshes == 1 and await follows(live)


@with_live(p1_server_compaction=True, tuning=(watch_often(),), stream_grace_ms=10)
@rows("refused", [False, True])
async def test_while_the_item_is_made_the_client_is_not_left_in_silence(
    live: Live, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """After the grace the stream begins as that of any slow answer, and what follows belongs to it: a failure too."""
    made = asyncio.Event()

    async def ask_slowly(*_: Any) -> str:
        await made.wait()
        return ENCRYPTED

    monkeypatch.setattr(CompactionFlow, "_ask", ask_slowly)
    play(live, {"match": FOR_SUMMARY, "fault": "forbidden"} if refused else SUMMARISES)
    async with live.open({**BOUNDARY, "stream": True}, SESSION) as response:
        raw = b""
        while b"event: ping" not in raw:
            raw += await response.content.readany()
        assert live.upstream == 0
        made.set()
        events = parse_events(raw + await response.read())
    check_message_stream(events)
    assert kinds(events).count("message_start") == 1 and kinds(events)[:2] == ["message_start", "ping"]
    assert events[0]["message"]["usage"]["input_tokens"] > 1
    assert kinds(events)[-1] == ("error" if refused else "message_stop")
    assert await follows(live) is not refused


# -- when it fails


@rows(
    "step, reason",
    [
        ({"events": [completed()]}, "no_item"),
        ({"events": [done(ITEM), done({**ITEM, "id": "cmp_2"}, 1), completed()]}, "several_items"),
        ({"events": [done(ITEM), {"type": "response.done", "response": {}}]}, "not_completed"),
        ({"events": [done(ITEM), completed(status="incomplete", **TOO_LONG)]}, "not_completed"),
        ({"events": spoken("a summary in words")}, "no_item"),
        ({"events": [done({"type": "compaction"}), completed()]}, "no_item"),
        ({"events": [done({**ITEM, "encrypted_content": "x" * 4_200_000}), completed()]}, "too_large"),
        ({"fault": "server_error", "times": 4}, "transient"),
        ({"fault": "unauthorized", "times": 2}, "sign_in"),
        ({"fault": "context_http"}, "context"),
        ({"fault": "usage_limit"}, "usage_limit"),
        ({"events": [done(ITEM)], "times": 4}, "transport"),
        ({"events": [done(ITEM)], "then": "cut", "times": 4}, "transport"),
    ],
)
async def test_whatever_fails_the_client_gets_its_summary(live: Live, step: dict[str, Any], reason: str) -> None:
    play(live, {"match": TRIGGERED, **step}, SUMMARISES)
    answer = await live.stream(BOUNDARY, headers=SESSION)
    check_message_stream(answer.events)
    assert SUMMARY in texts(answer.events) and kinds(answer.events)[-1] == "message_stop"
    assert reasons(live) == [reason] and not live.notes.all("server_compaction_completed")
    assert not await follows(live)


@with_live(p1_server_compaction=True, tuning=(CompactionFlowLimits(wait_s=0.05),))
async def test_a_backend_that_takes_its_time_is_not_waited_for(live: Live) -> None:
    play(live, {"match": TRIGGERED, "fault": "silence_before_head", "seconds": None}, SUMMARISES)
    assert SUMMARY in texts((await live.stream(BOUNDARY, headers=SESSION)).events)
    assert reasons(live) == ["timeout"] and not await follows(live)
    await live.sandbox.p1.idle()


async def test_no_sign_in_is_told_as_ever(live: Live) -> None:
    (live.root / "p1" / "auth.json").unlink()
    answer = await live.stream(BOUNDARY, headers=SESSION)
    assert answer.status == 401 and reasons(live) == ["sign_in"]


@rows(
    "step, status, reason",
    [
        ({"events": spoken("short")}, 200, "summary_too_short"),
        ({"events": [delta(SUMMARY)], "then": "cut"}, 200, "summary_failed"),
        ({"fault": "forbidden"}, 403, "summary_failed"),
        ({"events": spoken(SUMMARY, **TOO_LONG)}, 200, "summary_failed"),
        ({"events": [delta(SUMMARY), call_events("ls", "c", 1)[-1], completed()]}, 200, "summary_failed"),
    ],
)
async def test_without_a_whole_summary_nothing_is_kept(
    live: Live, step: dict[str, Any], status: int, reason: str
) -> None:
    play(live, COMPACTS, {"match": FOR_SUMMARY, **step})
    answer = await live.stream(BOUNDARY, headers=SESSION)
    assert answer.status == status and reasons(live) == [reason]
    assert not await follows(live)


@rows("stream", [False, True])
async def test_a_client_that_leaves_ends_its_attempt(live: Live, stream: bool) -> None:
    play(live, {"match": TRIGGERED, "fault": "silence_before_head", "seconds": None})
    task = asyncio.ensure_future(live.post({**BOUNDARY, "stream": stream}, headers=SESSION))
    await until(lambda: live.sandbox.p1.active)
    task.cancel()
    await live.sandbox.p1.idle()
    await until(lambda: live.watcher.names[-1] == "Abandoned")
    assert len(live.app[STATE].providers["p1"]._compaction._store) == 0  # type: ignore[attr-defined]
    assert live.upstream == 1  # nobody is asked for the summary


# -- a history that is refused


@rows("step", [{"fault": "unsealable"}, {"fault": "context_http"}, {"status": 400, "body": {"detail": "no"}}])
async def test_a_history_that_is_refused_goes_out_as_the_summary_at_once(live: Live, step: dict[str, Any]) -> None:
    await compacted(live)
    play(live, {"match": {"contains": ENCRYPTED}, **step})
    answer = await live.stream(AFTER, headers=SESSION)
    check_message_stream(answer.events)
    assert kinds(answer.events)[-1] == "message_stop" and not live.sleeps
    assert [is_native(items) for items in inputs(live)[2:]] == [True, False]
    assert SUMMARY in str(inputs(live)[-1]) and reasons(live, "dropped") == ["refused"]
    assert not await follows(live)


async def test_a_request_that_is_refused_either_way_is_told(live: Live) -> None:
    await compacted(live)
    play(live, {"status": 400, "body": {"detail": "no"}, "times": 2})
    answer = await live.stream(AFTER, headers=SESSION)
    assert answer.status == 400 and answer.error["message"] == "no" and live.upstream == 4


@rows("step", [{"events": [delta("Hel")], "then": "cut"}, {"fault": "forbidden"}, {"fault": "incomplete"}])
async def test_an_answer_that_fails_ends_the_state(live: Live, step: dict[str, Any]) -> None:
    await compacted(live)
    play(live, step)
    await live.stream(AFTER, headers=SESSION)
    assert reasons(live, "dropped") == ["answer_failed"] and not await follows(live)


# -- whose it is


@rows(
    "body, reason",
    [
        ({**AFTER, "model": "gpt-5.5"}, "other_model"),
        (after(f"{SUMMARY} {SUMMARY}"), "summary_repeated"),
        (after("else"), "summary_missing"),
    ],
)
async def test_another_conversation_ends_the_state(live: Live, body: dict[str, Any], reason: str) -> None:
    await compacted(live)
    assert not await follows(live, body)
    assert reasons(live, "dropped") == [reason] and not await follows(live)


async def test_without_an_owner_there_is_nothing(live: Live) -> None:
    play(live, SUMMARISES)
    for headers in ({}, {"x-claude-code-session-id": "s 1"}):
        await live.stream(BOUNDARY, headers=headers)
    assert not live.notes.all("server_compaction_triggered") and live.upstream == 2


async def test_turned_off_nothing_is_asked_for_and_what_was_is_gone(live: Live) -> None:
    await compacted(live)
    live.config = configured(live.config, p1_server_compaction=False)
    assert not await follows(live)
    await live.stream(BOUNDARY, headers=SESSION)
    assert len(live.notes.all("server_compaction_triggered")) == 1 and reasons(live, "dropped") == ["off"]
    live.config = configured(live.config, p1_server_compaction=True)
    assert not await follows(live)


async def test_counting_and_the_safety_classifier_touch_nothing(live: Live) -> None:
    await compacted(live)
    monitor = [{"type": "text", "text": "You are a security monitor for autonomous AI coding agents."}]
    other = after("else")
    assert (await live.post({**other, "system": monitor}, headers=SESSION)).status == 200
    for body in (other, BOUNDARY):
        assert (await live.post(body, "/v1/messages/count_tokens", SESSION)).status == 200
    assert not reasons(live, "dropped") and len(live.notes.all("server_compaction_triggered")) == 1
    assert await follows(live)


@rows("messages, kept", [(AFTER["messages"], False), ([said("user", "Write a title")], True)])
async def test_a_conversation_that_goes_on_elsewhere_is_forgotten(
    live: Live, messages: list[dict[str, Any]], kept: bool
) -> None:
    use(live, Fake("p2"))
    await compacted(live)
    assert (await live.post(ask(messages, model="kimi-for-coding"), headers=SESSION)).status == 200
    assert await follows(live) is kept
    assert reasons(live, "dropped") == ([] if kept else ["served_elsewhere"])


@with_live(p1_server_compaction=True, fallback=(("kimi-for-coding", (MODEL,)),))
async def test_a_conversation_that_no_other_service_answered_is_not_forgotten(live: Live) -> None:
    """The model that was asked for is down: its error, or the answer of the model behind it, forgets nothing."""
    use(live, Fake("p2", played(UpstreamError("busy", kind="overloaded", provider="p2"))))
    await compacted(live)
    assert await follows(live, {**AFTER, "model": "kimi-for-coding"})
    live.config = configured(live.config, fallback=())
    assert (await live.post({**AFTER, "model": "kimi-for-coding"}, headers=SESSION)).status == 529
    assert await follows(live) and not reasons(live, "dropped")


# -- overlaps


async def test_of_two_summaries_at_once_the_newer_counts(live: Live) -> None:
    """The older compaction comes last and is not listened to, nor is its summary."""
    other = encrypt("acct-sandbox", "cmp_2")
    play(live, {**COMPACTS, "events": [{"pause_s": 0.1}, done({**ITEM, "encrypted_content": other}), completed()]})
    older = asyncio.ensure_future(live.stream(BOUNDARY, headers=SESSION))
    await until(lambda: live.sandbox.p1.active)
    play(live, SUMMARISES, SUMMARISES)
    play(live, COMPACTS)
    assert SUMMARY in texts((await live.stream(BOUNDARY, headers=SESSION)).events)
    late: Answer = await older
    assert SUMMARY in texts(late.events) and reasons(live) == ["superseded"]
    assert await follows(live)


async def test_the_state_stands_before_the_client_sees_the_end(live: Live) -> None:
    """A client that sends its next request on `message_stop` finds it."""
    play(live, COMPACTS, {**SUMMARISES, "events": [*SUMMARISES["events"], {"pause_s": 0.2}]})
    async with live.open({**BOUNDARY, "stream": True}, SESSION) as response:
        seen = b""
        while b"message_stop" not in seen:
            seen += await response.content.readany()
        assert await follows(live)


def test_an_answer_is_noted_up_to_a_limit() -> None:
    ending = _AnswerEnd(5, [])
    deltas: list[Event] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": kind, kind.removesuffix("_delta"): "abc"}}
        for kind in ("text_delta", "thinking_delta", "text_delta", "text_delta")
    ]
    ending.feed(deltas)
    assert ending.texts == ["abc"] and ending.size == 9
