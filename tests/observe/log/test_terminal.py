"""What somebody sees who reads along."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from proxy.observe.log import terminal
from proxy.observe.log.file_log import FileLog

STAMP = re.compile(r"^\d\d:\d\d:\d\d  ", re.MULTILINE)


def plain(folder: Path) -> tuple[FileLog, io.StringIO]:
    stream = io.StringIO()
    return FileLog(folder, plain=True, stream=stream), stream


def test_a_warning_is_a_sentence_and_told_once_and_the_file_has_all(tmp_path: Path) -> None:
    log, stream = plain(tmp_path)
    for number in range(3):
        log.write(
            "warn", "auth", "sign-in not renewed", provider="p1", error="it is away", reqId=str(number), ms=number
        )
    log.write("error", "server", "internal_error", reqId="1", error="KeyError", places=["a:1"])
    log.write("info", "server", "request")
    log.write("warn", "server", "request_failed", message="told in a line of its own")
    log.write("warn", "p1", "codex_upstream_request_failed", attempt=3, status=400, retryInS=None)
    log.write("warn", "p1", "codex_upstream_request_failed", attempt=1, status=503, retryInS=0.8374628190152)
    log.tell("17:40:12  gpt-5.5 (p1)  200")
    log.write("warn", "auth", "sign-in not renewed", provider="p2", error="it is away", upstreamId=None)
    log.close()
    assert sorted(STAMP.sub("", stream.getvalue()).splitlines()) == [
        "error: server: internal error (error: KeyError)",
        "gpt-5.5 (p1)  200",
        "warning: auth: sign-in not renewed (provider: p1, error: it is away)",
        "warning: auth: sign-in not renewed (provider: p2, error: it is away)",
        "warning: p1: codex upstream request failed (attempt: 1, status: 503, retryInS: 0.8)",
    ]
    written = (tmp_path / "proxy.log").read_text()
    assert written.count("sign-in not renewed") == 4 and "told in a line" in written and "gpt-5.5 (p1)" not in written


def test_a_file_that_is_broken_the_same_way_again_is_told_again(tmp_path: Path) -> None:
    log, stream = plain(tmp_path)
    for _ in range(2):
        log.write("warn", "config", "the settings stay as they were: no JSON")
    log.close()
    assert stream.getvalue().count("warning: config: the settings stay as they were: no JSON\n") == 2


def test_what_was_said_is_remembered_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "MAX_REMEMBERED", 2)
    log, stream = plain(tmp_path)
    for word in ("a", "b", "c", "a"):
        log.write("warn", "x", word)
    log.close()
    assert re.findall(r"x: (\w)", stream.getvalue()) == ["a", "b", "c", "a"]


def test_nothing_is_told_while_something_else_owns_the_terminal(tmp_path: Path) -> None:
    log, stream = plain(tmp_path)
    with log.quiet():
        log.tell("never seen")
        log.flush()
    log.tell("seen")
    log.close()
    assert stream.getvalue() == "seen\n"
