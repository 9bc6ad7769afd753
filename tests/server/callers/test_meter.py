"""What callers have used, against their limits."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask

from proxy.errors import BusyError
from proxy.observe.history.caller_use import CallerUse
from proxy.observe.history.schema import FILE_NAME
from proxy.sandbox import Sandbox
from proxy.server.callers.callers import DAY_S, Meter, used_today
from proxy.server.callers.keys import CallerKey, KeyLimits, change_keys, digest_of

NOON = 20_000 * DAY_S + DAY_S / 2


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


def key(name: str = "anna", **limits: int) -> CallerKey:
    return CallerKey(name, "0" * 64, 0, KeyLimits(**limits))


def refused(meter: Meter, caller: CallerKey) -> BusyError:
    with pytest.raises(BusyError) as caught:
        meter.enter(caller)
    return caught.value


def test_requests_of_any_minute_are_counted() -> None:
    clock = Clock()
    meter, anna = Meter(clock), key(per_minute=2)
    meter.enter(anna)
    clock.now += 40
    meter.enter(anna)
    error = refused(meter, anna)
    assert (error.retry_after, error.status) == (20, 429) and "2 requests a minute" in error.message
    meter.enter(key("bert", per_minute=1))
    clock.now += 20
    meter.enter(anna)
    assert refused(meter, anna).retry_after == 40


def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_long() -> None:
    clock = Clock()
    meter, anna = Meter(clock), key(per_minute=1)
    meter.enter(anna)
    clock.now -= 3600
    meter.enter(anna)


def test_the_limit_that_is_lowered_counts_at_once() -> None:
    clock = Clock()
    meter = Meter(clock)
    for _ in range(3):
        meter.enter(key(per_minute=3))
        clock.now += 10
    assert refused(meter, key(per_minute=1)).retry_after == 50


def test_tokens_of_a_day_are_known_afterwards_and_begin_anew_at_midnight() -> None:
    clock = Clock()
    meter, anna = Meter(clock), key(tokens_per_day=100)
    meter.enter(anna)
    meter.spent("anna", 99)
    meter.enter(anna)
    meter.spent("anna", 500)
    error = refused(meter, anna)
    assert error.retry_after == DAY_S / 2 and "100 tokens a day" in error.message
    meter.enter(key())
    clock.now += DAY_S / 2
    meter.enter(anna)


def test_what_is_used_is_kept_and_what_others_used_counts() -> None:
    clock, kept = Clock(), list[CallerUse]()
    meter, anna = Meter(clock), key(tokens_per_day=100)
    meter.keep = kept.append
    meter.enter(anna)
    meter.spent("anna", 40)
    assert kept == [CallerUse(20_000, "anna", 1, 0), CallerUse(20_000, "anna", 0, 40)]
    meter.told({"anna": CallerUse(20_000, "anna", 3, 90)})  # another process wrote 50
    meter.spent("anna", 9)
    meter.enter(anna)
    meter.told({"anna": CallerUse(20_000, "anna", 3, 90)})  # before the newest was written
    meter.spent("anna", 1)
    refused(meter, anna)
    clock.now += DAY_S
    meter.told({"anna": CallerUse(20_000, "anna", 9, 900)})  # of yesterday
    meter.enter(anna)


async def test_a_limit_holds_over_a_restart_and_over_two_processes(sandbox: Sandbox, tmp_path: Path) -> None:
    keys, state = tmp_path / "keys.json", tmp_path / "state"
    await change_keys(
        keys, lambda known: known.update(anna=CallerKey("anna", digest_of(b"k"), 0, KeyLimits(None, None, 4)))
    )
    options: dict[str, Any] = {"state_dir": state, "caller_keys": keys}
    head = {"x-api-key": "k"}
    async with Live(sandbox, tmp_path / "a", **options) as first, Live(sandbox, tmp_path / "b", **options) as second:
        assert (await second.post(ask(), headers=head)).status == 200
        assert (await first.post(ask(), headers=head)).status == 200
        async with asyncio.timeout(5):
            while (await second.post(ask(), headers=head)).status != 429:  # within a second
                await asyncio.sleep(0.05)
    async with Live(sandbox, tmp_path / "a", **options) as again:
        assert (await again.post(ask(), headers=head)).status == 429
    assert used_today(state / FILE_NAME, time.time())["anna"].tokens >= 4
    assert used_today(state / FILE_NAME, time.time() + DAY_S) == used_today(tmp_path / "none", time.time()) == {}


def test_names_that_come_and_go_fill_nothing() -> None:
    meter = Meter(Clock())
    for number in range(3000):
        meter.enter(key(f"n{number}"))
    assert len(meter._day.used) == 2000
