"""Captures that are written as they are told, and what is then in the folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proxy.observe.capture.contract import CapturedRequest, RequestCapture
from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.capture.writing.queued import QueuedCaptures
from proxy.observe.capture.writing.writer import CaptureWriter

PLENTY = CaptureLimits(2**40, 2**30, 2**40, 2**30)


class Time:
    """A clock that goes on by a tenth of a second with each look."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


class Written:
    """Captures below a folder, written at once; `reports` is what the log would be told."""

    def __init__(self, root: Path, limits: CaptureLimits = PLENTY, wall: Callable[[], float] = time.time) -> None:
        self.root = root
        self.time = Time()
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.writer = CaptureWriter(
            root, limits, lambda _level, what, more: self.reports.append((what, more)), self.time, wall
        )
        self.captures = QueuedCaptures(root, lambda message, _size: self.writer.take(message) or True, Time())

    def begin(self, **members: Any) -> RequestCapture:
        capture = self.captures.begin(request(**members))
        assert capture is not None
        return capture


def request(**members: Any) -> CapturedRequest:
    """A request of a session, ready to be captured; `members` replace parts of it."""
    given: dict[str, Any] = {
        "request_id": "req-1",
        "kind": "messages",
        "provider": "p1",
        "requested": "gpt-5.5",
        "model": "gpt-5.5",
        "effort": "high",
        "session": "s",
        "number": 1,
        "method": "POST",
        "path": "/v1/messages",
        "query": "",
        "headers": {"content-type": "application/json"},
        "body": b'{"model":"gpt-5.5","messages":[]}',
    }
    return CapturedRequest(**given | members)


def attempt(capture: RequestCapture, body: bytes | Mapping[str, Any] = b'{"input":[]}', **members: Any) -> Any:
    given: dict[str, Any] = {
        "transport": "http",
        "method": "POST",
        "url": "https://upstream.test/responses",
        "headers": {"authorization": "Bearer abcdefgh"},
        "body": body,
    }
    return capture.attempt(**given | members)


def files(capture: RequestCapture) -> dict[str, Any]:
    """Artifacts by name, those in JSON parsed."""
    assert capture.place is not None
    return dict(_files(Path(capture.place)))


def _files(folder: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            yield name, json.loads(data) if path.suffix == ".json" else data


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
