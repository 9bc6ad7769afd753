"""Selects the captures that a user names."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.command import APP, Context
from proxy.cli.paths import state_root
from proxy.cli.printable import cut
from proxy.config import ConfigError
from proxy.errors import PROGRAM
from proxy.observe.capture.layout import METADATA, SUMMARY, TRAFFIC
from proxy.observe.capture.reading.folder import CaptureFolder, capture_at, captures_in

#: Captures listed when a prefix fits several.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a capture, from its metadata and summary; "" and None where those do not say."""

    capture: CaptureFolder
    kind: str
    requested: str
    model: str
    outcome: str
    status: int | None
    agent: str

    @property
    def failed(self) -> bool:
        return self.outcome != "completed"


def head_of(capture: CaptureFolder) -> Head:
    metadata, summary = capture.read_object(METADATA), capture.read_object(SUMMARY)
    status = summary.get("status")
    headers = metadata.get("headers")
    agents = [name for name in headers if "agent-id" in name.lower()] if isinstance(headers, dict) else []
    return Head(
        capture,
        kind=_text(metadata.get("kind")),
        requested=_text(metadata.get("requestedModel")),
        model=_text(metadata.get("model")),
        outcome=_text(summary.get("outcome")) or "unfinished",
        status=status if isinstance(status, int) else None,
        agent=_text(headers[agents[0]]) if isinstance(headers, dict) and agents else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def folder_of(arguments: argparse.Namespace, context: Context) -> Path:
    """The folder of captures."""
    return arguments.folder or state_root(context.environment) / TRAFFIC


def all_of(folder: Path) -> list[CaptureFolder]:
    """All captures, oldest first. Raises ConfigError when there are none."""
    found = captures_in(folder)
    if not found:
        raise ConfigError(f"no captures in {folder}: they are kept while {APP} runs with PROXY_TRAFFIC_LOG=1")
    return found


def named(name: str, captures: Sequence[CaptureFolder]) -> CaptureFolder:
    """The capture with this prefix of its request id or folder, or this path. Raises ConfigError."""
    if "/" in name or "\\" in name:
        capture = capture_at(Path(name).absolute())
        if capture is None or not capture.path.is_dir():
            raise ConfigError(f"{cut(name, 200)}: not the folder of a capture")
        return capture
    fitting = [one for one in captures if name and (one.request_id.startswith(name) or one.path.name.startswith(name))]
    whole = [one for one in fitting if one.request_id == name]
    if len(whole or fitting) == 1:
        return (whole or fitting)[0]
    if not fitting:
        raise ConfigError(f"no capture begins with {cut(name, 200)!r}: `{PROGRAM} captures list` shows their ids")
    ids = ", ".join(f"{one.session}/{one.path.name}" for one in fitting[:_NAMED])
    more = f" and {len(fitting) - _NAMED} more" if len(fitting) > _NAMED else ""
    raise ConfigError(f"{cut(name, 200)!r} fits several captures: {ids}{more}")


def chosen(name: str | None, arguments: argparse.Namespace, context: Context) -> CaptureFolder:
    """The capture of this name, the newest without one. Raises ConfigError."""
    if name is not None and ("/" in name or "\\" in name):
        return named(name, ())
    captures = all_of(folder_of(arguments, context))
    return captures[-1] if name is None else named(name, captures)


def of_session(session: str | None, captures: Iterable[CaptureFolder]) -> list[CaptureFolder]:
    """The captures whose session has this prefix; all without one."""
    return [one for one in captures if one.session.startswith(session or "")]


def older_than(seconds: float | None, captures: Iterable[CaptureFolder]) -> list[CaptureFolder]:
    """The captures that began longer ago; all without an age."""
    if seconds is None:
        return [*captures]
    limit = time.time() - seconds
    return [one for one in captures if one.begun_s < limit]
