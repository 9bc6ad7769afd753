"""The clients on PATH with their versions, and their files: read, never written, and no value of a key is shown.

Claude Code's settings have an `env` block that wins over the variables of the shell, in this order: the user's, the
project's, the project's local ones.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from proxy.cli.doctor.finding import Finding, Setup, note, ok, warn
from proxy.cli.launch.asking import ask
from proxy.cli.launch.own_files import ClientFile, claude_files


def models_in_files(setup: Setup) -> list[tuple[str, str]]:
    """Models that the settings of Claude Code name, each with its place."""
    found = []
    for file in claude_files(setup.environment):
        if isinstance(model := file.content.get("model"), str):
            found.append((f"model in {file.path}", model))
        picker = file.content.get("modelPicker")
        options = picker.get("options") if isinstance(picker, dict) else None
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict) and isinstance(model := option.get("model"), str):
                found.append((f"modelPicker in {file.path}", model))
    return found


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables as Claude Code sees them.

    places  name -> the file whose `env` block sets it
    """

    values: Mapping[str, str]
    places: Mapping[str, Path]

    def get(self, name: str) -> str:
        return self.values.get(name, "").strip()

    def on(self, name: str) -> bool:
        return self.get(name).lower() in ("1", "true", "yes", "on")

    def where(self, name: str) -> str:
        """The name, with the file that sets it."""
        return f"{name} in {self.places[name]}" if name in self.places else name

    def unset(self, name: str, setup: Setup) -> str:
        return f"remove env.{name} from {self.places[name]}" if name in self.places else setup.unset(name)

    def set(self, name: str, value: object, setup: Setup) -> str:
        if name in self.places:
            return f'set env.{name} to "{value}" in {self.places[name]}'
        return setup.export(name, value)


def claude_environment(setup: Setup) -> Environment:
    """The variables of the shell, overridden by the `env` blocks."""
    values, places = dict(setup.environment), {}
    for file in claude_files(setup.environment):
        block = file.content.get("env")
        for name, value in block.items() if isinstance(block, dict) else ():
            values[name], places[name] = str(value), file.path
    return Environment(values, places)


def check_claude_files(setup: Setup) -> Sequence[Finding]:
    """Checks for files that cannot be read, and for those that win over the shell."""
    found: list[Finding] = []
    for file in claude_files(setup.environment):
        if file.problem:
            why = f"{file.problem}: Claude Code ignores it or does not start"
            found.append(warn(f"{file.path} cannot be read", why, f"edit {file.path}"))
            continue
        found += _replacing(file, setup)
    return found


def _replacing(file: ClientFile, setup: Setup) -> Iterator[Finding]:
    block = file.content.get("env")
    for name, value in block.items() if isinstance(block, dict) else ():
        shell = setup.environment.get(name)
        if name.startswith(("ANTHROPIC_", "CLAUDE_CODE_")) and shell is not None and shell != str(value):
            why = f"its env block wins over {name} of your shell"
            yield warn(f"{file.path} sets another {name}", why, f"remove env.{name} from {file.path}")
    if file.content.get("apiKeyHelper"):
        why = "what it prints is sent in place of ANTHROPIC_API_KEY"
        if setup.environment.get("ANTHROPIC_AUTH_TOKEN"):
            why += ", and conflicts with ANTHROPIC_AUTH_TOKEN"
            yield warn(f"{file.path} has an apiKeyHelper", why, f"remove apiKeyHelper from {file.path}")
        else:
            yield note(f"{file.path} has an apiKeyHelper", why, f"remove apiKeyHelper from {file.path}")


#: command -> the client, and the versions that were tried: those of the table of docs/clients, then others by hand
TRIED = {
    "claude": ("Claude Code", ("2.1.330", "2.1.197", "2.1.332")),
    "codex": ("Codex CLI", ("0.169.0", "0.171.0")),
    "opencode": ("opencode", ("1.18.33",)),
    "qwen": ("Qwen Code", ("0.24.4",)),
    "cn": ("Continue", ("1.5.47",)),
    "aider": ("aider", ("0.86.2",)),
    "llm": ("llm", ("0.36",)),
}
#: Seconds for a client to answer: a slow one needs one or two; one that waits for input is ended.
VERSION_S = 8.0
_VERSION = re.compile(r"\b\d+(?:\.\d+)+\b")
#: Bytes of its output; one that prints more is ended.
MAX_OUTPUT_BYTES = 64 * 1024


async def check_versions(setup: Setup) -> Sequence[Finding]:
    """Runs each client with `--version`, all at the same time."""
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
    """The version, "" without one."""
    command, given_up = [place, "--version"], Event()
    bounds = (VERSION_S, MAX_OUTPUT_BYTES)
    try:
        answer = await asyncio.to_thread(ask, command, setup.environment, *bounds, "both", given_up.is_set)
    finally:
        given_up.set()  # Ctrl-C would wait for the thread
    found = _VERSION.search(answer.output.decode("utf-8", "replace"))
    return found[0] if found else ""
