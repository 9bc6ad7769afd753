"""The files of clients: read, never written, and no value of a key is shown.

Claude Code's settings have an `env` block that wins over the variables of the shell, in this order: the user's, the
project's, the project's local ones.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.cli.doctor.finding import Finding, Setup, note, warn

#: A file of settings is some kilobytes.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClientFile:
    """What a file says; `problem` is why it cannot be read."""

    path: Path
    content: Mapping[str, Any]
    problem: str = ""


def claude_files(setup: Setup) -> list[ClientFile]:
    """The settings of Claude Code that there are, the one that wins last."""
    own = Path(setup.environment.get("CLAUDE_CONFIG_DIR") or setup.home / ".claude")
    here = Path.cwd() / ".claude"
    wanted = (own / "settings.json", here / "settings.json", here / "settings.local.json")
    return [file for path in dict.fromkeys(wanted) if (file := _read(path, json.loads)) is not None]


def codex_file(setup: Setup) -> ClientFile | None:
    """The settings of Codex CLI."""
    folder = Path(setup.environment.get("CODEX_HOME") or setup.home / ".codex")
    return _read(folder / "config.toml", tomllib.loads)


def _read(path: Path, parse: Any) -> ClientFile | None:
    try:
        with path.open("rb") as file:
            content = parse(file.read(MAX_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        return ClientFile(path, {}, str(error.strerror))
    except (ValueError, RecursionError) as error:
        return ClientFile(path, {}, f"it is not well-formed ({str(error).splitlines()[0] or type(error).__name__})")
    return ClientFile(path, content) if isinstance(content, dict) else ClientFile(path, {}, "it holds no object")


def models_in_files(setup: Setup) -> list[tuple[str, str]]:
    """Models that the settings of Claude Code name, each with its place."""
    found = []
    for file in claude_files(setup):
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
    """The variables of the shell, and over them the `env` blocks."""
    values, places = dict(setup.environment), {}
    for file in claude_files(setup):
        block = file.content.get("env")
        for name, value in block.items() if isinstance(block, dict) else ():
            values[name], places[name] = str(value), file.path
    return Environment(values, places)


def check_claude_files(setup: Setup) -> Sequence[Finding]:
    """Files that cannot be read, and those that win over the shell."""
    found: list[Finding] = []
    for file in claude_files(setup):
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
