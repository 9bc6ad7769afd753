"""Several accounts of one provider behind one proxy."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, store_account, texts, tool

from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.core.models import ModelFacts, ModelList
from proxy.observe.lifecycle import ProviderSelected
from proxy.providers.accounts.named import root_of
from proxy.sandbox import Sandbox
from proxy.sandbox.p1.state import P1
from proxy.server.request.accounts import ACCOUNT_IDLE_S, Affinity, session_key
from proxy.server.request.state import STATE

ACCOUNT = "x-model-proxy-account"
CONTEXT = {"permission_mode": "auto", "home_dir": "/home/me", "live_cwd": "/home/me/project"}
SAFEGUARDS = [{"type": "dangerous_tool_use", "classifier_context": CONTEXT}]
SPENT = {"fault": "usage_limit", "seconds": 1800, "times": None}


def session(name: str, agent: str = "") -> dict[str, str]:
    return {"x-claude-code-session-id": name, **({"x-claude-code-agent-id": agent} if agent else {})}


class Two:
    """A proxy with two accounts of p1: `default` and `work`."""

    def __init__(self, live: Live, work: P1) -> None:
        self.live = live
        self.work = work
        self.default = live.sandbox.p1

    @property
    def served(self) -> tuple[int, int]:
        return self.default.total_requests, self.work.total_requests

    def used(self, key: str, percent: float, **more: Any) -> None:
        """The service told that so much of a window is used."""
        now = self.live.app[STATE].clock()
        window = AllowanceWindow("Weekly", percent, now, resets_at=now + 600, **more)
        self.live.app[STATE].allowances.tell(key, None, Allowance((window,)))


@pytest.fixture
async def two(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    options = getattr(request, "param", {})
    async with Sandbox() as sandbox:
        work = sandbox.p1.second()
        store_account(tmp_path, "p1", work.credentials(None, None))
        async with Live(sandbox, tmp_path, openai_routes=True, **options) as live:
            yield Two(live, work)


def onward(**options: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("two", [{"on_spent": "next", **options}], indirect=True, ids=[""])


async def test_the_account_with_most_left_is_taken_and_a_session_stays_with_it(two: Two) -> None:
    two.used("p1", 50)
    first = await two.live.post(ask(), headers=session("a"))
    assert (first.status, first.headers[ACCOUNT], two.served) == (200, "work", (0, 1))
    two.used("p1/work", 90)
    assert (await two.live.post(ask(), headers=session("a"))).headers[ACCOUNT] == "work"
    assert (await two.live.post(ask(), headers=session("b"))).headers[ACCOUNT] == "default"
    assert (await two.live.post(ask(), headers=session("b", "agent"))).headers[ACCOUNT] == "default"
    assert two.served == (2, 2)


async def test_log_and_monitor_name_the_account(two: Two) -> None:
    two.used("p1", 50)
    await two.live.post(ask())
    assert two.live.notes.all("request_completed")[-1]["account"] == "work"
    assert ProviderSelected("p1/work", "gpt-5.5", None) in two.live.watcher.last


async def test_one_account_is_served_as_ever(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path) as live:
        answer = await live.post(ask())
        assert answer.status == 200 and ACCOUNT not in answer.headers
        assert "account" not in live.notes.all("request_completed")[-1]
        assert not (tmp_path / "p1" / "accounts").exists()


async def test_accounts_come_and_go_while_the_proxy_runs(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path) as live:
        assert ACCOUNT not in (await live.post(ask(), headers=session("a"))).headers
        store_account(tmp_path, "p1", sandbox.p1.second().credentials(None, None), "anna")
        assert (await live.post(ask(), headers=session("b"))).headers[ACCOUNT] == "anna"
        shutil.rmtree(tmp_path / "p1" / "accounts" / "anna")
        assert ACCOUNT not in (await live.post(ask(), headers=session("b"))).headers


async def test_an_account_that_is_not_signed_in_serves_nobody(tmp_path: Path) -> None:
    async with Sandbox() as sandbox:
        store_account(tmp_path, "p1", sandbox.p1.second().credentials(None, None))
        async with Live(sandbox, tmp_path, signed_in=False) as live:
            assert (await live.post(ask())).headers[ACCOUNT] == "work"


async def test_a_spent_account_fails_with_its_name_and_new_sessions_go_elsewhere(two: Two) -> None:
    two.default.script.replace([SPENT])
    refused = await two.live.post(ask(), headers=session("a"))
    assert refused.status == 429 and refused.headers[ACCOUNT] == "default"
    assert int(refused.headers["retry-after"]) >= 1799
    assert "(account default of p1)" in refused.error["message"] and "used up until" in refused.error["message"]
    assert (await two.live.post(ask(), headers=session("a"))).status == 429
    other = await two.live.post(ask(), headers=session("b"))
    assert (other.status, other.headers[ACCOUNT]) == (200, "work")


@pytest.mark.parametrize("stream", [True, False])
@onward()
async def test_the_next_account_goes_on(two: Two, stream: bool) -> None:
    two.default.script.replace([SPENT])
    answer = await two.live.post(ask(stream=stream), headers=session("a"))
    assert (answer.status, answer.headers[ACCOUNT]) == (200, "work")
    if stream:
        events = answer.events
        assert [event["type"] for event in events].count("message_start") == 1 and texts(events)
    moved = two.live.notes.all("account_moved")
    assert [(one["before"], one["account"]) for one in moved] == [("default", "work")]
    assert [one.provider for one in two.live.watcher.last if isinstance(one, ProviderSelected)] == ["p1", "p1/work"]
    assert any(
        "p1 is spent; p1/work serves" in notice.message for notice in two.live.app[STATE].monitor.snapshot().notices
    )
    assert (await two.live.post(ask(), headers=session("a"))).headers[ACCOUNT] == "work"
    assert two.default.total_requests == 1


@onward()
async def test_when_all_are_spent_the_last_error_is_told(two: Two) -> None:
    two.default.script.replace([SPENT])
    two.work.script.replace([SPENT])
    answer = await two.live.post(ask(), headers=session("a"))
    assert answer.status == 429 and "(account work of p1)" in answer.error["message"]
    assert two.served == (1, 1)


@onward()
async def test_an_account_whose_sign_in_is_refused_is_passed_over(two: Two) -> None:
    two.default.script.replace([{"fault": "unauthorized", "times": None}])
    refused = await two.live.post(ask(), headers=session("a"))
    assert refused.status == 401 and "(account default of p1)" in refused.error["message"]
    assert (await two.live.post(ask(), headers=session("a"))).headers[ACCOUNT] == "work"


@onward(auto_mode="judge")
async def test_the_judge_asks_with_the_account_that_serves(two: Two) -> None:
    two.default.script.replace([SPENT])
    answer = await two.live.stream(ask("use Bash: make", tools=[tool()], safeguards=SAFEGUARDS), headers=session("a"))
    assert answer.headers[ACCOUNT] == "work", answer.raw
    [judged] = two.live.notes.all("auto_mode_judged")
    assert judged["reviewer"] != "rules" and two.served == (1, 2)


@onward()
async def test_thoughts_of_another_account_are_not_sent(two: Two) -> None:
    """Each account signs as itself, so what another one encrypted is dropped, as that of another provider."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}
    first = await two.live.post(ask(**thinking), headers=session("a"))
    content = first.json["content"]
    assert first.headers[ACCOUNT] == "default" and content[0]["type"] == "thinking" and content[0]["signature"]
    two.used("p1", 100)
    turns = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": "go on"},
    ]
    second = await two.live.post(ask(turns, **thinking), headers=session("a"))
    assert (second.status, second.headers[ACCOUNT]) == (200, "work")
    assert [item["type"] for item in two.work.requests[-1].body["input"]].count("reasoning") == 0
    assert two.work.total_requests == 1  # nothing had to be sent twice
    turns += [{"role": "assistant", "content": second.json["content"]}, {"role": "user", "content": "and on"}]
    third = await two.live.post(ask(turns, **thinking), headers=session("a"))
    assert third.status == 200
    assert [item["type"] for item in two.work.requests[-1].body["input"]].count("reasoning") == 1


@pytest.mark.parametrize("two", [{"p1_transport": "websocket", "on_spent": "next"}], indirect=True, ids=[""])
async def test_sockets_and_continuation_belong_to_the_account(two: Two) -> None:
    offered = {"tools": [tool()]}
    first = await two.live.post(ask("hello", **offered), headers=session("a"))
    assert first.status == 200, first.raw
    assert len(two.default.sockets.seen) == 1 and len(two.work.sockets.seen) == 0
    two.used("p1", 100)
    turns = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": first.json["content"]},
        {"role": "user", "content": "go on"},
    ]
    second = await two.live.post(ask(turns, **offered), headers=session("a"))
    assert second.headers[ACCOUNT] == "work" and second.status == 200
    assert "previous_response_id" not in two.work.requests[-1].body
    assert len(two.work.sockets.seen) == 1


@onward()
async def test_a_native_answer_of_the_next_account(two: Two) -> None:
    two.default.script.replace([SPENT])
    body = {"model": "gpt-5.5", "input": "hello"}
    answer = await two.live.post(body, "/v1/responses", headers={"session-id": "a"})
    assert (answer.status, answer.headers[ACCOUNT]) == (200, "work"), answer.raw


@onward()
async def test_a_native_body_with_sealed_items_stays(two: Two) -> None:
    two.default.script.replace([SPENT])
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": two.default.encrypted("rs_1", "")}
    asked = [sealed, {"role": "user", "content": "hello"}]
    for _ in range(2):
        answer = await two.live.post({"model": "gpt-5.5", "input": asked}, "/v1/responses", {"session-id": "a"})
        assert (answer.status, answer.headers[ACCOUNT]) == (429, "default")
    assert two.work.total_requests == 0


@pytest.mark.parametrize("two", [{"account_callers": "anna=p1/work", "on_spent": "next"}], indirect=True, ids=[""])
async def test_a_caller_has_the_account_of_the_settings_and_no_other(two: Two) -> None:
    accounts, config = two.live.app[STATE].accounts, two.live.config
    two.used("p1/work", 100)
    chosen = [one.name for one in accounts.choose("p1", config, session="s", caller="anna")]
    assert chosen == ["work"]
    assert [one.name for one in accounts.choose("p1", config, session="s", caller="bob")] == ["default"]
    assert [one.name for one in accounts.choose("p1", config, session="s")] == ["default"]


@pytest.mark.parametrize("two", [{"account_callers": "anna=p1/work"}], indirect=True, ids=[""])
async def test_a_caller_whose_account_is_signed_out_gets_nobody_elses(two: Two) -> None:
    shutil.rmtree(two.live.root / "p1" / "accounts")
    accounts, config = two.live.app[STATE].accounts, two.live.config
    [anna], [bob] = (accounts.choose("p1", config, session="s", caller=name) for name in ("anna", "bob"))
    assert (anna.name, anna.provider.signed_in()) == ("work", False)
    assert (bob.name, bob.provider) == ("", two.live.app[STATE].providers["p1"])


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("p1", "gpt-5.5"),
        ("p2", "kimi-for-coding"),
        ("p3", "grok-4.6"),
        ("p4", "qwen3.8-flash"),
        ("p5", "cursor:gpt-5.5"),
    ],
)
async def test_every_provider_has_accounts(tmp_path: Path, label: str, model: str) -> None:
    """Nobody is signed in but the named account, and no key stands in the settings."""
    async with Sandbox() as sandbox:
        settings = sandbox.settings()
        key = settings.pop("PROXY_P4_API_KEY")
        files = sandbox.upstreams[label].credentials(None, None) or {"auth.json": json.dumps({"key": key})}
        folder = store_account(tmp_path, label, files)
        async with Live(sandbox, tmp_path, signed_in=False, settings=settings) as live:
            answer = await live.post(ask(model=model))
            assert (answer.status, answer.headers[ACCOUNT]) == (200, "work"), answer.raw
            assert not (tmp_path / label / "auth.json").exists()
            (folder / "auth.json").unlink()
            answer = await live.post(ask(model=model))
            assert answer.status == 401 and ACCOUNT not in answer.headers


@pytest.mark.parametrize(("label", "model"), [("p4", "qwen3.8-flash"), ("p5", "cursor:gpt-5.5")])
async def test_a_key_or_token_of_the_settings_is_of_the_account_without_a_name(
    tmp_path: Path, label: str, model: str
) -> None:
    async with Sandbox() as sandbox:
        store_account(tmp_path, label, {"auth.json": "no credential"})
        extra = {
            "PROXY_P5_AUTH_TOKEN": json.loads(sandbox.upstreams["p5"].credentials(None, None)["auth.json"])[
                "accessToken"
            ]
        }
        async with Live(sandbox, tmp_path, signed_in=False, settings={**sandbox.settings(), **extra}) as live:
            named = live.app[STATE].accounts.named[f"{label}/work"]
            assert not named.signed_in() and live.app[STATE].providers[label].signed_in()
            assert (await live.post(ask(model=model))).headers[ACCOUNT] == "default"


async def test_the_allowance_of_each_account_is_told(two: Two) -> None:
    for name in ("a", "b"):
        await two.live.post(ask(), headers=session(name))
    two.used("p1", 50)
    await two.live.post(ask(), headers=session("c"))
    rows = {row.provider for row in two.live.app[STATE].monitor.snapshot().allowances}
    assert rows == {"p1", "p1/work"}


async def test_a_token_of_one_account_never_goes_out_for_another(two: Two) -> None:
    two.used("p1", 50)
    await two.live.post(ask(), headers=session("a"))
    stored = json.loads((root_of(two.live.root, "p1", "work") / "p1" / "auth.json").read_text())
    assert two.work.requests[-1].headers["authorization"] == f"Bearer {stored['access']}"
    assert two.default.total_requests == 0


def test_the_table_of_sessions_is_bounded_and_forgets() -> None:
    now = [0.0]
    table = Affinity(lambda: now[0], max_sessions=2)
    keys = [session_key("p1", None, name) for name in "abc"]
    for key in keys:
        table.note(key, "work")
    assert [table.of(key) for key in keys] == [None, "work", "work"]
    now[0] = ACCOUNT_IDLE_S + 1
    assert table.of(keys[2]) is None
    assert session_key("p1", None, "x" * 5000) == session_key("p1", None, None) != session_key("p1", "anna", None)


def offers(two: Two, **models: tuple[str, ...]) -> None:
    """Each account's service listed these models: `p1` and `work`."""
    lists = two.live.app[STATE].catalogs.lists
    for name, ids in models.items():
        lists._known["p1" if name == "p1" else f"p1/{name}"] = ModelList(dict.fromkeys(ids, ModelFacts()))
    lists.generation += 1


async def test_a_model_is_asked_of_an_account_that_has_it_and_the_session_stays(two: Two) -> None:
    two.used("p1", 50)
    offers(two, p1=("gpt-5.6-sol", "gpt-5.5"), work=("gpt-5.6-luna", "gpt-5.5"))
    served = [
        (await two.live.post(ask(model=model), headers=session("a"))).headers[ACCOUNT]
        for model in ("gpt-5.6-sol", "gpt-5.6-luna", "gpt-5.5", "gpt-5.6-sol", "gpt-5.6-luna")
    ]
    assert served == ["default", "work", "default", "default", "work"]


async def test_the_list_of_an_account_goes_with_it(two: Two, tmp_path: Path) -> None:
    offers(two, work=("gpt-only-there",))
    assert "gpt-only-there" in json.dumps((await two.live.get("/v1/models")).json)
    shutil.rmtree(root_of(tmp_path, "p1", "work"))
    await two.live.post(ask())
    assert "gpt-only-there" not in json.dumps((await two.live.get("/v1/models")).json)
