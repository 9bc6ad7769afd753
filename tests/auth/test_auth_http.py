"""The POST to an issuer: bounds, no redirects, no reuse of connections, and the one retry that is harmless."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from samples import rows

from proxy.auth import http
from proxy.auth.http import IssuerFailure, TokenClient, TokenResponse, repeated
from proxy.core.hiding.secret import Secret


class Issuer:
    """Answers as `answer` says, and keeps the requests and who sent them."""

    def __init__(self) -> None:
        self.answer: Callable[[web.Request], web.Response] = lambda _: web.json_response({})
        self.url, self.peers = "", set[object]()
        self.seen: list[tuple[str, str, str, str]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        self.seen.append((request.path, request.content_type, text, request.headers["Connection"]))
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        await self.open.wait()
        return self.answer(request)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found, app = Issuer(), web.Application()
    app.router.add_route("*", "/{rest:.*}", found.handle)
    async with TestServer(app) as server:
        found.url = str(server.make_url("/token"))
        yield found
        found.open.set()


@pytest.fixture
async def client() -> AsyncIterator[TokenClient]:
    async with aiohttp.ClientSession() as session:
        yield TokenClient("p1", session)
        assert not session.closed


def answer(status: int, data: dict[str, Any], text: str = "") -> TokenResponse:
    return TokenResponse(status, text, data)


async def test_form_and_json_are_sent_and_answers_read(client: TokenClient, issuer: Issuer) -> None:
    issuer.answer = lambda _: web.json_response({"access_token": "SECRET"}, status=201, headers={"Retry-After": "7"})
    got = await client.post_form(issuer.url, {"a": "1 &", "b": "2"})
    await client.post_json(issuer.url, {"a": 1})
    assert (got.ok, got.status, got.data, got.retry_after) == (True, 201, {"access_token": "SECRET"}, 7.0)
    assert "SECRET" not in repr(got)
    assert issuer.seen == [
        ("/token", "application/x-www-form-urlencoded", "a=1+%26&b=2", "close"),
        ("/token", "application/json", '{"a": 1}', "close"),
    ]


async def test_connections_are_not_used_twice(client: TokenClient, issuer: Issuer) -> None:
    for _ in range(3):
        await client.post_form(issuer.url, {})
    assert len(issuer.peers) == 3


async def test_redirect_is_an_answer(client: TokenClient, issuer: Issuer) -> None:
    issuer.answer = lambda _: web.Response(status=307, headers={"Location": "/elsewhere"})
    got = await client.post_form(issuer.url, {"code": "x"})
    assert (got.status, got.ok, [path for path, *_ in issuer.seen]) == (307, False, ["/token"])


async def test_sizes_are_bounded(client: TokenClient, issuer: Issuer) -> None:
    issuer.answer = lambda _: web.Response(status=500 if len(issuer.seen) == 1 else 200, body=b"x" * 2_000_000)
    got = await client.post_form(issuer.url, {})
    assert len(got.text) == http.MAX_ERROR_BYTES and len(got.reason()) < 500
    with pytest.raises(IssuerFailure, match="longer than 1048576 bytes"):
        await client.post_form(issuer.url, {})


@pytest.mark.parametrize("body", ["", "<html>", "[1]", "[" * 100_000, "\ufeff{}"])
async def test_other_bodies_have_no_data(client: TokenClient, issuer: Issuer, body: str) -> None:
    issuer.answer = lambda _: web.Response(text=body)
    assert (await client.post_form(issuer.url, {})).data == {}


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


async def test_connection_lost_after_sending_is_not_tried_again(client: TokenClient, issuer: Issuer) -> None:
    def leave(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    issuer.answer = leave
    with pytest.raises(IssuerFailure) as caught:
        await client.post_form(issuer.url, {})
    assert len(issuer.seen) == 1 and caught.value.sent


async def test_silent_issuer_is_given_up(issuer: Issuer) -> None:
    issuer.open.clear()
    async with aiohttp.ClientSession() as session:
        impatient = TokenClient("p1", session, timeout=aiohttp.ClientTimeout(total=0.05))
        with pytest.raises(IssuerFailure):
            await impatient.post_form(issuer.url, {})
    assert len(issuer.seen) == 1


def test_time_limits() -> None:
    assert (http.TIMEOUT.connect, http.TIMEOUT.total) == (15.0, 30.0)


@rows(
    "given, code, reason",
    [
        (answer(401, {"error": {"code": "c", "message": "m"}}), "c", "401 c: m"),
        (answer(401, {"error": {"type": "t"}}), "t", "401 t"),
        (answer(400, {"error": "invalid_grant", "error_description": "d"}), "invalid_grant", None),
        (answer(400, {"error": "e", "message": 5}), "e", "400 e"),
        (answer(500, {}, "upstream\r\n\x1b[2Jfailed"), "", "500 upstream [2Jfailed"),
        (answer(500, {"error": [1]}, "raw"), "", "500 raw"),
        (answer(500, {}, "token HIDE-ME seen"), "", "500 token [redacted] seen"),
        (answer(403, {"error": "no HIDE-ME"}), "no HIDE-ME", "403 no [redacted]"),
        (answer(503, {}), "", "503"),
        (
            answer(400, {"message": f"no data:image/png;base64,{'iVBOR/+9' * 900}!"}),
            "",
            "400 no [redacted data-url len=7222]!",
        ),
    ],
)
def test_code_and_reason(given: TokenResponse, code: str, reason: str | None) -> None:
    assert given.code == code
    assert given.reason(Secret("HIDE-ME"), Secret("")) == (reason or "400 invalid_grant: d")


@rows(
    "value, seconds",
    [("7", 7.0), (None, None), ("", None), ("-1", None), ("1.5", None), ("9" * 400, None), ("²", None)],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert http._seconds(value) == seconds


UNSENT, LOST = IssuerFailure("p1", "no connection", sent=False), IssuerFailure("p1", "broken off", sent=True)
SLOW = IssuerFailure("p1", "slow", sent=False)
SLOW.__cause__ = TimeoutError()
BUSY, FINAL, DONE = answer(503, {}), answer(500, {"error": "invalid_grant"}), answer(200, {})


@rows(
    "outcomes, once_sent, tries",
    [
        *(([DONE], once_sent, 1) for once_sent in (True, False)),
        *(([UNSENT, BUSY, DONE], once_sent, 3) for once_sent in (True, False)),
        *(([BUSY, BUSY, BUSY], once_sent, 3) for once_sent in (True, False)),
        *(([one], once_sent, 1) for one in (FINAL, SLOW) for once_sent in (True, False)),
        ([UNSENT, LOST, DONE], True, 3),
        ([UNSENT, LOST], False, 2),
    ],
)
async def test_what_is_tried_again(outcomes: list[Any], once_sent: bool, tries: int) -> None:
    left, sleeps = list(outcomes), list[float]()

    async def send() -> TokenResponse:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        found: TokenResponse = outcome
        return found

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    def is_final(found: TokenResponse) -> bool:
        return found is FINAL

    trying = repeated(send, waits_s=(1.0, 2.0), is_final=is_final, once_sent=once_sent, sleep=sleep)
    last = outcomes[-1]
    if isinstance(last, Exception):
        with pytest.raises(IssuerFailure) as caught:
            await trying
        assert caught.value is last
    else:
        assert await trying is last
    assert not left and sleeps == [1.0, 2.0][: tries - 1]
