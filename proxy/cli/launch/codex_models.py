"""Asks the installed Codex for the models that it knows, and gives it a catalogue of all that the user can use."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from proxy.cli.launch.asking import ClientAnswer, ask
from proxy.cli.launch.client_environment import toml_text
from proxy.cli.launch.codex_catalog import Row, codex_catalog
from proxy.cli.launch.given_files import given_file
from proxy.cli.launch.own_files import codex_file
from proxy.cli.launch.usable_models import UsableModel

#: Seconds for one answer, and for all of a launch. Codex answers in a tenth of a second; with a ChatGPT login it may
#: ask its service first.
ANSWER_S, ASK_S = 3.0, 6.0
#: Newer versions print a megabyte.
MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 1000
#: Characters of an error of Codex that are shown.
_MAX_SHOWN = 300

_MODELS, _BUNDLED = ("debug", "models"), "--bundled"
SETTING = "model_catalog_json"


class CatalogUnfit(Exception):
    """Codex cannot be given the catalogue; the message says why."""


class InstalledCodex:
    """The Codex of a launch. All its answers share one deadline."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self._program = program
        self._environment = environment
        self._end = time.monotonic() + ASK_S

    def _ask(self, *arguments: str, keeps: Literal["output", "errors"] = "output") -> ClientAnswer:
        left = self._end - time.monotonic()
        if left <= 0:
            return ClientAnswer(b"", f"it did not answer within {ASK_S:g} s")
        command = [self._program, *_MODELS, *arguments]
        return ask(command, self._environment, min(ANSWER_S, left), MAX_BYTES, keeps)

    def rows(self) -> list[Row]:
        """The rows that it knows; none when it says none in time. Those of a catalogue of the user's are not its
        own."""
        questions = ((_BUNDLED,),) if users_catalog(self._environment) else ((), (_BUNDLED,))
        return next(filter(None, (_rows_in(self._ask(*question)) for question in questions)), [])

    def check(self, path: Path) -> None:
        """Raises CatalogUnfit when it cannot read this catalogue."""
        answer = self._ask("-c", catalog_setting(path), keeps="errors")
        if answer.problem:
            lines = answer.output.decode(errors="replace").splitlines()
            said = next((line for line in lines if line.startswith("Error")), "")
            raise CatalogUnfit(": ".join(filter(None, (answer.problem, said[:_MAX_SHOWN]))))

    def identity(self) -> str:
        """A text that another version of the program does not have. Packages set times of change, so it is not one."""
        try:
            return f"{self._program} {Path(self._program).stat().st_ctime_ns}"
        except OSError:
            return self._program


def users_catalog(environment: Mapping[str, str]) -> Path | None:
    """The user's file of settings if it names a catalogue."""
    file = codex_file(environment)
    return file.path if file is not None and file.content.get(SETTING) else None


def _rows_in(answer: ClientAnswer) -> list[Row]:
    """The rows of an answer; none when it has another form."""
    try:
        found: Any = None if answer.problem else json.loads(answer.output)
    except (ValueError, RecursionError):
        return []
    rows = found.get("models") if isinstance(found, dict) else None
    return [row for row in rows[:MAX_ROWS] if _is_row(row)] if isinstance(rows, list) else []


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("slug"), str) and bool(row["slug"])


def _text(rows: Sequence[Row], models: Sequence[UsableModel]) -> str:
    return json.dumps(codex_catalog(rows, models), indent=2) + "\n"


def catalog_text(environment: Mapping[str, str], models: Sequence[UsableModel]) -> str:
    """The catalogue as JSON, for the Codex that is installed, if one is."""
    program = shutil.which("codex", path=environment.get("PATH"))
    return _text([] if program is None else InstalledCodex(program, environment).rows(), models)


def catalog_setting(path: Path) -> str:
    """The setting of Codex that names the file."""
    return f"{SETTING}={toml_text(str(path))}"


def give_catalog(folder: Path, program: str, environment: Mapping[str, str], models: Sequence[UsableModel]) -> Path:
    """Writes the catalogue below a folder, unless it is there. Raises CatalogUnfit."""
    codex = InstalledCodex(program, environment)
    try:
        str(folder).encode()
        text = _text(codex.rows(), models)
        return given_file(folder, "codex-models", text, reader=codex.identity(), check=codex.check)
    except UnicodeError:
        raise CatalogUnfit(f"{folder!s:.200} is no UTF-8".encode("ascii", "backslashreplace").decode()) from None
    except OSError as error:
        raise CatalogUnfit(f"{error.filename or folder}: {error.strerror or error}") from None
