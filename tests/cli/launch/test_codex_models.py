"""What the installed Codex is asked, what becomes of answers that are none, and the file that it is given."""

from __future__ import annotations

import errno
import json
import os
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from samples import rows

from proxy.cli.launch import codex_models, given_files
from proxy.cli.launch.asking import ask
from proxy.cli.launch.codex_models import CatalogUnfit, InstalledCodex, catalog_setting, catalog_text, give_catalog
from proxy.cli.launch.usable_models import UsableModel
from proxy.core.models import ModelFacts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a script is in place of Codex")

KIMI = UsableModel("kimi", "p2", "Kimi Code", ModelFacts(262_144))
ROWS = '{"models": [{"slug": "gpt-5.5"}]}'
#: A test with it would last this long if nothing were ended.
LONG_S = 20


def program(folder: Path, script: str) -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def world(home: Path) -> Mapping[str, str]:
    return {"PATH": f"{home}:/usr/bin:/bin", "HOME": str(home)}


def slugs_of(home: Path, script: str) -> list[str]:
    return [row["slug"] for row in InstalledCodex(program(home, script), world(home)).rows()]


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
    assert slugs_of(tmp_path, script) == slugs


@rows("name, value, script", [("ANSWER_S", 0.2, "exec sleep 5"), ("MAX_BYTES", 3, f"echo '{ROWS}'")])
def test_an_answer_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: float, script: str
) -> None:
    monkeypatch.setattr(codex_models, name, value)
    assert slugs_of(tmp_path, script) == []


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes below /proc")
@rows(
    "script",
    [
        f"sleep {LONG_S} & echo $! >> $HOME/left; wait",
        f"sleep {LONG_S} & echo $! >> $HOME/left; yes '{{\"models\": ['",
    ],
)
def test_a_codex_that_hangs_or_prints_for_ever_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(codex_models, "ANSWER_S", 0.3)
    monkeypatch.setattr(codex_models, "ASK_S", 0.5)
    monkeypatch.setattr(codex_models, "MAX_BYTES", 1000)
    begun = time.monotonic()
    with pytest.raises(CatalogUnfit):
        give_catalog(tmp_path / "state", program(tmp_path, script), world(tmp_path), [KIMI])
    assert time.monotonic() - begun < LONG_S / 2, "one deadline for all questions"
    started = [int(line) for line in (tmp_path / "left").read_text().split()]
    while any(map(_runs, started)):  # a kill takes a moment
        assert time.monotonic() - begun < LONG_S / 2
        time.sleep(0.01)
    assert started


def test_output_is_bounded_while_the_client_runs() -> None:
    begun = time.monotonic()
    assert ask(["yes"], os.environ, LONG_S, 1000).problem == "it prints more than 1000 bytes"
    assert time.monotonic() - begun < LONG_S / 2


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert InstalledCodex(str(tmp_path / "codex"), world(tmp_path)).rows() == []
    assert json.loads(catalog_text(world(tmp_path), [KIMI]))["models"][0]["slug"] == "kimi"


def test_a_catalogue_of_the_user_is_not_what_codex_knows(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('model_catalog_json = "/old.json"')
    script = f'[ "$*" = \'debug models --bundled\' ] && echo \'{ROWS}\' || echo \'{{"models": [{{"slug": "old"}}]}}\''
    assert slugs_of(tmp_path, script) == ["gpt-5.5"]


def test_the_file_is_private_and_written_when_it_changes(tmp_path: Path) -> None:
    folder, script = tmp_path / "state", f"echo \"$*\" >> {tmp_path}/asked; echo '{ROWS}'"
    codex = program(tmp_path, script)
    path = give_catalog(folder, codex, world(tmp_path), [KIMI])
    assert path.stat().st_mode & 0o777 == 0o600 and json.loads(path.read_text())["models"][0]["slug"] == "kimi"
    written = path.stat().st_ino
    assert give_catalog(folder, codex, world(tmp_path), [KIMI]) == path and path.stat().st_ino == written
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[::2] == ["debug models"] * 2 and asked[1].startswith("debug models -c model_catalog_json="), asked
    assert [one.name for one in folder.iterdir()] == [path.name]


def test_another_launch_leaves_the_file_of_a_running_codex(tmp_path: Path) -> None:
    """It reads it again with each conversation."""
    folder, codex = tmp_path / "state", program(tmp_path, f"echo '{ROWS}'")
    first = give_catalog(folder, codex, world(tmp_path), [KIMI])
    other = UsableModel("other", "p2", "Kimi Code", ModelFacts())
    second = give_catalog(folder, codex, world(tmp_path), [other])
    with pytest.raises(CatalogUnfit):
        give_catalog(folder, program(tmp_path, f"[ $# = 2 ] && echo '{ROWS}'"), world(tmp_path), [KIMI])
    assert set(folder.iterdir()) == {first, second}


def test_files_that_no_launch_has_given_for_long_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (given_files.given_file(tmp_path, "kind", text) for text in ("1", "2"))
    (left := tmp_path / "kind-0.7.unchecked").write_text("")
    (foreign := tmp_path / "output.log").write_text("")
    for path in (first, second, left, foreign):
        os.utime(path, (0, 0))
    assert given_files.given_file(tmp_path, "kind", "1") == first
    assert set(tmp_path.iterdir()) == {first, foreign}
    monkeypatch.setattr(given_files, "MAX_KEPT", 2)
    for text in "345":
        given_files.given_file(tmp_path, "kind", text)
    assert len([*tmp_path.glob("kind-*")]) == 2


def test_a_launch_that_is_interrupted_leaves_nothing_that_is_trusted(tmp_path: Path) -> None:
    seen: list[Path] = []

    def check(path: Path) -> None:
        seen.append(path)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            given_files.given_file(tmp_path, "kind", "1", check=check)
    assert len(seen) == 2 and not [*tmp_path.iterdir()]
    assert seen[0] != given_files.given_file(tmp_path, "kind", "1"), "one that is killed leaves another name"


def test_another_version_checks_the_file_again(tmp_path: Path) -> None:
    one, other = (given_files.given_file(tmp_path, "kind", "1", reader=reader) for reader in ("1", "2"))
    assert one != other


@rows(
    "script, cause",
    [
        (f"[ $# = 2 ] && echo '{ROWS}'", "it ends with status 1"),
        (f"[ $# = 2 ] && echo '{ROWS}' || {{ echo 'Error: missing field' >&2; exit 1; }}", "Error: missing field"),
        (f"[ $# = 2 ] && echo '{ROWS}' || exec sleep 5", "it did not answer within 0.2 s"),
    ],
)
def test_a_file_that_codex_cannot_read_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, cause: str
) -> None:
    monkeypatch.setattr(codex_models, "ANSWER_S", 0.2)
    with pytest.raises(CatalogUnfit, match=cause):
        give_catalog(tmp_path / "state", program(tmp_path, script), world(tmp_path), [KIMI])
    assert not [*(tmp_path / "state").iterdir()]


def test_why_no_file_could_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    codex = program(tmp_path, "exit 0")
    with pytest.raises(CatalogUnfit, match="no UTF-8"):
        give_catalog(tmp_path / os.fsdecode(b"\xff"), codex, world(tmp_path), [KIMI])
    monkeypatch.setattr(given_files, "write_private", full)
    with pytest.raises(CatalogUnfit, match=r"/codex-models-.*: No space left on device"):
        give_catalog(tmp_path, codex, world(tmp_path), [KIMI])


@rows("path", ["/a b/c", "/😀/é", '/"quoted"\\/\x7f\n'])
def test_the_setting_is_a_value_of_toml(path: str) -> None:
    assert tomllib.loads(catalog_setting(Path(path))) == {"model_catalog_json": path}
