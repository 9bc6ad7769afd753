"""`scripts/e2e` without real clients: what is selected, installed and begun when, and what comes of a failure."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from e2e import installing, run
from e2e.clients import MORE, Client


@pytest.mark.parametrize("line", ["balancer", "codex nosuch", "--all --captures balancer"])
async def test_words_that_select_nothing_are_told_with_those_there_are(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def never(*_: Any) -> Path:
        raise AssertionError("nothing is installed")

    monkeypatch.setattr("e2e.clients.Client.install", never)
    assert await run.main(line.split()) == 1
    out, err = capsys.readouterr()
    assert out == "" and f"{line.split()[-1]!r} is in the name of no scenario" in err
    assert "codex 0.169.0: " in err and "plain_answer" in err
    assert (f"With --all also: {MORE[0].name}" in err) == ("--all" not in line)


async def test_a_word_that_only_all_has_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run.main(["opencode 1"]) == 1
    assert "'opencode 1' is in the name of no scenario; with --all it selects " in capsys.readouterr().err


#: What the scenarios below were called with.
Called = list[tuple[str, Path]]


def _client(name: str, install: Callable[[str, Path], Awaitable[Path]], called: Called, *failing: str) -> Client:
    async def works(client: tuple[str, Path], folder: Path) -> None:
        assert folder.is_dir()
        called.append(client)

    async def fails(_client: object, _folder: Path) -> None:
        raise AssertionError("it does not work")

    scenarios = [fails if each == "fails" else works for each in ("works", *failing)]
    return Client(name, ("1",), install, lambda program, _version, _folder: (name, program), scenarios)


async def test_a_scenario_begins_when_its_client_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A client of two rows is installed once, where E2E_CACHE says; nobody waits for another client."""
    called, asked, later = Called(), list[str](), asyncio.Event()

    async def slow(version: str, cache: Path) -> Path:
        await later.wait()
        return cache / "slow"

    async def quick(version: str, cache: Path) -> Path:
        asked.append(version)
        return cache / "quick"

    rows = (_client("a", slow, called), _client("b", quick, called), _client("c", quick, called, "fails"))
    monkeypatch.setattr(run, "CLIENTS", rows)
    monkeypatch.setenv("E2E_CACHE", str(tmp_path))
    under_way = asyncio.create_task(run.main([]))
    while len(called) < 2:
        await asyncio.sleep(0)
    assert not later.is_set() and asked == ["1"]
    later.set()
    assert await under_way == 1
    assert sorted(called) == [("a", tmp_path / "slow"), ("b", tmp_path / "quick"), ("c", tmp_path / "quick")]
    out = capsys.readouterr().out
    assert "FAILED c 1 fails" in out and "AssertionError: it does not work" in out and "3 passed, 1 failed" in out


async def test_a_client_that_cannot_be_installed_fails_its_own_scenarios(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def missing(_version: str, _cache: Path) -> Path:
        raise RuntimeError("npm is needed")

    async def here(_version: str, cache: Path) -> Path:
        return cache

    monkeypatch.setattr(run, "CLIENTS", (_client("a", missing, []), _client("b", here, [])))
    monkeypatch.delenv("E2E_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert await run.main([]) == 1
    out = capsys.readouterr().out
    assert "FAILED a 1 works" in out and "RuntimeError: npm is needed" in out and "ok     b 1 works" in out
    assert run._cache() == tmp_path / "model-proxy" / "e2e"


async def test_an_installation_is_made_once_and_never_taken_for_whole_when_half_made(tmp_path: Path) -> None:
    folder, made = tmp_path / "cache" / "client-1", list[str]()

    async def breaks_off() -> None:
        (folder / "half").touch()
        raise RuntimeError("the network is gone")

    async def make() -> None:
        made.append("begun")
        assert [one.name for one in folder.iterdir()] == []
        (folder / "program").touch()
        await asyncio.sleep(0.01)

    with pytest.raises(RuntimeError, match="the network is gone"):
        await installing.once(folder, breaks_off)
    await asyncio.gather(*(installing.once(folder, make) for _ in range(3)))
    assert made == ["begun"] and (folder / "program").exists()


async def test_an_installer_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    assert await installing.command(sys.executable, "-c", "") and not await installing.command("false")
    task = asyncio.create_task(installing.command("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"))
    while not (path := tmp_path / "pid").exists() or not path.read_text().strip():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    place = Path("/proc") / path.read_text().strip() / "cmdline"
    while place.exists() and place.read_text():  # it is reaped a moment later
        await asyncio.sleep(0.01)


async def test_a_scenario_that_measures_times_has_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_ONCE", 3)
    gate, inside, most = run._Gate(), list[bool](), dict[bool, int]()

    async def enter(alone: bool) -> None:
        async with gate.entered(alone):
            inside.append(alone)
            for _ in range(3):
                most[alone] = max(most.get(alone, 0), len(inside))
                await asyncio.sleep(0)
            inside.remove(alone)

    await asyncio.gather(*(enter(number % 5 == 0) for number in range(15)))
    assert most == {True: 1, False: 3}
