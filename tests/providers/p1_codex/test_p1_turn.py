"""P1 end to end: the proxy in front of the simulated upstream, and what becomes of everything that can go wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Hashable, Sequence
from typing import Any

from checks import check_message_stream
from harness import Live, ask, kinds, texts, until, watch_often, with_live
from outcomes import Good, Outcome, Refused, is_good, kind_of
from p1_events import CREATED, call_events, completed, delta, done, failed
from p1_faults import HTTP, SHARED, TOOLS, asked_for, comes_out, play
from samples import rows, sampled

from proxy.providers.upstream.transport import HttpTimers
from proxy.sandbox import FAULTS, Place
from proxy.sandbox.wires.responses.answer import CONTEXT_MESSAGE


def created(*more: Any) -> dict[str, Any]:
    """A step of raw events behind `response.created`."""
    return {"events": [CREATED, *more], "then": "end"}


def raw(*events: dict[str, Any]) -> str:
    """Events as the bytes of a stream."""
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


LATER = failed(code="server_error", message="busy")


# -- every fault has an outcome


def test_every_fault_of_the_sandbox_has_an_outcome() -> None:
    assert {name for name, _, _ in [*SHARED, *HTTP]} == set(FAULTS[Place("p1", "responses")])


def differs(fault: str, params: dict[str, Any], outcome: Outcome, stream: bool) -> Sequence[Hashable]:
    """What makes a difference: each row, and each kind of outcome in both forms."""
    return (fault, repr(params)), (kind_of(outcome), stream)


CASES = sampled(((*row, stream) for stream in (True, False) for row in [*SHARED, *HTTP]), 1, differs)


@rows("fault, params, outcome, stream", CASES)
async def test_a_fault_comes_out_as_the_table_says(
    live: Live, fault: str, params: dict[str, Any], outcome: Outcome, stream: bool
) -> None:
    refreshed = live.sandbox.p1.refreshes
    live.sandbox.p1.script.replace([{"fault": fault, **params}])
    answer = await live.post(asked_for(fault, params, stream=stream))
    expected = comes_out(live, answer, outcome, stream=stream)
    assert live.upstream == expected.attempts
    assert live.sandbox.p1.refreshes - refreshed == (fault == "unauthorized")
    if isinstance(outcome, Refused):
        assert live.sleeps == ([] if fault == "unauthorized" else [1.5, 3.0, 6.0][: outcome.attempts - 1])
    await live.sandbox.p1.idle()


@rows("split", ["one write", "many"])
@rows("ending", ["failed", "malformed", "cut"])
async def test_how_the_upstream_cuts_its_data_does_not_matter(live: Live, split: str, ending: str) -> None:
    """What came before the failure comes out, whether it came with it or before it."""
    last = {"failed": raw(LATER), "malformed": "data: {oops\n\n", "cut": 'data: {"type":"response.outp'}[ending]
    sent = raw({"type": "response.created"}, delta("Hel"), delta("lo")) + last
    pieces = [sent] if split == "one write" else [sent[at : at + 7] for at in range(0, len(sent), 7)]
    # a reset may overtake what was sent before it
    play(live, {"events": [*({"raw": piece} for piece in pieces), {"pause_s": 0.05}], "then": "cut"})
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert texts(answer.events) == "Hello" and answer.events[-1]["type"] == "error"
    assert live.upstream == 1


async def test_a_failure_in_the_middle_of_blocks_leaves_a_legal_stream(live: Live) -> None:
    """One piece of data closes a text, opens a call and fails."""
    message = {"type": "message", "id": "m", "role": "assistant", "content": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": message}
    arguments = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"comm'}
    piece = raw(delta("lo"), done(message), call_events("ls", "c", 1)[0], arguments, LATER)
    play(live, created(added, delta("Hel"), {"pause_s": 0.02}, {"raw": piece}))
    events = (await live.stream(ask(tools=TOOLS))).events
    check_message_stream(events)
    assert texts(events) == "Hello"
    assert kinds(events)[-2:] == ["content_block_delta", "error"]


# -- waiting


@rows(
    "status, kind, body, words",
    [
        (400, "invalid_request_error", {"detail": "Unsupported parameter: user"}, "Unsupported parameter: user"),
        (403, "permission_error", "<html><script>alert(1)</script></html>", "[^<]+"),
        (400, "invalid_request_error", {"error": {"message": "x" * 200_000}}, ".{,850}"),
    ],
)
async def test_a_permanent_refusal_is_told_once(live: Live, status: int, kind: str, body: Any, words: str) -> None:
    play(live, {"status": status, "body": body})
    answer = await live.post(ask())
    assert (answer.status, answer.error["type"], live.upstream) == (status, kind, 1)
    assert answer.error["provider"] == "p1" and set(answer.error) == {"type", "message", "provider"}
    assert re.fullmatch(words, answer.error["message"])


# -- the sign-in


async def test_a_renewal_that_fails_for_now_loses_nothing(live: Live) -> None:
    stored = (live.root / "p1" / "auth.json").read_bytes()
    live.sandbox.p1.revoke_access()
    live.sandbox.p1.issuer.answer_with(500, "broken")
    for answer in (await live.post(ask()), await live.stream(ask())):
        assert answer.status == 503 and answer.error["type"] == "api_error"
        assert "x-should-retry" not in answer.headers
    assert (live.root / "p1" / "auth.json").read_bytes() == stored
    live.sandbox.p1.issuer.recover()
    assert (await live.post(ask())).status == 200


# -- answers without content


async def test_an_empty_answer_to_a_tool_result_is_asked_for_once_more(live: Live) -> None:
    play(live, {"fault": "empty", "times": None})
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "use Bash: ls"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ]
    assert (await live.post(ask(messages, tools=TOOLS))).status == 529
    assert live.upstream == 2


@rows("stream", [True, False])
async def test_a_validation_request_takes_an_empty_answer(live: Live, stream: bool) -> None:
    play(live, {"fault": "empty"})
    answer = await live.post(ask(max_tokens=1, stream=stream))
    is_good(answer, Good(blocks=()), stream)
    assert live.upstream == 1


# -- cut streams


async def test_nothing_of_a_failed_attempt_is_seen(live: Live) -> None:
    items = [{"type": "reasoning", "id": "rs"}, {"type": "message", "id": "m"}]
    added = [{"type": "response.output_item.added", "output_index": n, "item": item} for n, item in enumerate(items)]
    play(live, created(*added, LATER))
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert texts(answer.events).startswith('You asked: "hello"')
    assert kinds(answer.events).count("content_block_start") == 1


# -- overflow


@rows("form", ["failed", "error", "http"])
@rows("stream", [True, False])
async def test_an_overflow_is_told_so_that_clients_compact(live: Live, form: str, stream: bool) -> None:
    live.sandbox.p1.options.context_limit = 1
    live.sandbox.p1.options.context_form = form
    answer = await live.post(ask(stream=stream))
    assert answer.status == 413
    assert answer.error == {"type": "request_too_large", "message": CONTEXT_MESSAGE, "provider": "p1"}
    assert "x-should-retry" not in answer.headers and live.upstream == 1


async def test_an_overflow_without_the_words_gets_them(live: Live) -> None:
    play(live, {"status": 400, "body": {"error": {"code": "context_length_exceeded", "message": "Input too long"}}})
    answer = await live.stream(ask())
    assert answer.status == 413 and answer.error["message"] == "context window exceeded: Input too long"


# -- time


@with_live(p1_header_timeout_ms=50)
async def test_a_head_that_never_comes_is_not_asked_for_again(live: Live) -> None:
    play(live, {"fault": "silence_before_head", "seconds": None, "times": None})
    answer = await live.stream(ask())
    assert answer.status == 502 and "50 ms" in answer.error["message"]
    assert live.upstream == 1 and not live.sleeps
    await live.sandbox.p1.idle()


@with_live(tuning=(HttpTimers(idle=0.05),))
async def test_a_body_that_pauses_too_long_is_asked_for_again(live: Live) -> None:
    play(live, {"fault": "silence_after_created", "seconds": None})
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert live.upstream == 2


@with_live(tuning=(HttpTimers(idle=0.05),))
async def test_a_text_that_pauses_too_long_ends_with_an_error(live: Live) -> None:
    play(live, {"fault": "silence_mid_text", "seconds": None})
    answer = await live.stream(ask())
    assert "paused for 50 ms" in answer.events[-1]["error"]["message"]


@with_live(tuning=(watch_often(keepalive=0.03),), stream_grace_ms=20)
async def test_a_silent_start_is_filled_with_pings_and_a_retry_stays_possible(live: Live) -> None:
    play(live, {"events": [{"type": "response.created"}, {"pause_s": 0.15}], "then": "cut"})
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert kinds(answer.events)[:2] == ["message_start", "ping"] and kinds(answer.events).count("ping") >= 3
    assert kinds(answer.events)[-1] == "message_stop" and live.upstream == 2


async def test_half_a_character_does_no_harm(live: Live) -> None:
    halves = {"raw": 'data: {"type":"response.output_text.delta","output_index":0,"delta":"\\ud83d"}\n\n'}
    play(live, *[created(halves, completed())] * 2)
    assert kinds((await live.stream(ask())).events)[-1] == "message_stop"
    assert (await live.post(ask())).status == 200


# -- the connection is given back


@rows("stream", [True, False])
@rows("fault", ["silence_before_head", "silence_after_created", "silence_mid_text", "silence_mid_arguments"])
async def test_a_client_that_leaves_at_any_moment_releases_the_upstream(live: Live, fault: str, stream: bool) -> None:
    play(live, {"fault": fault, "seconds": None})
    task = asyncio.ensure_future(live.post(ask(stream=stream, tools=TOOLS)))
    await until(lambda: live.sandbox.p1.active)
    await asyncio.sleep(0.03)
    task.cancel()
    await live.sandbox.p1.idle(1.0)
    await until(lambda: live.watcher.names[-1] == "Abandoned")
    assert not live.notes.all("internal_error")


@rows("steps", range(0, 120, 3))
async def test_cancelling_at_every_step_leaves_nothing_behind(live: Live, steps: int) -> None:
    """The client leaves after that many turns of the event loop."""
    live.sandbox.p1.script.replace([{"fault": "silence_mid_text", "seconds": None}])
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(live.post(ask(stream=True)))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await until(lambda: not [one for one in asyncio.all_tasks(loop) if "_watch" in repr(one)])
    await live.sandbox.p1.idle(1.0)
    assert not live.notes.all("internal_error")


async def test_the_log_tells_of_each_attempt_and_never_of_content(live: Live) -> None:
    play(live, {"fault": "server_error"})
    await live.stream(ask("the secret prompt"))
    await until(lambda: live.notes.all("request_completed"))
    messages = [msg for _, service, msg, _ in live.notes.records if service == "p1"]
    assert messages == [
        *("codex_upstream_request_started", "codex_upstream_response_received", "codex_upstream_request_failed"),
        *("codex_upstream_request_started", "codex_upstream_response_received"),
        *("codex_allowance", "codex_allowance", "codex_http_stream_completed"),  # two windows, seen for the first time
    ]
    assert "secret prompt" not in str(live.notes.records)
    assert live.notes.all("codex_upstream_request_failed")[0]["retryInS"] == 1.5
