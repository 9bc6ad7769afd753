"""Callers with keys of their own, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, until

from proxy.core.hiding.secret import Secret
from proxy.observe.lifecycle import InputEstimated, Started
from proxy.sandbox import Sandbox
from proxy.server.callers.keys import CallerKey, KeyLimits, digest_of, encode_keys
from proxy.server.request.state import STATE

SESSION = {"x-claude-code-session-id": "11111111-2222-4333-8444-555555555555"}
Open = Callable[..., Any]


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer mp-{name}"}


def write(path: Path, **limits: dict[str, int]) -> Path:
    rows = [CallerKey(name, digest_of(f"mp-{name}".encode()), 0, KeyLimits(**found)) for name, found in limits.items()]
    path.write_bytes(encode_keys(rows))
    return path


@pytest.fixture
async def live(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Live]:
    """anna may ask once at a time, bert twice a minute, carl has 10 tokens a day, dora no limit."""
    keys = write(
        tmp_path / "keys.json",
        anna={"at_a_time": 1},
        bert={"per_minute": 2},
        carl={"tokens_per_day": 10},
        dora={},
    )
    async with Live(
        sandbox, tmp_path, caller_keys=keys, api_key=Secret("owner"), openai_routes=True, metrics=True
    ) as live:
        yield live


async def test_each_key_opens_and_no_other_does(live: Live) -> None:
    for headers in (bearer("anna"), {"x-api-key": "mp-dora"}, {"x-api-key": "owner"}):
        assert (await live.post(ask(), headers=headers)).status == 200
    for headers in ({}, bearer("emil"), {"x-api-key": "anna"}, {"x-api-key": digest_of(b"mp-anna")}):
        answer = await live.post(ask(), headers=headers)
        assert (answer.status, answer.error["type"]) == (401, "authentication_error")


async def test_log_monitor_and_metrics_name_the_caller_and_never_the_key(live: Live) -> None:
    await live.post(ask(), headers=bearer("dora"))
    await live.post(ask(), headers={"x-api-key": "owner"})
    started = [event for told in live.watcher.told.values() for event in told if isinstance(event, Started)]
    assert [event.caller for event in started] == ["dora", None]
    callers = [fields.get("caller") for _, _, message, fields in live.notes.records if message.startswith("request")]
    assert callers == ["dora", "dora", None, None]
    rows = live.app[STATE].monitor.snapshot().recent
    assert sorted(str(row.caller) for row in rows) == ["None", "dora"]
    text = (await live.get("/metrics", **{"x-api-key": "owner"})).raw.decode()
    assert 'model_proxy_caller_requests_total{caller="dora",outcome="completed"} 1' in text
    assert 'model_proxy_caller_tokens_total{caller="dora",direction="output"}' in text
    assert "mp-dora" not in text + str(live.notes.records) + str(rows)


async def test_a_caller_asks_no_more_at_a_time_than_his_key_allows(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": None}])
    async with live.client.post(live.url + "/v1/messages", json=ask(stream=True), headers=bearer("anna")) as first:
        await first.content.readany()
        answer = await live.post(ask(), headers=bearer("anna"))
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1") and "the key anna" in answer.error[
            "message"
        ]
        assert (await live.post(ask(), headers=bearer("dora"))).status == 200
        first.close()
    await until(lambda: not live.app[STATE].admission.counts)
    assert (await live.post(ask(), headers=bearer("anna"))).status == 200


async def test_a_minute_has_so_many_requests_and_counting_tokens_is_none(live: Live) -> None:
    for _ in range(3):
        counted = await live.post(ask(), "/v1/messages/count_tokens", headers=bearer("bert"))
        assert counted.status == 200
    assert [(await live.post(ask(), headers=bearer("bert"))).status for _ in range(3)] == [200, 200, 429]


async def test_the_request_that_passes_the_tokens_of_a_day_is_served_and_the_next_is_not(live: Live) -> None:
    assert (await live.post(ask(), headers=bearer("carl"))).status == 200
    answer = await live.post(ask(), headers=bearer("carl"))
    assert answer.status == 429 and int(answer.headers["Retry-After"]) > 0


CHAT = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "hi"}]}
NATIVE = {"model": "gpt-5.5", "input": "hi", "prompt_cache_key": "mine"}


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/messages", ask()), ("/v1/chat/completions", CHAT), ("/v1/responses", NATIVE)]
)
async def test_two_callers_that_name_one_session_share_none(live: Live, path: str, body: dict[str, Any]) -> None:
    for headers in (bearer("dora"), bearer("anna"), bearer("dora"), {"x-api-key": "owner"}):
        assert (await live.post(body, path, headers={**SESSION, **headers})).status == 200
    sent = [str(one.body.get("prompt_cache_key")) for one in live.sandbox.p1.requests]
    assert len(set(sent)) == 3 and sent[0] == sent[2] and (sent[3] == "mine") is (path == "/v1/responses")
    known = live.app[STATE].sessions._sessions
    assert len(known) == 3 and next(iter(SESSION.values())) in known


async def test_a_session_in_the_body_is_the_caller_s_own_too(live: Live) -> None:
    body = ask(metadata={"user_id": "user_x_session_abc"})
    for name in ("dora", "anna"):
        assert (await live.post(body, headers=bearer(name))).status == 200
    assert len(live.app[STATE].sessions._sessions) == 2 and "abc" not in live.app[STATE].sessions._sessions


async def test_without_a_key_of_the_settings_those_of_callers_guard_alike(sandbox: Sandbox, tmp_path: Path) -> None:
    keys = write(tmp_path / "keys.json", anna={})
    async with Live(sandbox, tmp_path, caller_keys=keys) as live:
        assert (await live.post(ask())).status == 401
        assert (await live.post(ask(), headers=bearer("anna"))).status == 200
        assert (await live.get("/monitor", **bearer("anna"))).status == 200
        assert (await live.get("/monitor")).status == 401
        assert (await live.get("/healthz")).status == 200
        await asyncio.sleep(0)


async def test_a_conversation_of_p5_that_two_callers_name_is_two(live: Live) -> None:
    body = {**ask(), "model": "cursor:composer-2.5", "metadata": {"cursor_chat_id": "chat-7"}}
    for headers in (bearer("dora"), bearer("anna"), {"x-api-key": "owner"}):
        assert (await live.post(body, headers=headers)).status == 200
    ids = [request.body["conversation_id"] for request in live.sandbox.p5.requests]
    assert len(set(ids)) == 3 and ids[2] == "chat-7"


async def test_a_stream_of_the_monitor_ends_with_its_key(sandbox: Sandbox, tmp_path: Path) -> None:
    keys = write(tmp_path / "keys.json", anna={}, bert={})
    async with (
        Live(sandbox, tmp_path, caller_keys=keys) as live,
        live.client.get(live.url + "/monitor/events", headers=bearer("anna")) as events,
    ):
        await events.content.readuntil(b"\n\n")
        write(keys, bert={})
        await events.content.read()  # comes to an end


async def test_a_damaged_file_is_told_to_whoever_runs_it(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    async with Live(sandbox, tmp_path, caller_keys=tmp_path / "keys.json") as live:
        assert [record["reason"] for record in live.notes.all("keys_not_used")] == ["it is not JSON"]
        assert (await live.post(ask(), headers=bearer("anna"))).status == 401


async def test_a_stream_that_is_left_costs_what_was_counted(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": None}])
    async with live.client.post(live.url + "/v1/messages", json=ask(stream=True), headers=bearer("carl")) as answer:
        await answer.content.readany()
        await until(lambda: any(isinstance(event, InputEstimated) for event in live.watcher.last))
        answer.close()
    meter = live.app[STATE].callers.meter
    await until(lambda: meter._day.used["carl"].tokens > 0)
