"""Captures in files, through the real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.observe.capture.contract import NULL_ATTEMPT, NULL_CAPTURE, RequestCapture
from proxy.observe.capture.writing import channel
from proxy.observe.capture.writing.channel import MAX_RESTARTS, Channel, worker_command
from proxy.observe.capture.writing.queued import MAX_CONVERTED_BYTES, FolderCaptures

from .written import PLENTY, attempt, files, request, sse

SOON_S = 20.0


class Records:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        assert (level, service) == ("warn", "captures")
        self.told.append((msg, fields))

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        raise AssertionError

    @property
    def names(self) -> list[str]:
        return [msg for msg, _ in self.told]


@pytest.fixture
def log() -> Records:
    return Records()


@pytest.fixture
def captures(tmp_path: Path, log: Records) -> Iterator[FolderCaptures]:
    made = FolderCaptures(tmp_path, PLENTY, log)
    yield made
    made.close(SOON_S)


def process_of(captures: FolderCaptures) -> subprocess.Popen[bytes]:
    """The process behind captures, once it is there."""
    until(lambda: captures._channel._process is not None)
    process = captures._channel._process
    assert process is not None
    return process


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def begun(capture: RequestCapture) -> bool:
    """Whether all that a capture begins with is there; the last of it may be half written."""
    return len([*Path(capture.place or "").glob("*.json")]) == 3


def test_a_request_is_written_by_another_process(captures: FolderCaptures, log: Records) -> None:
    large = b'{"messages":[{"text":"' + b"word " * 20_000 + b'"}]}'
    capture = captures.begin(request(body=large, converted={"model": "m"}))
    sent = attempt(capture, large)
    sent.answered(200, {"content-type": "text/event-stream"})
    sent.data(sse(*({"type": "a", "text": "b" * 1000} for _ in range(60))))
    sent.events([{"type": "c"}])
    capture.streamed(sse({"type": "d"}))
    capture.ended("completed", 200)
    assert captures.close(SOON_S)
    found = files(capture)
    assert len(found["002-010-anthropic-request.json"]["messages"][0]["text"]) == 100_000
    assert found["005-020-upstream-request.json"] == found["002-010-anthropic-request.json"]
    assert found["003-015-anthropic-request.json"] == {"model": "m"}
    assert sum(name.startswith("events/") for name in found) == 62
    assert found["011-061-request-summary.json"]["messages_lost"] == 0
    assert log.told == []


def test_another_model_of_the_same_provider_has_a_capture_of_its_own(captures: FolderCaptures, log: Records) -> None:
    begun = [captures.begin(request(earlier=number)) for number in (0, 1)]
    for capture in begun:
        capture.ended("completed", 200)
    assert captures.close(SOON_S)
    assert all("001-000-metadata.json" in files(capture) for capture in begun)
    assert begun[0].place != begun[1].place and log.told == []


def test_no_process_without_a_request(captures: FolderCaptures, tmp_path: Path) -> None:
    assert captures.on and captures.close(SOON_S)
    assert captures._channel._process is None and [*tmp_path.iterdir()] == []
    assert not captures.on and captures.begin(request()) is NULL_CAPTURE


def test_the_process_is_small_and_ends_with_its_input(tmp_path: Path) -> None:
    command = worker_command(tmp_path, PLENTY)
    place = command.index("-c") + 1
    command[place] += "; print(sorted(name for name in sys.modules if name in ('aiohttp','asyncio','proxy.server')))"
    done = subprocess.run(command, input=b"", capture_output=True, timeout=SOON_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")


def test_paths_of_modules_that_are_no_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    assert json.loads(worker_command(tmp_path, PLENTY)[5])[-1] == str(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_for_everybody_does_not_end_it(captures: FolderCaptures, name: str) -> None:
    first = captures.begin(request())
    until(lambda: begun(first))
    os.kill(process_of(captures).pid, signal.Signals[name])
    first.ended("completed", 200)
    assert captures.close(SOON_S)
    assert len(files(first)) == 4


def test_a_process_that_was_killed_is_replaced(captures: FolderCaptures, log: Records) -> None:
    lost = captures.begin(request())
    until(lambda: begun(lost))
    process_of(captures).kill()
    process_of(captures).wait()
    lost.ended("completed", 200)
    later = captures.begin(request(request_id="req-2"))
    later.ended("completed", 200)
    assert captures.close(SOON_S)
    assert begun(lost) and len(files(later)) == 4
    assert log.told == []


@pytest.mark.parametrize("command", [[sys.executable, "-c", ""], ["/does/not/exist"]])
def test_captures_end_where_the_process_cannot_live(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Records, command: list[str]
) -> None:
    started: list[Any] = []
    popen = subprocess.Popen
    monkeypatch.setattr(channel, "worker_command", lambda *_: command)
    monkeypatch.setattr(channel.subprocess, "Popen", lambda *a, **k: started.append(a) or popen(*a, **k))
    captures = FolderCaptures(tmp_path, PLENTY, log)
    while captures.on:
        captures.begin(request(body=b"x" * 1_000_000)).ended("completed", 200)
        time.sleep(0.01)
    until(lambda: log.told)
    assert log.names == ["captures_off"] and len(started) == MAX_RESTARTS + 1
    assert captures.begin(request()) is NULL_CAPTURE
    captures.close(SOON_S)


def test_captures_end_where_nobody_can_read_the_reports(
    monkeypatch: pytest.MonkeyPatch, captures: FolderCaptures, log: Records
) -> None:
    class NoMore(threading.Thread):
        def start(self) -> None:
            if self.name != "proxy-captures":
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(channel.threading, "Thread", NoMore)
    captures.begin(request()).ended("completed", 200)
    until(lambda: log.told)
    assert log.names == ["captures_off"] and not captures.on


def test_a_report_that_was_cut_is_no_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Records) -> None:
    said = """print('["warn","whole",{}]'); print('["warn","cu')"""
    monkeypatch.setattr(channel, "worker_command", lambda *_: [sys.executable, "-c", f"{said}; input()"])
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    captures = FolderCaptures(tmp_path, PLENTY, log)
    captures.begin(request()).ended("completed", 200)
    captures.close(SOON_S)
    assert "whole" in log.names and died == []


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch, captures: FolderCaptures, log: Records) -> None:
    monkeypatch.setattr(channel, "_LINGER_S", SOON_S)  # nothing is taken before the end
    monkeypatch.setattr(channel, "MAX_WAITING_BYTES", 10_000)
    capture = captures.begin(request())
    capture.streamed(sse({"type": "a"}))
    capture.streamed(b"x" * 20_000)
    capture.streamed(sse({"type": "b"}))  # after a hole nothing fits together
    assert attempt(capture) is NULL_ATTEMPT
    assert captures.begin(request(body=b"x" * 20_000)) is NULL_CAPTURE
    capture.ended("completed", 200)
    assert captures.close(SOON_S)
    summary = files(capture)["004-061-request-summary.json"]
    assert (summary["messages_lost"], summary["downstream"]["captured_events"]) == (3, 1)
    assert log.names == ["captures_incomplete"]


def test_the_number_of_messages_is_bounded_as_well(
    monkeypatch: pytest.MonkeyPatch, captures: FolderCaptures, log: Records
) -> None:
    monkeypatch.setattr(channel, "_LINGER_S", SOON_S)
    monkeypatch.setattr(channel, "MAX_WAITING", 3)
    capture = captures.begin(request())
    for _ in range(10):
        capture.streamed(sse({"type": "a"}))
    capture.ended("completed", 200)
    assert captures.close(SOON_S)
    assert files(capture)["004-061-request-summary.json"]["messages_lost"] == 8


def test_the_end_does_not_wait_for_a_process_that_hangs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Records
) -> None:
    hangs = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(channel, "worker_command", lambda *_: hangs)
    captures = FolderCaptures(tmp_path, PLENTY, log)
    for _ in range(3):
        captures.begin(request(body=b"x" * 1_000_000))
    process = process_of(captures)
    began = time.monotonic()
    assert not captures.close(0.3)
    assert time.monotonic() - began < 30
    assert process.returncode is not None and log.names == ["captures_cut"]


def test_what_the_process_reports_is_logged(tmp_path: Path, log: Records) -> None:
    (tmp_path / "traffic").write_text("in the way")
    captures = FolderCaptures(tmp_path, PLENTY, log)
    captures.begin(request())
    captures.begin(request())
    captures.close(SOON_S)
    assert log.told == [("capture_not_written", {"error": "NotADirectoryError", "detail": "traffic is not a folder"})]


def test_values_that_are_no_data(tmp_path: Path, captures: FolderCaptures) -> None:
    from multidict import CIMultiDict

    capture = captures.begin(request(headers=CIMultiDict([("A", "1"), ("a", "2")])))
    attempt(capture, {"run": {"of": object(), "more": CIMultiDict(b="1")}}).events([{"type": object()}])
    capture.ended("completed", 200)
    assert captures.close(SOON_S)
    found = files(capture)
    assert found["001-000-metadata.json"]["headers"] == {"A": "1", "a": "2"}
    assert found["004-020-upstream-request.json"] == {"run": {"of": "[object]", "more": {"b": "1"}}}
    assert found["events/000001-040-upstream-event.json"] == {"type": "unprintable"}


def test_a_second_form_of_a_large_request_is_left_out(captures: FolderCaptures) -> None:
    size = MAX_CONVERTED_BYTES + 1
    capture = captures.begin(request(body=b'"' + b"x" * (size - 2) + b'"', converted={"a": 1}))
    capture.ended("completed", 200)
    assert captures.close(SOON_S)
    assert files(capture)["003-015-anthropic-request.json"] == {"left_out": f"the request has {size} bytes"}


def test_a_channel_takes_nothing_after_its_end(tmp_path: Path) -> None:
    one = Channel(tmp_path, PLENTY, lambda *_: None)
    assert one.close(0)
    assert not one.send(("ended", 1), 0)
