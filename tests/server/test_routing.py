"""Which provider answers: names, aliases, sessions, the safety classifier."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from harness import Fake, Live, ask, tool, until, use, with_live
from oauth_accounts import Clock
from samples import each, rows
from wires import WIRES, Wire

from proxy.core.identity import MAX_ID_BYTES, Owner
from proxy.core.models import ModelFacts, model_list
from proxy.observe.lifecycle import ProviderSelected, Sequenced
from proxy.providers.p5_cursor.catalog import NAMES as CURSOR_NAMES
from proxy.providers.registry import PROVIDERS
from proxy.server.request.accounts import Sessions
from proxy.server.request.state import STATE

MARKER = "You are a security monitor for autonomous AI coding agents."
REVIEW = [{"type": "text", "text": MARKER}]


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
    "p2": ("kimi-k2.6", "kimi-k3", "k3"),
    "p3": ("grok-4.5", "grok-4.6", "grok-composer-2.5-fast[1m]"),
    "p4": (
        *("opencode-go/kimi-k2.6", "opencode-go/kimi-k3", "glm-5.2", "opencode-go/glm-5.2", "minimax-m3"),
        *("opencode-go/gpt-5.6-luna", "opencode-go/grok-4.5"),
    ),
    "p5": ("cursor:gpt-5.5", "cursor-plan:x", "composer-2.5-fast"),
    "400": (
        *("gpt-5.6-luna[1m][1m]", "[1m]", "", "gpt-5.6-luna ", "GPT-5.6-luna", "gpt-oss", "claude-foo-1", "cursor:"),
        "opencode-go/nobody",
    ),
}


@pytest.mark.parametrize("label", NAMES)
async def test_a_name_leads_to_its_provider(live: Live, label: str) -> None:
    """To the real one where there is one."""
    use(live, Fake("p5"))
    for model in NAMES[label]:
        assert await served_by(live, model) == label, model
    assert label != "400" or live.upstream == live.sandbox.p4.total_requests == 0


async def test_the_list_has_qualified_and_bare_names(live: Live) -> None:
    names = {model["id"]: model["display_name"] for model in (await live.get("/v1/models")).json["data"]}
    for label, models in {
        "p1": ("gpt-5.6-luna", "haiku"),
        "p2": ("kimi-for-coding", "kimi-k2.6"),
        "p4": ("glm-5.2", "opencode-go/glm-5.2", "opencode-go/gpt-5.6-luna", "opencode-go/grok-4.5"),
    }.items():
        assert all(names[model] == f"{model} ({label})" for model in models)
    assert "p4" not in names.get("grok-4.5", "") and "p4" not in names["kimi-k3"]


async def test_the_list_shows_what_a_service_offers_at_the_moment(live: Live) -> None:
    lists = live.app[STATE].catalogs.lists
    lists._known["p5"] = model_list([("brand-new", ModelFacts())], 0.0)
    lists.generation += 1
    listed = [model["id"] for model in (await live.get("/v1/models")).json["data"]]
    new = ("cursor:brand-new", "cursor-plan:brand-new", "cursor-ask:brand-new")
    assert listed[-11:] == [*sorted(CURSOR_NAMES), *new]
    refused = await live.post(ask(model="nobody"))
    assert refused.error["message"].endswith(
        "cursor-composer-fast, cursor-plan, cursor:<model-id>, "
        "cursor-agent:<model-id>, cursor-plan:<model-id>, cursor-ask:<model-id>."
    )


@rows(
    "model, upstream",
    [
        ("claude-haiku-5-5", "gpt-5.6-luna"),
        ("claude-sonnet-5-5[1m]", "gpt-5.6-terra"),
        ("claude-fable-5-2", "gpt-5.6-sol"),
        ("claude-opus-9", "gpt-5.6-sol"),
        ("claude-opus-5-5", "gpt-6-sol"),
        ("claude-opus-5-5-20261101", "gpt-6-sol"),
        ("claude-opus-5-5@20261101", "gpt-6-sol"),
        ("claude-opus-5-50", "gpt-5.6-sol"),
        ("claude-3-5-haiku-20241022", "gpt-5.6-luna"),
    ],
)
async def test_any_version_of_a_family_of_claude_models_is_its_alias(live: Live, model: str, upstream: str) -> None:
    assert await served_by(live, model) == "p1"
    assert live.sandbox.p1.requests[-1].body["model"] == upstream
    assert (await live.post(ask(model=model), "/v1/messages/count_tokens")).status == 200
    await served_by(live, "kimi-k2.6", "session")
    assert await served_by(live, model, "session") == "p2"


@rows("prefix", ["z", "cursor:", "claude-opus-"])
async def test_an_answer_repeats_no_name_that_is_endless(live: Live, prefix: str) -> None:
    answer = await live.post(ask(model=prefix + "9" * 100_000))
    assert answer.status == 400 and len(answer.raw) < 10_000


@with_live(entries=(*PROVIDERS[:-1], replace(PROVIDERS[-1], build=None)))
async def test_a_name_of_a_provider_that_is_not_there_is_refused(live: Live) -> None:
    answer = await live.post(ask(model="cursor-agent"))
    assert answer.status == 400 and "belongs to p5" in answer.error["message"]
    assert "Supported: p1: " in answer.error["message"]


async def asks(live: Live, *steps: tuple[str, str | None, str]) -> None:
    """One request after another: model, session, and who must have answered."""
    for model, session, label in steps:
        assert await served_by(live, model, session) == label, (model, session)


async def test_background_requests_follow_their_session(live: Live, clock: Clock) -> None:
    use(live, Fake("p3"))
    await asks(live, ("haiku", "s", "p1"), ("kimi-k2.6", "s", "p2"), ("haiku", "s", "p2"), ("haiku", "other", "p1"))
    await asks(live, ("grok-4.5", "s", "p3"), ("haiku", "s", "p2"))
    assert sequence(live) == 5
    await asks(live, ("gpt-5.5", "s", "p1"), ("haiku", "s", "p1"), ("glm-5.2", "s", "p4"), ("haiku", "s", "p1"))
    await asks(live, ("kimi-k2.6", "s", "p2"), ("haiku", "s", "p2"), ("kimi-k2.6", None, "p2"), ("haiku", None, "p1"))
    assert sequence(live) is None
    clock.now += 31 * 60
    await asks(live, ("haiku", "s", "p1"))
    assert sequence(live) == 1


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


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_the_log_tells_provider_and_model_of_each_request(live: Live, wire: Wire) -> None:
    assert (await live.post(ask(model=wire.model))).status == 200
    await until(lambda: live.notes.all("request_completed"))
    [record] = live.notes.all("request_completed")
    assert (record["provider"], record["model"]) == (wire.label, wire.model)


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
        ([("X-Agent-Session-Id", "a"), ("x-agent-id", "b")], "a", Owner("a", "b")),
        ([("x-claude-code-session-id", "a"), ("x-claude-code-agent-id", "malformed agent")], "a", None),
        ([("x-claude-code-session-id", "s"), ("x-claude-code-session-id", "t")], "s", None),
        ([("x-claude-code-session-id", "s" * 513)], "s" * 513, None),
        ([("x-claude-code-session-id", "s\xe9")], "s\xe9", None),
    ],
)
async def test_who_asks_is_told_by_headers(
    routed: Live, headers: list[tuple[str, str]], session: str | None, owner: Owner | None
) -> None:
    provider = use(routed, Fake("p1"))
    answer = await routed.request("POST", "/v1/messages", json=ask(), headers=headers)
    assert answer.status == 200
    assert (provider.calls[-1].session, provider.calls[-1].owner) == (session, owner)


# -- the safety classifier


@pytest.mark.parametrize("count", [True, False], ids=["count", "message"])
@pytest.mark.parametrize(("system", "recognised"), [(REVIEW, True), (MARKER, False)], ids=["review", "text"])
async def test_the_classifier_is_sent_to_a_small_model_and_like_a_count_has_no_identity(
    routed: Live, system: Any, recognised: bool, count: bool
) -> None:
    provider = use(routed, Fake("p1"))
    path = "/v1/messages/count_tokens" if count else "/v1/messages"
    await routed.post(ask(system=system), path, {"x-claude-code-session-id": "a"})
    [call] = provider.calls
    assert call.auto_review is (recognised and not count)
    assert call.target.model == ("gpt-5.6-luna" if call.auto_review else "gpt-5.5")
    assert (call.session, call.owner) == ("a", None if count or recognised else Owner("a"))


async def test_the_classifier_is_asked_of_the_provider_that_the_client_names(live: Live) -> None:
    """It counts in its session and leaves its affinity."""
    for session in (None, "s"):
        assert await served_by(live, "kimi-k2.6", session, system=REVIEW) == "p2"
    assert await served_by(live, "gpt-5.5", "s", system=REVIEW, max_tokens=64) == "p1"
    assert live.sandbox.p2.total_requests == 2 and live.sandbox.p1.requests[-1].body["model"] == "gpt-5.6-luna"
    await asks(live, ("kimi-k2.6", "s", "p2"))
    assert await served_by(live, "gpt-5.5", "s", system=REVIEW) == "p1" and sequence(live) == 4
    await asks(live, ("haiku", "s", "p2"))


@with_live(auto_review_model="grok-4.5[1m]")
async def test_the_classifier_can_be_sent_anywhere(live: Live) -> None:
    provider = use(live, Fake("p3"))
    assert await served_by(live, "gpt-5.5", system=REVIEW) == "p3"
    assert provider.calls[-1].model == "grok-4.5"
    assert live.notes.all("auto-review route selected")[0]["overrideModel"] == "grok-4.5"
    live.config = replace(live.config, auto_review_model="nobody")
    assert await served_by(live, "gpt-5.5", system=REVIEW) == "400"


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


@each(1)
@pytest.mark.parametrize("wire", (Wire("p1", "responses", "gpt-5.5"), *WIRES), ids=str)
@pytest.mark.parametrize(
    ("asked", "nearest"), [("ultra", "max"), ("X-High", "xhigh"), ("minimal", "low"), ("purple", None), ("", None)]
)
async def test_an_effort_that_nobody_knows_becomes_the_nearest_or_none(
    live: Live, wire: Wire, asked: str, nearest: str | None
) -> None:
    seen = []
    for config in ({"effort": asked}, {"effort": nearest} if nearest else {}):
        body = ask(model=wire.model, **({"output_config": config} if config else {}))
        assert (await live.post(body, "/v1/messages/count_tokens")).status == 200
        assert (await live.post(body)).status == 200
        seen.append({name: value for name, value in wire.sent(live).items() if name not in wire.traits.fresh})
    assert seen[0] == seen[1]
    counted, note = live.notes.all("effort_replaced")
    assert (note["asked"], note["sent"]) == (counted["asked"], counted["sent"])
    assert note["asked"] == asked and (nearest or note["sent"] not in ("max", asked))


AGENT = {"x-claude-code-agent-id": "a"}

#: route, what asks for effort in its body
ASKING = {
    "/v1/messages": lambda effort: {"output_config": {"effort": effort}},
    "/v1/chat/completions": lambda effort: {"reasoning_effort": effort},
    "/v1/responses": lambda effort: {"reasoning": {"effort": effort}},
}


@pytest.mark.parametrize("wire", (Wire("p1", "responses", "gpt-5.5"), *WIRES), ids=str)
@with_live(side_effort="low", openai_routes=True, openai_mode="lenient")
async def test_an_agent_gets_no_more_effort_than_the_settings_allow(live: Live, wire: Wire) -> None:
    for path, asking in ASKING.items():
        base = ask(model=wire.model)
        if path == "/v1/responses":
            base = {"model": wire.model, "input": "hello"}
        seen = []
        for effort, headers in (("high", AGENT), ("low", AGENT), ("low", {})):
            answer = await live.post(base | asking(effort), path, headers=headers)
            assert answer.status == 200, answer.raw
            seen.append({name: value for name, value in wire.sent(live).items() if name not in wire.traits.fresh})
        assert seen[0] == seen[1] == seen[2]
        noted = [note for note in live.notes.all("effort_replaced") if note.get("reason") == "side request"]
        assert [note["sent"] for note in noted] == ["low"]
        live.notes.records.clear()


@with_live(side_effort="medium")
async def test_the_small_model_is_for_side_requests_and_counts_are_not_touched(live: Live) -> None:
    sent = []
    for model in ("claude-haiku-4-5", "gpt-5.6-luna", "gpt-5.5"):
        body = ask(model=model, output_config={"effort": "high"})
        assert (await live.post(body, "/v1/messages/count_tokens")).status == 200
        assert not live.notes.all("effort_replaced") or sent
        assert (await live.post(body)).status == 200
        sent.append(live.sandbox.p1.requests[-1].body["reasoning"]["effort"])
    assert sent == ["medium", "medium", "high"] and len(live.notes.all("effort_replaced")) == 2


async def test_no_effort_at_all_is_a_word_that_p3_knows(live: Live) -> None:
    await live.post(ask(model="grok-4.6", output_config={"effort": "none"}))
    assert live.sandbox.p3.requests[-1].body["reasoning"] == {"effort": "none"}
    assert not live.notes.all("effort_replaced")


async def test_an_id_that_no_client_has_fills_no_table(live: Live) -> None:
    known = live.app[STATE].sessions
    for length in (MAX_ID_BYTES, MAX_ID_BYTES + 1, 4 * MAX_ID_BYTES):
        assert (await live.post(ask("hello"), headers={"x-claude-code-session-id": "s" * length})).status == 200
    assert [len(session) for session in known._sessions] == [MAX_ID_BYTES]
