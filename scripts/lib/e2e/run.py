"""Runs all scenarios with every client version, two at a time, and prints a line each. Exit status 1 when one fails."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from e2e.clients import CLIENTS, MORE
from e2e.expecting import Scenario
from e2e.searching import SEARCH, Search, tally
from e2e.servers import TRANSPORT

AT_ONCE = 2
ALL, CAPTURES = "--all", "--captures"


async def main(arguments: list[str]) -> int:
    """Scenarios are selected by a part of "codex 0.169.0 missing_sign_in". `--all` adds those of MORE; `--captures`
    keeps captures of all requests and searches them for secrets and pictures."""
    clients = (*CLIENTS, *MORE) if ALL in arguments else CLIENTS
    selected = [one for one in arguments if one not in (ALL, CAPTURES)]
    searches: list[Search] = []
    cache = Path(os.environ.get("E2E_CACHE", ".cache/e2e")).absolute()
    gate = asyncio.Semaphore(AT_ONCE)
    runs: list[Awaitable[bool]] = []
    with tempfile.TemporaryDirectory(prefix="model-proxy-e2e-") as root:
        for client in clients:
            for version in client.versions:
                titles = {f"{client.name} {version} {each.__name__}": each for each in client.scenarios}
                wanted = [title for title in titles if not selected or any(part in title for part in selected)]
                program = await client.install(version, cache) if wanted else Path()
                for title in wanted:
                    folder = Path(root) / title.replace(" ", "-")
                    driven = client.drive(program, version, folder)
                    search = Search(folder) if CAPTURES in arguments else None
                    searches += [search] if search is not None else []
                    runs.append(_run(title, titles[title], driven, folder, gate, client.transport, search))
        outcomes = await asyncio.gather(*runs)
    if searches:
        print(tally(searches))
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    return 0 if outcomes and all(outcomes) else 1


async def _run(
    title: str,
    scenario: Scenario[Any],
    client: Any,
    folder: Path,
    gate: asyncio.Semaphore,
    transport: str | None,
    search: Search | None,
) -> bool:
    TRANSPORT.set(transport)  # each run is a task with a context of its own
    SEARCH.set(search)
    async with gate:
        started, problem = time.monotonic(), ""
        (folder / "proxy").mkdir(parents=True)
        try:
            await scenario(client, folder / "proxy")
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - started
        print(f"{'FAILED' if problem else 'ok':6} {title} ({seconds:.1f} s) {problem}", flush=True)
        return not problem


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
