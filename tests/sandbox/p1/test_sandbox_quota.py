"""What the simulated P1 tells of its quota: headers, the usage route, and the event in front of an answer."""

from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import Client, full
from p1_socket_client import SocketClient

from proxy.sandbox import P1Options, Quota, Sandbox

NOW = 1_000_000.5


def window(percent: float, reset: int = 600, **length: int) -> dict[str, Any]:
    return {"used_percent": percent, **length, "reset_after_seconds": reset, "reset_at": 1_000_000 + reset}


def test_headers_of_each_window_and_family() -> None:
    quota = Quota(
        windows={"primary": (100, 300)},
        families={"codex_bengalfox": {"primary": (7.25, 60)}},
        reset_after_s=5,
        has_credits=True,
        balance="4.2",
    )
    assert quota.headers(NOW) == {
        "x-codex-credits-has-credits": "true",
        "x-codex-credits-unlimited": "false",
        "x-codex-credits-balance": "4.2",
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-after-seconds": "5",
        "x-codex-primary-reset-at": "1000005",
        "x-codex-bengalfox-primary-used-percent": "7.2",
        "x-codex-bengalfox-primary-window-minutes": "60",
        "x-codex-bengalfox-primary-reset-after-seconds": "5",
        "x-codex-bengalfox-primary-reset-at": "1000005",
    }


def test_usage_and_event_say_the_same() -> None:
    quota = Quota()
    usage, event = quota.usage(NOW), quota.event(NOW)
    assert usage["rate_limit"]["primary_window"] == window(12, limit_window_seconds=18_000)
    assert event["rate_limits"]["secondary"] == window(3, window_minutes=10_080)
    assert event["type"] == "codex.rate_limits"
    assert usage["plan_type"] == event["plan_type"] == "plus"


@pytest.mark.parametrize(
    ("percents", "has_credits", "reached", "allowed"),
    [((12, 99.9), False, False, True), ((12, 100), False, True, False), ((100, 3), True, True, True)],
)
def test_an_exhausted_window(percents: Any, has_credits: bool, reached: bool, allowed: bool) -> None:
    primary, secondary = percents
    quota = Quota({"primary": (primary, 300), "secondary": (secondary, 10_080)}, has_credits=has_credits)
    for told in (quota.usage(NOW)["rate_limit"], quota.event(NOW)["rate_limits"]):
        assert (told["limit_reached"], told["allowed"]) == (reached, allowed)
    assert (quota.usage(NOW)["rate_limit_reached_type"] is not None) is reached


async def test_every_answer_tells(session: aiohttp.ClientSession) -> None:
    options = P1Options(quota=Quota({"primary": (42, 300)}))
    async with Sandbox(options=[options], clock=lambda: NOW) as sandbox:
        client, sockets = Client(sandbox, session), SocketClient(sandbox, session)
        answers = [await client.ask(full()), await sockets.knock()]
        for headers in (answer.headers for answer in answers):
            assert headers["x-codex-primary-used-percent"] == "42.0"
            assert "x-codex-secondary-used-percent" not in headers
        url = f"{sandbox.origin}/backend-api/wham/usage"
        async with session.get(url, headers=client.headers()) as response:
            usage = await response.json()
        assert usage["rate_limit"]["primary_window"]["used_percent"] == 42
        assert usage["rate_limit"]["secondary_window"] is None
