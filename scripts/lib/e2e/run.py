"""Runs all scenarios with every client version, two at a time, and prints a line each. Exit status 1 when one fails."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import (
    auto_mode_scenarios,
    captures_scenarios,
    claude_code,
    claude_code_scenarios,
    claude_code_tool_scenarios,
    codex,
    codex_alone,
    codex_scenarios,
    curl_scenarios,
    cursor_python_scenarios,
    cursor_scenarios,
    grok_cli,
    grok_scenarios,
    kimi_code,
    media_scenarios,
    opencode,
    sdk_scenarios,
    token_limit_scenarios,
)
from e2e.expecting import Scenario
from e2e.searching import SEARCH, Search, tally
from e2e.servers import TRANSPORT

AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Client:
    """A client, the versions that are tried, and what each must be able to do.

    transport  of p1; None for the default
    """

    name: str
    versions: Sequence[str]
    install: Callable[[str, Path], Awaitable[Path]]  # of a version, into the cache; the program
    drive: Callable[[Path, str, Path], Any]  # program, version, folder
    scenarios: Sequence[Scenario[Any]]
    transport: str | None = None


_CLAUDE = (claude_code.install, claude_code.ClaudeCode)
_NEWEST = claude_code.VERSIONS[:1]

CLIENTS = (
    Client("sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, sdk_scenarios.SCENARIOS),
    Client("sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, media_scenarios.PYTHON),
    Client("sdk", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, captures_scenarios.PYTHON),
    Client("curl", curl_scenarios.VERSIONS, curl_scenarios.install, curl_scenarios.Curl, curl_scenarios.SCENARIOS),
    Client("codex", codex.VERSIONS, codex.install, codex.Codex, codex_scenarios.SCENARIOS),
    Client("claude-code", claude_code.VERSIONS, *_CLAUDE, claude_code_scenarios.SCENARIOS),
    Client("claude-code tools", _NEWEST, *_CLAUDE, claude_code_tool_scenarios.SCENARIOS),
    Client("claude-code captures", _NEWEST, *_CLAUDE, captures_scenarios.CLAUDE_CODE),
    Client("claude-code", claude_code.VERSIONS, *_CLAUDE, token_limit_scenarios.SCENARIOS),
    Client("claude-code", claude_code.VERSIONS, *_CLAUDE, auto_mode_scenarios.SCENARIOS),
    Client("sdk on p3", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, grok_scenarios.PYTHON),
    Client("claude-code on p3", _NEWEST, *_CLAUDE, grok_scenarios.CLAUDE_CODE),
    Client("codex on p3", codex.VERSIONS, codex.install, codex.Codex, grok_scenarios.CODEX),
    Client(
        "sdk on p5", sdk_scenarios.VERSIONS, sdk_scenarios.install, sdk_scenarios.Python, cursor_python_scenarios.PYTHON
    ),
    Client("claude-code on p5", claude_code.VERSIONS, *_CLAUDE, cursor_scenarios.CLAUDE_CODE),
    Client("claude-code on p5", _NEWEST, *_CLAUDE, cursor_scenarios.NEWEST),
    Client("claude-code websocket", _NEWEST, *_CLAUDE, claude_code_scenarios.P1_SCENARIOS, "websocket"),
    Client("codex websocket", codex.VERSIONS, codex.install, codex.Codex, codex_scenarios.P1_SCENARIOS, "websocket"),
    Client("codex alone", codex.VERSIONS, codex.install, codex_alone.CodexAlone, codex_alone.SCENARIOS),
)

#: The vendors' own clients at the simulators alone, as far as nothing else needs them: seven hundred megabytes to
#: install.
MORE = (
    Client("claude-code on p5", _NEWEST, *_CLAUDE, cursor_scenarios.SLOW),
    Client("kimi-code alone", kimi_code.VERSIONS, kimi_code.install, kimi_code.KimiCode, kimi_code.SCENARIOS),
    Client("grok alone", grok_cli.VERSIONS, grok_cli.install, grok_cli.Grok, grok_cli.SCENARIOS),
    Client("opencode alone", opencode.VERSIONS, opencode.install, opencode.Opencode, opencode.SCENARIOS),
)
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
