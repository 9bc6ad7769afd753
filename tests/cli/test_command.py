"""The command as this user can type it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from samples import rows

from proxy.cli.command import TYPED_VARIABLE, typed

MODULE = "/x/proxy/__main__.py"

#: variables, sys.argv[0], sys.orig_argv, what to type
STARTS = [
    ({TYPED_VARIABLE: "scripts/start"}, MODULE, [".venv/bin/python", "-m", "proxy"], "scripts/start"),
    ({TYPED_VARIABLE: "/my tools/start"}, MODULE, ["python", "-m", "proxy"], "'/my tools/start'"),
    ({TYPED_VARIABLE: ""}, MODULE, ["python3", "-m", "proxy"], "python3 -m proxy"),
    ({}, MODULE, ["python", "-m", "proxy"], "python -m proxy"),
    ({}, ".venv/bin/model-proxy", ["x", ".venv/bin/model-proxy"], ".venv/bin/model-proxy"),
]


@rows("variables, first, original, command", STARTS)
def test_what_to_type_is_how_it_was_started(
    variables: dict[str, str], first: str, original: list[str], command: str
) -> None:
    assert typed(variables, [first], original) == command


def test_a_program_on_the_path_is_typed_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "model-proxy"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed({}, [str(program)], []) == "model-proxy"
    assert typed({}, [str(tmp_path / "other" / "model-proxy")], []) == str(tmp_path / "other" / "model-proxy")


def test_the_start_script_says_how_it_was_called(tmp_path: Path) -> None:
    """Its last line, with a program in place of the proxy that shows the variable."""
    script = Path(__file__).parents[2] / "scripts" / "start"
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho "${TYPED_VARIABLE} $*"\n')
    python.chmod(0o755)
    copy = tmp_path / "start"
    last = script.read_text().splitlines()[-1]
    copy.write_text(f"#!/usr/bin/env bash\n{last}\n")
    copy.chmod(0o755)
    said = subprocess.run(["./start", "models"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == "./start -m proxy models\n"
