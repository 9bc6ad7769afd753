"""The captures of the program: in files below the state folder, written by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proxy.observe.capture.contract import NULL_CAPTURE, CapturedRequest, RequestCapture
from proxy.observe.capture.writing.channel import Channel
from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.capture.writing.told import ToldCaptures
from proxy.observe.lifecycle import Log


class FolderCaptures:
    """Captures in `<state_root>/traffic`. See `proxy.observe.capture.contract.Captures`.

    Nothing is started before the first request. What fails, or finds no room, is told to the log, each kind once.
    """

    def __init__(self, state_root: Path, limits: CaptureLimits, log: Log) -> None:
        self._log = log
        self._channel = Channel(state_root, limits, self._report)
        self._captures = ToldCaptures(state_root, self._channel.tell)

    @property
    def on(self) -> bool:
        return self._channel.on

    def begin(self, request: CapturedRequest) -> RequestCapture:
        return (self._captures.begin(request) if self._channel.on else None) or NULL_CAPTURE

    def close(self, timeout: float) -> bool:
        """Writes what waits, for at most so many seconds; False when something was lost. Blocks."""
        whole = self._channel.close(timeout)
        if not whole:
            self._report("warn", "captures_cut", {"reason": f"they were not written within {timeout:g} s"})
        return whole

    def _report(self, level: str, msg: str, fields: dict[str, Any]) -> None:
        self._log.write(level, "captures", msg, **fields)
