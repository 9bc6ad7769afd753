"""What `captures` tells of the requests of a real client, and of a newcomer's sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from e2e.claude_code import ClaudeCode
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.process import Finished, run, under_way
from e2e.sdk_scenarios import Python
from e2e.servers import CAPTURES, LISTENS, START_LIMIT_S, watched_proxy

CLAUDE_CODE: Scenarios[ClaudeCode] = Scenarios()
PYTHON: Scenarios[Python] = Scenarios()

_FOLDER = re.compile(r"treat it as sensitive: (\S+)")
#: Until a capture is written.
_WRITTEN_S = 10.0


async def captures(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Finished:
    """`python -m proxy captures …` where the proxy of `folder` has its state."""
    known = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), **(environment or {})}
    return await run((sys.executable, "-m", "proxy", "captures", *arguments), folder, known)


def _looked_at_on(model: str, label: str) -> Scenario[ClaudeCode]:
    async def looked_at(claude: ClaudeCode, folder: Path) -> None:
        """Two turns with a tool, and the same begin under other instructions: what was kept, where the prompts part,
        and the request once more."""
        prompt = "use Bash: echo one\nuse Bash: echo from-$((1 + 1))"
        async with watched_proxy(folder, [], {CAPTURES: "1"}) as (url, _sandbox):
            more = "--append-system-prompt"
            done = await claude.run(url, prompt, more, "Speak like a friend.", model=model)
            other = await claude.run(url, prompt, more, "Speak like a pirate.", model=model)
        expect(not done.result["is_error"] and not other.result["is_error"], "the turns complete", done.result)
        listed = await captures(folder, "list", "--json")
        rows = listed.lines
        expect({(row["provider"], row["outcome"]) for row in rows} == {(label, "completed")}, "all are told", rows)
        turns, pirate = ([row for row in rows if row["session"] == session] for session in _sessions(rows))
        expect(len(turns) > 1 and [row["no."] for row in turns] == [*range(1, len(turns) + 1)], "in order", turns)
        older, newer = (str(row["request"]) for row in turns[-2:])
        grown = await captures(folder, "diff", older)
        kept = "all of A is the beginning of B: nothing of it has changed"
        expect(newer in grown.stdout and kept in grown.stdout, "a cache holds the conversation", grown)
        expect("input tokens from the cache" in grown.stdout.splitlines()[1], "as the upstream says", grown)
        parted = await captures(folder, "diff", str(turns[0]["request"]), str(pirate[0]["request"]))
        excerpts = re.search(r"first difference: .*\n  A .*like a friend.*\n  B .*like a pirate", parted.stdout)
        expect(excerpts and "prompt_cache_key: " in parted.stdout, "they part there", parted)
        shown = await captures(folder, "show", newer[:13])
        expect("-020-upstream-request.json" in shown.stdout and "number " in shown.stdout, "what there is", shown)
        sent = await captures(folder, "show", newer[:13], "020")
        expect("from-2" in json.dumps(json.loads(sent.stdout)), "what went to the upstream", sent)
        again = await captures(folder, "replay", newer)
        expect(again.status == 0 and "from-2" in again.stdout, "the last turn once more", again)
        expect("end: end_turn" in again.stdout, "to its end", again)

    return named(looked_at, f"captures on {label}")


def _sessions(rows: list[dict[str, str]]) -> tuple[str, str]:
    """The two sessions, the older one first."""
    first, *others = dict.fromkeys(row["session"] for row in rows)
    expect(len(others) == 1, "two sessions", [first, *others])
    return first, others[0]


CLAUDE_CODE.add(_looked_at_on("gpt-5.6-sol", "p1"))
CLAUDE_CODE.add(_looked_at_on("kimi-for-coding", "p2"))


@PYTHON.add
async def captures_of_a_sandbox(_python: Python, folder: Path) -> None:
    """`serve --sandbox` has its state in a folder of its own, which it names and which goes with it."""
    command = (sys.executable, "-u", "-m", "proxy", "serve", "--sandbox", "--port", "0")
    environment = {**os.environ, "HOME": str(folder), CAPTURES: "1", "PROXY_API_KEY": "key-of-the-caller"}
    async with under_way(command, folder, environment) as process, aiohttp.ClientSession() as http:
        url, traffic = "", ""
        async with asyncio.timeout(START_LIMIT_S):
            while process.stdout is not None and not traffic:
                line = (await process.stdout.readline()).decode()
                expect(line != "", "it goes on until it has named its folder")
                url = found[1] if (found := LISTENS.search(line)) else url
                traffic = found[1] if (found := _FOLDER.search(line)) else ""
        expect(not Path(traffic).exists(), "nothing is there before the first request", traffic)
        question = {"model": "sonnet", "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
        key = {"authorization": "Bearer key-of-the-caller", "x-claude-code-session-id": "../../x"}
        async with http.post(f"{url}/v1/messages", json=question, headers=key) as answer:
            expect(answer.status == 200, "an answer", await answer.text())
        async with asyncio.timeout(_WRITTEN_S):
            while not (rows := (await captures(folder, "list", "--json", "--folder", traffic)).lines):
                await asyncio.sleep(0.1)
        places = [path.relative_to(traffic).parts[0] for path in Path(traffic).rglob("*")]
        process.terminate()
        await process.wait()
    expect([(row["session"], row["outcome"]) for row in rows] == [(places[0], "completed")], "it is listed", rows)
    expect(set(places) == {places[0]} and "/" not in places[0], "and stays in its folder", places)
    expect(not Path(traffic).exists() and process.returncode == 0, "it goes with the sandbox", process.returncode)
