"""p5 through the SDKs and the command line."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from e2e.cursor_scenarios import asked, execs, expect_clean
from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.pages import blocks
from e2e.process import Finished, run, under_way
from e2e.sdk_scenarios import Python
from e2e.servers import proxy_process, watched_proxy
from proxy.sandbox import Sandbox

PYTHON: Scenarios[Python] = Scenarios()

#: Page -> how many conversations its program for p5 has.
PAGES = {"anthropic-sdk.md": 1, "openai-sdk.md": 2}


def _commands_of(page: str, conversations: int) -> Scenario[Python]:
    async def commands(python: Python, folder: Path) -> None:
        """Every conversation is one run, which gets the results of all its commands."""
        python.folder.mkdir(parents=True, exist_ok=True)
        async with watched_proxy(folder, [], {}) as (url, sandbox):
            [program] = [block for block in blocks(page, "python", url) if '"Bash"' in block]
            done = await run([str(python.program), "-c", program], python.folder, {"PATH": os.environ["PATH"]})
            await expect_clean(sandbox)
            found = [execs(each) for each in asked(sandbox.p5)]
        expect(done.status == 0 and not done.stderr, "it runs", done)
        expect(found == [["one\n", "from-2\n"]] * conversations, "one run for each conversation", found)

    return named(commands, f"commands of {page}")


for _page, _conversations in PAGES.items():
    PYTHON.add(_commands_of(_page, _conversations))


@PYTHON.add
async def sign_in(python: Python, folder: Path) -> None:
    """`auth login p5` through the command line, with a page that is opened elsewhere; what is signed in works."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Sandbox() as sandbox:
        root = folder / "config"
        home = {**os.environ, **sandbox.settings(), "PROXY_CONFIG_DIR": str(root), "BROWSER": "true"}
        home["XDG_STATE_HOME"] = str(folder)
        before = await _proxy(python, home, "auth", "status", "p5")
        told = await _login(python, home)
        after = await _proxy(python, home, "auth", "status", "p5")
        async with proxy_process([], home) as url, aiohttp.ClientSession() as http:
            question = {"model": "cursor", "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]}
            async with http.post(f"{url}/v1/messages", json=question) as answer:
                said = await answer.text()
            async with http.post(f"{url}/v1/messages/count_tokens", json=question) as answer:
                count = await answer.json()
        names = await _proxy(python, home, "models", "--full")
        device = await _proxy(python, home, "auth", "login", "p5", "--device")
        gone = [await _proxy(python, home, "auth", action, "p5") for action in ("logout", "status")]
    expect((before.status, after.status) == (1, 0) and "p5" in told, "signed in", (before, told, after))
    expect(after.stdout.count("sandbox@example.com") == 1, "and told as whom", after)
    expect("You asked" in said and count == {"input_tokens": 5}, "an answer and a count", (said, count))
    expect("cursor-composer-fast" in names.stdout and "cursor-plan:" in names.stdout, "names are listed", names)
    expect(device.status == 2 and "any device" in device.stderr, "there is no code to type", device)
    expect([each.status for each in gone] == [0, 1], "signed out", gone)


async def _proxy(python: Python, home: Mapping[str, str], *arguments: str) -> Finished:
    # not from a folder that has one named `proxy`, where Python would look for its modules first
    return await run((str(python.program), "-m", "proxy", *arguments), Path(home["XDG_STATE_HOME"]), home)


async def _login(python: Python, home: Mapping[str, str]) -> str:
    """Signs in; the page is opened as soon as its address is told. All that was printed."""
    command = (str(python.program), "-u", "-m", "proxy", "auth", "login", "p5")
    printed = ""
    async with under_way(command, Path(home["XDG_STATE_HOME"]), home) as process, aiohttp.ClientSession() as http:
        if process.stdout is None:
            raise RuntimeError("it has no stdout")
        async with asyncio.timeout(30):
            async for line in process.stdout:
                printed += line.decode()
                page = re.search(r"http\S+loginDeepControl\S+", line.decode())
                if page is not None:
                    async with http.get(page[0]) as answer:
                        expect(answer.status == 200, "the page opens", answer.status)
            status = await process.wait()
    expect(status == 0, "it ends well", printed)
    return printed
