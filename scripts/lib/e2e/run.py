"""Runs all scenarios with every client version, two at a time, and prints a line each. Exit status 1 when one fails."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from e2e.claude_code import VERSIONS, ClaudeCode, install
from e2e.scenarios import SCENARIOS, Scenario, named

AT_ONCE = 2


async def main(selected: list[str]) -> int:
    cache = Path(os.environ.get("E2E_CACHE", ".cache/e2e")).absolute()
    programs = {version: await install(version, cache) for version in VERSIONS}
    wanted = [each for each in SCENARIOS if not selected or any(part in named(each) for part in selected)]
    gate = asyncio.Semaphore(AT_ONCE)
    with tempfile.TemporaryDirectory(prefix="model-proxy-e2e-") as root:
        runs = [
            _run(each, ClaudeCode(program, version, Path(root) / version / named(each)), gate)
            for version, program in programs.items()
            for each in wanted
        ]
        outcomes = await asyncio.gather(*runs)
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    return 0 if outcomes and all(outcomes) else 1


async def _run(scenario: Scenario, claude: ClaudeCode, gate: asyncio.Semaphore) -> bool:
    async with gate:
        started, problem = time.monotonic(), ""
        folder = claude.folder / "proxy"
        folder.mkdir(parents=True)
        try:
            await scenario(claude, folder)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - started
        state = "FAILED" if problem else "ok"
        print(f"{state:6} claude-code {claude.version} {named(scenario)} ({seconds:.1f} s) {problem}", flush=True)
        return not problem


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
