"""`keys add|list|set|revoke`."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from proxy.cli.command import Context
from proxy.cli.main import main
from proxy.observe.history.caller_use import CallerUse, write_use
from proxy.observe.history.schema import FILE_NAME, connect
from proxy.server.callers.callers import DAY_S
from proxy.server.callers.keys import KeyLimits, digest_of, read_keys


class Terminal:
    """Runs commands in a home of their own."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    @property
    def path(self) -> Path:
        return self.home / ".config" / "model-proxy" / "keys.json"

    def run(self, *words: str) -> tuple[int, str]:
        status = main(["keys", *words], Context(environment={"HOME": str(self.home)}))
        captured = self._capsys.readouterr()
        return status, captured.out + captured.err


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path, capsys)


def test_a_key_is_shown_once_and_kept_as_a_digest(terminal: Terminal) -> None:
    status, out = terminal.run("add", "anna", "--per-minute", "30")
    key = next(line for line in out.splitlines() if line.startswith("mp-"))
    assert status == 0 and "callers need a key" in out
    found = read_keys(terminal.path)
    assert found is not None and found[digest_of(key.encode())].limits == KeyLimits(per_minute=30)
    assert key not in terminal.path.read_text() and key not in terminal.run("list")[1]
    assert "callers need a key" not in terminal.run("add", "bert")[1]


def test_limits_are_changed_one_by_one(terminal: Terminal) -> None:
    terminal.run("add", "anna", "--at-a-time", "2", "--per-minute", "30")
    assert terminal.run("set", "anna", "--per-minute", "none", "--tokens-per-day", "5")[0] == 0
    assert [key.limits for key in (read_keys(terminal.path) or {}).values()] == [KeyLimits(2, None, 5)]


def test_the_list_tells_limits_and_what_was_used_today(terminal: Terminal) -> None:
    assert "no keys" in terminal.run("list")[1]
    terminal.run("add", "bert")
    terminal.run("add", "anna", "--tokens-per-day", "5000000")
    state = terminal.home / ".local" / "state" / "model-proxy"
    state.mkdir(parents=True)
    with closing(connect(state / FILE_NAME)) as db:
        write_use(db, [CallerUse(int(time.time()) // DAY_S, "anna", 3, 1234)])
    heads, anna, bert = (line.split() for line in terminal.run("list")[1].splitlines())
    assert heads[:2] == ["name", "made"]
    assert (anna[0], *anna[2:]) == ("anna", "-", "-", "5,000,000", "3", "1,234")
    assert (bert[0], *bert[2:]) == ("bert", "-", "-", "-", "0", "0")


def test_the_last_key_leaves_a_file_that_opens_nothing(terminal: Terminal) -> None:
    terminal.run("add", "anna")
    status, out = terminal.run("revoke", "anna")
    assert status == 0 and "No key is left" in out and read_keys(terminal.path) == {}
    assert "There are no keys" in terminal.run("list")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "whose key?"),
        (("add", "a b"), "whose key?"),
        (("add", "anna"), "has a key already"),
        (("revoke", "emil"), "no key is named emil; there are: anna"),
        (("set", "emil", "--per-minute", "3"), "no key is named emil"),
        (("set", "anna"), "which limit?"),
        (("set", "anna", "--per-minute", "0"), "--per-minute: expected a number from 1 to 10000, or none"),
        (("add", "new", "--at-a-time", "many"), "--at-a-time: expected a number"),
    ],
)
def test_what_is_wrong_is_told(words: tuple[str, ...], said: str, terminal: Terminal) -> None:
    terminal.run("add", "anna")
    before = terminal.path.read_bytes()
    status, out = terminal.run(*words)
    assert status == 1 and said in out and terminal.path.read_bytes() == before


def test_a_damaged_file_is_not_written_over(terminal: Terminal) -> None:
    terminal.path.parent.mkdir(parents=True)
    terminal.path.write_text("{")
    for words in (("list",), ("add", "anna"), ("revoke", "anna")):
        status, out = terminal.run(*words)
        assert status == 1 and str(terminal.path) in out
    assert terminal.path.read_text() == "{"
