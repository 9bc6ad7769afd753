"""The poll loop of device-code sign-in, with a clock that only sleeping moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from oauth_accounts import NOW_S, Clock
from samples import rows

from proxy.auth.device import Poll, poll
from proxy.errors import SignInError, UpstreamError

TROUBLE, BUSY, NO = UpstreamError("x", kind="unavailable"), UpstreamError("x", kind="rate_limit"), SignInError("no")


def script(*answers: Any) -> Callable[[], Awaitable[Any]]:
    """An `ask` that gives these in turn (an exception is raised) and the last one for ever."""
    left = list(answers)

    async def ask() -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


async def run(clock: Clock, ask: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    options = {"interval_s": 8.0, "limit_s": 900.0, **options}
    return await poll(ask, label="p1", monotonic=clock, sleep=clock.sleep, **options)


@rows(
    "answers, options, sleeps",
    [
        (["done"], {}, []),
        (["done"], {"wait_first": True}, [8.0]),
        ([Poll.PENDING, Poll.PENDING, "done"], {}, [8.0, 8.0]),
        ([Poll.SLOW_DOWN, Poll.PENDING, "done"], {}, [13.0, 13.0]),
        ([TROUBLE, TROUBLE, Poll.PENDING, TROUBLE, TROUBLE, "done"], {}, [8.0] * 5),
    ],
)
async def test_waits_between_polls(answers: list[Any], options: dict[str, Any], sleeps: list[float]) -> None:
    clock = Clock()
    assert await run(clock, script(*answers), **options) == "done"
    assert clock.sleeps == sleeps


LATE = SignInError("not entered in time")


@rows("answer, raised, after_s", [(Poll.PENDING, LATE, 900), (TROUBLE, TROUBLE, 16), (BUSY, BUSY, 0), (NO, NO, 0)])
async def test_gives_up(answer: Any, raised: Exception, after_s: float) -> None:
    clock = Clock()
    with pytest.raises(type(raised), match=str(raised)):
        await run(clock, script(answer))
    assert clock.now == NOW_S + after_s
