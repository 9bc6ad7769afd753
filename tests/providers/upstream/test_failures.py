"""When an upstream is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.visible import Visible
from proxy.errors import KINDS, RequestError, SignInError, UpstreamError
from proxy.providers.upstream import failures
from proxy.providers.upstream.failures import (
    GiveUp,
    Retry,
    backoff,
    decide,
    decide_empty,
    parse_retry_after,
)
from proxy.server.serving.allowances import with_long_wait

NOW = 1_800_000_000.0


def failed(kind: str = "transient", retry_after: float | None = None, *, repeatable: bool = True) -> UpstreamError:
    return UpstreamError("x", kind=kind, retry_after=retry_after, repeatable=repeatable)


FAILURES = {
    "maybe at work": failed("transport", repeatable=False),
    "the upstream says so": UpstreamError("x", kind="transient", final=True),
}
#: What went wrong -> how often it is tried again when there was nothing, something unseen, thinking or content.
RULE = {
    **dict.fromkeys([*KINDS, "maybe at work", "the upstream says so"], (0, 0, 0, 0, 0)),
    **dict.fromkeys(("transient", "upstream_timeout", "overloaded", "rate_limit", "transport"), (3, 3, 3, 1, 0)),
    "empty": (2, 2, 2, 0, 0),
    "empty after a tool result": (1, 1, 1, 0, 0),
}


@rows("problem", RULE)
@rows("shown", Visible)
def test_the_commit_rule(problem: str, shown: Visible) -> None:
    def again(attempt: int) -> bool:
        if problem.startswith("empty"):
            tool = problem != "empty"
            return decide_empty(attempt=attempt, visible=shown, after_tool_result=tool, chance=0) != GiveUp()
        error = FAILURES[problem] if problem in FAILURES else failed(problem)
        return decide(error, attempt=attempt, visible=shown, chance=0) != GiveUp()

    assert [again(attempt) for attempt in range(6)] == [attempt < RULE[problem][shown] for attempt in range(6)]


def test_causes_are_removed_only_before_anything_was_shown() -> None:
    assert [failures.RETRY_BUDGETS[shown].recovery for shown in Visible] == [True, True, True, False, False]


@pytest.mark.parametrize("error", [RequestError("x"), SignInError("x")])
def test_what_is_not_the_upstreams_fault_is_not_repeated(error: RequestError | SignInError) -> None:
    assert decide(error, attempt=0, visible=Visible.NOTHING, chance=0) == GiveUp()


@rows(
    "retry_after, expected",
    [
        *((wait, Retry(kept)) for wait, kept in ((2.0, 2.0), (0.5, 0.5), (0.0, 0.1), (30.0, 30.0))),
        *((wait, GiveUp()) for wait in (30.1, 3600.0)),
    ],
)
def test_a_named_wait_is_kept_or_left_to_the_client(retry_after: float, expected: Retry | GiveUp) -> None:
    assert decide(failed("rate_limit", retry_after), attempt=0, visible=Visible.NOTHING, chance=0.5) == expected


@given(st.integers(0, 50), st.floats(0, 1))
def test_waits_grow_and_are_bounded(attempt: int, chance: float) -> None:
    step = min(failures.CAP_S, 2.0 * 2**attempt)
    assert step / 2 <= backoff(attempt, chance) <= step


def test_waits_without_a_name() -> None:
    assert [backoff(attempt, 0.5) for attempt in range(6)] == [1.5, 3.0, 6.0, 12.0, 22.5, 22.5]


@rows(
    "value, expected",
    [
        *(("2", 2.0), ("1.5", 1.5), ("0", 0.0), (" 31 ", 31.0)),
        *((value, None) for value in (None, "-1", "soon", "", "nan", "inf", "1e99")),
        *((f"Fri, 15 Jan 2027 {moment}", 30.0) for moment in ("08:00:30 GMT", "09:00:30 +0100")),
        *((f"Fri, {moment}", None) for moment in ("15 Jan 2027 07:59:30 GMT", "99 Jan 2027")),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, expected: float | None) -> None:
    assert parse_retry_after(value, now=NOW) == expected


def test_a_far_date_is_kept_and_left_to_the_client() -> None:
    seconds = parse_retry_after("Fri, 01 Jan 2038 00:00:00 GMT", now=NOW)
    assert seconds is not None and seconds > 300_000_000
    assert decide(failed("rate_limit", seconds), attempt=0, visible=Visible.NOTHING, chance=0) == GiveUp()


@rows(
    "wait, message, told",
    [
        (7200.0, "Slow down.", "Slow down; try again in 2 h 0 min"),
        (31.0, "busy", "busy; try again in 1 min"),
        (30.0, "busy", "busy"),
        (None, "busy", "busy"),
        (7200.0, "Please try again in 2 hours.", "Please try again in 2 hours."),
        (7200.0, "The window resets at noon.", "The window resets at noon."),
    ],
)
def test_a_wait_that_is_longer_than_ours_is_passed_on_and_named(wait: float | None, message: str, told: str) -> None:
    error = with_long_wait(UpstreamError(message, kind="rate_limit", retry_after=wait))
    assert (error.message, error.retry_after) == (told, wait)
    assert wait is None or isinstance(decide(error, attempt=0, visible=Visible.NOTHING, chance=0), GiveUp) == (
        wait > 30
    )
