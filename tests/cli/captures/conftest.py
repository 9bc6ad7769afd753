"""`captures …` in this process, over a state folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from captured import Run

from proxy.cli import main
from proxy.cli.command import APP, Context


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state" / APP


@pytest.fixture
def captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "config").mkdir()
    environment = {"PROXY_CONFIG_DIR": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(["captures", *arguments], Context(environment))
        except SystemExit as error:
            status = int(error.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run
