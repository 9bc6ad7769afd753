"""Which provider answers: names, aliases, sessions, the safety classifier."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from harness import Fake, Live, ask, tool, use, with_live
from wires import WIRES, Wire

from proxy.core.identity import Owner
from proxy.observe.lifecycle import ProviderSelected, Sequenced
from proxy.server.sessions import Sessions

MARKER = "You are a security monitor for autonomous AI coding agents."
REVIEW = [{"type": "text", "text": MARKER}]


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live_options(clock: Clock) -> dict[str, Any]:
    return {"clock": clock}


@pytest.fixture
def routed(live: Live) -> Live:
    """A proxy that serves p1 … p5, none of them for real."""
    for label in ("p1", "p2", "p3", "p4", "p5"):
        use(live, Fake(label))
    return live


async def served_by(live: Live, model: str, session: str | None = None, **members: Any) -> str:
    """The label of the provider that answered, or the status of a refusal."""
    headers = {"x-claude-code-session-id": session} if session else {}
    answer = await live.post(ask(model=model, **members), headers=headers)
    if answer.status != 200:
        return f"{answer.status}"
    assert members or answer.json["model"] == model.removesuffix("[1m]").removesuffix("[1M]")
    return next(event.provider for event in live.watcher.last if isinstance(event, ProviderSelected))


def sequence(live: Live) -> int | None:
    return next((event.number for event in live.watcher.last if isinstance(event, Sequenced)), None)


NAMES = {
    "p1": ("gpt-5.6-luna", "gpt-5.6-luna[1m]", "gpt-5.6-luna[1M]", "claude-opus-5", "claude-opus-5[1m]"),
    "p2": ("kimi-k2.6",),
    "p3": ("grok-4.5",),
    "p4": ("opencode-go/grok-4.5",),
    "p5": ("cursor:gpt-5.5", "cursor-plan:x", "composer-2.5-fast"),
    "400": (
        *("gpt-5.6-luna[1m][1m]", "[1m]", "", "gpt-5.6-luna ", "GPT-5.6-luna", "gpt-5.6", "claude-opus-9", "cursor:"),
    ),
}


@pytest.mark.parametrize(("label", "model"), [(label, model) for label, models in NAMES.items() for model in models])
async def test_a_name_leads_to_its_provider(routed: Live, model: str, label: str) -> None:
    assert await served_by(routed, model) == label


@pytest.mark.parametrize(
    ("label", "models"),
    [
        ("p1", ("gpt-5.6-luna",)),
        ("p2", ("kimi-k2.6", "kimi-k3", "k3")),
        ("p4", ("opencode-go/kimi-k2.6", "opencode-go/kimi-k3", "glm-5.2", "opencode-go/glm-5.2", "minimax-m3")),
        ("p4", ("opencode-go/gpt-5.6-luna", "opencode-go/grok-4.5")),
        ("400", ("opencode-go/nobody",)),
    ],
)
async def test_real_providers_answer_to_their_names(live: Live, label: str, models: tuple[str, ...]) -> None:
    for model in models:
        assert await served_by(live, model) == label
    assert label != "400" or live.sandbox.p4.total_requests == 0


async def test_the_list_has_qualified_and_bare_names(live: Live) -> None:
    names = {model["id"]: model["display_name"] for model in (await live.get("/v1/models")).json["data"]}
    for label, models in {
        "p1": ("gpt-5.6-luna", "haiku"),
        "p2": ("kimi-for-coding", "kimi-k2.6"),
        "p4": ("glm-5.2", "opencode-go/glm-5.2", "opencode-go/gpt-5.6-luna", "opencode-go/grok-4.5"),
    }.items():
        assert all(names[model] == f"{model} ({label})" for model in models)
    assert "p4" not in names.get("grok-4.5", "") and "p4" not in names["kimi-k3"]


@with_live(alias_provider="p2")
async def test_aliases_go_where_they_are_configured(live: Live) -> None:
    assert [await served_by(live, alias) for alias in ("haiku", "claude-opus-5", "opus")] == ["p2"] * 3
    assert live.sandbox.p2.requests[-1].body["model"] == "kimi-for-coding"
    assert await served_by(live, "gpt-5.5") == "p1"
    ids = {model["id"]: model["display_name"] for model in (await live.get("/v1/models")).json["data"]}
    assert ids["opus"] == "opus (p2)"


async def test_a_name_of_a_provider_that_is_not_there_is_refused(live: Live) -> None:
    answer = await live.post(ask(model="grok-4.5"))
    assert answer.status == 400 and "belongs to p3" in answer.error["message"]
    assert "Supported: p1: " in answer.error["message"]


async def asks(live: Live, *steps: tuple[str, str | None, str]) -> None:
    """One request after another: model, session, and who must have answered."""
    for model, session, label in steps:
        assert await served_by(live, model, session) == label, (model, session)


async def test_background_requests_follow_their_session(routed: Live, clock: Clock) -> None:
    await asks(routed, ("haiku", "s", "p1"), ("kimi-k2.6", "s", "p2"), ("haiku", "s", "p2"), ("haiku", "other", "p1"))
    await asks(routed, ("grok-4.5", "s", "p3"), ("haiku", "s", "p2"))
    assert sequence(routed) == 5
    clock.now += 31 * 60
    await asks(routed, ("haiku", "s", "p1"))
    assert sequence(routed) == 1


async def test_an_alias_follows_its_session_to_p2_and_back(live: Live) -> None:
    await asks(live, ("haiku", "s", "p1"), ("kimi-k2.6", "s", "p2"), ("haiku", "s", "p2"), ("haiku", "other", "p1"))
    await asks(live, ("haiku", None, "p1"), ("gpt-5.5", "s", "p1"), ("haiku", "s", "p1"))
    await asks(live, ("glm-5.2", "s", "p4"), ("haiku", "s", "p1"))


async def test_without_a_session_there_is_no_affinity(routed: Live) -> None:
    await asks(routed, ("kimi-k2.6", None, "p2"), ("haiku", None, "p1"))
    assert sequence(routed) is None


async def test_a_session_of_the_body_counts_like_one_of_the_headers(routed: Live) -> None:
    metadata = {"user_id": '{"device_id":"d","session_id":"S"}'}
    assert await served_by(routed, "kimi-k2.6", metadata=metadata) == "p2"
    assert await served_by(routed, "haiku", "S") == "p2"


async def test_only_requests_that_were_routed_count_and_token_counts_too(routed: Live) -> None:
    await asks(routed, ("kimi-k2.6", "s", "p2"), ("nobody", "s", "400"))
    await routed.post(b"{", headers={"x-claude-code-session-id": "s"})
    await asks(routed, ("kimi-k2.6", "s", "p2"))
    assert sequence(routed) == 2
    await routed.post(ask(), "/v1/messages/count_tokens", headers={"x-claude-code-session-id": "s"})
    assert sequence(routed) == 3


async def test_concurrent_requests_of_a_session_get_numbers_of_their_own(routed: Live) -> None:
    await asyncio.gather(*(served_by(routed, "gpt-5.5", "s") for _ in range(16)))
    numbers = [event.number for told in routed.watcher.told.values() for event in told if isinstance(event, Sequenced)]
    assert sorted(numbers) == list(range(1, 17))


async def test_the_table_of_sessions_is_bounded(clock: Clock) -> None:
    table = Sessions(clock, {"p1", "p2"}, max_sessions=2)
    for session in ("a", "b", "c"):
        table.routed(session, "p2", explicit=True)
    assert [table.affinity(session) for session in ("a", "b", "c")] == [None, "p2", "p2"]


# -- identity


@pytest.mark.parametrize(
    ("headers", "session", "owner"),
    [
        ([], None, None),
        ([("x-claude-code-session-id", "a")], "a", Owner("a")),
        ([("X-Agent-Session-Id", "a"), ("x-agent-id", "b")], "a", Owner("a", "b")),
        ([("x-claude-code-session-id", "a"), ("x-claude-code-agent-id", "malformed agent")], "a", None),
        ([("x-claude-code-session-id", "a"), ("x-claude-code-parent-agent-id", "p")], "a", None),
        ([("x-claude-code-session-id", "s"), ("x-claude-code-session-id", "t")], "s", None),
        ([("x-claude-code-session-id", "s" * 513)], "s" * 513, None),
        ([("x-claude-code-session-id", "s\xe9")], "s\xe9", None),
        ([("x-claude-code-agent-id", "b")], None, None),
    ],
)
async def test_who_asks_is_told_by_headers(
    routed: Live, headers: list[tuple[str, str]], session: str | None, owner: Owner | None
) -> None:
    provider = use(routed, Fake("p1"))
    answer = await routed.request("POST", "/v1/messages", json=ask(), headers=headers)
    assert answer.status == 200
    assert (provider.calls[-1].session, provider.calls[-1].owner) == (session, owner)


async def test_a_count_and_a_classifier_have_no_identity(routed: Live) -> None:
    provider = use(routed, Fake("p1"))
    headers = {"x-claude-code-session-id": "a"}
    await routed.post(ask(), "/v1/messages/count_tokens", headers=headers)
    await routed.post(ask(system=REVIEW), headers=headers)
    assert [(call.session, call.owner) for call in provider.calls] == [("a", None), ("a", None)]


# -- the safety classifier


@pytest.mark.parametrize(
    ("members", "model"),
    [
        ({"system": [{"type": "text", "text": "x"}, {"type": "text", "text": MARKER + " More."}]}, "gpt-5.6-luna"),
        ({"system": REVIEW, "tools": []}, "gpt-5.6-luna"),
        ({"system": REVIEW, "stream": True}, "gpt-5.5"),
        ({"system": REVIEW, "tools": [{"name": "Bash"}]}, "gpt-5.5"),
        ({"system": [{"type": "text", "text": " " + MARKER}]}, "gpt-5.5"),
        ({"system": MARKER}, "gpt-5.5"),
        ({}, "gpt-5.5"),
    ],
)
async def test_the_classifier_is_sent_to_a_small_model(routed: Live, members: dict[str, Any], model: str) -> None:
    provider = use(routed, Fake("p1"))
    await routed.post(ask(**members))
    assert provider.calls[-1].target.model == model
    assert provider.calls[-1].auto_review == (model != "gpt-5.5")


async def test_the_classifier_stays_with_other_providers(routed: Live) -> None:
    assert await served_by(routed, "kimi-k2.6", system=REVIEW) == "p2"


async def test_the_classifier_does_not_follow_its_session(live: Live) -> None:
    """It is asked of the model that the client names."""
    assert await served_by(live, "kimi-k2.6", "s") == "p2"
    assert await served_by(live, "gpt-5.5", "s", system=REVIEW, max_tokens=64) == "p1"
    assert live.sandbox.p2.total_requests == 1 and live.sandbox.p1.requests[-1].body["model"] == "gpt-5.6-luna"


@with_live(auto_review_model="grok-4.5[1m]")
async def test_the_classifier_can_be_sent_anywhere(live: Live) -> None:
    provider = use(live, Fake("p3"))
    assert await served_by(live, "gpt-5.5", system=REVIEW) == "p3"
    assert provider.calls[-1].model == "grok-4.5"
    assert live.notes.all("auto-review route selected")[0]["overrideModel"] == "grok-4.5"
    live.config = replace(live.config, auto_review_model="nobody")
    assert await served_by(live, "gpt-5.5", system=REVIEW) == "400"


async def test_the_classifier_counts_in_its_session_and_leaves_its_affinity(routed: Live) -> None:
    await served_by(routed, "kimi-k2.6", "s")
    assert await served_by(routed, "gpt-5.5", "s", system=REVIEW) == "p1"
    assert sequence(routed) == 2
    assert await served_by(routed, "haiku", "s") == "p2"


async def test_a_count_is_never_taken_for_the_classifier(routed: Live) -> None:
    provider = use(routed, Fake("p1"))
    await routed.post(ask(system=REVIEW), "/v1/messages/count_tokens")
    assert provider.calls[-1].target.model == "gpt-5.5"


# -- without asking anybody


@pytest.mark.parametrize("wire", WIRES, ids=str)
@with_live(signed_in=False, p4_api_key=None)
async def test_tokens_are_counted_without_asking_anybody(live: Live, wire: Wire) -> None:
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
