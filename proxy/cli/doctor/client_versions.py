"""The clients on PATH and their versions, beside those that were tried with this proxy."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Sequence

from proxy.cli.doctor.finding import Finding, Setup, note, ok

#: command -> the client, and the versions that were tried; the table of docs/clients says with what
TRIED = {
    "claude": ("Claude Code", ("2.1.330", "2.1.197")),
    "codex": ("Codex CLI", ("0.169.0",)),
    "opencode": ("opencode", ("1.18.33",)),
    "qwen": ("Qwen Code", ("0.24.4",)),
    "cn": ("Continue", ("1.5.47",)),
    "aider": ("aider", ("0.86.2",)),
    "llm": ("llm", ("0.36",)),
}
#: A client that starts slowly needs a second or two; one that waits for something is ended.
VERSION_S = 8.0
_VERSION = re.compile(r"\b\d+(?:\.\d+)+\b")
#: Of the output.
MAX_BYTES = 4096


async def check_versions(setup: Setup) -> Sequence[Finding]:
    """All at one time: each command is run with `--version`."""
    path = setup.environment.get("PATH")
    there = {name: place for name in TRIED if (place := shutil.which(name, path=path)) is not None}
    if not there:
        return [note("no client that was tried is on PATH", f"looked for {', '.join(TRIED)}")]
    versions = await asyncio.gather(*(_version(place, setup) for place in there.values()))
    return [_of(name, there[name], version) for name, version in zip(there, versions, strict=True)]


def _of(name: str, place: str, version: str) -> Finding:
    client, tried = TRIED[name]
    if not version:
        why = f"no version within {VERSION_S:g} s; it may not start, or waits for something"
        return note(f"{client}: {place} does not tell its version", why, f"{place} --version")
    if version in tried:
        return ok(f"{client} {version}", "this version was tried")
    return note(f"{client} {version}", f"tried with {', '.join(tried)}; others mostly work as well")


async def _version(place: str, setup: Setup) -> str:
    """ "" when it cannot be had. It writes into a file: the other end of a pipe may outlive it in a process that it
    started, and would be waited for."""
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                place,
                "--version",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(setup.environment),
                start_new_session=True,
            )
        except OSError:
            return ""
        try:
            async with asyncio.timeout(VERSION_S):
                await process.wait()
        except TimeoutError:
            return ""
        finally:
            if process.returncode is None:
                _end(process)
                await process.wait()
        output.seek(0)
        found = _VERSION.search(output.read(MAX_BYTES).decode("utf-8", "replace"))
        return found[0] if found else ""


def _end(process: asyncio.subprocess.Process) -> None:
    """With all that it started, where processes have groups."""
    try:
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    except ProcessLookupError:  # it ended at this moment
        pass
