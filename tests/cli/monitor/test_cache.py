"""The table of caches, as text and as JSON, from a proxy that runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.cli.command import Context
from proxy.cli.monitor import cache
from proxy.cli.monitor.running_proxy import fetch_snapshot
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.monitor.snapshot import AgentRow, CacheView, SessionRow, Snapshot

LOST = CacheView(0.1, 0.95, "the tool `Bash`\x1b changed")
AGENTS = (
    AgentRow(None, 2.0, requests=12, input_tokens=300_000, cached_tokens=240_000, cache=LOST),
    AgentRow("agent-1234567", 2.0, requests=1, input_tokens=2_000, cache=CacheView(0.0)),
)
SNAPSHOT = Snapshot(
    1.0,
    2.0,
    1.0,
    sessions=(
        SessionRow("01234567-89ab-cdef", 2.0, project="repo\x07", agents=AGENTS),
        SessionRow(None, 1.0, requests=3, input_tokens=900),
        SessionRow(
            "without-agents", 1.5, requests=2, input_tokens=2_000, cached_tokens=1_000, cache=CacheView(0.8, 0.9)
        ),
    ),
)
TABLE = """\
session           agent     requests  input  cached  newest  expected  reason
01234567 (repo?)  main            12   300k     80%     10%       95%  the tool `Bash`? changed
01234567 (repo?)  agent-12         1   2.0k      0%      0%         -
without-          main             2   2.0k     50%     80%       90%
no-session        main             3    900       -       -         -
"""


@pytest.mark.parametrize(
    ("snapshot", "options", "out"),
    [
        (SNAPSHOT, [], TABLE),
        (Snapshot(1.0, 2.0, 1.0), [], "no request was served since the proxy was started\n"),
        (Snapshot(1.0, 2.0, 1.0), ["--json"], "[]\n"),
    ],
)
async def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot, options: list[str], out: str
) -> None:
    assert await run(tmp_path, snapshot, options) == 0
    assert capsys.readouterr().out == out


async def test_json_has_the_whole_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await run(tmp_path, SNAPSHOT, ["--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["session"], row["agent"]) for row in rows][1] == ("01234567-89ab-cdef", "agent-1234567")
    assert (rows[0]["cached"], rows[0]["newest"], rows[0]["expected"]) == (0.8, 0.1, 0.95)
    assert rows[3]["cached"] is rows[3]["newest"] is None


async def run(tmp_path: Path, snapshot: Snapshot, options: list[str]) -> int:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=SnapshotEncoder().encode(snapshot), content_type="application/json")

    app = web.Application()
    app.router.add_get("/monitor", answer)
    context = Context({"HOME": str(tmp_path)})
    parser = argparse.ArgumentParser()
    cache.arguments(parser, context)
    async with TestServer(app) as server:
        arguments = parser.parse_args([*options, "--url", f"127.0.0.1:{server.port}"])
        assert await fetch_snapshot(context, arguments.url) == snapshot
        return await cache.run(arguments, context)
