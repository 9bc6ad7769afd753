"""What the files of a client say that bears on a launch. They are read, and never written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

#: A longer file is none of settings.
_MAX_BYTES = 1024 * 1024


def claude_model(environment: Mapping[str, str]) -> str | None:
    """The model that the user's variables or settings choose for Claude Code."""
    named = (settings.get("model") for _, settings in _claude_settings(environment))
    return environment.get("ANTHROPIC_MODEL") or next((one for one in named if isinstance(one, str) and one), None)


def settings_elsewhere(environment: Mapping[str, str]) -> list[str]:
    """What to say of settings that would lead Claude Code elsewhere, and which it is told to leave out."""
    said = []
    for path, settings in _claude_settings(environment):
        variables = settings.get("env")
        names = [name for name in _PLACES if isinstance(variables, dict) and variables.get(name)]
        names += [name for name in ("apiKeyHelper",) if settings.get(name)]
        if names:
            said.append(f"{', '.join(names)} of {path}: not used here")
    return said


_PLACES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")


def _claude_settings(environment: Mapping[str, str]) -> Iterable[tuple[Path, Mapping[str, Any]]]:
    """Those that count most first."""
    own = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME", "")) / ".claude")
    project = Path(".claude")
    for path in (project / "settings.local.json", project / "settings.json", own / "settings.json"):
        if (read := _read(path, json.loads)) is not None:
            yield path, read


def codex_model(environment: Mapping[str, str]) -> str | None:
    """The model that the user's file chooses for Codex."""
    own = Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", "")) / ".codex")
    model = (_read(own / "config.toml", tomllib.loads) or {}).get("model")
    return model if isinstance(model, str) and model else None


def _read(path: Path, parse: Any) -> Mapping[str, Any] | None:
    """None where there is nothing, or nothing that can be read: the client itself will tell."""
    try:
        with path.open("rb") as file:
            parsed = parse(file.read(_MAX_BYTES).decode())
    except (OSError, ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
