"""Allowances from answers and questions, told to callers and other programs, over restarts."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask

from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.errors import UpstreamError
from proxy.providers.accounts.allowance_store import FILE_NAME
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE, AppState
from proxy.server.routes.table import LIMITS
from proxy.server.serving.allowances import explained

LABELS = ["p1", "p2", "p3", "p4"]


async def test_every_service_is_asked_when_somebody_looks(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.p4.options.usage["monthly"] = 100
    async with Live(sandbox, tmp_path, limits_routes=True) as live:
        for path in LIMITS:
            answer = await live.get(path)
            told = answer.json
            assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
            assert [account["label"] for account in told["accounts"]] == LABELS
            assert (told["provider"], told["status"]) == ("OpenCode Go", "critical")  # its month is used up
            assert [meter["id"] for meter in told["meters"]][:2] == ["opencode_go_rolling", "opencode_go_weekly"]
        assert (await live.get(f"{path}?provider=codex")).json["label"] == "p1"
        assert (await live.get(f"{path}?provider=p5")).json["meters"] == []
        refused = await live.get(f"{path}?provider=p9")
        assert refused.status == 400 and "there are p1, p2" in refused.error["message"]
        rows = (await live.get("/monitor")).json["snapshot"]
        assert [row["provider"] for row in rows["allowances"]] == sorted(row["provider"] for row in rows["allowances"])
        assert "p4: Monthly window used up" in rows["notices"][0]["message"]


async def test_off_nothing_is_told_nor_asked(live: Live) -> None:
    answer = await live.get(LIMITS[0])
    assert answer.status == 404 and "PROXY_MONITOR_LIMITS" in answer.error["message"]
    assert (await live.post(ask())).status == 200
    assert list(live.app[STATE].allowances.current) == ["p1"]  # its answers tell, nobody was asked


async def test_what_is_known_outlives_a_restart_with_its_age(sandbox: Sandbox, tmp_path: Path) -> None:
    folder, now = tmp_path / "state", time.time()
    async with Live(sandbox, tmp_path, state_dir=folder, clock=lambda: now) as live:
        await live.post(ask())
        before = live.app[STATE].allowances.of("p1")
    assert "acct-sandbox" not in (folder / FILE_NAME).read_text()
    later = now + 300
    async with Live(sandbox, tmp_path, state_dir=folder, clock=lambda: later) as live:
        assert live.app[STATE].allowances.of("p1") == before and before is not None
        live.app[STATE].questions.providers = dict  # nobody can be asked
        rows = (await live.get("/monitor")).json["snapshot"]["allowances"]
        assert [(row["used"], row["as_of"], row["reset"]) for row in rows] == [
            (12, before.as_of, False),
            (3, before.as_of, False),
        ]
        later = now + 601  # both begin again after ten minutes
        rows = (await live.get("/monitor")).json["snapshot"]["allowances"]
        assert [(row["used"], row["resets_at"], row["reset"]) for row in rows] == [(0, None, True)] * 2


async def test_a_service_that_does_not_answer_is_told_of_once(sandbox: Sandbox, tmp_path: Path) -> None:
    times = iter(range(1_000_000, 9_000_000, 1000))
    at = float(next(times))
    gone = {f"{label}_base_url": "http://127.0.0.1:9/codex/responses" for label in LABELS}
    async with Live(sandbox, tmp_path, limits_routes=True, clock=lambda: at, **gone) as live:
        for _ in range(2):
            at = float(next(times))
            assert (await live.get(LIMITS[0])).json["accounts"] == []
        told = [service for _, service, msg, _ in live.notes.records if msg == "allowance_not_told"]
        assert sorted(set(told)) == sorted(told) and "p4" in told


NOW = 1_795_180_000.0
WEEK = AllowanceWindow("Weekly", 100.0, NOW, resets_at=NOW + 7200)
UNTIL = "(p2: Weekly window used up until 2026-11-20T15:06:40Z, in 2 h 0 min"

#: What is known, kind of the error, its time to wait -> what is added, the time to wait.
REFUSALS: list[tuple[Allowance, str, float | None, str, float | None]] = [
    (Allowance((WEEK,)), "usage_limit", None, f"{UNTIL})", 7200),
    (Allowance((WEEK,)), "usage_limit", 30.0, f"{UNTIL})", 7200),
    (Allowance((replace(WEEK, as_of=NOW - 9000),)), "usage_limit", None, f"{UNTIL}, as of 2 h ago)", 7200),
    (Allowance((WEEK,)), "usage_limit", 90_000.0, "(p2 is available again in 1 d 1 h)", 90_000),
    (Allowance((replace(WEEK, used=99.0),)), "usage_limit", None, "", None),
    (Allowance(), "usage_limit", 90.0, "(p2 is available again in 2 min)", 90),
    (Allowance((WEEK,)), "rate_limit", None, f"{UNTIL})", 7200),
    (Allowance((WEEK,)), "rate_limit", 5.0, "", 5),
    (Allowance((replace(WEEK, limit="glm"),)), "usage_limit", None, "", None),
    (Allowance((replace(WEEK, limit="kimi"),)), "usage_limit", None, "(p2: kimi, Weekly window used up", 7200),
    (Allowance((WEEK,), pays_on=True), "rate_limit", None, "", None),
    (Allowance((replace(WEEK, as_of=NOW - 9000),)), "rate_limit", None, "", None),
    (Allowance((WEEK,)), "overloaded", 5.0, "", 5),
]


@pytest.mark.parametrize(("known", "kind", "wait", "added", "after"), REFUSALS)
async def test_a_refusal_names_the_window_and_its_end(
    sandbox: Sandbox, tmp_path: Path, known: Allowance, kind: str, wait: float | None, added: str, after: float | None
) -> None:
    live = Live(sandbox, tmp_path, signed_in=False, clock=lambda: NOW)
    state: AppState = live.app[STATE]
    state.allowances.tell("p2", None, known)
    told = explained(state, UpstreamError("no more", kind=kind, retry_after=wait, provider="p2"), model="kimi-k3")
    assert told.message.startswith(f"no more {added}".rstrip()) and told.retry_after == after
    assert added or told.message == "no more"


async def test_the_end_that_a_refusal_tells_is_known_afterwards(sandbox: Sandbox, tmp_path: Path) -> None:
    state = Live(sandbox, tmp_path, signed_in=False, clock=lambda: NOW).app[STATE]
    refused = UpstreamError("no more", kind="usage_limit", retry_after=7200.0, provider="p5")
    explained(state, refused)
    told = explained(state, refused.replaced(retry_after=None))
    assert "p5: Usage limit window used up until 2026-11-20T15:06:40Z" in told.message and told.retry_after == 7200


#: model, another one of its service that counts against another limit as far as anybody knows
OTHERS = [("kimi-for-coding", None), ("grok-4.6", None), ("opencode-go/kimi-k2.6", "opencode-go/glm-5.2")]


@pytest.mark.parametrize(("model", "other"), OTHERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_limit_that_passes_is_not_told_as_the_window_of_an_earlier_refusal(
    live: Live, model: str, other: str | None, stream: bool
) -> None:
    def refused(kind: str, **headers: str) -> dict[str, Any]:
        return {"status": 429, "headers": headers, "body": {"error": {"type": kind, "message": "no more"}}}

    upstream = {"kimi-for-coding": live.sandbox.p2, "grok-4.6": live.sandbox.p3}.get(model, live.sandbox.p4)
    upstream.script.extend([refused("usage_limit_reached", **{"retry-after": "7200"})])
    spent = await live.post(ask(model=model, stream=stream))
    assert spent.status == 429 and spent.headers["Retry-After"] == "7200"
    for asked in filter(None, (other, model)):  # the window of one family says nothing of another; nor after a success
        upstream.script.extend([refused("rate_limit_error", **{"retry-after": "40"})])
        slow = await live.post(ask(model=asked, stream=stream))
        assert slow.status == 429 and slow.headers["Retry-After"] == "40" and "used up" not in slow.error["message"]
        assert (await live.post(ask(model=asked, stream=stream))).status == 200
    upstream.script.extend([refused("usage_limit_reached")])
    unknown = await live.post(ask(model=model, stream=stream))
    assert unknown.status == 429 and "Retry-After" not in unknown.headers and "used up" not in unknown.error["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_used_up_window_is_named_whatever_the_form(sandbox: Sandbox, tmp_path: Path, stream: bool) -> None:
    body: dict[str, Any] = {"error": {"type": "GoUsageLimitError", "message": "spent"}}
    sandbox.p4.options.usage["monthly"] = 100
    async with Live(sandbox, tmp_path, limits_routes=True, openai_routes=True) as live:
        await live.get(LIMITS[0])
        sandbox.p4.script.extend([{"status": 429, "body": body}] * 2)
        model = "opencode-go/kimi-k3"
        answer = await live.post(ask(model=model, stream=stream))
        assert answer.status == 429 and "p4: Monthly window used up until 20" in answer.error["message"]
        assert answer.error["message"].count("used up") == 1 and int(answer.headers["Retry-After"]) > 60
        chat = {"model": model, "messages": [{"role": "user", "content": "x"}], "stream": stream}
        told = await live.post(chat, "/v1/chat/completions")
        assert "p4: Monthly window used up until 20" in json.dumps(told.json)
