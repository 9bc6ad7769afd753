"""What is left of the first model once another one serves, and what is told when none can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Fake, Live, ask, played, use, with_live

from proxy.core.invalid import InvalidRequest
from proxy.errors import ProxyError, UpstreamError
from proxy.fallbacks import fallbacks
from proxy.providers.accounts.named import root_of
from proxy.sandbox import Sandbox
from proxy.server.fallback.chain import HOLD_S, Chain
from proxy.server.state import STATE
from proxy.settings import UnfitValue

SOL, KIMI, GROK = "gpt-5.6-sol", "kimi-k3", "grok-4.5"
TO_KIMI = {"fallback": ((SOL, (KIMI,)),), "openai_routes": True}
HEADER, ACCOUNT = "x-model-proxy-fallback", "x-model-proxy-account"
OVERLOADED = {"status": 529, "body": {}, "times": None}
BUSY = UpstreamError("p1: too much to do", kind="overloaded", provider="p1")
SESSION = {"x-claude-code-session-id": "11111111-2222-4333-8444-555555555555"}


def body_for(model: str, **members: Any) -> dict[str, Any]:
    return {**ask(), "model": model, **members}


@pytest.mark.parametrize("failure", [InvalidRequest("not for kimi"), RuntimeError("a bug")], ids=["unfit", "bug"])
@pytest.mark.parametrize("stream", [True, False])
@with_live(**TO_KIMI)
async def test_a_request_that_only_the_second_cannot_take_gets_the_first_s_error(
    live: Live, failure: Exception, stream: bool
) -> None:
    use(live, Fake("p1", played(BUSY)))
    second = use(live, Fake("p2"))

    def resolve(*_: Any, **__: Any) -> Any:
        raise failure

    second.resolve = resolve  # type: ignore[method-assign]
    answer = await live.post(body_for(SOL, stream=stream))
    assert (answer.status, answer.error["type"]) == (529, "overloaded_error")
    assert answer.error["message"].startswith("p1: too much to do. In place of it: kimi-k3: ")


@with_live(fallback=((SOL, (KIMI,)),), fallback_on=("internal",))
async def test_a_kind_that_is_named_counts_streamed_or_not(live: Live) -> None:
    use(live, Fake("p1", played(RuntimeError("a bug"))))
    use(live, Fake("p2"))
    for stream in (True, False):
        assert (await live.post(body_for(SOL, stream=stream))).headers.get(HEADER) == f"{SOL} -> {KIMI}; internal"


@pytest.mark.parametrize("name", [f"{KIMI}[1m]", f"{KIMI}[1M]"])
@with_live(**TO_KIMI)
async def test_the_hint_of_clients_means_nothing_in_the_setting(live: Live, name: str) -> None:
    live.config = live.config.changed(type(live.config), fallback=((SOL, (name,)),))
    live.sandbox.p1.script.extend([OVERLOADED])
    answer = await live.post(body_for(SOL))
    assert answer.status == 200 and answer.headers[HEADER] == f"{SOL} -> {KIMI}; overloaded"


TWICE = ({SOL: [f"{SOL}[1m]"]}, {SOL: [KIMI, f"{KIMI}[1m]"]}, f"{SOL}={KIMI},{SOL}[1m]={GROK}")


@pytest.mark.parametrize("value", TWICE, ids=str)
def test_with_the_hint_it_is_the_same_model(value: Any) -> None:
    with pytest.raises(UnfitValue, match="twice"):
        fallbacks(value)


def test_all_models_together_are_waited_for_no_longer_than_one() -> None:
    """An earlier one that failed late leaves the next no whole time of its own: the client has heard of none."""
    chain = Chain()
    assert chain.held_until(100.0, 15.0) == 115.0
    chain.declare(SOL, SOL, {SOL: (KIMI, GROK)}, frozenset({"overloaded"}))
    assert chain.held_until(100.0, 15.0) == 100.0 + HOLD_S
    assert chain.goes_on(ProxyError("x", kind="overloaded"))
    assert chain.held_until(140.0, 15.0) == 100.0 + HOLD_S
    assert chain.goes_on(ProxyError("x", kind="overloaded"))
    assert chain.held_until(110.0, 15.0) == 125.0 and chain.held_until(149.0, 15.0) == 100.0 + HOLD_S


def account(live: Live, label: str, provider: Fake) -> Fake:
    """An account `work` of a provider, beside the one without a name."""
    folder = root_of(live.root, label, "work") / label
    folder.mkdir(parents=True)
    (folder / "auth.json").write_text("{}")
    live.app[STATE].accounts.named[f"{label}/work"] = provider
    return provider


async def test_an_account_whose_sign_in_was_refused_is_passed_over_though_another_model_served(tmp_path: Path) -> None:
    kinds = {"fallback": ((SOL, (KIMI,)),), "fallback_on": ("sign_in",)}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, **kinds) as live:
        use(live, Fake("p1", played(ProxyError("no", kind="sign_in", provider="p1"))))
        use(live, Fake("p2"))
        account(live, "p1", Fake("p1"))
        assert HEADER in (await live.post(body_for(SOL), headers=SESSION)).headers
        answer = await live.post(body_for(SOL))
        assert answer.status == 200 and answer.headers[ACCOUNT] == "work"


async def test_when_nobody_can_serve_the_first_error_names_the_first_model_s_account(tmp_path: Path) -> None:
    kinds = {"fallback": ((SOL, (KIMI,)),), "fallback_on": ("sign_in",)}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, **kinds) as live:
        use(live, Fake("p1", played(ProxyError("no", kind="sign_in", provider="p1"))))
        use(live, Fake("p2", played(UpstreamError("down", kind="transient", provider="p2"))))
        account(live, "p2", live.app[STATE].providers["p2"])  # type: ignore[arg-type]
        answer = await live.post(body_for(SOL))
        assert answer.status == 401 and "of p1)" not in answer.error["message"]
        assert "(account default of p2)" in answer.error["message"] and ACCOUNT not in answer.headers
        assert live.notes.all("request_failed")[0]["provider"] == "p1"
        assert not live.app[STATE].accounts._refused


@with_live(**TO_KIMI)
async def test_a_refusal_that_would_have_passed_as_it_is_keeps_its_words_and_its_time(live: Live) -> None:
    wait = {"status": 429, "headers": {"retry-after": "600"}, "body": {"error": {"message": "slow down, please"}}}
    live.sandbox.p1.script.extend([{**wait, "times": None}])
    live.sandbox.p2.script.extend([OVERLOADED])
    answer = await live.post({"model": SOL, "input": "hi"}, "/v1/responses")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "600")
    assert "slow down, please" in answer.json["error"]["message"] and KIMI in answer.json["error"]["message"]


@with_live(fallback=((SOL, (KIMI,)),), fallback_on=("usage_limit",), openai_routes=True)
async def test_a_spent_window_is_told_from_a_rate_that_is_too_high_on_the_native_route_too(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "usage_limit", "seconds": 1800, "times": None}])
    answer = await live.post({"model": SOL, "input": "hi"}, "/v1/responses")
    assert answer.status == 200 and answer.headers[HEADER] == f"{SOL} -> {KIMI}; usage_limit"


async def test_two_accounts_and_another_model_after_a_native_refusal(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next", **TO_KIMI) as live:
        folder = root_of(tmp_path, "p1", "work") / "p1"
        folder.mkdir(parents=True)
        work = sandbox.p1.second()
        for file, text in work.credentials(None, None).items():
            (folder / file).write_text(text)
        spent = {"fault": "usage_limit", "seconds": 1800, "times": None}
        sandbox.p1.script.extend([spent])
        work.script.extend([spent])
        answer = await live.post({"model": SOL, "input": "hi"}, "/v1/responses")
        assert answer.status == 200 and answer.headers[HEADER] == f"{SOL} -> {KIMI}; usage_limit"
        assert len(work.requests) == 1


@with_live(fallback=((KIMI, (SOL,)),), openai_routes=True)
async def test_a_native_refusal_of_the_last_is_no_answer_to_who_asked_for_another(live: Live) -> None:
    live.sandbox.p2.script.extend([OVERLOADED])
    live.sandbox.p1.script.extend([{"status": 400, "body": {"error": {"message": "too odd"}}, "times": None}])
    answer = await live.post({"model": KIMI, "input": "hi"}, "/v1/responses")
    assert answer.status == 503 and "too odd" in answer.json["error"]["message"]
