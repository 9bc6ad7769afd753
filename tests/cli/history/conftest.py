"""`report` and `history` in this process, over a state folder of its own, in a zone with summer time, at one moment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from captured import Run
from observe.history.past import NOW

from proxy.cli import main
from proxy.cli.command import APP, Context
from proxy.cli.history import command, keeping

#: 09:00 on Friday, 2027-01-15, is `NOW` there.
ZONE = "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = ZONE
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / APP
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command line, `NOW`, on a terminal of 80 columns unless COLUMNS says otherwise."""
    environment = {"PROXY_CONFIG_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    for module in (command, keeping):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW, sleep=time.sleep))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments, Context(environment))
        except SystemExit as error:
            status = int(error.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run
