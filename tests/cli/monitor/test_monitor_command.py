"""`monitor` and `demo`: what is attached to, and what is said where nothing can be drawn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.cli.command import Context
from proxy.cli.monitor import command, full_screen
from proxy.cli.monitor.command import Watch, run, run_demo
from proxy.cli.monitor.full_screen import LogNotices, obstacle
from proxy.errors import ProxyError
from proxy.observe.monitor.snapshot import SessionRow, Snapshot

SNAPSHOT = Snapshot(1.0, 2.0, 1.0, sessions=(SessionRow("session-one", 1.5, requests=3),), program="mp", url="http://x")


class Proxy:
    """A proxy that answers with what is next in `answers`."""

    url = "http://127.0.0.1:1/monitor"

    def __init__(self, *answers: Snapshot | str | ProxyError) -> None:
        self.answers = list(answers)

    async def snapshot(self) -> Snapshot:
        answer = self.answers.pop(0)
        if isinstance(answer, ProxyError):
            raise answer
        if isinstance(answer, str):
            raise ProxyError(answer)
        return answer


async def test_the_last_picture_stays_with_the_reason_and_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(command.time, "time", lambda: now)
    watch = Watch(Proxy("nobody answers", SNAPSHOT, "gone", replace(SNAPSHOT, uptime=9.0)))  # type: ignore[arg-type]
    seen = []
    for _ in range(4):
        await watch.ask()
        now += 5
        seen.append(watch.look())
    assert [one.note for one in seen] == ["nobody answers", "", "10s old: gone", ""]
    assert [len(one.snapshot.sessions) for one in seen] == [0, 1, 1, 1]
    assert seen[0].snapshot.url == Proxy.url and seen[3].snapshot.uptime == 9.0


async def test_another_version_is_refused_with_words() -> None:
    proxy = Proxy(ProxyError("that proxy reports version 2 of the monitor", kind="bad_answer"))
    with pytest.raises(ProxyError, match="version 2"):
        await command._attached(proxy, Context({}))  # type: ignore[arg-type]


class Stream:
    def __init__(self, tty: bool) -> None:
        self.tty, self.said = tty, ""

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        self.said += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(
    ("tty", "term", "why"),
    [
        (False, "xterm", "this is no terminal"),
        (True, "", "this terminal cannot place text"),
        (True, "dumb", "this terminal cannot place text"),
    ],
)
def test_where_nothing_can_be_drawn(tty: bool, term: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(full_screen.sys, name, Stream(tty))
    assert why in obstacle({"TERM": term})


def test_a_python_without_curses_is_such_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(full_screen.sys, name, Stream(True))
    monkeypatch.setitem(sys.modules, "curses", None)
    monkeypatch.delitem(sys.modules, "proxy.observe.monitor.terminal.display", raising=False)
    assert obstacle({"TERM": "xterm"}) == "this Python has no curses"


@pytest.mark.parametrize(("runs", "cure"), [(run, "monitor --plain"), (run_demo, "PROXY_MONITOR_PAGE=1")])
async def test_the_commands_say_what_to_do_there(
    runs: Callable[..., Awaitable[int]], cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_screen.sys, "stdin", Stream(True))
    monkeypatch.setattr(full_screen.sys, "stdout", Stream(True))
    arguments = argparse.Namespace(url=["http://127.0.0.1:9"], plain=False)
    with pytest.raises(ProxyError, match=cure) as found:
        await runs(arguments, Context({"HOME": str(tmp_path), "TERM": "dumb"}, program="mp"))
    assert "TERM" in found.value.message


def test_one_look_as_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    command._print(SNAPSHOT)
    text = capsys.readouterr().out
    assert "session…" in text and "0/3/0" in text and "No events" in text
    assert max(map(len, text.splitlines())) <= 100 and not any("╭" in line for line in text.splitlines())


def test_warnings_of_the_log_are_events_while_the_monitor_is_shown() -> None:
    stream, told = Stream(True), []
    lines = LogNotices(stream)  # type: ignore[arg-type]
    lines.write("12:00:00  warning: before\n")
    lines.notice = lambda level, message: told.append((level, message))
    lines.write("12:00:01  warning: auth: not renewed (provider: p1)\n12:00:02  error: log: full\n")
    lines.write("12:00:02  warning: p4: allowance low (window: Monthly, usedPercent: 100.0)\n")
    lines.notice = None
    lines.write("12:00:03  warning: after\n")
    assert told == [("warn", "auth: not renewed (provider: p1)"), ("error", "log: full")]
    assert stream.said == "12:00:00  warning: before\n12:00:03  warning: after\n"
