"""Hands messages from the event loop to the writing process: a bounded queue, one thread that empties it into a pipe,
and the process, started with the first message and again when it dies."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proxy.core.hiding.walk import MAX_CAPTURE_DEPTH
from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.capture.writing.worker import PROGRAM, frame
from proxy.observe.capture.writing.writer import Report

Message = tuple[Any, ...]

#: Messages and bytes that wait for the thread. Two of the largest requests fit, each with what is sent upstream.
MAX_WAITING = 65_536
MAX_WAITING_BYTES = 256 * 1024 * 1024

#: Bytes of one frame.
_BATCH = 1024
_BATCH_BYTES = 1024 * 1024

#: Seconds that the thread waits for more: a request sends a hundred messages within milliseconds.
_LINGER_S = 0.1

#: Restarts of the process, at most.
MAX_RESTARTS = 3


class Channel:
    """Hands messages to a process of its own.

    report   gets what the process reports, `captures_incomplete` for the first message without room, and
             `captures_off` when the process cannot be kept alive
    command  starts the process, in place of ours in tests
    """

    def __init__(self, root: Path, limits: CaptureLimits, report: Report, *, command: list[str] | None = None) -> None:
        self._command = command or worker_command(root, limits)
        self._report = report
        self._waiting: deque[tuple[Message, int]] = deque()
        self._put_bytes = self._taken_bytes = 0  # one is changed on the loop only, the other in the thread only
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._idle = True
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self._restarts = 0
        self._closing = False
        #: Whether messages are taken.
        self.on = True
        self._warned = False

    # On the event loop.

    def send(self, message: Message, size: int) -> bool:
        """Puts a message into the queue; False when there is no room. One of size 0 always finds some."""
        if not self.on:
            return False
        held = self._put_bytes - self._taken_bytes
        if size and (len(self._waiting) >= MAX_WAITING or held + size > MAX_WAITING_BYTES):
            if not self._warned:
                self._warned = True
                self._report("warn", "captures_incomplete", {"reason": "they come faster than they can be written"})
            return False
        self._put_bytes += size
        self._waiting.append((message, size))
        if self._idle:
            self._idle = False
            self._wake.set()
            if self._thread is None:
                self._start()
        return True

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="proxy-captures", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self.on = False  # no more threads
            return
        self._thread = thread

    # At the end: waits, so not on the event loop.

    def close(self, timeout: float) -> bool:
        """Hands over what waits and ends the process, within so many seconds; False when not all was written."""
        deadline = time.monotonic() + timeout
        self.on = False
        self._closing = True
        self._urgent.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
        whole = not self._waiting
        process = self._process
        if process is not None:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                whole = False
                self._restarts = MAX_RESTARTS
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(0.2)
        return whole

    # In the thread.

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._urgent.wait(_LINGER_S)
            self._wake.clear()
            self._idle = True
            while batch := self._take():
                self._hand_over(batch)
            if self._closing and not self._waiting:
                break
        self._end_input()

    def _take(self) -> list[tuple[Message, int]]:
        batch: list[tuple[Message, int]] = []
        size = 0
        while self._waiting and len(batch) < _BATCH and size < _BATCH_BYTES:
            message = self._waiting.popleft()
            batch.append(message)
            size += message[1]
        self._taken_bytes += size
        return batch

    def _hand_over(self, batch: list[tuple[Message, int]]) -> None:
        """Writes a batch to the process, which is started if there is none. Captures that an earlier process had open
        stay as they are."""
        pieces = _frame(batch)
        while self.on or self._closing:
            try:
                self._write(pieces)
            except (OSError, RuntimeError) as error:  # RuntimeError: no more threads
                if not self._restart(error):
                    return
            else:
                return

    def _write(self, pieces: list[Any]) -> None:
        process = self._process
        if process is None:
            process = self._new_process()
        if process.stdin is None:
            raise BrokenPipeError
        for piece in pieces:
            process.stdin.write(piece)
        process.stdin.flush()

    def _new_process(self) -> subprocess.Popen[bytes]:
        """Starts it outside the terminal's process group: Ctrl-C is for the server, which still has messages to
        send."""
        process = subprocess.Popen(  # noqa: S603  our own program
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process = process
        reader = threading.Thread(target=_pass_on, args=(process, self._report), daemon=True)
        try:
            reader.start()
        except RuntimeError:
            if process.stdout is not None:
                process.stdout.close()
            raise
        self._readers.append(reader)
        return process

    def _restart(self, error: Exception) -> bool:
        """Whether another process may be tried."""
        process, self._process = self._process, None
        if process is not None:
            _discard(process)
        if self._restarts < MAX_RESTARTS:
            self._restarts += 1
            return True
        self.on = False
        if not self._closing:
            self._waiting.clear()
            self._report("warn", "captures_off", {"reason": "the process that writes them ended", "error": str(error)})
        return False

    def _end_input(self) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:
                pass


def worker_command(root: Path, limits: CaptureLimits) -> list[str]:
    """The command: our interpreter with our modules, without additions of the user's environment."""
    paths = [
        str(Path(__file__).parents[4]),
        *map(str, sys.path),
    ]  # a package that is developed may be found by a hook only
    numbers = (limits.total_bytes, limits.total_files, limits.bytes, limits.files, limits.age_s)
    return [sys.executable or "python3", "-I", "-S", "-c", PROGRAM, json.dumps(paths), str(root), *map(str, numbers)]


def _frame(batch: list[tuple[Message, int]]) -> list[Any]:
    """The batch for the pipe; a word replaces a value that cannot be marshalled."""
    try:
        return frame(batch)
    except ValueError:
        return frame([(_plain(message, 0), size) for message, size in batch])


def _plain(value: Any, depth: int) -> Any:
    """A value of plain types: foreign mappings as dicts, of what is no data its kind."""
    if isinstance(value, Mapping | list | tuple) and depth > MAX_CAPTURE_DEPTH:
        return "[depth-limit]"
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_plain(inner, depth + 1) for inner in value)
    if value is None or isinstance(value, bool):
        return value
    plain = next((kind for kind in (str, bytes, int, float) if isinstance(value, kind)), None)
    return plain(value) if plain else f"[{type(value).__name__}]"  # not one of a class that is derived from it


def _discard(process: subprocess.Popen[bytes]) -> None:
    """Ends a process. The thread that reads its reports closes them."""
    process.kill()
    process.wait()
    try:
        if process.stdin is not None:
            process.stdin.close()
    except OSError:
        pass


def _pass_on(process: subprocess.Popen[bytes], report: Report) -> None:
    """Forwards the reports of the process until it ends, or to a cut line when it was killed."""
    if process.stdout is None:
        return
    with process.stdout as lines, contextlib.suppress(ValueError):
        for line in lines:
            level, msg, fields = json.loads(line)
            report(level, msg, fields)
