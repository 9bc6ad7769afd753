"""The client pages of the manual, read for what a user would paste: their fenced blocks, run as they stand.

Of a block only the address of the proxy is replaced. `sh`, `python` and `js` blocks are run; `toml`, `json` and `yaml`
are the file in which the page's client is configured. Blocks of other languages are for the eye.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from e2e.process import Finished, run

PAGES = Path(__file__).parents[3] / "docs" / "clients"
ADDRESS = "http://127.0.0.1:18765"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str, url: str) -> list[str]:
    """The page's blocks of that language, for the proxy at `url`. Raises AssertionError: it has none."""
    text = (PAGES / page).read_text()
    found = [block for kind, block in _BLOCK.findall(text) if kind == language]
    if not found:
        raise AssertionError(f"{page} has no {language} block")
    return [block.replace(ADDRESS, url) for block in found]


async def run_python(page: str, url: str, interpreter: Path, folder: Path) -> list[Finished]:
    """Runs each program of the page."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return [await run([str(interpreter), "-c", block], folder, environment) for block in blocks(page, "python", url)]


async def run_shell(page: str, url: str, folder: Path, tools: Mapping[str, str], **variables: str) -> list[Finished]:
    """Runs each shell block of the page, with a home of its own.

    `tools` are the programs that it finds first: name -> the command that stands for it, before the block's own
    arguments.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, command in tools.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), **variables}
    return [await run(["bash", "-euc", block], folder, environment) for block in blocks(page, "sh", url)]
