"""The part of the log that the terminal shows."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

#: Levels that are always shown.
LOUD = frozenset({"warn", "error"})
#: The level of lines that are for the terminal alone.
TERMINAL = "terminal"

#: Warnings that are remembered as shown.
MAX_REMEMBERED = 500
#: Fields that are useless on the terminal, or already in the line of the request.
_HIDDEN = frozenset({"reqId", "endpoint", "ms", "capture", "errorFile", "places"})
#: Records that repeat the line of the request.
_IN_THE_LINE = frozenset({"request_failed", "unknown model"})
#: Suffix of the records of failed attempts; an attempt that is not retried is the failure of its request.
_ATTEMPT = "_upstream_request_failed"
#: Services that already warn once for each occurrence: a file may be mended and broken again in the same way.
_ONCE_ALREADY = frozenset({"config"})
_WORDS = {"warn": "warning", "error": "error"}


class TerminalCopy:
    """Writes lines to `stream` (stderr when None): warnings and errors, or with `everything` all of them.

    plain  for a person reading along: each warning once, as a sentence in place of JSON, and no failed requests, which
           have lines of their own
    """

    def __init__(self, stream: TextIO | None, *, everything: bool, plain: bool = False) -> None:
        self._stream = stream
        self._everything = everything
        self._form: Callable[[str, str], str] = _Sentences().of if plain else _as_it_is
        self._suppressed = 0
        self._lock = threading.Lock()

    def suppress(self, change: int) -> None:
        """Waits for a line being shown, but for no longer than a second: a terminal may be stuck."""
        held = self._lock.acquire(timeout=1.0)
        self._suppressed += change
        if held:
            self._lock.release()

    def show(self, lines: list[tuple[str, str]]) -> None:
        """Lines as (level, text with its line end)."""
        text = "".join(
            self._form(level, line) for level, line in lines if self._everything or level in LOUD or level == TERMINAL
        )
        if not text:
            return
        with self._lock:
            stream = self._stream or sys.stderr
            if self._suppressed or stream is None:
                return
            with suppress(Exception):  # closed, broken pipe, an encoding that lacks a character
                stream.write(text)
                stream.flush()


def _as_it_is(_level: str, line: str) -> str:
    return line


class _Sentences:
    """Records as sentences, each kind of warning once."""

    def __init__(self) -> None:
        self._shown: dict[str, None] = {}

    def of(self, level: str, line: str) -> str:
        if level == TERMINAL:
            return line
        record = json.loads(line)
        said = _sentence(record)
        if not said or (said in self._shown and record["service"] not in _ONCE_ALREADY):
            return ""
        if len(self._shown) >= MAX_REMEMBERED:
            self._shown.clear()
        self._shown[said] = None
        return f"{time.strftime('%H:%M:%S')}  {said}\n"


def _sentence(record: dict[str, Any]) -> str:
    """The record as a sentence; "" for what another line says already.

    >>> _sentence({"level": "warn", "service": "auth", "msg": "sign-in refused", "fields": {"provider": "p1"}})
    'warning: auth: sign-in refused (provider: p1)'
    """
    level, service, msg = record["level"], record["service"], record["msg"]
    fields = record.get("fields") or {}
    if msg in _IN_THE_LINE or (str(msg).endswith(_ATTEMPT) and fields.get("retryInS") is None):
        return ""
    shown = {name: value for name, value in fields.items() if value is not None and name not in _HIDDEN}
    more = ", ".join(f"{name}: {_rounded(name, value)}" for name, value in shown.items())
    words = str(msg).replace("_", " ") if str(msg).isidentifier() else msg
    return f"{_WORDS.get(level, level)}: {service}: {words}" + (f" ({more})" if more else "")


def _rounded(name: str, value: object) -> object:
    """Rounds seconds to one decimal: a random wait has sixteen."""
    return f"{value:.1f}" if name.endswith("S") and isinstance(value, float) else value
