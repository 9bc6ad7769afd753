"""Folders of captures, written by hand: for tests of what reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proxy.core.convert.messages_to_responses import ResponsesOptions, messages_to_responses
from proxy.observe.capture import layout

#: (status, stdout, stderr) of a command line
Run = Callable[..., tuple[int, str, str]]

NOON = 1_787_140_800.0  # 2026-08-19T12:00:00Z


def write_capture(
    state: Path,
    *,
    session: str | None = "s",
    number: int = 1,
    provider: str = "p1",
    request_id: str | None = None,
    kind: str = "messages",
    model: str = "gpt-5.5",
    received: Mapping[str, Any] | None = None,
    sent: Mapping[str, Any] | None = None,
    converted: Mapping[str, Any] | None = None,
    outcome: str | None = "completed",
    status: int | None = 200,
    begun_s: float = NOON,
    headers: Mapping[str, str] | None = None,
    path: str = "/v1/messages",
    events: int = 0,
) -> Path:
    """Writes one capture below the state folder; its folder. What is None is not there."""
    folder = layout.capture_path(state, session, number, provider, request_id or f"{number:08x}-id")
    (folder / layout.EVENTS).mkdir(parents=True)
    metadata = {
        "kind": kind,
        "provider": provider,
        "model": model,
        "requestedModel": model,
        "path": path,
        "query": "",
        "headers": {"content-type": "application/json", **(headers or {})},
    }
    artifacts = [
        (layout.METADATA, metadata),
        (layout.RECEIVED[kind], received),
        (layout.CONVERTED, converted),
        (layout.UPSTREAM_REQUEST, sent),
        (layout.SUMMARY, None if outcome is None else {"outcome": outcome, "status": status}),
    ]
    there = [(station, value) for station, value in artifacts if value is not None]
    for index, (station, value) in enumerate(there, 1):
        (folder / layout.artifact_name(index, station)).write_text(json.dumps(value, indent=2))
    for index in range(1, events + 1):
        (folder / layout.event_name(index, layout.DOWNSTREAM_EVENT)).write_text("{}")
    for file in folder.iterdir():
        os.utime(file, (begun_s, begun_s))
    return folder


def responses_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """What P1 is asked for this request."""
    return messages_to_responses(request, ResponsesOptions("gpt-5.5", cache_key="s"))
