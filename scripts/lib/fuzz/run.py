"""Runs cases one after the other for so many seconds, and writes down those that show something wrong."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from fuzz_stub import FuzzCase
from fuzzing import Rig, rig

from fuzz.answers import plain_answers
from fuzz.cases import case_of
from fuzz.seeds import seeds

#: Cases of one application; then another one begins, and the first must have left nothing.
EACH = 2_000
#: Cases that are written for one kind of finding, and findings that are printed in all.
KEPT, PRINTED = 3, 40


class Findings:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._kinds.total()

    def add(self, case: FuzzCase, wrong: list[str]) -> None:
        case.wrong = "; ".join(wrong)
        kind = f"{case.path.partition('?')[0]} {case.wrong[:60]}"
        self._kinds[kind] += 1
        if self._kinds[kind] <= KEPT and len(self._kinds) <= PRINTED:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"{case.name}.json"
            file.write_text(case.dump() + "\n")
            print(f"{file}: {case.wrong[:400]}", flush=True)


async def fuzz(seed: int, until: float, findings: Findings) -> int:
    number = 0
    await _warm_up(findings)
    gc.freeze()  # modules and constants: a collection need not walk them
    while time.monotonic() < until:
        async with _application() as running:
            last = number + EACH
            while number < last and time.monotonic() < until:
                case = case_of(seed, number)
                await (_alone(case, findings) if case.alone else _one(running, case, findings))
                number += 1
            if left := await running.leftovers():
                findings.add(FuzzCase("", name=f"{seed}-{number}-left"), left)
    return number


@contextlib.asynccontextmanager
async def _application() -> AsyncIterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        async with rig(Path(root), plain_answers()) as running:
            yield running


async def _warm_up(findings: Findings) -> None:
    """What is imported, read and compiled for the first request of a kind is no stall."""
    async with _application() as running:
        for seed in seeds():
            await running.run(seed)
            if wrong := await running.run(seed):
                findings.add(seed, wrong)


async def _alone(case: FuzzCase, findings: Findings) -> None:
    async with _application() as running:
        await _one(running, case, findings)
        if left := await running.leftovers():
            findings.add(case, left)


async def _one(running: Rig, case: FuzzCase, findings: Findings) -> None:
    wrong = await running.run(case)
    if wrong and all("a step of" in one for one in wrong):
        wrong = await running.run(case)  # the machine may have been busy
    if wrong:
        findings.add(case, wrong)


async def replay(files: list[Path], findings: Findings) -> int:
    for file in files:
        await _alone(FuzzCase.load(file.read_text()), findings)
    return len(files)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-findings")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE")
    given = parser.parse_args()
    findings, begun = Findings(given.out), time.monotonic()
    work = replay(given.replay, findings) if given.replay else fuzz(given.seed, begun + given.seconds, findings)
    cases = asyncio.run(work)
    spent = time.monotonic() - begun
    print(f"{cases} cases, {findings.count} findings, {cases / spent:.0f} cases/s")
    return 1 if findings.count else 0


if __name__ == "__main__":
    raise SystemExit(main())
