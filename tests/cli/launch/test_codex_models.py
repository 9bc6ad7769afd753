"""What the installed Codex is asked, and what becomes of answers that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from samples import rows

from proxy.cli.launch import codex_models
from proxy.cli.launch.codex_models import catalog_setting, catalog_text, give_catalog, installed_rows
from proxy.cli.launch.usable_models import UsableModel
from proxy.core.models import ModelFacts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a script is in place of Codex")

KIMI = UsableModel("kimi", "p2", "Kimi Code", ModelFacts(262_144))
ROWS = '{"models": [{"slug": "gpt-5.5"}]}'


def program(folder: Path, script: str) -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@rows(
    "script, slugs",
    [
        (f"echo '{ROWS}'", ["gpt-5.5"]),
        (f"[ \"$*\" = 'debug models' ] && echo '{ROWS}'", ["gpt-5.5"]),
        (f"[ \"$*\" = 'debug models --bundled' ] && echo '{ROWS}'", ["gpt-5.5"]),
        ('echo \'{"models": [3, {}, {"slug": ""}, {"slug": "a"}]}\'', ["a"]),
        ("exit 2", []),
        ("echo nothing", []),
        ("echo '{\"models\": 3}'", []),
        ("echo 3", []),
        (f"echo '{ROWS}'; exit 1", []),
    ],
)
def test_the_rows_of_the_installed_codex(tmp_path: Path, script: str, slugs: list[str]) -> None:
    assert [row["slug"] for row in installed_rows(program(tmp_path, script), os.environ)] == slugs


@rows("name, value, script", [("ASK_S", 0.2, "exec sleep 5"), ("MAX_BYTES", 3, f"echo '{ROWS}'")])
def test_an_answer_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: float, script: str
) -> None:
    monkeypatch.setattr(codex_models, name, value)
    assert installed_rows(program(tmp_path, script), os.environ) == []


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert installed_rows(str(tmp_path / "codex"), os.environ) == []
    assert json.loads(catalog_text(None, os.environ, [KIMI]))["models"][0]["slug"] == "kimi"


def test_the_file_is_private_and_written_when_it_changes(tmp_path: Path) -> None:
    path, codex = (
        tmp_path / "state" / "models.json",
        program(tmp_path, f"echo \"$*\" >> {tmp_path}/asked; echo '{ROWS}'"),
    )
    assert give_catalog(path, codex, os.environ, [KIMI])
    assert path.stat().st_mode & 0o777 == 0o600 and json.loads(path.read_text())["models"][0]["slug"] == "kimi"
    written = path.stat().st_ino
    assert give_catalog(path, codex, os.environ, [KIMI]) and path.stat().st_ino == written
    assert (tmp_path / "asked").read_text().splitlines() == [
        "debug models",
        f"debug models -c {catalog_setting(path)}",
        "debug models",
    ]


def test_a_file_that_codex_cannot_read_is_not_given(tmp_path: Path) -> None:
    path, codex = tmp_path / "models.json", program(tmp_path, f"[ $# = 2 ] && echo '{ROWS}'")
    assert not give_catalog(path, codex, os.environ, [KIMI]) and not path.exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not give_catalog(tmp_path / "file" / "models.json", program(tmp_path, "exit 0"), os.environ, [KIMI])


def test_the_setting_is_a_value_of_toml() -> None:
    assert catalog_setting(Path("/a b/c")) == 'model_catalog_json="/a b/c"'
