"""A snapshot with one of everything, and the screen as text."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.observe.monitor.snapshot import (
    AgentRow,
    AllowanceRow,
    CacheView,
    Notice,
    RequestRow,
    SessionRow,
    Snapshot,
    Throughput,
)
from proxy.observe.monitor.terminal.cells import Line
from proxy.observe.monitor.terminal.keys import Stage, pressed
from proxy.observe.monitor.terminal.screen import screen
from proxy.observe.monitor.terminal.view import View

NOW = 1_787_140_800.0  # 2026-08-19T12:00:00Z
MAIN = "57c7c914-ada4-4f40-9672-985f950fbb66"

LOST = CacheView(0.31, 0.92, "tools reordered")
AGENTS = (
    AgentRow(None, NOW - 2, active=1, requests=9, provider="p1", requested="gpt-5.6-sol", status="streaming"),
    AgentRow("explore-1", NOW - 9, active=1, requests=3, failures=1, provider="p1", requested="haiku"),
    AgentRow("deep-agent-77", NOW - 9, parent="explore-1", requests=1, provider="p2", requested="kimi-k2.6"),
)


def request(id: str, ago: float, **more: object) -> RequestRow:
    known = {"endpoint": "messages", "status": "completed", "started_at": NOW - ago, "provider": "p1"}
    return RequestRow(id=id, **{**known, **more})  # type: ignore[arg-type]


SNAPSHOT = Snapshot(
    NOW - 3720,
    NOW,
    3720,
    sessions=(
        SessionRow(
            MAIN,
            NOW - 2,
            2,
            13,
            1,
            "p1",
            "claude-sonnet-4-6",
            "gpt-5.6-sol",
            "high",
            "streaming",
            138_100,
            1_800,
            90_000,
            Throughput(1_800, 14.1),
            LOST,
            project="model-proxy",
            history=(5, 0, 900, 3_000, 4_000),
            agents=AGENTS,
        ),
        SessionRow("cursor-session", NOW - 20, 0, 2, 1, "p5", "auto", status="failed", project="日本語プロジェクト名"),
        SessionRow(None, NOW - 1, 1, 2, status="started"),
    ),
    active=(
        request("r1", 21, status="streaming", session=MAIN, elapsed=21.0, throughput=Throughput(955, 17.1)),
        request("r2", 6, status="compacting", session=MAIN, elapsed=6.0),
    ),
    recent=(
        request(
            "req-9", 18, finished_at=NOW - 14, elapsed=4.2, session=MAIN, http=200, input_tokens=125_600, cache=LOST
        ),
        request("req-8", 40, finished_at=NOW - 40, status="failed", http=502, error="connection closed " * 12),
        request("req-6", 99, endpoint="images", finished_at=NOW - 80, http=200, throughput=Throughput(4_000, 0.6)),
        request("req-5", 300, finished_at=NOW - 290, status="abandoned", error="The client left"),
    ),
    allowances=(
        AllowanceRow("p1", "5 hours", 62, NOW - 60, "", NOW + 7_800),
        AllowanceRow("p2", "Weekly", 97, NOW - 60, "", NOW + 260_000),
    ),
    notices=(Notice(NOW - 30, "warn", "97 % of the weekly allowance is used", "p2"),),
    program="model-proxy 1.0",
    url="http://127.0.0.1:18765",
)


def after(
    keys: Iterable[str], view: View | None = None, snapshot: Snapshot = SNAPSHOT, size: tuple[int, int] = (120, 40)
) -> View:
    """The view after these keys."""
    view = view or View(setup=("a line of the set-up",))
    for key in keys:
        view, _ = pressed(view, key, Stage(snapshot, *size, NOW))
    return view


def text_of(lines: Iterable[Line]) -> list[str]:
    return ["".join(run.text for run in line) for line in lines]


def shown(view: View, snapshot: Snapshot = SNAPSHOT, size: tuple[int, int] = (120, 40)) -> list[str]:
    return text_of(screen(snapshot, view, *size, NOW))
