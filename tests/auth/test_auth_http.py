"""The POST to an issuer: bounds, no redirects, no reuse of connections, and the one retry that is harmless."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.auth import http
from proxy.auth.http import IssuerFailure, TokenClient, TokenResponse
from proxy.core.secret import Secret

Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/token"))

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
async def client() -> AsyncIterator[TokenClient]:
    async with aiohttp.ClientSession() as session:
        yield TokenClient("p1", session)
        assert not session.closed


def answer(status: int, data: dict[str, Any], text: str = "") -> TokenResponse:
    return TokenResponse(status, text, data)


async def test_form_and_json_are_sent_and_answers_read(client: TokenClient, serve: Serve) -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.content_type, await request.text(), request.headers["Connection"]))
        return web.json_response({"access_token": "SECRET"}, status=201, headers={"Retry-After": "7"})

    url = await serve(handler)
    got = await client.post_form(url, {"a": "1 &", "b": "2"})
    await client.post_json(url, {"a": 1})
    assert (got.ok, got.status, got.data, got.retry_after) == (True, 201, {"access_token": "SECRET"}, 7.0)
    assert "SECRET" not in repr(got)
    assert seen == [
        ("application/x-www-form-urlencoded", "a=1+%26&b=2", "close"),
        ("application/json", '{"a": 1}', "close"),
    ]


async def test_connections_are_not_used_twice(client: TokenClient, serve: Serve) -> None:
    peers = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.json_response({})

    url = await serve(handler)
    for _ in range(3):
        await client.post_form(url, {})
    assert len(peers) == 3


async def test_redirect_is_an_answer(client: TokenClient, serve: Serve) -> None:
    paths = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    got = await client.post_form(await serve(handler), {"code": "x"})
    assert (got.status, got.ok, paths) == (307, False, ["/token"])


async def test_sizes_are_bounded(client: TokenClient, serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=int((await request.post())["status"]), body=b"x" * 2_000_000)  # type: ignore[arg-type]

    url = await serve(handler)
    got = await client.post_form(url, {"status": "500"})
    assert len(got.text) == http.MAX_ERROR_BYTES
    assert len(got.reason()) < 500
    with pytest.raises(IssuerFailure, match="longer than 1048576 bytes"):
        await client.post_form(url, {"status": "200"})


@pytest.mark.parametrize("body", ["", "<html>", "[1]", "[" * 100_000, "\ufeff{}"])
async def test_other_bodies_have_no_data(client: TokenClient, serve: Serve, body: str) -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text=body)

    assert (await client.post_form(await serve(handler), {})).data == {}


async def test_refused_connection_is_tried_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/token"
    tries = []

    async def count(*_: object) -> None:
        tries.append(1)

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(count)
    async with aiohttp.ClientSession(trace_configs=[trace]) as session:
        with pytest.raises(IssuerFailure) as caught:
            await TokenClient("p1", session).post_form(url, {})
    assert len(tries) == 2 and not caught.value.sent
    assert (caught.value.status, caught.value.provider) == (503, "p1")


async def test_connection_lost_after_sending_is_not_tried_again(client: TokenClient, serve: Serve) -> None:
    requests = []

    async def handler(request: web.Request) -> web.Response:
        requests.append(1)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    with pytest.raises(IssuerFailure) as caught:
        await client.post_form(await serve(handler), {})
    assert len(requests) == 1 and caught.value.sent


async def test_silent_issuer_is_given_up(serve: Serve) -> None:
    stop = asyncio.Event()
    requests = []

    async def handler(_request: web.Request) -> web.Response:
        requests.append(1)
        await stop.wait()
        return web.Response()

    url = await serve(handler)
    async with aiohttp.ClientSession() as session:
        impatient = TokenClient("p1", session, timeout=aiohttp.ClientTimeout(total=0.05))
        with pytest.raises(IssuerFailure):
            await impatient.post_form(url, {})
    stop.set()
    assert len(requests) == 1


def test_time_limits() -> None:
    assert (http.TIMEOUT.connect, http.TIMEOUT.total) == (15.0, 30.0)


@pytest.mark.parametrize(
    ("given", "code", "reason"),
    [
        (answer(401, {"error": {"code": "c", "message": "m"}}), "c", "401 c: m"),
        (answer(401, {"error": {"type": "t"}}), "t", "401 t"),
        (answer(400, {"error": "invalid_grant", "error_description": "d"}), "invalid_grant", None),
        (answer(400, {"error": "e", "message": 5}), "e", "400 e"),
        (answer(500, {}, "upstream\r\n\x1b[2Jfailed"), "", "500 upstream [2Jfailed"),
        (answer(500, {"error": [1]}, "raw"), "", "500 raw"),
        (answer(500, {}, "token HIDE-ME seen"), "", "500 token [redacted] seen"),
        (answer(503, {}), "", "503"),
    ],
)
def test_code_and_reason(given: TokenResponse, code: str, reason: str | None) -> None:
    assert given.code == code
    assert given.reason(Secret("HIDE-ME"), Secret("")) == (reason or "400 invalid_grant: d")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), (None, None), ("", None), ("-1", None), ("1.5", None), ("9" * 400, None), ("²", None)],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert http._seconds(value) == seconds
