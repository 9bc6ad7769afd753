"""Routing between real providers: aliases that follow a session, the list of models, and counts of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Live, ask, tool
from wires import WIRES, Wire

from proxy.core.routing import AUTO_REVIEW_MARKER
from proxy.observe.lifecycle import ProviderSelected
from proxy.sandbox import Sandbox


async def served_by(live: Live, model: str, session: str | None = None) -> str:
    """The label of the provider that answered."""
    headers = {"x-claude-code-session-id": session} if session else {}
    answer = await live.post(ask(model=model), headers=headers)
    assert answer.status == 200, answer.raw
    assert answer.json["model"] == model
    return next(event.provider for event in live.watcher.last if isinstance(event, ProviderSelected))


async def test_aliases_go_to_p2_when_it_is_configured(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, alias_provider="p2") as live:
        assert [await served_by(live, alias) for alias in ("haiku", "claude-opus-5")] == ["p2", "p2"]
        assert sandbox.p2.requests[-1].body["model"] == "kimi-for-coding"
        assert await served_by(live, "gpt-5.5") == "p1"


async def test_an_alias_follows_its_session_to_p2_and_back(live: Live) -> None:
    assert await served_by(live, "haiku", "s") == "p1"
    assert await served_by(live, "kimi-k2.6", "s") == "p2"
    assert await served_by(live, "haiku", "s") == "p2"
    assert await served_by(live, "haiku", "other") == "p1"
    assert await served_by(live, "haiku") == "p1"
    assert await served_by(live, "gpt-5.5", "s") == "p1"
    assert await served_by(live, "haiku", "s") == "p1"


async def test_p4_never_stands_behind_an_alias(live: Live) -> None:
    assert await served_by(live, "glm-5.2", "s") == "p4"
    assert await served_by(live, "haiku", "s") == "p1"


async def test_the_safety_review_does_not_follow_the_session(live: Live) -> None:
    """It is asked of the model that the client names."""
    assert await served_by(live, "kimi-k2.6", "s") == "p2"
    before = live.sandbox.p2.total_requests
    body = ask(model="gpt-5.5", system=[{"type": "text", "text": AUTO_REVIEW_MARKER}], max_tokens=64)
    answer = await live.post(body, headers={"x-claude-code-session-id": "s"})
    assert answer.status == 200 and live.sandbox.p2.total_requests == before
    assert live.sandbox.p1.requests[-1].body["model"] == "gpt-5.6-luna"
    assert await served_by(live, "haiku", "s") == "p2"


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("kimi-k2.6", "p2"),
        ("kimi-k3", "p2"),
        ("k3", "p2"),
        ("opencode-go/kimi-k2.6", "p4"),
        ("opencode-go/kimi-k3", "p4"),
        ("glm-5.2", "p4"),
        ("opencode-go/glm-5.2", "p4"),
        ("gpt-5.6-luna", "p1"),
        ("opencode-go/gpt-5.6-luna", "p4"),
        ("opencode-go/grok-4.5", "p4"),
        ("minimax-m3", "p4"),
    ],
)
async def test_a_name_leads_to_its_provider(live: Live, model: str, label: str) -> None:
    assert await served_by(live, model) == label


async def test_the_list_has_qualified_and_bare_names(live: Live) -> None:
    names = {model["id"]: model["display_name"] for model in (await live.get("/v1/models")).json["data"]}
    assert names["kimi-for-coding"] == "kimi-for-coding (p2)" and names["kimi-k2.6"] == "kimi-k2.6 (p2)"
    assert names["glm-5.2"] == "glm-5.2 (p4)" and names["opencode-go/glm-5.2"].endswith("(p4)")
    assert names["gpt-5.6-luna"].endswith("(p1)") and names["opencode-go/gpt-5.6-luna"].endswith("(p4)")
    assert "opencode-go/grok-4.5" in names and names["haiku"] == "haiku (p1)"
    assert "p4" not in names.get("grok-4.5", "") and "p4" not in names["kimi-k3"]


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_tokens_are_counted_without_asking_anybody(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    async with Live(sandbox, tmp_path, signed_in=False, p4_api_key=None) as live:
        counts = []
        for body in (ask(model=wire.model), ask("hello " * 1000, model=wire.model, tools=[tool()])):
            answer = await live.post(body, "/v1/messages/count_tokens")
            assert answer.status == 200, answer.raw
            counts.append(answer.json["input_tokens"])
    assert 0 < counts[0] < 100 < 900 < counts[1] < 3000
    assert wire.sandbox(live).total_requests == 0


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_an_effort_that_nobody_knows_is_refused_at_once(live: Live, wire: Wire) -> None:
    answer = await live.post(ask(model=wire.model, output_config={"effort": "gigantic"}))
    assert answer.status == 400 and "output_config.effort" in answer.error["message"]
    assert wire.sandbox(live).total_requests == 0


async def test_an_unknown_model_of_p4_is_refused_at_once(live: Live) -> None:
    answer = await live.post(ask(model="opencode-go/nobody"))
    assert answer.status == 400 and live.sandbox.p4.total_requests == 0
