"""The poll loop of device-code sign-in, with a clock that only sleeping moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from proxy.auth.device import Poll, poll
from proxy.errors import SignInError, UpstreamError

TROUBLE = UpstreamError("x", kind="unavailable")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


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
    return await poll(ask, label="p1", monotonic=clock.monotonic, sleep=clock.sleep, **options)


@pytest.mark.parametrize(
    ("answers", "options", "sleeps"),
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


NEVER = (Poll.PENDING, SignInError("not entered in time"), 900)
BUSY = UpstreamError("x", kind="rate_limit")


@pytest.mark.parametrize(
    ("answer", "raised", "now"),
    [NEVER, *((one, one, 16 if one is TROUBLE else 0) for one in (TROUBLE, BUSY, SignInError("no")))],
)
async def test_gives_up(answer: Any, raised: Exception, now: float) -> None:
    clock = Clock()
    with pytest.raises(type(raised), match=str(raised)):
        await run(clock, script(answer))
    assert clock.now == 100 + now
