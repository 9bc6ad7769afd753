"""What users report of this service, through the whole proxy, under their own words; as far as no other test has it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cursor_talk import SESSION, Talk, all_over, calls, folded, result, said
from harness import Live, ask, watch_often, with_live

from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.sandbox.p5.ledger import BLOB

BASH = "use Bash: ls"


def fault(live: Live, name: str, **members: Any) -> None:
    live.sandbox.p5.script.extend([{"provider": "p5", "fault": name, **members}])


async def test_blob_not_found_and_conversation_data_missing(live: Live) -> None:
    """Every run begins with an empty state, though the session and its id stay: nothing is asked of an earlier one."""
    for number in range(2):
        fault(live, "set_blobs")
        assert "3 blobs were kept" in said(await Talk(live, f"hello {number}").turn())
    first, second = (seen.body for seen in live.sandbox.p5.requests)
    assert first["conversation_id"] == second["conversation_id"]
    await all_over(live)  # where a state that is sent is a violation


async def test_workspace_context_exclusion_is_not_allowed(live: Live) -> None:
    """It is never asked for: the simulated service refuses it."""
    await Talk(live, "hello").turn()
    assert live.sandbox.p5.requests[-1].status == 200
    assert live.sandbox.p5.runs[0].first is not None and not live.sandbox.p5.runs[0].first.has(1, 12)


async def test_no_exec_result_or_the_run_ends_after_the_first_exec(live: Live) -> None:
    """The run stays open for as many as there are."""
    fault(live, "execs_together", kinds="grep read shell_stream ls")
    talk = Talk(live, "hello")
    message = await talk.turn()
    for number in range(2):
        message = await talk.turn(result(calls(message)[0], f"result {number}"))
    assert "result 0" in said(message) and "result 1" in said(message) and live.sandbox.p5.total_requests == 1
    assert live.sandbox.p5.runs[0].ledger.owed == []


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
async def test_tool_executed_twice(live: Live, cut: int) -> None:
    """The service took a part of the result and its answer was lost: that part is not sent again, in no run."""
    talk = Talk(live, BASH)
    call = calls(await talk.turn())[0]
    run = live.sandbox.p5.runs[0]
    run.cuts[len(run.appends) + cut] = False
    await talk.ask()
    await talk.turn(result(call, "once"))
    assert all(count == 1 for one in live.sandbox.p5.runs for count in one.appends.values())
    await all_over(live)


async def test_only_the_first_of_several_kv_answers_arrives(live: Live) -> None:
    """Each has a number of its own: the service drops one that it knows, and what comes behind a result stays empty."""
    fault(live, "set_blobs", count=20, size=40)
    assert "20 blobs were kept, 0 refused" in said(await Talk(live, "hello").turn())
    run = live.sandbox.p5.runs[0]
    assert all(one.done for one in run.ledger.asked if one.family == BLOB)
    assert sorted(run.appends.elements()) == list(range(len(run.appends)))


async def test_empty_continuation_after_a_tool_result(live: Live) -> None:
    """The service reads its blobs back behind a result, and goes on."""
    talk = Talk(live, BASH)
    fault(live, "set_blobs", count=3)
    message = await talk.turn()
    assert "it is here" in said(await talk.turn(result(calls(message)[0], "it is here")))
    assert live.sandbox.p5.total_requests == 1


@with_live(tuning=(RunTimers(heartbeat=0.05), watch_often(keepalive=0.1)))
async def test_client_aborts_with_stream_idle_timeout_after_long_thinking(live: Live) -> None:
    """While the service sends signs of life and nothing else, so do we."""
    live.sandbox.p5.options.heartbeat_s = 0.05
    beats = [{"type": "heartbeat"}, {"pause_s": 0.03}] * 20
    thought, text = {"type": "thinking_delta", "text": "hm"}, {"type": "text_delta", "text": "Done"}
    live.sandbox.p5.script.extend(
        [{"provider": "p5", "events": [thought, *beats, text, {"type": "turn_ended"}, {"type": "end"}]}]
    )
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


@with_live(tuning=(RunTimers(heartbeat=0.02, exec_heartbeat=0.02, after_end=0.02),))
@pytest.mark.parametrize("name", ["held_open", "turn_held_open", "cut_text", "end_error"])
async def test_stray_connection_errors_after_a_finished_chat(live: Live, name: str) -> None:
    """No sign of life goes out once a run is over, however it ended."""
    fault(live, name)
    await Talk(live, "hello").ask()
    await all_over(live)
    beats = live.sandbox.p5.runs[0].heartbeats
    await asyncio.sleep(0.1)
    assert live.sandbox.p5.runs[0].heartbeats == beats and not live.notes.all("cursor_append_failed")


@pytest.mark.parametrize("model", ["cursor-composer", "composer-2.5", "cursor:composer-2.5"])
async def test_composer_runs_and_bills_in_fast_mode(live: Live, model: str) -> None:
    assert (await live.post(ask(model=model))).status == 200
    assert live.sandbox.p5.requests[-1].body["parameters"] == {"fast": "false"} and live.sandbox.p5.billed_fast == 0


@pytest.mark.parametrize("model", ["cursor", "cursor:auto", "cursor-ask:auto"])
async def test_unknown_model_id_auto(live: Live, model: str) -> None:
    assert (await live.post(ask(model=model))).status == 200
    assert live.sandbox.p5.requests[-1].body["model"] == "default"


@pytest.mark.parametrize(("size", "status"), [(10, 429), (500_000, 413)], ids=["tiny prompt", "huge prompt"])
async def test_bare_resource_exhausted(live: Live, size: int, status: int) -> None:
    """A model that the plan does not have; or a request that is too large, which a client can do something about."""
    fault(live, "end_error", code="resource_exhausted")
    answer = await live.post(ask("x " * size, model="cursor"))
    assert answer.status == status
    assert ("plan" if status == 429 else "prompt is too long") in answer.error["message"]


async def test_prompt_injection_warnings_by_the_model(live: Live) -> None:
    """Known, and accepted: the system prompt stands in the text of the user, in a section of its own."""
    await live.post(ask(model="cursor", system="Be brief."), headers={SESSION: "s"})
    assert live.sandbox.p5.requests[-1].body["prompt"].startswith("<system>\nBe brief.\n</system>\n\n<user>")
