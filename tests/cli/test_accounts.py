"""Several accounts of one provider on the command line."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.cli import main
from proxy.cli.command import Context
from proxy.providers.accounts.named import names_in, root_of
from proxy.sandbox import Sandbox

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    return tmp_path / "config"


@pytest.fixture
def command(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    context = Context({"PROXY_CONFIG_DIR": str(root), "XDG_STATE_HOME": str(root / "state"), "NO_COLOR": "1"})

    def run(line: str) -> tuple[int, str, str]:
        try:
            status = main(line.split(), context)
        except SystemExit as error:
            status = int(error.code or 0)
        return status, *capsys.readouterr()

    return run


def sign_in(root: Path, label: str, name: str) -> Path:
    """A stored sign-in of an account."""
    folder = root_of(root, label, name) / label
    folder.mkdir(parents=True)
    sandbox = Sandbox()
    for file, text in sandbox.upstreams[label].credentials(None, None).items():
        (folder / file).write_text(text)
    return folder / "auth.json"


def test_every_account_is_told_by_name(root: Path, command: Run) -> None:
    for name in ("default", "work", "home"):
        sign_in(root, "p1", name)
    status, out, _ = command("auth status")
    assert status == 0
    titles = [line for line in out.splitlines() if line.startswith("p1")]
    assert titles == ["p1 (codex): signed in", "p1/home (codex): signed in", "p1/work (codex): signed in"]
    status, of_one, _ = command("auth status p1")
    assert status == 0 and [line for line in of_one.splitlines() if line.startswith("p")] == titles
    assert command("auth status p1 --as work")[:1] == (0,)
    assert "p1" not in command("auth status p2")[1]


def test_the_only_account_is_told_as_ever(root: Path, command: Run) -> None:
    sign_in(root, "p1", "default")
    assert command("auth status p1")[1].startswith("Account: ")
    assert command("auth status p1") == command("auth status p1 --as default")


def test_one_that_is_signed_out_leaves_the_others(root: Path, command: Run) -> None:
    kept, gone = sign_in(root, "p1", "default"), sign_in(root, "p1", "work")
    before = kept.read_bytes()
    assert command("auth logout p1 --as work")[:2] == (0, "Logged out\n")
    assert kept.read_bytes() == before and not gone.exists() and names_in(root, "p1") == ()
    assert "p1/work" not in command("auth status")[1]


def test_what_helps_names_the_account(root: Path, command: Run) -> None:
    file = sign_in(root, "p1", "work")
    file.write_text("no credential")
    status, out, _ = command("auth status p1 --as work")
    assert status == 1 and "auth login p1 --as work`" in out
    assert "unusable sign-in" in command("auth status")[1]


@pytest.mark.parametrize("line", ["auth login p1 --as ../x", "auth logout p1 --as Work", "usage p1 --as a/b"])
def test_what_is_no_name_touches_no_file(line: str, root: Path, command: Run) -> None:
    status, _, err = command(line)
    assert status > 0 and "cannot be called" in err and list(root.iterdir()) == []


@pytest.mark.parametrize("line", ["auth status --as work", "auth login --as work", "usage --as work"])
def test_a_name_alone_is_of_no_provider(line: str, command: Run) -> None:
    assert command(line)[0] > 0


def test_a_key_of_a_named_account(root: Path, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-second-key-0123456789\n"))
    status, out, _ = command("auth login p4 --as work")
    file = root_of(root, "p4", "work") / "p4" / "auth.json"
    assert status == 0 and "sk-second" not in out
    assert json.loads(file.read_bytes()) == {"key": "sk-second-key-0123456789"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    status, out, _ = command("auth status p4 --as work")
    assert status == 0 and f"Source: {file}" in out and "sk-second" not in out
    assert command("auth status p4")[1].startswith("p4 (opencode): not signed in\np4/work (opencode): signed in")
    assert command("auth logout p4 --as work")[:2] == (0, "Logged out\n") and not file.exists()


def test_an_empty_key_is_none(root: Path, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    status, _, err = command("auth login p4 --as work")
    assert status > 0 and "not empty" in err and names_in(root, "p4") == ()


def test_a_token_of_the_settings_belongs_to_the_account_without_a_name(root: Path, command: Run) -> None:
    (root / "config.json").write_text(json.dumps({"p4": {"apiKey": "sk-first-key-0123456789"}}))
    assert command("auth status p4")[0] == 0
    status, out, _ = command("auth status p4 --as work")
    assert (status, out) == (1, "Not authenticated\n")


def test_usage_of_accounts_that_cannot_be_asked(root: Path, command: Run) -> None:
    file = sign_in(root, "p1", "work")
    file.write_text("no credential")
    status, out, _ = command("usage p1")
    assert status == 1 and "p1 (codex):\n  not signed in" in out and "p1/work (codex):\n  unusable" in out
    status, out, _ = command("usage p1 --json")
    assert sorted(json.loads(out)) == ["p1", "p1/work"]


def test_doctor_looks_at_the_files_of_every_account(root: Path, command: Run) -> None:
    file = sign_in(root, "p1", "work")
    file.chmod(0o644)
    out = command("doctor --offline")[1]
    assert f"{file} is open to others" in out
    assert "p1/work (codex): signed in" in out
