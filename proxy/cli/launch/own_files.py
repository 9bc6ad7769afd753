"""The files of a client's own: read, never written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A file of settings is some kilobytes.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The parsed file; `problem`: why it cannot be read."""

    path: Path
    content: Mapping[str, Any]
    problem: str = ""


def home_of(environment: Mapping[str, str]) -> Path:
    """The home folder of the user with these variables."""
    return Path(environment.get("HOME") or environment.get("USERPROFILE") or "/")


def claude_files(environment: Mapping[str, str]) -> list[ClientFile]:
    """The existing settings files of Claude Code, the strongest last."""
    own = Path(environment.get("CLAUDE_CONFIG_DIR") or home_of(environment) / ".claude")
    here = Path.cwd() / ".claude"
    wanted = (own / "settings.json", here / "settings.json", here / "settings.local.json")
    return [file for path in dict.fromkeys(wanted) if (file := _read(path, json.loads)) is not None]


def merged(files: Sequence[ClientFile]) -> dict[str, Any]:
    """The settings of several files as Claude Code joins them: objects by member, of other values the last."""
    found: dict[str, Any] = {}
    for file in files:
        found = _joined(found, file.content, 2)
    return found


def _joined(first: Mapping[str, Any], later: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Two objects as one; below `depth` the later value counts whole."""
    found = dict(first)
    for name, value in later.items():
        known = found.get(name)
        if depth and isinstance(known, dict) and isinstance(value, dict):
            found[name] = _joined(known, value, depth - 1)
        else:
            found[name] = value
    return found


def codex_file(environment: Mapping[str, str]) -> ClientFile | None:
    """The settings of Codex CLI."""
    folder = Path(environment.get("CODEX_HOME") or home_of(environment) / ".codex")
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
