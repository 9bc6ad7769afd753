from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.core.hiding.secret import Secret
from proxy.observe.lifecycle import Log
from proxy.observe.log import file_log as log_module
from proxy.observe.log import storage
from proxy.observe.log.file_log import MAX_PENDING_CAPTURES, MAX_QUEUED, FileLog
from proxy.observe.log.stdlib_log import StdlibLog
from proxy.observe.log.storage import DAY_S, Bounds, ErrorFiles, RotatingFile

from ..conftest import NOON, Clock, records

MakeLog = Callable[..., FileLog]


class Gate(io.StringIO):
    """A terminal that stands still until it is opened; holds the writer thread where a test wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.open = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.open.wait(5)
        return super().write(text)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def held(make_log: MakeLog, gate: Gate) -> FileLog:
    """A log whose writer thread stands at the gate."""
    log = make_log(stream=gate)
    log.write("warn", "server", "held")
    assert gate.reached.wait(5)
    return log


def say(log: FileLog, *messages: str, level: str = "info", **fields: Any) -> None:
    """Writes these records, and waits until they are written."""
    for msg in messages:
        log.write(level, "server", msg, **fields)
    assert log.flush()


def captured(log: FileLog, record: dict[str, Any], name: str = "r1") -> Path:
    """The file of a failed answer, once it is written."""
    path = log.capture_error(name, record)
    assert path is not None and log.flush()
    return Path(path)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def messages(root: Path) -> list[str]:
    return [record["msg"] for record in records(root)]


def shown(terminal: io.StringIO) -> list[str]:
    return [json.loads(line)["msg"] for line in terminal.getvalue().splitlines()]


class TestRecords:
    def test_the_form_of_a_line_and_the_time_of_its_call(self, log: FileLog, root: Path, clock: Clock) -> None:
        log.write("info", "server", "request", reqId="r1", status=200)
        clock.now += 61.9
        log.write("debug", "p1", "x")
        assert log.close()
        assert (root / "proxy.log").read_text() == (
            '{"t":"2026-08-19T12:00:00Z","level":"info","service":"server","msg":"request",'
            '"fields":{"reqId":"r1","status":200}}\n'
            '{"t":"2026-08-19T12:01:01Z","level":"debug","service":"p1","msg":"x"}\n'
        )

    @pytest.mark.parametrize(("verbose", "long"), [(False, "é" * 2_000 + "… [+14000 bytes]"), (True, "é" * 9_000)])
    def test_redaction(self, make_log: MakeLog, root: Path, verbose: bool, long: str) -> None:
        fields = {"Authorization": "Bearer abc", "set_cookie": Secret("abcd"), "long": "é" * 9_000}
        say(make_log(verbose=verbose), "x", **fields)
        hidden = {"Authorization": "[redacted len=10]", "set_cookie": "[redacted len=4]"}
        assert records(root)[0]["fields"] == {**hidden, "long": long}

    def test_a_value_that_cannot_be_read_costs_only_its_record(self, log: FileLog, root: Path) -> None:
        class Broken(dict[str, int]):
            def items(self) -> None:  # type: ignore[override]
                raise RuntimeError

        say(log, "a", broken=Broken())
        say(log, "b", text="\ud800")
        assert messages(root) == ["unprintable_record", "b"]

    def test_lines_are_appended_to_what_is_there(self, make_log: MakeLog, root: Path) -> None:
        for msg in ("a", "b"):
            log = make_log()
            log.write("info", "server", msg)
            assert log.close()
        assert messages(root) == ["a", "b"]


class TestFiles:
    def test_permissions(self, log: FileLog, root: Path) -> None:
        mask = os.umask(0)
        try:
            log.write("info", "server", "x")
            path = captured(log, {"message": "m"})
        finally:
            os.umask(mask)
        assert [mode(p) for p in (root / "proxy.log", path)] == [0o600, 0o600]
        assert [mode(p) for p in (root.parent, root, root / "errors")] == [0o700, 0o700, 0o700]

    def test_an_older_file_is_made_private(self, log: FileLog, root: Path) -> None:
        root.mkdir(parents=True)
        (root / "proxy.log").write_text("")
        (root / "proxy.log").chmod(0o644)
        say(log, "x")
        assert mode(root / "proxy.log") == 0o600

    def test_rotation(self, log: FileLog, root: Path) -> None:
        root.mkdir(parents=True)
        (root / "proxy.log").touch()
        os.truncate(root / "proxy.log", storage.MAX_LOG_BYTES)
        say(log, "still fits")
        say(log, "starts anew")
        assert sorted(p.name for p in root.iterdir()) == [f"proxy.{int(NOON * 1000)}", "proxy.log"]
        assert messages(root) == ["starts anew"]
        assert (root / f"proxy.{int(NOON * 1000)}").stat().st_size > storage.MAX_LOG_BYTES

    def test_a_file_is_put_aside_when_its_first_record_is_too_old(
        self, make_log: Callable[..., FileLog], root: Path, clock: Clock
    ) -> None:
        """What is looked at every hour, not with each record."""
        log = make_log(kept=Bounds(10, 2**30, 2 * DAY_S))
        say(log, "old")
        clock.now += 2 * DAY_S
        say(log, "not too old")
        clock.now += 1
        say(log, "looked at lately")
        assert messages(root) == ["old", "not too old", "looked at lately"]
        clock.now += log_module.TIDY_EVERY_S
        say(log, "anew")
        aside = f"proxy.{int(clock.now * 1000)}"
        assert sorted(p.name for p in root.iterdir()) == [aside, "proxy.log"] and messages(root) == ["anew"]
        clock.now += 2 * DAY_S
        say(log, "the day after")
        assert (root / aside).exists()
        clock.now += log_module.TIDY_EVERY_S
        say(log, "later")
        assert not (root / aside).exists()

    @pytest.mark.parametrize(("age_s", "expected"), [(0.0, 11), (5.5 * DAY_S, 6)])
    def test_files_put_aside_have_bounds(
        self, make_log: Callable[..., FileLog], root: Path, age_s: float, expected: int
    ) -> None:
        root.mkdir(parents=True)
        stamp = int(NOON * 1000)
        for days in range(12):
            (root / f"proxy.{stamp - int(days * DAY_S * 1000)}").write_bytes(b"x" * 10)
        (root / "proxy.conf").write_text("mine")
        (root / "proxy.5").mkdir()
        say(make_log(file_bytes=30, kept=Bounds(100, 30 + 110, age_s)), "x")
        left = sorted((p.name for p in root.glob("proxy.1*")), reverse=True)
        assert left == [f"proxy.{stamp - int(days * DAY_S * 1000)}" for days in range(expected)]
        assert (root / "proxy.conf").exists() and (root / "proxy.5").is_dir()

    def test_a_log_of_another_program_is_not_put_aside_for_its_age(
        self, make_log: Callable[..., FileLog], root: Path
    ) -> None:
        root.mkdir(parents=True)
        (root / "proxy.log").write_text("words\n")
        say(make_log(kept=Bounds(10, 2**30, 1.0)), "x")
        assert (root / "proxy.log").read_text().startswith("words\n")

    def test_rotation_never_overwrites(self, root: Path) -> None:
        file = RotatingFile(root, lambda: NOON, max_bytes=10)
        for line in (b"a" * 11, b"b" * 11, b"c" * 11):
            file.append(line)
        stamp = int(NOON * 1000)
        assert (root / f"proxy.{stamp}").read_bytes() == b"a" * 11
        assert sorted(p.name for p in root.iterdir()) == [f"proxy.{stamp}", f"proxy.{stamp + 1}", "proxy.log"]

    def test_two_processes_that_rotate_in_one_moment_lose_nothing(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, other = (RotatingFile(root, lambda: NOON, max_bytes=10) for _ in range(2))
        ours.append(b"a" * 11)

        def moves(how: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
            def late(path: Path, target: Path) -> Path:
                monkeypatch.undo()
                other.append(b"b" * 11)
                return how(path, target)

            return late

        for name in ("rename", "replace"):
            monkeypatch.setattr(Path, name, moves(getattr(Path, name)))
        ours.append(b"c" * 11)
        assert sorted(path.read_bytes()[:1] for path in root.iterdir()) == [b"a", b"b", b"c"]

    def test_a_file_that_another_process_removed_keeps_no_other(
        self, make_log: Callable[..., FileLog], root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root.mkdir(parents=True)
        for name in ("proxy.1", "proxy.2", "proxy.3"):
            (root / name).touch()
        real = os.scandir

        @contextlib.contextmanager
        def listed(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
            with real(folder) as entries:
                found = list(entries)
            (root / "proxy.2").unlink(missing_ok=True)
            yield found

        monkeypatch.setattr(storage.os, "scandir", listed)
        say(make_log(kept=Bounds(10, 2**30, DAY_S)), "x")
        monkeypatch.undo()
        assert [path.name for path in root.iterdir()] == ["proxy.log"]

    def test_a_first_record_of_no_day_costs_nothing(self, make_log: Callable[..., FileLog], root: Path) -> None:
        root.mkdir(parents=True)
        (root / "proxy.log").write_text('{"t":"2026-13-45T12:00:00Z"}\n')
        (root / "proxy.1").touch()
        say(make_log(kept=Bounds(10, 2**30, DAY_S)), "x")
        assert records(root)[-1]["msg"] == "x" and not (root / "proxy.1").exists()


class TestThread:
    def test_it_starts_with_the_first_record(self, log: FileLog, root: Path) -> None:
        assert log.flush()
        assert log._thread is None
        assert not root.exists()
        log.write("info", "server", "x")
        assert log._thread is not None
        assert log._thread.daemon

    def test_close_writes_what_waits(self, held: FileLog, gate: Gate, root: Path) -> None:
        for number in range(1_000):
            held.write("info", "server", "x", n=number)
        gate.open.set()
        assert held.close()
        assert [record["fields"]["n"] for record in records(root)[1:]] == list(range(1_000))

    def test_close_waits_no_longer_than_told(self, held: FileLog, gate: Gate) -> None:
        assert not held.close(timeout=0.01)
        assert not held.flush(timeout=0.01)
        gate.open.set()
        assert held.close()

    def test_after_close_nothing_happens(self, log: FileLog, root: Path) -> None:
        assert log.close()
        log.write("error", "server", "late")
        assert log.capture_error("r1", {}) is None
        assert log.flush()
        assert log.close()
        assert not root.exists()

    def test_overflow_is_counted_and_told_once(self, held: FileLog, gate: Gate, root: Path) -> None:
        for number in range(MAX_QUEUED + 7):
            held.write("info", "server", "x", n=number)
        gate.open.set()
        assert held.close()
        found = records(root)
        assert len(found) == 1 + MAX_QUEUED + 1
        last = found[-1]
        assert (last["msg"], last["level"], last["fields"]) == ("log_records_dropped", "warn", {"count": 7})

    def test_the_interpreter_writes_what_waits_at_exit(self, root: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from proxy.observe.log.file_log import FileLog\n"
            "FileLog(Path(sys.argv[1])).write('info', 'server', 'last words')"
        )
        subprocess.run([sys.executable, "-c", code, str(root)], check=True, timeout=10)
        assert messages(root) == ["last words"]


class TestFailures:
    def test_a_directory_that_vanished_is_made_again(self, log: FileLog, root: Path) -> None:
        say(log, "a")
        (root / "proxy.log").unlink()
        root.rmdir()
        say(log, "b")
        assert messages(root) == ["b"]

    def test_a_place_that_cannot_be_written(self, log: FileLog, root: Path, terminal: io.StringIO) -> None:
        root.parent.mkdir()
        root.write_text("a file, not a directory")
        for number in range(3):
            log.write("info", "server", "lost", n=number)
            named = log.capture_error(f"r{number}", {"status": 500})
            assert (named is None) == log.failing == (number > 0)
            assert log.flush()
        assert terminal.getvalue().count("log_write_failed") == 1

        root.unlink()
        say(log, "back")
        assert captured(log, {"status": 500}).exists()
        found = [(record["msg"], record.get("fields")) for record in records(root)]
        assert found == [("back", None), ("log_records_dropped", {"count": 3})]

    def test_a_write_that_breaks_off(self, log: FileLog, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real, full = os.fdopen, [True]

        class Disk(io.FileIO):
            def write(self, data: bytes) -> int:  # type: ignore[override]
                if not full:
                    return super().write(data)
                super().write(data[:10])
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(storage.os, "fdopen", lambda fd, how: Disk(fd, how))
        log.write("info", "server", "lost")
        assert not captured(log, {"status": 500}).exists()

        full.clear()
        say(log, "back")
        monkeypatch.setattr(storage.os, "fdopen", real)
        *torn, back, dropped = (root / "proxy.log").read_text().splitlines()
        assert {part[:9] for part in torn} == {'{"t":"202'}  # several: the count of the lost was tried in vain too
        assert json.loads(back)["msg"] == "back"
        assert json.loads(dropped)["fields"] == {"count": 1}

    def test_no_thread_to_be_had(self, log: FileLog, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(log_module.threading.Thread, "start", refuse)
            log.write("info", "server", "a")
        say(log, "b")
        assert messages(root) == ["a", "b"]


class TestMirror:
    def test_only_warnings_and_errors(self, log: FileLog, terminal: io.StringIO) -> None:
        for level in ("debug", "info", "warn", "error"):
            log.write(level, "server", level)
        assert log.close()
        assert shown(terminal) == ["warn", "error"]

    def test_everything_when_asked(self, make_log: MakeLog, terminal: io.StringIO, root: Path) -> None:
        say(make_log(stderr=True), "x", level="debug", code="abc")
        assert terminal.getvalue() == (root / "proxy.log").read_text()

    def test_nothing_while_quiet_and_quiet_nests(self, log: FileLog, terminal: io.StringIO, root: Path) -> None:
        say(log, "before", level="error")
        with log.quiet():
            with log.quiet():
                say(log, "inner", level="error")
            say(log, "outer", level="error")
        with pytest.raises(KeyError), log.quiet():  # which an error ends as well
            raise KeyError
        say(log, "after", level="error")
        assert shown(terminal) == ["before", "after"]
        assert len(records(root)) == 4

    def test_what_was_written_before_does_not_spoil_the_screen(self, held: FileLog, gate: Gate) -> None:
        held.write("error", "server", "waits")
        gate.open.set()
        with held.quiet():
            shown = gate.getvalue()  # "held", and "waits" if the thread was quick
            say(held, "inside", level="error")
            assert gate.getvalue() == shown

    @pytest.mark.parametrize("terminal", ["closed", "none"])
    def test_without_a_terminal(
        self, make_log: MakeLog, root: Path, terminal: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = io.StringIO()
        closed.close()
        monkeypatch.setattr(sys, "stderr", None)
        say(make_log(stream=closed if terminal == "closed" else None), "x", level="error")
        assert messages(root) == ["x"]


class TestCaptures:
    def test_a_failed_answer(self, log: FileLog, root: Path) -> None:
        body = {"error": {"message": "größer", "access_token": "abc"}}
        path = captured(log, {"reqId": "req/1", "status": 500, "response": {"json": body}}, "req/1")
        assert path == root / "errors" / f"{int(NOON * 1000)}-req_1.json"
        text = path.read_text()
        assert text.startswith('{\n  "reqId": "req/1",\n  "status": 500,\n')
        assert "größer" in text
        assert json.loads(text)["response"]["json"]["error"]["access_token"] == "[redacted len=3]"

    def test_the_file_is_there_when_the_line_is(self, log: FileLog, root: Path) -> None:
        path = log.capture_error("r1", {"status": 500})
        say(log, "request_failed", errorFile=path)
        assert Path(records(root)[0]["fields"]["errorFile"]).exists()

    def test_switched_off(self, make_log: MakeLog, root: Path) -> None:
        log = make_log(captures=False)
        assert log.capture_error("r1", {"status": 500}) is None and log.close()
        assert not root.exists()

    @pytest.mark.parametrize(
        ("response", "start"),
        [
            *(({"text": letter * count}, letter) for letter, count in (("x", 70_000), ("é", 70_000), ("é", 40_000))),
            ({"json": ["y" * 1_000] * 100}, '{"json":["yyy'),
        ],
    )
    def test_of_a_long_answer_the_start_of_its_text_is_kept(self, log: FileLog, response: Any, start: str) -> None:
        record = {"status": 500, "response": dict(response)}
        kept = json.loads(captured(log, record).read_text())["response"]["text"]
        assert kept.startswith(start) and kept.count("… [+") == 1
        assert 65_000 < len(kept.encode()) <= storage.MAX_RESPONSE_BYTES + 20
        assert record["response"] == response

    def test_at_most_128_files_the_newest(self, log: FileLog, root: Path, clock: Clock) -> None:
        for number in range(140):
            clock.now = NOON + number
            assert log.capture_error(f"r{number}", {"status": 500})
            if number % 20 == 0:
                assert log.flush()
        assert log.close()
        names = sorted(p.name for p in (root / "errors").iterdir())
        assert [name.split("-")[-1] for name in names] == [f"r{number}.json" for number in range(12, 140)]

    def test_a_failed_answer_is_removed_when_it_is_too_old(
        self, make_log: Callable[..., FileLog], root: Path, clock: Clock
    ) -> None:
        log = make_log(kept_errors=Bounds(10, 2**30, DAY_S))
        first = captured(log, {"status": 500})
        clock.now += DAY_S + 1
        say(log, "no further failure is needed")
        assert not first.exists() and first.parent.is_dir()

    def test_failed_answers_have_a_size_together(
        self, make_log: Callable[..., FileLog], root: Path, clock: Clock
    ) -> None:
        log = make_log(kept_errors=Bounds(100, 3_000, 0.0))
        for number in range(6):
            clock.now = NOON + number
            captured(log, {"status": 500, "response": {"text": "word " * 200}}, f"r{number}")
        left = sorted((root / "errors").iterdir())
        assert [path.name.split("-")[-1] for path in left] == ["r4.json", "r5.json"]
        assert sum(path.stat().st_size for path in left) <= 3_000

    def test_foreign_files_stay(self, root: Path) -> None:
        errors = ErrorFiles(root, Bounds(files=1, bytes=2**30))
        (root / "errors").mkdir(parents=True)
        (root / "errors" / "notes.txt").write_text("mine")
        for number in range(3):
            errors.save(errors.path_for(NOON, f"r{number}"), {"status": 500})
        assert sorted(p.name.split("-")[-1] for p in (root / "errors").iterdir()) == ["notes.txt", "r2.json"]

    def test_a_file_that_cannot_be_removed_keeps_no_other(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        errors, unlink = ErrorFiles(root, Bounds(files=1, bytes=2**30)), Path.unlink

        def locked(path: Path, missing_ok: bool = False) -> None:
            if path.name.endswith("r1.json"):
                raise PermissionError(13, "Permission denied")
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", locked)
        for number in range(4):
            errors.save(errors.path_for(NOON + number, f"r{number}"), {"status": 500})
        assert sorted(p.name.split("-")[-1] for p in (root / "errors").iterdir()) == ["r1.json", "r3.json"]

    def test_a_storm_of_failures_is_bounded(self, held: FileLog, gate: Gate, root: Path) -> None:
        paths = [held.capture_error(f"r{number}", {"status": 500}) for number in range(MAX_PENDING_CAPTURES + 3)]
        assert paths[-3:] == [None] * 3
        gate.open.set()
        assert held.flush()
        captured(held, {"status": 500}, "later")
        assert len(list((root / "errors").iterdir())) == MAX_PENDING_CAPTURES + 1


class TestStdlibLog:
    def test_records_go_to_logging(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger="proxy")
        log: Log = StdlibLog()
        for level in ("debug", "info", "warn", "error"):
            log.write(level, "p1", "50% done", code="abc")
        assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO", "WARNING", "ERROR"]
        assert {record.name for record in caplog.records} == {"proxy.p1"}
        assert caplog.messages[0] == '50% done {"code":"[redacted len=3]"}'

    def test_no_fields_and_no_captures(self, caplog: pytest.LogCaptureFixture) -> None:
        StdlibLog().write("warn", "server", "x")
        assert caplog.messages == ["x"]
        assert StdlibLog().capture_error("r1", {"status": 500}) is None

    def test_a_handler_that_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*args: object) -> None:
            raise OSError

        monkeypatch.setattr(logging.Logger, "log", broken)
        StdlibLog(verbose=True).write("error", "server", "x")
