"""Declared fallback: who serves in place of whom, and when nobody does."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from harness import Fake, Live, ask, parse_events, until, use, whole_message, with_live
from samples import each, rows

from proxy.config import Config, ConfigError
from proxy.fallbacks import fallbacks
from proxy.loading import load
from proxy.observe.lifecycle import Abandoned, FellBack
from proxy.server.app import create_app
from proxy.server.request.state import STATE
from proxy.settings import UnfitValue

SOL, KIMI, GROK = "gpt-5.6-sol", "kimi-k3", "grok-4.5"
TO_KIMI = {"fallback": ((SOL, (KIMI,)),), "openai_routes": True, "metrics": True}
HEADER = "x-model-proxy-fallback"

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
ROUTES = {
    "/v1/messages": ask(),
    "/v1/chat/completions": CHAT,
    "/v1/responses": {"input": "hi"},
}
#: Refusals of the first provider with the kind that each is, and whether another model serves by default.
REFUSALS = {
    "overloaded": ({"status": 529, "body": {}, "times": None}, True),
    "transient": ({"status": 503, "body": {}, "times": None}, True),
    "rate_limit": ({"status": 429, "headers": {"retry-after": "600"}, "body": {}, "times": None}, True),
    "invalid_request": ({"status": 400, "body": {"error": {"message": "no"}}, "times": None}, False),
    "permission": ({"status": 403, "body": {"error": {"message": "no"}}, "times": None}, False),
}


def body_of(path: str, *, stream: bool) -> dict[str, Any]:
    return {**ROUTES[path], "model": SOL, "stream": stream}


def refuse(live: Live, name: str = "overloaded") -> None:
    live.sandbox.p1.script.extend([REFUSALS[name][0]])


@each(2)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("name", REFUSALS)
@with_live(**TO_KIMI)
async def test_another_model_serves_where_the_error_is_of_a_named_kind(
    live: Live, name: str, path: str, stream: bool
) -> None:
    refuse(live, name)
    answer = await live.post(body_of(path, stream=stream), path)
    goes_on = REFUSALS[name][1]
    assert (answer.status == 200) is goes_on
    assert (answer.headers.get(HEADER) or "").startswith(f"{SOL} -> {KIMI}; ") is goes_on
    assert bool(live.sandbox.p2.requests) is goes_on
    await until(lambda: not live.app[STATE].admission.counts)
    if goes_on and not stream:
        assert answer.json["model"] == SOL


@with_live(**TO_KIMI)
async def test_everybody_who_watches_is_told(live: Live) -> None:
    refuse(live)
    assert (await live.post({**ask(), "model": SOL})).status == 200
    assert FellBack(SOL, KIMI, "overloaded") in live.watcher.last
    assert [record["instead"] for record in live.notes.all("fallback")] == [KIMI]
    row = live.app[STATE].monitor.snapshot().recent[0]
    assert (row.provider, row.fallback, row.status) == ("p2", f"{SOL}: overloaded", "completed")
    assert 'model_proxy_fallbacks_total{provider="p2"} 1' in (await live.get("/metrics")).raw.decode()


@with_live(**TO_KIMI)
async def test_without_an_error_nothing_is_different(live: Live) -> None:
    answer = await live.post({**ask(), "model": SOL})
    assert HEADER not in answer.headers and not live.sandbox.p2.requests


@with_live(fallback=((SOL, (KIMI, GROK)),))
async def test_the_third_serves_when_the_second_cannot_either(live: Live) -> None:
    refuse(live)
    live.sandbox.p2.script.extend([{"status": 503, "body": {}, "times": None}])
    answer = await live.post({**ask(), "model": SOL})
    assert answer.status == 200 and answer.headers[HEADER].startswith(f"{KIMI} -> {GROK}; ")


@with_live(**TO_KIMI)
async def test_when_nobody_can_serve_the_first_error_is_told_with_the_others(live: Live) -> None:
    refuse(live)
    live.sandbox.p2.script.extend([{"status": 400, "body": {"error": {"message": "too odd"}}, "times": None}])
    answer = await live.post({**ask(), "model": SOL})
    assert (answer.status, answer.error["type"]) == (529, "overloaded_error")
    assert f"In place of it: {KIMI}: " in answer.error["message"]


#: Where the first provider's stream ends, and whether another model may still serve.
MOMENTS = {"cut_before_output": True, "cut_thinking": False, "cut_text": False, "cut_arguments": False}


@pytest.mark.parametrize("fault", MOMENTS)
@with_live(**TO_KIMI)
async def test_a_stream_goes_on_with_another_model_only_before_anything_was_seen(live: Live, fault: str) -> None:
    live.sandbox.p1.script.extend([{"fault": fault, "times": None}])
    goes_on = MOMENTS[fault]
    answer = await live.stream({**ask(), "model": SOL, "thinking": {"type": "enabled", "budget_tokens": 2000}})
    events = parse_events(answer.raw)
    assert [event["type"] for event in events].count("message_start") == 1
    assert (events[-1]["type"] == "message_stop") is goes_on
    assert bool(live.sandbox.p2.requests) is goes_on


@with_live(**TO_KIMI)
async def test_a_whole_answer_goes_on_also_behind_a_broken_text(live: Live) -> None:
    """Nobody saw anything of it."""
    live.sandbox.p1.script.extend([{"fault": "cut_text", "times": None}])
    answer = await live.post({**ask(), "model": SOL})
    assert answer.status == 200 and HEADER in answer.headers


@with_live(**TO_KIMI)
async def test_a_client_that_left_is_served_by_nobody_else(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_before_head", "seconds": None}])
    task = asyncio.ensure_future(live.post({**ask(), "model": SOL}))
    await until(lambda: live.sandbox.p1.requests)
    task.cancel()
    await asyncio.wait({task})
    await until(lambda: live.watcher.told and isinstance(live.watcher.last[-1], Abandoned))
    assert not live.sandbox.p2.requests


@with_live(**TO_KIMI)
async def test_counting_asks_nobody(live: Live) -> None:
    answer = await live.post({**ask(), "model": SOL}, "/v1/messages/count_tokens")
    assert answer.status == 200 and HEADER not in answer.headers


@with_live(fallback=((SOL, (KIMI,)),), fallback_on=("sign_in",))
async def test_a_missing_sign_in_leads_there_where_it_is_named(live: Live) -> None:
    (live.root / "p1" / "auth.json").unlink()
    answer = await live.post({**ask(), "model": SOL})
    assert answer.status == 200 and answer.headers[HEADER] == f"{SOL} -> {KIMI}; sign_in"


@with_live(**TO_KIMI)
async def test_a_session_counts_the_request_once(live: Live) -> None:
    session = {"x-claude-code-session-id": "11111111-2222-4333-8444-555555555555"}
    refuse(live)
    await live.post({**ask(), "model": SOL}, headers=session)
    assert live.app[STATE].sessions._sessions[session["x-claude-code-session-id"]].sequence == 1


@pytest.mark.parametrize("model", [SOL, "gpt-5.5"])
@with_live(**TO_KIMI, openai_mode="lenient")
async def test_the_body_is_kept_only_where_another_model_may_answer(live: Live, model: str) -> None:
    kept: list[int] = []

    async def answer(_call: Any) -> AsyncGenerator[list[dict[str, Any]], None]:
        kept.append(sum(type(one) is dict and one.get("user") == "a mark" for one in gc.get_objects()))
        yield whole_message(model, "fine")

    use(live, Fake("p1", answer))
    await live.post({**CHAT, "model": model, "user": "a mark"}, "/v1/chat/completions")
    assert [count > 1 for count in kept] == [model == SOL]  # one is the client's


@rows(
    "value, found",
    [
        ({SOL: [KIMI, GROK]}, ((SOL, (KIMI, GROK)),)),
        (f"{SOL}={KIMI} {GROK}, kimi-k3={SOL}", ((SOL, (KIMI, GROK)), (KIMI, (SOL,)))),
        (json.dumps({SOL: KIMI}), ((SOL, (KIMI,)),)),
        (((SOL, (KIMI,)),), ((SOL, (KIMI,)),)),
        ("", ()),
        ({}, ()),
    ],
)
def test_the_setting_is_a_table_or_a_text(value: Any, found: Any) -> None:
    assert fallbacks(value) == found


WRONG = (
    *({SOL: []}, {SOL: [SOL]}, {SOL: [KIMI, KIMI]}, {SOL: [3]}, {SOL: 3}, {"": [KIMI]}, {3: [KIMI]}),
    *("{", "gpt-5.5", f"{SOL}={KIMI},{SOL}={GROK}", 3, [3], {SOL: [f"m{number}" for number in range(9)]}),
)


@rows("value", WRONG)
def test_what_cannot_be_right_is_refused(value: Any) -> None:
    with pytest.raises(UnfitValue, match="expected models"):
        fallbacks(value)


def test_models_that_nobody_has_and_kinds_that_no_model_cures_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"PROXY_FALLBACK: 'nobody-1': expected a model"):
        load({"PROXY_FALLBACK": f"{SOL}=nobody-1"})
    with pytest.raises(UnfitValue, match="fallback: 'nobody-1'"):
        create_app(Config(fallback=((SOL, ("nobody-1",)),)), config_dir=tmp_path)
    for kinds in ("invalid_request", "refused", "nonsense"):
        with pytest.raises(ConfigError, match=r"expected kinds of errors: .*overloaded"):
            load({"PROXY_FALLBACK_ON": kinds})
    assert load({"PROXY_FALLBACK_ON": "overloaded, sign_in"})[0].fallback_on == ("overloaded", "sign_in")
