"""Allowances as values: merged, worth a warning, over, kept, told to programs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from samples import rows

from proxy.core.allowances.account_json import ProviderAllowance, accounts_json
from proxy.core.allowances.rate_limits import RateLimitStatus, Window
from proxy.core.allowances.report import (
    MAX_WINDOWS,
    Allowance,
    AllowanceWindow,
    lows,
    merged,
    moved,
    spent_window,
    status_of,
)
from proxy.core.allowances.words import plain_lines, spent_text, wait_text
from proxy.providers.accounts.allowance_store import decode_kept, encode_kept

NOW = 1_795_180_000.0
HOUR, DAY = 3600.0, 86_400.0


def window(used: float | None = 10.0, title: str = "Weekly", **members: Any) -> AllowanceWindow:
    members = {"as_of": NOW, "resets_at": NOW + DAY, **members}
    return AllowanceWindow(title, used, **members)


FIVE = window(20, "5 hours", minutes=300, resets_at=NOW + HOUR)
WEEK = window(3, "Weekly", minutes=10_080)
SPARK = window(50, "5 hours", limit="Spark", minutes=300, resets_at=NOW + HOUR)


@rows(
    "old, new, titles",
    [
        (Allowance(), Allowance((FIVE, WEEK)), ["5 hours", "Weekly"]),
        (Allowance((FIVE, WEEK, SPARK)), Allowance((WEEK,)), ["Weekly"]),
        (Allowance((SPARK, FIVE)), Allowance((WEEK,), whole=False), ["Weekly", "Spark, 5 hours"]),
        (Allowance((FIVE,)), Allowance((SPARK,), whole=False), ["5 hours", "Spark, 5 hours"]),
    ],
)
def test_a_report_replaces_the_limits_that_it_names_or_all(old: Allowance, new: Allowance, titles: list[str]) -> None:
    assert [one.full_title for one in merged(old, new, NOW).windows] == titles


def test_a_report_that_is_not_whole_keeps_plan_and_notes() -> None:
    old = Allowance((FIVE,), "plus", ("Credits: none",))
    known = merged(old, Allowance((WEEK,), whole=False), NOW)
    assert (known.plan, known.notes) == ("plus", ("Credits: none",))
    assert merged(old, Allowance((WEEK,)), NOW).notes == ()


def test_windows_are_bounded_and_the_new_ones_stay() -> None:
    known = Allowance()
    for number in range(MAX_WINDOWS + 5):
        known = merged(known, Allowance((window(limit=f"l{number}"),), whole=False), NOW)
    assert len(known.windows) == MAX_WINDOWS and f"l{MAX_WINDOWS + 4}" in {one.limit for one in known.windows}


def reports(*rows: tuple[float, float, float]) -> list[int]:
    """The steps told of, given `(used, told at, resets at)` of reports about one window, in hours from now."""
    known, steps = Allowance(), []
    for used, at, resets in rows:
        told = window(used, minutes=300, as_of=NOW + at * HOUR, resets_at=NOW + resets * HOUR)
        known, found = lows(merged(known, Allowance((told,)), NOW + at * HOUR))
        steps += [low.step for low in found]
    return steps


@rows(
    "rows, steps",
    [
        ([(79.9, 0, 5), (80, 1, 5), (81, 2, 5), (95, 3, 5), (99, 4, 5)], [80, 95]),
        ([(97, 0, 5), (98, 1, 5)], [95]),  # one word for both
        ([(120, 0, 5)], [100]),
        ([(85, 0, 5), (79, 1, 5), (85, 2, 5)], [80]),  # a rolling window goes up and down
        ([(85, 0, 5), (85, 6, 11)], [80, 80]),  # began again in between
        ([(85, 0, 5), (2, 6, 11), (85, 7, 11)], [80, 80]),
        ([(85, 0, 5), (85, 1, 9)], [80, 80]),  # another period, whatever the clock says
        ([(85, 0, 5), (85, 0.1, 5.1), (85, 0.2, 5.2)], [80]),  # the end of a rolling window moves on
        ([(85, 5, 9), (86, -3, 9)], [80]),  # the clock was set back
        ([(85, 0, -2), (86, 1, -2)], [80]),  # our clock is ahead
    ],
)
def test_a_step_is_told_of_once_in_a_period(rows: list[tuple[float, float, float]], steps: list[int]) -> None:
    assert reports(*rows) == steps


@rows(
    "told, over",
    [
        (window(resets_at=NOW), True),
        (window(resets_at=NOW + 1), False),
        (window(resets_at=None), False),
        (window(resets_at=None, minutes=300, as_of=NOW - 6 * HOUR), True),
        (window(resets_at=NOW + DAY, minutes=300, as_of=NOW - 6 * HOUR), True),
        (window(resets_at=None, minutes=300, as_of=NOW - 4 * HOUR), False),
    ],
)
def test_a_window_is_over_at_its_end_or_after_its_length(told: AllowanceWindow, over: bool) -> None:
    assert told.is_over(NOW) is over
    assert replace(told, used=100.0).is_spent(NOW) is (not over and told.resets_at is not None)


FULL_FIVE, FULL_WEEK = replace(FIVE, used=100.0), replace(WEEK, used=101.0)
FULL_SPARK = replace(SPARK, used=100.0, resets_at=NOW + 2 * HOUR)


@rows(
    "windows, wait, found",
    [
        ((FIVE, WEEK), None, None),
        ((FULL_FIVE, WEEK), None, FULL_FIVE),
        ((FULL_FIVE, FULL_WEEK), None, FULL_WEEK),
        ((FULL_FIVE, FULL_WEEK), HOUR + 60, FULL_FIVE),  # the service says which
        ((FULL_FIVE,), 30.0, FULL_FIVE),  # when to try again, not when the window ends
        ((FULL_FIVE,), 5 * HOUR, None),  # the service knows of another one
        ((FULL_WEEK,), HOUR, None),
        ((FULL_SPARK, WEEK), None, None),  # of other models
        ((FULL_SPARK, WEEK), 2 * HOUR, FULL_SPARK),
        ((replace(FULL_FIVE, resets_at=NOW - 1),), None, None),
    ],
)
def test_the_window_that_refuses(
    windows: tuple[AllowanceWindow, ...], wait: float | None, found: AllowanceWindow | None
) -> None:
    assert spent_window(Allowance(windows), NOW, wait) == found


def test_what_is_told_of_a_used_up_window_says_how_old_it_is() -> None:
    fresh = "p1: 5 hours window used up until 2026-11-20T14:06:40Z, in 1 h 0 min"
    assert spent_text("p1", FULL_FIVE, NOW) == fresh
    assert spent_text("p1", replace(FULL_FIVE, as_of=NOW - 3 * HOUR), NOW) == f"{fresh}, as of 3 h ago"


def test_lines() -> None:
    known = Allowance(
        (replace(FIVE, words="20 of 100 used"), SPARK, window(None, words="limit 7")), notes=("Prepaid: $1",)
    )
    assert plain_lines(known) == [
        "5 hours: 20 of 100 used, resets 2026-11-20T14:06:40Z",
        "Spark, 5 hours: 50% used, resets 2026-11-20T14:06:40Z",
        "Weekly: limit 7, resets 2026-11-21T13:06:40Z",
        "Prepaid: $1",
    ]


def test_the_ends_of_a_service_with_another_clock_are_moved() -> None:
    known = moved(Allowance((FIVE, window(resets_at=None))), -60)
    assert [one.resets_at for one in known.windows] == [NOW + HOUR - 60, None]


KEPT = {
    ("p1", "abc"): Allowance((replace(FIVE, warned=80), SPARK), "plus", ("Credits: none",), whole=False, pays_on=True),
    ("p2", ""): Allowance((window(None, words="limit 7", resets_at=None, name="rolling"),)),
}


def test_what_is_kept_comes_back() -> None:
    assert decode_kept(encode_kept(KEPT), NOW) == KEPT
    assert list(decode_kept(encode_kept(KEPT), NOW)) == list(KEPT)


def test_what_was_told_in_the_future_was_told_now() -> None:
    ((_, known),) = decode_kept(encode_kept({("p1", ""): Allowance((window(as_of=NOW + DAY),))}), NOW).items()
    assert known.as_of == NOW


@rows(
    "data",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"version": 2, "accounts": []}',
        b'{"version": 1, "accounts": {}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"it is|another program"):
        decode_kept(data, NOW)


@rows(
    "account",
    [
        None,
        {},
        {"provider": "p1"},
        {"provider": 1, "windows": []},
    ],
)
def test_accounts_that_are_not_whole_are_left_out(account: Any) -> None:
    assert decode_kept(json.dumps({"version": 1, "accounts": [account]}).encode(), NOW) == {}


@rows(
    "row, windows",
    [
        (None, 0),
        ({"title": "W"}, 0),
        ({"title": "", "asOf": 1}, 0),
        ({"title": "W", "asOf": "1"}, 0),
        ({"title": "W", "asOf": 1}, 1),
        ({"title": "W\x1b[2J", "asOf": 1, "used": "9", "resetsAt": 1e300, "minutes": True, "warned": 7}, 1),
    ],
)
def test_windows_that_are_not_whole_are_left_out(row: Any, windows: int) -> None:
    found = decode_kept(json.dumps({"version": 1, "accounts": [{"provider": "p1", "windows": [row]}]}).encode(), NOW)[
        "p1", ""
    ].windows
    assert len(found) == windows
    assert all((one.used, one.resets_at, one.minutes, one.warned) == (None, None, None, 0) for one in found)
    assert all(one.title.isprintable() for one in found)


@rows("used, status", [(0, "ok"), (79.9, "ok"), (80, "warning"), (94, "warning"), (95, "critical"), (130, "critical")])
def test_status(used: float, status: str) -> None:
    assert status_of([window(3), window(used)], NOW) == status
    assert status_of([window(used, resets_at=NOW)], NOW) == "ok"


GO = ProviderAllowance(
    "p4",
    "OpenCode Go",
    Allowance((window(12.5, "Rolling (5 hour)", minutes=300, name="rolling"), window(-3), window(120, "Monthly"))),
)
OLD = ProviderAllowance("p1", "ChatGPT (Codex)", Allowance((replace(FULL_FIVE, resets_at=NOW - 1), SPARK)))


def test_the_account_as_other_programs_read_it() -> None:
    found = accounts_json([GO], NOW)
    assert found["accounts"] == [{name: found[name] for name in found if name != "accounts"}]
    assert (found["provider"], found["status"], found["updatedAt"]) == (
        "OpenCode Go",
        "critical",
        "2026-11-20T13:06:40Z",
    )
    assert found["meters"][0] == {
        "id": "opencode_go_rolling",
        "kind": "quota",
        "label": "5h quota",
        "limit": 100,
        "used": 12.5,
        "remaining": 87.5,
        "unit": "%",
        "window": "5h",
        "resetAt": "2026-11-21T13:06:40Z",
        "asOf": "2026-11-20T13:06:40Z",
    }
    assert [(meter["used"], meter["remaining"]) for meter in found["meters"][1:]] == [(0, 100), (100, 0)]


@pytest.mark.parametrize(("wanted", "provider"), [("", "OpenCode Go"), ("p1", "ChatGPT (Codex)"), ("p3", "p3")])
def test_at_the_top_is_who_is_asked_for_or_who_has_least_left(wanted: str, provider: str) -> None:
    found = accounts_json([OLD, GO], NOW, wanted)
    assert found["provider"] == provider and len(found["accounts"]) == 2


def test_a_window_that_began_again_is_no_meter() -> None:
    (account,) = accounts_json([OLD], NOW)["accounts"]
    assert [meter["label"] for meter in account["meters"]] == ["Spark 5h quota"] and account["status"] == "ok"
    assert accounts_json([], NOW)["meters"] == []


@rows(
    "words, waits",
    [("0 min", [0, -5]), ("1 min", [1, 59.9, 60]), ("2 min", [60.5, 61]), ("1 h 0 min", [3600]), ("1 d 2 h", [93_600])],
)
def test_waits_in_words(words: str, waits: list[float]) -> None:
    assert {wait_text(seconds) for seconds in waits} == {words}


RECEIVED = 1000.0


@rows(
    "windows, until",
    [
        ((), None),
        ((Window(99.9, 300, 2000),), None),
        ((Window(100, 300, 2000),), 2000),
        ((Window(100, 300, 2000), Window(120, 10_080, 9000)), 9000),
        ((Window(100, 300, 9000), Window(100, 10_080, 2000)), 9000),
        ((Window(30, 300, 2000), Window(100, 10_080, 9000)), 9000),
        ((Window(100, 300, 1000),), None),
        ((Window(100, 300, None),), None),
    ],
)
def test_a_spent_limit_is_back_when_all_its_used_up_windows_are(
    windows: tuple[Window, ...], until: float | None
) -> None:
    assert RateLimitStatus({"codex": windows}).spent_until("codex", RECEIVED) == until
    assert RateLimitStatus({"codex": windows}).spent_until("other", RECEIVED) is None


@rows("minutes, title", [(300, "5 hours"), (10_080, "Weekly"), (1440, "1 day"), (90, "90 minutes"), (None, "Window")])
def test_windows_are_called_by_their_length(minutes: int | None, title: str) -> None:
    assert Window(1, minutes).title == title
