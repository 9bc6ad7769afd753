"""What is left of the first model once another one serves, and what is told when none can."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Fake, Live, ask, played, store_account, use, with_live
from stations import Recorded

from proxy.core.invalid import InvalidRequest
from proxy.errors import ProxyError, UpstreamError
from proxy.fallbacks import fallbacks
from proxy.providers.contract import NativeAnswer, NativeEnd
from proxy.sandbox import Sandbox
from proxy.server.request import candidates
from proxy.server.request.candidates import HOLD_S, Candidate, Candidates
from proxy.server.request.state import STATE
from proxy.settings import UnfitValue

SOL, KIMI, GROK = "gpt-5.6-sol", "kimi-k3", "grok-4.5"
TO_KIMI = {"fallback": ((SOL, (KIMI,)),), "openai_routes": True}
HEADER, ACCOUNT = "x-model-proxy-fallback", "x-model-proxy-account"
OVERLOADED = {"status": 529, "body": {}, "times": None}
BUSY = UpstreamError("p1: too much to do", kind="overloaded", provider="p1")
CREATED = b'event: response.created\ndata: {"type":"response.created"}\n\n'
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
    assert declared().held_until(100.0, 15.0) == 115.0
    candidates = declared(KIMI, GROK)
    assert candidates.held_until(100.0, 15.0) == 100.0 + HOLD_S
    assert candidates.next_model(ProxyError("x", kind="overloaded")) == KIMI
    assert candidates.held_until(140.0, 15.0) == 100.0 + HOLD_S
    assert candidates.next_model(ProxyError("x", kind="overloaded")) == GROK
    assert candidates.held_until(110.0, 15.0) == 125.0 and candidates.held_until(149.0, 15.0) == 100.0 + HOLD_S


def declared(*models: str) -> Candidates:
    """SOL, and these in place of it."""
    sol = Candidate(SOL, "p1", "", Fake("p1"), SOL)
    return Candidates(SOL, lambda _model: [sol], others=models, kinds=frozenset({"overloaded"}))


def account(live: Live, label: str, provider: Fake) -> Fake:
    """An account `work` of a provider, beside the one without a name."""
    store_account(live.root, label)
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
        work = sandbox.p1.second()
        store_account(tmp_path, "p1", work.credentials(None, None))
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


#: What spoils a native stream -> whether another model serves. A server error is one that passes.
IN_BAND = {
    "cut_before_output": True,
    "end_before_output": True,
    "error_event": True,
    "cut_thinking": False,
    "cut_text": False,
}


@pytest.mark.parametrize("fault", IN_BAND)
@with_live(**TO_KIMI)
async def test_a_native_stream_is_kept_back_until_a_reader_sees_something(live: Live, fault: str) -> None:
    live.sandbox.p1.script.extend([{"fault": fault, "times": None}])
    body = {"model": SOL, "input": "hi", "stream": True, "reasoning": {"effort": "high", "summary": "auto"}}
    goes_on, raw, head = IN_BAND[fault], b"", {}
    with contextlib.suppress(aiohttp.ClientPayloadError):
        async with live.client.post(live.url + "/v1/responses", json=body) as response:
            head = dict(response.headers)
            async for chunk in response.content.iter_any():
                raw += chunk
    assert (b"response.completed" in raw) is goes_on and raw.count(b"event: response.created") == 1
    assert (HEADER in head) is goes_on and bool(live.sandbox.p2.requests) is goes_on


@with_live(**TO_KIMI)
async def test_a_native_stream_without_a_fault_comes_as_it_is(live: Live) -> None:
    body = {"input": "hi", "stream": True}
    kept = await live.post({**body, "model": SOL}, "/v1/responses")
    other = await live.post({**body, "model": "gpt-5.6-terra"}, "/v1/responses")
    names = [[line for line in one.raw.splitlines() if line.startswith(b"event:")] for one in (kept, other)]
    assert names[0] == names[1] and HEADER not in kept.headers


def answer_natively(live: Live, chunks: Callable[[], AsyncGenerator[bytes, None]]) -> None:
    """P1's native answers have this body."""

    @contextlib.asynccontextmanager
    async def native(_call: Any) -> AsyncGenerator[NativeAnswer, None]:
        yield NativeAnswer(200, {}, chunks(), NativeEnd())

    live.app[STATE].providers["p1"].native = native  # type: ignore[attr-defined]


NATIVE = {"model": SOL, "input": "hi", "stream": True}


@with_live(**TO_KIMI)
async def test_a_silence_after_the_beginning_ends_what_is_kept_back(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the body is lost, and what comes after it is read on."""
    monkeypatch.setattr(candidates, "HOLD_S", 0.05)
    go = asyncio.Event()
    last = b"event: response.failed\ndata: {}\n\n"

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield CREATED
        await go.wait()
        yield last

    answer_natively(live, chunks)
    async with live.client.post(live.url + "/v1/responses", json=NATIVE) as response:
        first = await response.content.readany()
        assert first == CREATED and not go.is_set()
        go.set()
        assert await response.content.read() == last
    assert HEADER not in response.headers and not live.sandbox.p2.requests


@pytest.mark.parametrize("named", [True, False])
@with_live(**TO_KIMI)
async def test_events_without_a_name_are_read_by_their_type(live: Live, named: bool) -> None:
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield CREATED if named else CREATED.partition(b"\n")[2]
        raise UpstreamError("cut", kind="transport")

    answer_natively(live, chunks)
    answer = await live.post(NATIVE, "/v1/responses")
    assert HEADER in answer.headers and answer.raw.count(b"event: response.created") == 1


@with_live(**TO_KIMI)
async def test_an_answer_that_is_kept_back_to_its_end_is_over_when_it_is_sent(live: Live) -> None:
    """It failed in a way that leads to no other model."""
    failed = {"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "no"}}}
    live.sandbox.p1.script.extend([{"events": [{"type": "response.created", "response": {"id": "r"}}, failed]}])
    assert b"invalid_prompt" in (await live.post(NATIVE, "/v1/responses")).raw
    names = [type(event).__name__ for event in live.watcher.last]
    assert names[-2:] == ["GenerationStarted", "Failed"]
    assert [msg for _, _, msg, _ in live.notes.records][-2:] == ["response_started", "request_failed"]


async def test_each_model_of_one_provider_has_its_capture(tmp_path: Path) -> None:
    recorded = Recorded()
    same: dict[str, Any] = {"fallback": ((SOL, ("gpt-5.5",)),), "captures": recorded}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, **same) as live:
        sandbox.p1.script.extend([{**OVERLOADED, "times": 4}])
        assert HEADER in (await live.post(body_for(SOL))).headers
        assert [(one.begun.model, one.begun.earlier, bool(one.begun.body)) for one in recorded.requests] == [
            (SOL, 0, True),
            ("gpt-5.5", 1, True),
        ]


@with_live(fallback=((SOL, (KIMI,)),))
async def test_a_shutdown_is_no_failure_of_a_model(live: Live) -> None:
    """The client is told to come again, and not that two models could not answer."""
    asked = asyncio.Event()

    async def waits(_call: Any) -> AsyncGenerator[list[Any], None]:
        asked.set()
        await asyncio.sleep(60)
        yield []

    use(live, Fake("p1", played(UpstreamError("busy", kind="overloaded", provider="p1"))))
    use(live, Fake("p2", waits))
    running = asyncio.create_task(live.post(body_for(SOL)))
    await asked.wait()
    await live.app[STATE].running.drain(0.0)
    answer = await running
    assert answer.status == 503 and answer.error["message"].startswith("the proxy stopped")
