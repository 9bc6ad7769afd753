"""Asks the installed Codex for the models that it knows, and gives it a catalogue of all that the user can use."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proxy.auth.store import write_private
from proxy.cli.launch.codex_catalog import Row, codex_catalog
from proxy.cli.launch.usable_models import UsableModel

#: Codex answers in a tenth of a second; with a ChatGPT login it may ask its service first.
ASK_S = 5.0
#: Newer versions print a megabyte.
MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 1000

#: With what the service says, and without.
_QUESTIONS = (("debug", "models"), ("debug", "models", "--bundled"))
SETTING = "model_catalog_json"


def installed_rows(program: str, environment: Mapping[str, str]) -> list[Row]:
    """The rows of the installed Codex; none when it says none in time."""
    for question in _QUESTIONS:
        if rows := _rows_in(_output([program, *question], environment)):
            return rows
    return []


def _rows_in(output: bytes | None) -> list[Row]:
    """The rows of an answer; none when it has another form."""
    try:
        answer: Any = json.loads(output or b"")
    except (ValueError, RecursionError):
        return []
    rows = answer.get("models") if isinstance(answer, dict) else None
    return [row for row in rows[:MAX_ROWS] if _is_row(row)] if isinstance(rows, list) else []


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("slug"), str) and bool(row["slug"])


def _output(command: Sequence[str], environment: Mapping[str, str]) -> bytes | None:
    """What a program prints; None when it fails, prints more than MAX_BYTES, or is not done in time."""
    try:
        with tempfile.TemporaryFile() as file:
            subprocess.run(  # noqa: S603
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                timeout=ASK_S,
                check=True,
            )
            file.seek(0)
            output = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return output if len(output) <= MAX_BYTES else None


def catalog_text(program: str | None, environment: Mapping[str, str], models: Sequence[UsableModel]) -> str:
    """The catalogue as JSON, for the Codex that is installed, if one is."""
    rows = [] if program is None else installed_rows(program, environment)
    return json.dumps(codex_catalog(rows, models), indent=2) + "\n"


def catalog_setting(path: Path) -> str:
    """The setting of Codex that names the file."""
    return f"{SETTING}={json.dumps(str(path))}"


def give_catalog(path: Path, program: str, environment: Mapping[str, str], models: Sequence[UsableModel]) -> bool:
    """Writes the catalogue, unless the file has it already; whether this Codex can read it."""
    text = catalog_text(program, environment, models).encode()
    try:
        if path.is_file() and path.read_bytes() == text:
            return True
        write_private(path, text)
    except OSError:
        return False
    if _output([program, *_QUESTIONS[0], "-c", catalog_setting(path)], environment) is not None:
        return True
    path.unlink(missing_ok=True)
    return False
