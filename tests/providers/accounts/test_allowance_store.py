"""What is known of all accounts: told, warned of, kept over restarts."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from harness import Notes

from proxy.core.allowances.report import Allowance, AllowanceWindow
from proxy.providers.accounts.allowance_store import FILE_NAME, MAX_ACCOUNTS, SAVE_EVERY_S, AllowanceStore, read_kept

NOW = 1_795_180_000.0


def used(percent: float, title: str = "Weekly") -> Allowance:
    return Allowance((AllowanceWindow(title, percent, NOW, resets_at=NOW + 7200),))


class Pause:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.over.wait()


async def test_what_is_told_outlives_a_restart_with_its_age(tmp_path: Path) -> None:
    pause = Pause()
    store = AllowanceStore(clock=lambda: NOW, folder=tmp_path / "state", sleep=pause)
    await store.load()
    store.tell("p1", "acct-1", used(12))
    store.tell("p1", "acct-2", used(34))
    await store.close()  # long before it would have been written
    path = tmp_path / "state" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and b"acct" not in path.read_bytes()
    later = AllowanceStore(clock=lambda: NOW + 9000, folder=tmp_path / "state")
    await later.load()
    assert later.of("p1") == used(34)  # of the account heard of last
    later.tell("p1", "acct-1", used(50))
    assert later.of("p1") == used(50) and later.of("p2") is None
    await later.close()


@pytest.mark.parametrize(("age_s", "left"), [(0.0, {"p1", "p2"}), (3600.0, {"p2"})])
async def test_what_was_told_too_long_ago_is_forgotten(tmp_path: Path, age_s: float, left: set[str]) -> None:
    first = AllowanceStore(clock=lambda: NOW, folder=tmp_path)
    first.tell("p1", None, used(12))
    await first.close()
    later = AllowanceStore(clock=lambda: NOW + 3601, folder=tmp_path, age_s=age_s)
    await later.load()
    assert later.current.keys() == left - {"p2"}
    later.tell("p2", None, Allowance((AllowanceWindow("a", 1, NOW + 3601),)))
    await later.close()
    assert {provider for provider, _ in read_kept(tmp_path / FILE_NAME, NOW + 3601)} == left


async def test_the_file_is_written_once_for_many_reports(tmp_path: Path) -> None:
    pause = Pause()
    store = AllowanceStore(clock=lambda: NOW, folder=tmp_path, sleep=pause)
    for percent in range(50):
        store.tell("p1", None, used(percent))
    await asyncio.sleep(0)
    assert pause.asked == [SAVE_EVERY_S] and not (tmp_path / FILE_NAME).exists()
    pause.over.set()
    while not (tmp_path / FILE_NAME).exists():
        await asyncio.sleep(0.001)
    await store.close()


async def test_a_store_without_a_folder_writes_nothing() -> None:
    store = AllowanceStore(clock=lambda: NOW)
    await store.load()
    store.tell("p1", None, used(1))
    await store.close()
    assert list(store.current) == ["p1"]


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00" * 2_000_000])
async def test_a_file_that_is_none_of_ours_is_told_of_once_and_replaced(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    notes = Notes()
    store = AllowanceStore(notes, lambda: NOW, folder=tmp_path)
    await store.load()
    assert len(notes.all("allowances_not_read")) == 1 and store.current == {}
    store.tell("p2", None, used(1))
    await store.close()
    again = AllowanceStore(notes, lambda: NOW, folder=tmp_path)
    await again.load()
    assert list(again.current) == ["p2"] and len(notes.records) == 1


async def test_a_folder_that_cannot_be_written_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    notes, pause = Notes(), Pause()
    pause.over.set()
    store = AllowanceStore(notes, lambda: NOW, folder=tmp_path / "file", sleep=pause)
    await store.load()
    for _ in range(2):
        store.tell("p1", None, used(1))
        await store.close()
    assert [msg for _, _, msg, _ in notes.records] == ["allowances_not_kept"]


async def test_low_windows_are_told_once_also_after_a_restart(tmp_path: Path) -> None:
    notes, notices = Notes(), []
    for percent in (79, 81, 82, 96, 100):
        store = AllowanceStore(
            notes, lambda: NOW, folder=tmp_path, notice=lambda level, text, label: notices.append((level, text, label))
        )
        await store.load()
        store.tell("p3", None, used(percent))
        await store.close()
    told = {"limit": None, "window": "Weekly", "resetsAt": "2026-11-20T15:06:40Z"}
    assert notes.all("allowance_low") == [told | {"usedPercent": percent} for percent in (81, 96, 100)]
    assert [text for _, text, _ in notices] == [
        f"p3: Weekly window {used}, resets in 2 h 0 min (2026-11-20T15:06:40Z)"
        for used in ("81% used", "96% used", "used up")
    ]
    assert {(level, label) for level, _, label in notices} == {("warn", "p3")}


async def test_accounts_are_bounded() -> None:
    store = AllowanceStore(clock=lambda: NOW)
    for number in range(MAX_ACCOUNTS + 3):
        store.tell(f"q{number:03}", str(number), used(1))
    assert len(store.current) == MAX_ACCOUNTS and "q002" not in store.current
    store.tell("empty", None, Allowance())
    assert "empty" not in store.current


async def test_two_proxies_that_share_a_folder_keep_what_each_was_told_last(tmp_path: Path) -> None:
    def told(percent: float, as_of: float) -> Allowance:
        return Allowance((AllowanceWindow("Weekly", percent, as_of),))

    stores = [AllowanceStore(clock=lambda: NOW, folder=tmp_path) for _ in range(3)]
    first, second, wrong_clock = stores
    first.tell("p1", "acct", told(10, NOW - 60))
    second.tell("p1", "acct", told(20, NOW - 30))
    second.tell("p2", None, told(30, NOW - 30))
    first.tell("p3", None, told(40, NOW))
    wrong_clock.tell("p3", None, told(50, NOW + 9000))
    for store in (second, wrong_clock, first):
        await store.close()
    later = AllowanceStore(clock=lambda: NOW, folder=tmp_path)
    await later.load()
    assert {label: known.windows[0].used for label, known in later.current.items()} == {"p1": 20, "p2": 30, "p3": 40}
