"""Asking a proxy that runs: what is sent, and what is said when nobody, or somebody else, answers."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.cli.command import Context
from proxy.cli.monitor import running_proxy
from proxy.cli.monitor.running_proxy import fetch_snapshot
from proxy.errors import ProxyError
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.monitor.snapshot import SessionRow, Snapshot

SNAPSHOT = Snapshot(started_at=1.0, snapshot_at=2.0, uptime=1.0, sessions=(SessionRow("s", 1.5),))


@asynccontextmanager
async def answering(answer: web.Response) -> AsyncIterator[tuple[TestServer, list[web.Request]]]:
    asked: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request)
        return answer

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    async with TestServer(app) as server:
        yield server, asked


def context(tmp_path: Path, **environment: str) -> Context:
    return Context({"HOME": str(tmp_path), "HTTP_PROXY": "http://192.0.2.1:9", **environment}, program="mp")


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        (None, "/monitor"),
        ("http://127.0.0.1:{port}", "/monitor"),
        ("127.0.0.1:{port}", "/monitor"),
        ("http://127.0.0.1:{port}/monitor/?a=b#c", "/monitor"),
        ("http://127.0.0.1:{port}/llm/", "/llm/monitor"),
    ],
)
async def test_an_address_is_completed_and_asked_directly(tmp_path: Path, typed: str | None, path: str) -> None:
    async with answering(web.Response(body=SnapshotEncoder().encode(SNAPSHOT), content_type="application/json")) as (
        server,
        asked,
    ):
        own = context(tmp_path, PROXY_PORT=str(server.port))
        assert await fetch_snapshot(own, [typed.format(port=server.port)] if typed else []) == SNAPSHOT
    assert [request.path for request in asked] == [path]
    assert "Authorization" not in asked[0].headers


@pytest.mark.parametrize(("user", "sent"), [("", "Bearer own"), ("me:other@", "Bearer other")])
async def test_the_callers_key_is_sent(tmp_path: Path, user: str, sent: str) -> None:
    async with answering(web.Response(body=SnapshotEncoder().encode(SNAPSHOT), content_type="application/json")) as (
        server,
        asked,
    ):
        await fetch_snapshot(context(tmp_path, PROXY_API_KEY="own"), [f"http://{user}127.0.0.1:{server.port}"])
    assert asked[0].headers["Authorization"] == sent


OLDER = {"version": 7, "snapshot": dataclasses.asdict(SNAPSHOT)}
ANSWERS: list[tuple[web.Response, str]] = [
    (web.json_response({"error": {"message": "wants\x1b its key"}}, status=401), "refuses: wants its key"),
    (web.Response(text="<h1>no</h1>", status=403), "refuses: status 403"),
    (web.json_response({}, status=404), "no model-proxy, or an older one. Start one with `mp`"),
    (web.Response(status=302, headers={"Location": "http://192.0.2.1/"}), "answers with status 302"),
    (web.Response(text="hello"), "something else than a monitor"),
    (web.Response(body=b"[" * 200), "something else than a monitor"),
    (web.json_response(OLDER), "version 7 of the monitor, this program reads 1"),
]


@pytest.mark.parametrize(("answer", "said"), ANSWERS)
async def test_an_answer_that_is_no_snapshot_is_explained(tmp_path: Path, answer: Any, said: str) -> None:
    async with answering(answer) as (server, _):
        with pytest.raises(ProxyError) as raised:
            await fetch_snapshot(context(tmp_path), [f"127.0.0.1:{server.port}"])
    assert said in raised.value.message


EDGES = (1_800_000_000.0, 1_800_086_400.0)


async def test_the_history_is_asked_for_with_its_edges(tmp_path: Path) -> None:
    async with (
        answering(web.json_response({"version": 1})) as (server, asked),
        running_proxy.running_proxies(context(tmp_path), [f"http://u:k@127.0.0.1:{server.port}/llm"]) as proxy,
    ):
        assert await proxy.history(EDGES) == {"version": 1}
    assert (asked[0].path, asked[0].query["edges"]) == ("/llm/monitor/history", "1800000000,1800086400")
    assert asked[0].headers["Authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            web.json_response({"error": {"message": "no history is kept: \x1bit is off"}}, status=404),
            "no history is kept",
        ),
        (web.json_response({}, status=404), "no model-proxy, or an older one"),
        (web.Response(status=500), "answers with status 500"),
        (web.Response(text="hello"), "something else than a history"),
        (web.Response(body=b"[" * 200_000), "something else than a history"),
    ],
)
async def test_an_answer_that_is_no_history_is_explained(tmp_path: Path, answer: Any, said: str) -> None:
    async with (
        answering(answer) as (server, _),
        running_proxy.running_proxies(context(tmp_path), [f"127.0.0.1:{server.port}"]) as proxy,
    ):
        with pytest.raises(ProxyError) as raised:
            await proxy.history(EDGES)
    assert said in raised.value.message and raised.value.message.isprintable()


async def test_an_endless_answer_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_proxy, "MAX_ANSWER_BYTES", 1000)
    async with answering(web.Response(text=" " * 5000 + "{}")) as (server, _):
        with pytest.raises(ProxyError, match="something else than a monitor"):
            await fetch_snapshot(context(tmp_path), [f"127.0.0.1:{server.port}"])


async def test_nobody_answers(tmp_path: Path) -> None:
    async with answering(web.Response()) as (server, _):
        port = server.port
    with pytest.raises(ProxyError) as raised:
        await fetch_snapshot(context(tmp_path, PROXY_PORT=str(port)))
    message = raised.value.message
    assert (
        f"no proxy answers at http://127.0.0.1:{port}/monitor: Connection refused. " in message
        and "or name the address" in message
    )


@pytest.mark.parametrize("typed", ["ftp://a", "http://", "http://a:99999", "http://[1", "http://a:0"])
async def test_what_is_no_address_is_refused(tmp_path: Path, typed: str) -> None:
    with pytest.raises(ProxyError, match="is no address of a proxy"):
        await fetch_snapshot(context(tmp_path), [typed])


def shown(name: str) -> web.Response:
    """The answer of a proxy with a session."""
    snapshot = dataclasses.replace(SNAPSHOT, sessions=(SessionRow(name, 1.5),))
    return web.Response(body=SnapshotEncoder().encode(snapshot), content_type="application/json")


async def test_several_are_shown_as_one(tmp_path: Path) -> None:
    async with answering(shown("s")) as (first, _), answering(shown("t")) as (second, _):
        both = await fetch_snapshot(context(tmp_path), [f"127.0.0.1:{server.port}" for server in (first, second)])
    assert [row.id for row in both.sessions] == ["s", "t"] and not both.notices


async def test_one_of_several_that_is_down_is_an_event(tmp_path: Path) -> None:
    async with answering(shown("s")) as (up, _):
        async with answering(web.Response()) as (down, _):
            urls = [f"127.0.0.1:{server.port}" for server in (down, up)]
        found = await fetch_snapshot(context(tmp_path), urls)
    assert [row.id for row in found.sessions] == ["s"]
    (notice,) = found.notices
    assert notice.level == "error" and f"no proxy answers at http://{urls[0]}/monitor" in notice.message
    with pytest.raises(ProxyError, match=urls[0]):
        await fetch_snapshot(context(tmp_path), urls)


async def test_the_history_is_that_of_the_first_that_answers(tmp_path: Path) -> None:
    async with answering(web.json_response({"version": 1})) as (server, _):
        async with answering(web.Response()) as (gone, _):
            urls = [f"127.0.0.1:{one.port}" for one in (gone, server)]
        async with running_proxy.running_proxies(context(tmp_path), urls) as proxies:
            assert await proxies.history(EDGES) == {"version": 1}
