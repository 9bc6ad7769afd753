"""How much of the allowance is used: what is read, what is kept, and what a spent one is answered with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from core.strategies import json_objects, json_values
from harness import Live, Notes, ask
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.allowances.rate_limits import Credits, RateLimitStatus, Window
from proxy.errors import UpstreamError
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.p1_codex.account.rate_limits import (
    MAX_ACCOUNTS,
    MAX_LIMITS,
    RateLimits,
    of_event,
    of_headers,
    of_usage,
    utc_text,
)
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

NOW = 1_800_000_000.0


def heads(limit: str, position: str, used: object, **members: object) -> dict[str, str]:
    prefix = f"x-{limit}-{position}-"
    found = {f"{prefix}{name.replace('_', '-')}": str(value) for name, value in members.items()}
    return {f"{prefix}used-percent": str(used), **found}


FIVE_HOURS = heads("codex", "primary", "12.0", window_minutes=300, reset_at=1_800_000_600)
WEEK = heads("codex", "secondary", 3, window_minutes=10_080, reset_after_seconds=900)
CREDITS = {"x-codex-credits-has-credits": "True", "x-codex-credits-unlimited": "0", "x-codex-credits-balance": "4.2"}
SOME = Credits(True, False, "4.2")


def status(*windows: Window, limit: str = "codex") -> RateLimitStatus:
    return RateLimitStatus({limit: windows})


@rows(
    "headers, expected",
    [
        (
            {**FIVE_HOURS, **WEEK, **CREDITS},
            RateLimitStatus({"codex": (Window(12, 300, NOW + 600), Window(3, 10_080, NOW + 900))}, SOME),
        ),
        ({name.title(): value for name, value in WEEK.items()}, status(Window(3, 10_080, NOW + 900))),
        (heads("codex-fox", "primary", 100, window_minutes=300), status(Window(100, 300), limit="codex-fox")),
        ({"x-codex-active-limit": "codex_fox"}, RateLimitStatus(active="codex-fox")),
        (heads("codex", "primary", "soon", window_minutes=300), status()),
        (heads("codex", "primary", 5, window_minutes="nan", reset_at="1e99"), status(Window(5))),
        *((headers, None) for headers in (CREDITS, {"content-type": "text/event-stream"}, {})),
    ],
)
def test_headers(headers: dict[str, str], expected: RateLimitStatus | None) -> None:
    assert of_headers(headers, NOW) == expected


EVENT = {
    "type": "codex.rate_limits",
    "plan_type": "plus",
    "metered_limit_name": "codex",
    "rate_limits": {
        "limit_reached": False,
        "primary": {"used_percent": 16, "window_minutes": 300, "reset_after_seconds": 600, "reset_at": 1},
        "secondary": None,
    },
    "credits": {"has_credits": True, "unlimited": False, "balance": "4.2"},
}


FOX_EVENT = status(Window(1), limit="codex-fox")


@rows(
    "event, expected",
    [
        (EVENT, RateLimitStatus({"codex": (Window(16, 300, NOW + 600),)}, SOME, "plus")),
        ({"metered_limit_name": "codex_fox", "rate_limits": {"primary": {"used_percent": 1}}}, FOX_EVENT),
        ({"rate_limits": {"primary": {"used_percent": True}}, "credits": []}, RateLimitStatus()),
        ({}, RateLimitStatus()),
    ],
)
def test_events(event: dict[str, Any], expected: RateLimitStatus) -> None:
    assert of_event(event, NOW) == expected


def test_the_usage_endpoint() -> None:
    window = {"used_percent": 12, "limit_window_seconds": 18_000, "reset_after_seconds": 600, "reset_at": 5}
    answer = {
        "plan_type": "pro",
        "rate_limit": {"primary_window": window, "secondary_window": None},
        "additional_rate_limits": [
            {"limit_name": "Spark\x1b", "metered_feature": "x", "rate_limit": {"primary_window": window}},
            {"limit_name": None, "rate_limit": {"primary_window": window}},
            7,
        ],
        "credits": {"has_credits": False, "unlimited": False, "balance": "0"},
    }
    shown = (Window(12, 300, NOW + 600),)
    assert of_usage(answer, NOW) == RateLimitStatus({"codex": shown, "Spark": shown}, Credits(balance="0"), "pro")


@given(json_objects, json_values, json_values)
def test_any_shape_is_survived(holder: dict[str, Any], limits: Any, window: Any) -> None:
    rate_limits = RateLimits(Notes(), lambda: NOW, AllowanceStore())
    for value in (limits, {"primary": window, "secondary": limits}):
        event = {**holder, "rate_limits": value, "credits": window, "metered_limit_name": limits}
        rate_limits.observe_event("a", event)
    of_usage({**holder, "rate_limit": {"primary_window": window}, "additional_rate_limits": limits}, NOW)
    of_usage({"additional_rate_limits": [window, {"limit_name": limits, "rate_limit": window}]}, NOW)
    rate_limits.observe_headers("a", {str(name): str(value) for name, value in holder.items()})


@given(st.dictionaries(st.sampled_from([*FIVE_HOURS, *WEEK, *CREDITS]), st.text(max_size=8)))
def test_any_value_of_a_header_is_survived(headers: dict[str, str]) -> None:
    found = of_headers(headers, NOW)
    for window in found.limits.get("codex", ()) if found else ():
        assert window.used >= 0 and window.title and (window.resets_at is None or utc_text(window.resets_at))


def test_a_moment_in_words() -> None:
    assert utc_text(NOW) == "2027-01-15T08:00:00Z"


# -- what is kept


def kept() -> tuple[RateLimits, Notes]:
    notes = Notes()
    return RateLimits(notes, lambda: NOW, AllowanceStore(notes, lambda: NOW)), notes


def test_the_newest_is_kept_account_by_account() -> None:
    rate_limits, _ = kept()
    rate_limits.observe_headers("a", {**FIVE_HOURS, **CREDITS})
    rate_limits.observe_headers("a", heads("codex-x", "primary", 7))
    rate_limits.observe_event("a", {**EVENT, "credits": None})
    rate_limits.observe_headers(None, WEEK)
    limits = {"codex-x": (Window(7),), "codex": (Window(16, 300, NOW + 600),)}
    assert rate_limits.known.get("a") == RateLimitStatus(limits, SOME, "plus")
    assert rate_limits.known.get(None) == status(Window(3, 10_080, NOW + 900))
    rate_limits.observe_headers("a", {"content-type": "x"})
    assert list(rate_limits.known) == ["a", None]


def test_accounts_and_limits_are_bounded() -> None:
    rate_limits, _ = kept()
    for number in range(MAX_ACCOUNTS + 5):
        rate_limits.observe_headers(str(number), WEEK)
        rate_limits.observe_headers("one", heads(f"limit{number}", "primary", 1))
    assert rate_limits.known.get("0") is None and rate_limits.known.get(str(MAX_ACCOUNTS + 4)) is not None
    known = rate_limits.known.get("one")
    assert known is not None and len(known.limits) == MAX_LIMITS and f"limit{MAX_ACCOUNTS + 4}" in known.limits
    many = {name: value for number in range(99) for name, value in heads(f"l{number}", "primary", 1).items()}
    found = of_headers(many, NOW)
    assert found is not None and len(found.limits) == MAX_LIMITS


def test_the_log_tells_of_steps_and_not_of_every_answer() -> None:
    rate_limits, notes = kept()
    for used in (3, 4, 9.9, 10, 12, 12, 99, 100, 104, 0):
        rate_limits.observe_headers("a", heads("codex", "primary", used, window_minutes=300, reset_at=NOW))
    assert [fields["usedPercent"] for fields in notes.all("codex_allowance")] == [3, 10, 99, 100, 0]
    assert [fields["usedPercent"] for fields in notes.all("allowance_low")] == [99, 100]
    assert {(level, msg) for level, _, msg, _ in notes.records} == {
        ("info", "codex_allowance"),
        ("warn", "allowance_low"),
    }
    first = {"limit": "codex", "window": "5 hours", "usedPercent": 3.0, "resetsAt": "2027-01-15T08:00:00Z"}
    assert notes.all("codex_allowance")[0] == first


# -- a spent allowance


def spent(retry_after: float | None = 3600) -> UpstreamError:
    return UpstreamError("spent", kind="usage_limit", retry_after=retry_after, provider="p1")


FOX = heads("codex-fox", "primary", 100, reset_after_seconds=9999)
FULL_WEEK = heads("codex", "secondary", 100, window_minutes=10_080, reset_after_seconds=300_000)


@rows(
    "headers, retry_after, wait",
    [
        ({**FIVE_HOURS, **FULL_WEEK}, 3600, 300_000),
        ({**FIVE_HOURS, **FULL_WEEK}, None, 300_000),
        ({**FIVE_HOURS, **WEEK}, 3600, 3600),
        (heads("codex", "primary", 100, reset_after_seconds=20), 3600, 3600),
        ({**FULL_WEEK, **FOX, "x-codex-active-limit": "codex_fox"}, 5, 9999),
        ({}, 3600, 3600),
        ({}, None, None),
    ],
)
def test_a_spent_allowance_tells_when_it_is_really_back(
    headers: dict[str, str], retry_after: float | None, wait: float | None
) -> None:
    rate_limits, _ = kept()
    rate_limits.observe_headers("a", headers)
    assert rate_limits.client_error("a", spent(retry_after)).retry_after == wait
    assert rate_limits.client_error("b", spent(retry_after)).retry_after == retry_after
    slow = UpstreamError("slow", kind="rate_limit", retry_after=2, provider="p1")
    assert rate_limits.client_error("a", slow).retry_after == 2  # other failures keep their time


@pytest.mark.parametrize("headers", [FIVE_HOURS, {}])
def test_a_limit_that_refused_an_earlier_request_is_not_blamed_for_this_one(headers: dict[str, str]) -> None:
    rate_limits, _ = kept()
    rate_limits.observe_headers("a", {**FOX, "x-codex-active-limit": "codex_fox"})
    rate_limits.observe_headers("a", headers)
    assert rate_limits.client_error("a", spent(5)).retry_after == 5


# -- end to end, over both transports

USED_UP = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}


def refusal(headers: dict[str, str], match: dict[str, str] | None = None, **error: Any) -> dict[str, Any]:
    step = {"status": 429, "headers": headers, "body": {"error": {**USED_UP, **error}}}
    return {**step, "match": match} if match else step


IN_AN_EVENT = {
    "events": [{"type": "error", "status": 429, "error": {**USED_UP, "resets_in_seconds": 60}, "headers": FULL_WEEK}]
}

MOMENT = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"
WEEKLY = rf"p1: Weekly window used up until {MOMENT}, in 3 d 11 h"
FIVE = rf"p1: 5 hours window used up until {MOMENT}, in 2 h 0 min"

#: transport, what the upstream does, seconds until the allowance is back, in words.
SPENT: list[tuple[str, dict[str, Any], int, str]] = [
    ("http", refusal({**FIVE_HOURS, **FULL_WEEK, "retry-after": "30"}, resets_in_seconds=3600), 300_000, WEEKLY),
    ("http", refusal({"retry-after": "30"}, resets_in_seconds=3600), 3600, "p1 is available again in 1 h 0 min"),
    ("http", IN_AN_EVENT, 300_000, WEEKLY),
    ("websocket", refusal({**FIVE_HOURS, **FULL_WEEK}, {"wire": "upgrade"}), 300_000, WEEKLY),
    (
        "websocket",
        {"fault": "usage_limit", "seconds": 7200},
        7200,
        rf"p1: 5 hours window used up until {MOMENT}, in 2 h 0 min",
    ),
]


def known_windows(live: Live) -> list[tuple[str, bool]]:
    """Those of the account, and whether they are used up."""
    rate_limits: RateLimits = live.app[STATE].providers["p1"].rate_limits  # type: ignore[attr-defined]
    known = rate_limits.known.get("acct-sandbox")
    return [] if known is None else [(window.title, window.used >= 100) for window in known.limits["codex"]]


@pytest.mark.parametrize(("transport", "step", "wait_s", "words"), SPENT)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_spent_allowance_is_final_and_names_its_end(
    sandbox: Sandbox, tmp_path: Path, stream: bool, transport: str, step: Any, wait_s: int, words: str
) -> None:
    upgrade = "match" in step
    async with Live(sandbox, tmp_path, p1_transport=transport) as live:
        sandbox.p1.script.extend([step])
        answer = await live.post(ask(stream=stream))
        assert answer.status == 429 and answer.headers["x-should-retry"] == "false"
        assert wait_s - 10 <= int(answer.headers["Retry-After"]) <= wait_s
        assert re.search(rf"reached \({words}\)$", answer.error["message"])
        assert live.upstream == (0 if upgrade else 1) and not live.sleeps
        assert sandbox.p1.sockets.total == (1 if transport == "websocket" else 0)
        assert not upgrade or known_windows(live) == [("5 hours", False), ("Weekly", True)]


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_what_an_answer_or_an_upgrade_tells_on_the_side_is_known(
    sandbox: Sandbox, tmp_path: Path, transport: str
) -> None:
    sandbox.p1.options.announced = transport == "http"  # without the events that say the same
    async with Live(sandbox, tmp_path, p1_transport=transport) as live:
        assert (await live.post(ask())).status == 200
        assert known_windows(live) == [("5 hours", False), ("Weekly", False)]
        sandbox.p1.script.extend([{"fault": "rate_limits"}])
        assert (await live.stream(ask())).status == 200
        assert known_windows(live)[0] == ("5 hours", True)  # and the request went on


async def test_a_search_is_refused_with_the_same_time(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    provider: Any = live.app[STATE].providers["p1"]
    await live.post(ask())

    async def refused(outgoing: Any) -> Any:
        provider._observe_headers(outgoing.headers, FULL_WEEK)
        raise spent()

    monkeypatch.setattr(provider._transport, "json", refused)
    search = {"type": "web_search_20250305", "name": "web_search"}
    choice = {"type": "tool", "name": "web_search"}
    answer = await live.post(ask("Perform a web search for the query: x", tools=[search], tool_choice=choice))
    assert answer.status == 429 and int(answer.headers["Retry-After"]) > 299_000
