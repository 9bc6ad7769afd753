"""Expected screens: `tests/vectors/monitor/<name>.txt` is the demo at one moment, after some keys, in one size. One of
them is a picture as well, that of the README."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from proxy.observe.history.demo import write_demo
from proxy.observe.history.overview import overview
from proxy.observe.history.overview_rows import overview_rows
from proxy.observe.history.schema import reading
from proxy.observe.monitor.demo import Demo
from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import Line
from proxy.observe.monitor.terminal.keys import Stage, pressed
from proxy.observe.monitor.terminal.screen import screen
from proxy.observe.monitor.terminal.times import TIMES, Time
from proxy.observe.monitor.terminal.view import ShownHistory, View

from .screen_picture import picture

FOLDER = Path(__file__).parents[3] / "vectors" / "monitor"
PICTURE = Path(__file__).parents[4] / "docs" / "monitor.svg"
NOON = 1_787_140_800.0  # 2026-08-19T12:00:00Z
SETUP = ("model-proxy listens on mock://tui-demo", "", "export ANTHROPIC_BASE_URL=" + "http://127.0.0.1:18765/" * 4)

#: Name -> columns, rows, keys.
CASES = {
    "overview-20x5": (20, 5, ""),
    "overview-60x16": (60, 16, ""),
    "overview-80x24": (80, 24, ""),
    "overview-100x30": (100, 30, ""),
    "overview-120x40": (120, 40, ""),
    "overview-200x60": (200, 60, ""),
    "agents-120x40": (120, 40, "space down down"),
    "session-detail-120x40": (120, 40, "enter"),
    "session-detail-scrolled-80x24": (80, 24, "enter page_down"),
    "request-detail-120x40": (120, 40, "tab j enter"),
    "by-tokens-filtered-120x40": (120, 40, "s s s / p 1"),
    "help-80x24": (80, 24, "?"),
    "setup-80x24": (80, 24, "b"),
    "allowances-120x40": (120, 40, "a"),
    "history-20x5": (20, 5, "h page_down"),
    "history-80x24": (80, 24, "h"),
    "history-scrolled-80x24": (80, 24, "h end"),
    "history-today-120x40": (120, 40, "h 1"),
    "history-30-days-200x60": (200, 60, "h right"),
    "history-90-days-100x30": (100, 30, "h 4"),
    "quit-120x40": (120, 40, "q"),
}


def outputs() -> dict[Path, str]:
    """File -> the screen as text."""
    with in_utc():
        (snapshot, now), past = demo(), histories()
        texts = {FOLDER / f"{name}.txt": _text(_drawn(snapshot, past, now, *case)) for name, case in CASES.items()}
        lines = _drawn(snapshot, past, now, 100, 30, "space")
        return texts | {PICTURE: picture(lines, "The monitor on a terminal, with simulated traffic")}


def stale() -> list[Path]:
    """Files that no case makes."""
    return [path for path in sorted(FOLDER.glob("*")) if path.stem not in CASES]


def demo() -> tuple[Snapshot, float]:
    """The demo, seven seconds after its start."""
    passed = 0.0
    simulated = Demo(clock=lambda: passed, wall=lambda: NOON + passed)
    passed = 7.0
    return simulated.snapshot(), NOON + passed


@cache
def histories() -> Mapping[Time, ShownHistory]:
    """The history of the demo, as it is at its start. Asked for within `in_utc`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "history.db")
        write_demo(path, NOON)
        with reading(path) as db:
            found = {time: overview(db, division.edges(NOON), NOON) for time, division in TIMES.items()}
    return {time: ShownHistory(overview_rows(one)) for time, one in found.items()}


def _drawn(
    snapshot: Snapshot, past: Mapping[Time, ShownHistory], now: float, columns: int, rows: int, keys: str
) -> list[Line]:
    view = View(setup=SETUP)
    for key in keys.split():
        view, _ = pressed(view, " " if key == "space" else key, Stage(snapshot, columns, rows, now))
        view = replace(view, history=past[view.time])
    return screen(snapshot, view, columns, rows, now)


def _text(lines: Iterable[Line]) -> str:
    return "".join("".join(run.text for run in line) + "\n" for line in lines)


@contextmanager
def in_utc() -> Iterator[None]:
    """The screen shows the local time."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()
