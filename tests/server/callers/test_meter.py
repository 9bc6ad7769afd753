"""What callers have used, against their limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import BusyError
from proxy.server.callers.callers import DAY_S, Day, Meter, Used, decode_day, encode_day, read_day, used_today
from proxy.server.callers.keys import CallerKey, KeyLimits

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


async def test_what_was_used_outlives_a_restart(tmp_path: Path) -> None:
    async def never(_seconds: float) -> None:
        raise AssertionError("it is written at the end, too")

    clock = Clock()
    first = Meter(clock, folder=tmp_path)
    await first.load()
    first.enter(key())
    first.spent("anna", 70)
    await first.close()
    assert (tmp_path / "callers.json").stat().st_mode & 0o777 == 0o600
    assert used_today(tmp_path / "callers.json", clock.now) == {"anna": Used(1, 70)}
    assert used_today(tmp_path / "callers.json", clock.now + DAY_S) == {}
    second = Meter(clock, folder=tmp_path)
    await second.load()
    refused(second, key(tokens_per_day=70))
    await second.close()


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"day":1}', b'{"day":1,"used":{"a b":[1,2],"c":[1],"d":["x",1]}}']
)
def test_a_file_that_is_none_of_ours_is_as_none(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    assert read_day(tmp_path / "f").used == {}


def test_a_day_comes_back_as_it_was() -> None:
    day = Day(20_000, {"anna": Used(2, 3)})
    assert decode_day(encode_day(day)) == day


async def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    meter = Meter(Clock(), folder=tmp_path / "file")
    await meter.load()
    meter.enter(key())
    await meter.close()


def test_names_that_come_and_go_fill_nothing() -> None:
    meter = Meter(Clock())
    for number in range(3000):
        meter.enter(key(f"n{number}"))
    assert len(meter._day.used) == 2000
