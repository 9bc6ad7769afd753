"""`GET /metrics`: what it says after real traffic, to whom, and that off it does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Live, ask, with_live
from observe.metrics.exposition import Family, read

from proxy.core.hiding.secret import Secret
from proxy.server.request.state import STATE

SESSION = {"x-claude-code-session-id": "session-1"}
ON = {"metrics": True}


async def scraped(live: Live, **headers: str) -> dict[str, Family]:
    answer = await live.get("/metrics", **headers)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in answer.headers
    return read(answer.raw.decode())


def value(found: dict[str, Family], name: str, **labels: str) -> float:
    family = name.removesuffix("_count").removesuffix("_sum").removesuffix("_bucket")
    return found[f"model_proxy_{family}"].value(f"model_proxy_{name}", **labels)


@with_live(**ON)
async def test_traffic_is_counted(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "server_error"}])
    await live.stream(ask(), headers=SESSION)
    await live.post(ask(model="kimi-for-coding"), headers=SESSION)
    await live.post(b"{")
    live.sandbox.p1.script.extend([{"fault": "forbidden"}])
    await live.post(ask())
    found = await scraped(live)
    requests = found["model_proxy_requests_total"].samples["model_proxy_requests_total"]
    assert sum(requests.values()) == 4
    assert value(found, "requests_total", provider="p1", model="gpt-5.5", outcome="completed", status="2xx") == 1
    assert value(found, "request_failures_total", provider="none", kind="invalid_request") == 1
    assert value(found, "request_failures_total", provider="p1", kind="permission") == 1
    assert value(found, "upstream_attempts_total", provider="p1") == 3
    assert value(found, "upstream_retries_total", provider="p1") == 1
    assert value(found, "time_to_first_token_seconds_count", provider="p2") == 1
    assert value(found, "request_span_seconds_count", provider="p1", span="retry") == 1
    assert value(found, "output_tokens_total", provider="p2") > 0
    assert set(found["model_proxy_requests_active"].samples["model_proxy_requests_active"].values()) == {0}
    assert not any(word in str(found) for word in ("session-1", "hello"))


@with_live(**ON)
async def test_what_never_happened_is_none(live: Live) -> None:
    """A series that begins with 1 is no increase: the first sign-in that fails would raise no alert."""
    found = await scraped(live)
    for provider in ("p1", "p5"):
        assert value(found, "sign_in_renewals_total", provider=provider, result="failed") == 0
        assert value(found, "upstream_retries_total", provider=provider) == 0
        assert value(found, "requests_active", provider=provider) == 0


@with_live(**ON, p1_transport="websocket", p1_previous_response_id=True)
async def test_sockets_and_sign_ins_are_counted(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "unauthorized"}])
    await live.stream(ask(), headers=SESSION)
    found = await scraped(live)
    assert value(found, "sockets_open", provider="p1") == 1  # kept for the next turn
    assert value(found, "sign_in_renewals_total", provider="p1", result="ok") == 1
    await live.app[STATE].providers["p1"].close()
    assert value(await scraped(live), "sockets_open", provider="p1") == 0


@with_live(**ON, max_concurrent_per_session=1)
async def test_who_is_refused_is_counted(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": None}])
    async with live.open(ask(stream=True), SESSION) as response:
        await response.content.readany()
        assert (await live.post(ask(), headers=SESSION)).status == 429
        found = await scraped(live)
    assert value(found, "requests_active", provider="p1") == 1
    assert value(found, "admission_refusals_total", limit="session") == 1


async def test_off_it_does_not_exist_and_nothing_is_counted(live: Live) -> None:
    answer = await live.get("/metrics")
    assert answer.status == 404 and "PROXY_METRICS=1" in answer.json["error"]["message"]
    assert live.app[STATE].metrics is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer key-1"}, 200)],
)
@with_live(**ON)
async def test_with_a_key_the_key_is_needed(live: Live, headers: dict[str, str], status: int) -> None:
    live.config = live.config.changed(type(live.config), api_key=Secret("key-1"))
    assert (await live.get("/metrics", **headers)).status == status


@with_live(**ON)
async def test_no_page_of_another_site_may_read_it(live: Live) -> None:
    headers: dict[str, Any] = {"Origin": "https://evil.example"}
    assert (await live.get("/metrics", **headers)).status == 403
