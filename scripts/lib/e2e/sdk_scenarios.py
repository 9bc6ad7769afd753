"""The pages of the two Python SDKs, run as they stand with the SDKs of this interpreter."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import NamedTuple

from e2e.expecting import Scenario, Scenarios, expect, named
from e2e.pages import run_python
from e2e.servers import sandboxed_proxy

VERSIONS = (platform.python_version(),)

#: Page -> words that its programs print, in the sandbox.
PAGES = {
    "anthropic-sdk.md": (
        'You asked: "hello"',
        "gpt-5.6-sol",
        "title='Hello' year=1",
        "['https://docs.example.org",
        '"from-2\n"',
    ),
    "openai-sdk.md": (
        'You asked: "hello"',
        "searched: rust news",
        "https://docs.example.org",
        "Responses: The tool",
        "chat: The tool",
        "edited: True",
        "heard: ",
        "as text: ",
    ),
}


class Python(NamedTuple):
    """The interpreter as a client."""

    program: Path
    version: str
    folder: Path


async def install(_version: str, _cache: Path) -> Path:
    return Path(sys.executable)


SCENARIOS: Scenarios[Python] = Scenarios()


def _page(name: str, words: tuple[str, ...]) -> Scenario[Python]:
    async def page(python: Python, folder: Path) -> None:
        async with sandboxed_proxy(folder, []) as url:
            runs = await run_python(name, url, python.program, python.folder)
        for done in runs:
            expect(done.status == 0 and not done.stderr, "it runs", (done.stderr[-500:], done.stdout))
        printed = "".join(done.stdout for done in runs)
        expect(all(word in printed for word in words), f"it prints {words}", printed)

    return named(page, name)


for _name, _words in PAGES.items():
    SCENARIOS.add(_page(_name, _words))
