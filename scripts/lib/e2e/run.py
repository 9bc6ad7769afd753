"""Runs all scenarios with every client version, several at a time, and prints a line each: a scenario begins when its
client is installed. Exit status 1 when one fails."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from e2e.clients import CLIENTS, MORE, REPEATED, Client
from e2e.expecting import Scenario
from e2e.searching import SEARCH, Search, tally
from e2e.servers import TRANSPORT

#: Clients wait for half of their time. A scenario has its own proxy, port and folders, and shares nothing with others.
AT_ONCE = min(9, 3 * (os.cpu_count() or 1))
#: Installations beside them, which mostly unpack.
INSTALLED_AT_ONCE = 2
ALL, AGAIN, CAPTURES = "--all", "--repeated", "--captures"


async def main(arguments: list[str]) -> int:
    """Scenarios are selected by a part of "codex 0.169.0 missing_sign_in". `--repeated` adds those of REPEATED, `--all`
    also those of MORE; `--captures` keeps captures of all requests and searches them for secrets and pictures."""
    added = (*MORE, *REPEATED) if ALL in arguments else REPEATED if AGAIN in arguments else ()
    clients = (*CLIENTS, *added)
    selected = [one for one in arguments if one not in (ALL, AGAIN, CAPTURES)]
    if lost := [part for part in selected if not any(part in title for title in _titles(clients))]:
        print("\n".join(_words(lost, clients, () if ALL in arguments else (*MORE, *REPEATED))), file=sys.stderr)
        return 1
    started, searches, runs = time.monotonic(), list[Search](), list[Awaitable[bool]]()
    gate, programs = _Gate(), _Programs(_cache())
    with tempfile.TemporaryDirectory(prefix="model-proxy-e2e-") as root:
        for client in clients:
            for version in client.versions:
                titles = {f"{client.name} {version} {each.__name__}": each for each in client.scenarios}
                for title in (title for title in titles if not selected or any(part in title for part in selected)):
                    folder = Path(root) / title.replace(" ", "-")
                    search = Search(folder) if CAPTURES in arguments else None
                    searches += [search] if search is not None else []
                    program = programs.of(client, version)
                    runs.append(_run(title, titles[title], client, version, program, folder, gate, search))
        outcomes = await asyncio.gather(*runs)
    if searches:
        print(tally(searches))
    seconds = time.monotonic() - started
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed in {seconds:.0f} s, {AT_ONCE} at a time")
    return 0 if outcomes and all(outcomes) else 1


def _cache() -> Path:
    """Of installed clients: E2E_CACHE, or that of the user, which outlives this folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("E2E_CACHE") or user / "model-proxy" / "e2e").absolute()


class _Gate:
    """Lets in so many at a time; whoever has to be alone waits until it has all their places."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)
        self._alone = asyncio.Lock()  # two that take one place after the other would wait for each other

    @asynccontextmanager
    async def entered(self, alone: bool) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            async with self._alone if alone else nullcontext():
                for _ in range(AT_ONCE if alone else 1):
                    await stack.enter_async_context(self._places)
            yield


class _Programs:
    """The clients' programs, each installed once, in the order in which they are asked for."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._gate = asyncio.Semaphore(INSTALLED_AT_ONCE)
        self._tasks: dict[Any, asyncio.Task[Path]] = {}

    def of(self, client: Client, version: str) -> asyncio.Task[Path]:
        known = client.install, version
        if known not in self._tasks:
            self._tasks[known] = asyncio.create_task(self._install(client, version))
        return self._tasks[known]

    async def _install(self, client: Client, version: str) -> Path:
        async with self._gate:
            started = time.monotonic()
            program = await client.install(version, self._cache)
            print(f"ready  {client.name} {version} ({time.monotonic() - started:.1f} s)", flush=True)
            return program


def _titles(clients: Sequence[Client]) -> list[str]:
    """What is selected from: client, version, scenario."""
    return [
        f"{client.name} {version} {each.__name__}"
        for client in clients
        for version in client.versions
        for each in client.scenarios
    ]


def _words(lost: Sequence[str], clients: Sequence[Client], others: Sequence[Client]) -> list[str]:
    """What is said of words that select nothing: those that --all has, `others`, and all that there are."""
    lines = []
    for part in lost:
        more = sum(part in title for title in _titles(others))
        found = f"; with {ALL} it selects {more}" if more else ""
        lines.append(f"{part!r} is in the name of no scenario{found}.")
    lines.append("A word is a part of the name of a client, of its version or of a scenario:")
    for client in clients:
        names = ", ".join(each.__name__ for each in client.scenarios)
        lines.append(f"  {client.name} {', '.join(client.versions)}: {names}")
    if others:
        lines.append(f"With {ALL} also: {', '.join(dict.fromkeys(client.name for client in others))}")
    return lines


async def _run(
    title: str,
    scenario: Scenario[Any],
    client: Client,
    version: str,
    program: asyncio.Task[Path],
    folder: Path,
    gate: _Gate,
    search: Search | None,
) -> bool:
    TRANSPORT.set(client.transport)  # each run is a task with a context of its own
    SEARCH.set(search)
    started, problem = time.monotonic(), ""
    try:
        path = await program
        async with gate.entered(client.alone):
            started = time.monotonic()
            (folder / "proxy").mkdir(parents=True)
            await scenario(client.drive(path, version, folder), folder / "proxy")
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - started
    print(f"{'FAILED' if problem else 'ok':6} {title} ({seconds:.1f} s) {problem}", flush=True)
    return not problem
