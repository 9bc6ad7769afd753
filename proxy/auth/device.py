"""Device-code sign-in: polls until the user has entered the code on another device.

Answers differ between issuers (RFC 8628 error words, or bare statuses); the caller's `ask` interprets them.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from proxy.errors import SignInError, UpstreamError

#: What `slow_down` adds to the interval, permanently (RFC 8628, section 3.5).
SLOW_DOWN_S = 5.0

#: Failures in a row after which polling gives up: a short network fault should not cost the user the code.
MAX_FAILURES = 3

T = TypeVar("T")


def is_typable(code: str) -> bool:
    """Whether a person can type this code and a terminal can show it: letters, digits, hyphens."""
    return code.isascii() and code.replace("-", "").isalnum()


class Poll(enum.Enum):
    """Answers after which polling continues."""

    PENDING = "pending"
    SLOW_DOWN = "slow_down"


async def poll(
    ask: Callable[[], Awaitable[T | Poll]],
    *,
    label: str,
    interval_s: float,
    limit_s: float,
    wait_first: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The first result of `ask` that is no Poll.

    `ask` returns `Poll.PENDING` or `Poll.SLOW_DOWN` to be called again, raises UpstreamError `unavailable` for a
    failure that may pass, and anything else to give up. Raises SignInError after `limit_s` seconds.
    """
    deadline = monotonic() + limit_s
    failures = 0
    waiting = wait_first
    while True:
        if waiting:
            await sleep(max(0.0, min(interval_s, deadline - monotonic())))
        if monotonic() >= deadline:
            raise SignInError("The code was not entered in time; start the sign-in again.", provider=label)
        waiting = True
        try:
            answer = await ask()
        except UpstreamError as error:
            failures += 1
            if error.kind != "unavailable" or failures >= MAX_FAILURES:
                raise
            continue
        failures = 0
        if answer is Poll.SLOW_DOWN:
            interval_s += SLOW_DOWN_S
        elif not isinstance(answer, Poll):
            return answer
