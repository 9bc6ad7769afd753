"""The lists of models that the services give: asked beside requests, kept, and stronger than our own tables."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, configured, until
from media_live import PNG
from oauth_accounts import Clock

from proxy.config import Config
from proxy.core.models import ModelFacts, ModelList
from proxy.core.routing import ALIASES, Catalog, normalise_model, route
from proxy.providers.accounts.model_lists import ListTimers, ModelLists, read_lists
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import Sandbox
from proxy.sandbox.p1.catalog import P1Model
from proxy.sandbox.p2.catalog import MODELS as P2_MODELS
from proxy.sandbox.p4.catalog import MODELS as P4_MODELS
from proxy.server.request.state import STATE

#: label -> a model, and its id in the list of the simulated service
ASKED = {
    "p1": ("gpt-5.5", "gpt-5.5"),
    "p2": ("kimi-k3", "k3"),
    "p3": ("grok-4.6", "grok-4.6"),
    "p4": ("opencode-go/glm-5.2", "glm-5.2"),
    "p5": ("cursor", "composer-2.5"),
}

FAULTS = (
    "silence_before_head",
    "cut_text",
    "too_long",
    "malformed_json",
    "in_a_list",
    "empty_body",
    "refused",
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def live(sandbox: Sandbox, tmp_path: Path, clock: Clock) -> AsyncIterator[Live]:
    timers = ListTimers(answer=0.3)
    async with Live(sandbox, tmp_path, clock=clock, state_dir=tmp_path / "state", tuning=(timers,)) as live:
        yield live


def lists(live: Live) -> ModelLists:
    return live.app[STATE].catalogs.lists


async def said(live: Live, model: str, **more: Any) -> Any:
    answer = await live.post(ask(model=model, **more))
    await until(lambda: not lists(live)._asking)
    return answer


async def listed(live: Live, model: str) -> ModelList:
    """The list of the model's provider, asked for beside one request."""
    assert (await said(live, model)).status == 200
    label = next(label for label, (name, _) in ASKED.items() if name == model)
    found = lists(live).of(label)
    assert found is not None
    return found


async def names(live: Live) -> set[str]:
    return {model["id"] for model in (await live.get("/v1/models?limit=2000")).json["data"]}


@pytest.mark.parametrize("label", ASKED)
async def test_each_service_is_asked_beside_the_first_request(live: Live, clock: Clock, label: str) -> None:
    model, row = ASKED[label]
    assert lists(live).of(label) is None
    found = await listed(live, model)
    assert row in found.models and found.asked == clock()
    clock.now += 3599
    assert (await said(live, model)).status == 200 and lists(live).of(label) is found
    clock.now += 61
    again = await listed(live, model)
    assert again.models == found.models and again.asked == clock()


@pytest.mark.parametrize("label", ASKED)
@pytest.mark.parametrize(
    "fault", ["silence_before_head", "cut_text", "too_long", "malformed_json", "in_a_list", "empty_body", "refused"]
)
async def test_a_list_that_fails_changes_nothing_and_is_logged_once(
    live: Live, sandbox: Sandbox, clock: Clock, label: str, fault: str
) -> None:
    model = ASKED[label][0]
    before = await listed(live, model)
    sandbox[label].options.list_fault = fault
    for _ in range(2):
        clock.now += 3601
        assert (await said(live, model)).status == 200
        assert lists(live).of(label) is before
    assert len(live.notes.all("models_not_listed")) == 1
    sandbox[label].options.list_fault = ""
    clock.now += 301
    assert (await listed(live, model)).models == before.models


async def test_what_was_listed_is_kept_for_the_next_start(sandbox: Sandbox, tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "state"
    options: dict[str, Any] = {"clock": clock, "state_dir": folder}
    async with Live(sandbox, tmp_path, tuning=(ListTimers(),), **options) as live:
        found = {label: await listed(live, model) for label, (model, _) in ASKED.items()}
    files = sorted(path.name for path in (folder / "models").iterdir())
    assert files == [f"{label}.json" for label in ASKED]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder / "models").iterdir())
    assert {key: one.models for key, one in read_lists(folder / "models").items()} == {
        key: one.models for key, one in found.items()
    }
    sandbox.p2.options.list_fault = "refused"
    (folder / "models" / "p3.json").write_text("{")
    async with Live(sandbox, tmp_path, **options) as live:
        kept = lists(live).of("p2")
        assert kept is not None and kept.models == found["p2"].models and lists(live).of("p3") is None


async def test_new_models_are_served_as_their_rows_say(
    live: Live, sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, _ in ASKED.values():
        await listed(live, model)
    sandbox.p1.options.models["gpt-7-nova"] = P1Model(full=True, lite=False, context=400_000)
    sandbox.p1.options.models["gpt-7-dark"] = P1Model(full=True, lite=False, hidden=True)
    monkeypatch.setitem(P2_MODELS, "kimi-next", P2_MODELS["k3"]._replace(efforts=("low", "high"), context=300_000))
    monkeypatch.setitem(P4_MODELS, "glm-6", P4_MODELS["glm-5.2"])
    monkeypatch.setitem(P4_MODELS, "kimi-k9", P4_MODELS["kimi-k2.6"])
    before = await names(live)
    for new in ("kimi-next", "glm-6"):
        refused = await live.post(ask(model=new))
        assert refused.status == 400 and "Unknown model" in refused.error["message"]
    clock.now += 3601
    for model, _ in ASKED.values():
        await listed(live, model)
    assert await names(live) - before == {
        "gpt-7-nova",
        "gpt-7-nova-fast",
        "kimi-next",
        "opencode-go/glm-6",
        "glm-6",
        "opencode-go/kimi-k9",
    }
    about = (await live.get("/v1/models/kimi-next")).json
    assert about["context_window"] == 300_000 and about["owned_by"] == "p2"
    for model in ("gpt-7-nova", "gpt-7-dark", "kimi-next", "glm-6", "opencode-go/kimi-k9"):
        answer = await said(live, model, output_config={"effort": "max"})
        assert answer.status == 200, answer.text
    assert sandbox.p2.requests[-1].body["thinking"]["effort"] == "high"
    assert (await live.get("/v1/models/gpt-7-nova")).json["context_window"] == 400_000
    assert {note["model"] for note in live.notes.all("narrowed_to_offer")} == {"kimi-next"}


async def test_a_name_that_no_list_has_asks_the_services_again(
    live: Live, sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await listed(live, ASKED["p2"][0])
    monkeypatch.setitem(P2_MODELS, "kimi-next", P2_MODELS["k3"])
    assert (await said(live, "kimi-next")).status == 400  # the last question was just now
    clock.now += 61
    assert (await said(live, "kimi-next")).status == 400
    assert (await said(live, "kimi-next")).status == 200


async def test_a_model_that_the_plan_lacks_is_served_but_not_listed(live: Live, sandbox: Sandbox) -> None:
    for name in ("gpt-5.2", "gpt-5.4"):
        del sandbox.p1.options.models[name]
    assert {"gpt-5.2", "gpt-5.2-fast"} <= await names(live)
    await listed(live, ASKED["p1"][0])
    assert not {"gpt-5.2", "gpt-5.2-fast", "gpt-5.4"} & await names(live)
    refused = await said(live, "gpt-5.2")
    assert refused.status in (400, 404), refused.text
    message = refused.error["message"]
    assert message.count("Your plan does not list gpt-5.2 (p1). Did you mean gpt-5.5") == 1
    assert "models` shows what it lists" in message


async def test_efforts_and_tiers_are_what_the_row_offers(live: Live, sandbox: Sandbox) -> None:
    await listed(live, ASKED["p1"][0])

    async def sent(model: str, effort: str) -> tuple[Any, Any]:
        assert (await said(live, model, output_config={"effort": effort})).status == 200
        body = sandbox.p1.requests[-1].body
        return body["reasoning"]["effort"], body.get("service_tier")

    assert await sent("gpt-6.1-sol", "ultra") == ("ultra", None)
    assert await sent("gpt-5.5", "ultra") == ("max", None)
    assert await sent("gpt-5.5-fast", "high") == ("high", "priority")
    assert await sent("gpt-5.5-ultrafast", "high") == ("high", "priority")


def test_a_file_that_is_not_ours_is_left_out(tmp_path: Path) -> None:
    for name, text in {
        "p1": "[]",
        "p2": '{"asked": true, "models": {"a": {}}}',
        "p3": '{"asked": 1, "models": {}}',
        "p4": '{"asked": 1, "tag": 3, "models": {"a": {"context": "x", "efforts": ["low", 3], "lite": 1}, "b c": {}}}',
        "p5-work": '{"asked": 1, "models": {"x": {"context": 5, "title": "X"}}}',
    }.items():
        (tmp_path / f"{name}.json").write_text(text)
    found = read_lists(tmp_path)
    assert [*found] == ["p4", "p5/work"]
    (only,) = found["p4"].models.values()
    assert only.context is None and only.efforts == ("low",) and only.lite is None
    assert found["p5/work"].models["x"].context == 5 and found["p4"].tag == ""
    assert json.loads((tmp_path / "p1.json").read_text()) == []


def catalog_with(label: str, *ids: str, hidden: bool = False) -> Catalog:
    """The catalogue of a provider whose service lists these ids besides what it has."""
    entry = next(one for one in PROVIDERS if one.label == label)
    rows = {name: ModelFacts(listed=not hidden) for name in ids}
    return entry.offering(ModelList(rows), PROVIDERS).catalog_now(Config())


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("thief", ["p1", "p2", "p3", "p4"])
def test_no_list_takes_a_name_of_another_provider_or_an_alias(thief: str, hidden: bool) -> None:
    tables = {entry.label: entry.catalog_now(Config()) for entry in PROVIDERS}
    others = [table for label, table in tables.items() if label != thief]
    foreign = {name for table in others for name in (*table.models, *table.prefixed[:3])}
    unlisted = {name for name in ("gpt-9-new", "codex-x", "grok-9") if route(name, others, alias_provider="")}
    odd = {"opus", "claude-opus-9", "a/b", "x[1m]", "y[1M]"}
    wanted = (foreign | unlisted | odd | ALIASES) - {*tables[thief].models}
    found = catalog_with(thief, *sorted(wanted), hidden=hidden)
    catalogs = [found, *others]
    for name in wanted:
        told = route(normalise_model(name), catalogs, alias_provider="p1")
        before = route(normalise_model(name), list(tables.values()), alias_provider="p1")
        assert told == before, name
    new = {*found.models, *found.hidden} - {*tables[thief].models}
    assert all(name.startswith("opencode-go/") for name in new)


async def test_an_account_that_changes_takes_its_list_along(live: Live, sandbox: Sandbox, clock: Clock) -> None:
    await listed(live, ASKED["p2"][0])
    provider = live.app[STATE].accounts.providers["p2"]
    provider.cache_owner = lambda: "another"  # type: ignore[method-assign, attr-defined]
    sandbox.p2.options.list_fault = "refused"
    clock.now += 61
    await said(live, ASKED["p2"][0])
    assert lists(live).of("p2") is None


async def test_a_list_of_one_account_serves_both(sandbox: Sandbox, tmp_path: Path) -> None:
    """An account that is bound or takes over may lack the model: its service then says so."""
    async with Live(sandbox, tmp_path, state_dir=tmp_path / "state") as live:
        found = lists(live)
        found._known |= {"p4": ModelList({"glm-5.2": ModelFacts()}), "p4/work": ModelList({"glm-9": ModelFacts()})}
        found.generation += 1
        refused = await live.post(ask(model="glm-9"))
        assert "Model glm-9 is not supported" in refused.error["message"]
        assert "Your plan does not list glm-9 (p4)" in refused.error["message"]


def test_the_file_of_another_time_is_no_list(tmp_path: Path) -> None:
    for asked in ("1" * 400, "NaN", "Infinity", "-1", "1e300"):
        (tmp_path / "p2.json").write_text('{"models": {"k3": {}}, "asked": ' + asked + "}")
        assert read_lists(tmp_path) == {}, asked


def test_aliases_and_small_models_stay_within_the_plan() -> None:
    found = catalog_with("p1", "gpt-5.6-sol", "gpt-6-luna")
    assert found.resolved("haiku") == found.small == found.reviewer == "gpt-6-luna"
    assert found.resolved("opus") == "gpt-5.6-sol"


async def test_the_chat_route_takes_ultra_where_it_is_offered(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, tuning=(ListTimers(),), openai_routes=True) as live:
        body = {"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "ultra"}
        first = await live.post({"model": "gpt-5.6-sol", **body}, "/v1/chat/completions")
        assert first.status == 400  # nothing is known of the model's efforts
        await listed(live, ASKED["p1"][0])
        assert (await live.post({"model": "gpt-5.6-sol", **body}, "/v1/chat/completions")).status == 200
        assert sandbox.p1.requests[-1].body["reasoning"]["effort"] == "ultra"


async def test_a_model_that_is_listed_without_eyes_gets_no_picture(
    live: Live, sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = P2_MODELS["kimi-for-coding"]._replace(media=())
    monkeypatch.setitem(P2_MODELS, "kimi-for-coding", blind)
    await listed(live, "kimi-k3")
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    seen = [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "what is it?"}]}]
    assert (await live.post(ask(seen, model="kimi-for-coding"))).status == 200
    assert "model has no image input" in json.dumps(sandbox.p2.requests[-1].body["messages"])


async def test_a_service_that_was_not_asked_yet_is_asked_for_a_name_that_no_list_has(
    live: Live, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(P2_MODELS, "kimi-next", P2_MODELS["k3"])
    assert (await said(live, "kimi-next")).status == 400
    assert (await said(live, "kimi-next")).status == 200


def test_of_p5_a_name_with_a_prefix_is_looked_for_among_the_ids() -> None:
    found = catalog_with("p5", "gpt-9-high", "auto")
    assert found.lists("cursor:gpt-9") and found.lists("cursor-plan:gpt-9-high") and found.lists("cursor")
    assert not found.lists("cursor:gpt-8") and not found.lists("cursor:gpt-9-low")


def test_what_the_settings_add_has_the_facts_of_the_service() -> None:
    entry = next(one for one in PROVIDERS if one.label == "p2")
    config = configured(Config(), p2_models=(("k9", "k3"),))
    rows = {"k9": ModelFacts(123_456, sees=False), "k3": ModelFacts(1_000_000)}
    facts = entry.offering(ModelList(rows), PROVIDERS).catalog_now(config).facts_of("k9")
    assert (facts.context, facts.sees) == (123_456, False)


def test_no_alias_means_a_name_that_is_taken_away() -> None:
    assert catalog_with("p2", "kimi-k2.7-code", "k3").main in ("k3", "kimi-k3")
    assert catalog_with("p4", "kimi-k3", "grok-4.6").main in ("opencode-go/kimi-k3", "opencode-go/grok-4.6")


async def test_an_account_that_comes_back_is_asked_again(live: Live, clock: Clock) -> None:
    found = await listed(live, ASKED["p2"][0])
    lists(live).only("p2", ())
    assert lists(live).of("p2") is None
    assert (await listed(live, ASKED["p2"][0])).models == found.models
