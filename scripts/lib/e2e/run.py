"""Runs all scenarios with every client version, two at a time, and prints a line each. Exit status 1 when one fails."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from e2e.clients import CLIENTS, MORE, Client
from e2e.expecting import Scenario
from e2e.searching import SEARCH, Search, tally
from e2e.servers import TRANSPORT

AT_ONCE = 2
ALL, CAPTURES = "--all", "--captures"
#: So many that failed beside others are run once more, alone, and named: a machine that stands still fails what waits.
MOST_AGAIN = 3


async def main(arguments: list[str]) -> int:
    """Scenarios are selected by a part of "codex 0.169.0 missing_sign_in". `--all` adds those of MORE; `--captures`
    keeps captures of all requests and searches them for secrets and pictures."""
    clients = (*CLIENTS, *MORE) if ALL in arguments else CLIENTS
    selected = [one for one in arguments if one not in (ALL, CAPTURES)]
    if lost := [part for part in selected if not any(part in title for title in _titles(clients))]:
        print("\n".join(_words(lost, clients)), file=sys.stderr)
        return 1
    searches: list[Search] = []
    cache = Path(os.environ.get("E2E_CACHE", ".cache/e2e")).absolute()
    gate = asyncio.Semaphore(AT_ONCE)
    runs: dict[str, Callable[[str], Awaitable[bool]]] = {}
    with tempfile.TemporaryDirectory(prefix="model-proxy-e2e-") as root:
        for client in clients:
            for version in client.versions:
                titles = {f"{client.name} {version} {each.__name__}": each for each in client.scenarios}
                wanted = [title for title in titles if not selected or any(part in title for part in selected)]
                program = await client.install(version, cache) if wanted else Path()
                for title in wanted:
                    folder = Path(root) / title.replace(" ", "-")
                    search = Search(folder) if CAPTURES in arguments else None
                    searches += [search] if search is not None else []
                    started = partial(_started, client, program, version, titles[title], folder, gate, search)
                    runs[title] = partial(started, title)
        outcomes = await asyncio.gather(*(run("") for run in runs.values()))
        failed = [run for run, good in zip(runs.values(), outcomes, strict=True) if not good]
        if 0 < len(failed) <= MOST_AGAIN:
            again = [await run("-again") for run in failed]
            outcomes = [good for good in outcomes if good] + again
    if searches:
        print(tally(searches))
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    return 0 if outcomes and all(outcomes) else 1


def _titles(clients: Sequence[Client]) -> list[str]:
    """What is selected from: client, version, scenario."""
    return [
        f"{client.name} {version} {each.__name__}"
        for client in clients
        for version in client.versions
        for each in client.scenarios
    ]


def _words(lost: Sequence[str], clients: Sequence[Client]) -> list[str]:
    """What is said of words that select nothing: those that --all has, and all that there are."""
    lines = []
    for part in lost:
        more = sum(part in title for title in _titles(MORE)) if clients is CLIENTS else 0
        found = f"; with {ALL} it selects {more}" if more else ""
        lines.append(f"{part!r} is in the name of no scenario{found}.")
    lines.append("A word is a part of the name of a client, of its version or of a scenario:")
    for client in clients:
        names = ", ".join(each.__name__ for each in client.scenarios)
        lines.append(f"  {client.name} {', '.join(client.versions)}: {names}")
    if clients is CLIENTS:
        lines.append(f"With {ALL} also: {', '.join(dict.fromkeys(client.name for client in MORE))}")
    return lines


async def _started(
    client: Client,
    program: Any,
    version: str,
    scenario: Scenario[Any],
    folder: Path,
    gate: asyncio.Semaphore,
    search: Search | None,
    title: str,
    again: str,
) -> bool:
    """`again`: behind the names of the second attempt, which has a folder of its own."""
    folder = folder.with_name(folder.name + again)
    driven = client.drive(program, version, folder)
    return await _run(title + again, scenario, driven, folder, gate, client.transport, search)


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
