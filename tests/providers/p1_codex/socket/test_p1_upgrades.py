"""What becomes of a request whose socket cannot be opened: another attempt, HTTP, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from connect_proxy import Authority, ConnectProxy, TlsFront
from harness import ask, configured, until
from outcomes import Good, is_good
from ws_upstream import Asking, Backend, failure, leaving_nothing, said, saying

from proxy.core.outgoing_proxies import OutboundProxies
from proxy.providers.p1_codex.socket import connect as dial
from proxy.providers.p1_codex.socket.keepalive import SocketTimers

QUICK = {"connect": 0.1}


async def hanging(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


def wrong(**headers: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A 101 that breaks the rules."""

    async def handler(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(compress=False)
        ready, *rest = ws._handshake(request)

        def handshake(_: web.Request) -> Any:
            for name, value in headers.items():
                ready[name.replace("_", "-")] = value
            return ready, *rest

        ws._handshake = handshake  # type: ignore[method-assign]
        await ws.prepare(request)
        await ws.receive()
        return ws

    return handler


def right(**headers: str | tuple[str, ...]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A 101 with these headers instead of the usual ones, and one answer over its socket."""

    async def handler(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(compress=False)
        ready, *rest = ws._handshake(request)

        def handshake(_: web.Request) -> Any:
            for name, values in headers.items():
                ready.popall(name)
                ready.extend((name, value) for value in ((values,) if isinstance(values, str) else values))
            return ready, *rest

        ws._handshake = handshake  # type: ignore[method-assign]
        await ws.prepare(request)
        await ws.receive()
        for event in said("fine", "r"):
            await ws.send_json(event)
        await ws.receive()
        return ws

    return handler


def body(status: int, text: str, **headers: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=headers)

    return handler


@pytest.mark.parametrize("mode", ["websocket", "auto"])
@pytest.mark.parametrize(
    ("step", "status", "waits"),
    [
        (407, 407, []),  # no outgoing proxy is in use, so this is the backend's
        (body(200, "hello"), 200, [1.5]),
    ],
    ids=["407", "no upgrade"],
)
async def test_an_upgrade_that_fails_is_tried_again_or_goes_over_http(
    asking: Asking, backend: Backend, mode: str, step: Any, status: int, waits: list[float]
) -> None:
    """The sandbox's table (`test_p1_websocket_faults`) has the others."""
    backend.upgrades.append(step)
    async with asking(mode) as live, leaving_nothing(backend):
        answer = await live.stream(ask())
        if mode == "auto":
            is_good(answer, Good(), stream=True)
            assert (len(backend.seen), len(backend.posts), live.sleeps) == (1, 1, [])
            return
        assert (answer.status, live.sleeps, len(backend.posts)) == (status, waits, 0)
        assert len(backend.seen) == 1 + len(waits) and len(backend.asked) == (status == 200)


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        ({"Connection": "keep-alive, Upgrade"}, True),
        ({"Connection": ("keep-alive", "UPGRADE")}, True),
        ({"Connection": "upgrade,", "Upgrade": "WebSocket"}, True),
        ({"Connection": "keep-alive"}, False),
        ({"Connection": "upgraded"}, False),
        ({"Upgrade": "h2c"}, False),
    ],
)
async def test_the_headers_of_an_upgrade_are_lists(
    asking: Asking, backend: Backend, headers: dict[str, Any], good: bool
) -> None:
    backend.upgrades.append(right(**headers))
    async with asking("auto") as live, leaving_nothing(backend):
        is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(backend.seen), len(backend.posts)) == (1, not good)


@pytest.mark.parametrize(
    ("mode", "refusals", "status", "asked", "posts"),
    [
        ("websocket", 1, 200, 1, 0),
        ("websocket", 2, 401, 0, 0),
        ("auto", 1, 200, 1, 0),
        ("auto", 2, 200, 0, 1),
    ],
)
async def test_a_refused_token_is_renewed_once_before_anything_else(
    asking: Asking, backend: Backend, mode: str, refusals: int, status: int, asked: int, posts: int
) -> None:
    backend.upgrades.extend([401] * refusals)
    async with asking(mode) as live, leaving_nothing(backend):
        answer = await live.stream(ask())
        assert (answer.status, len(backend.asked), len(backend.posts), live.sleeps) == (status, asked, posts, [])
        assert live.sandbox.p1.refreshes == 1 and len(backend.seen) == 2
        assert backend.seen[0]["Authorization" if "Authorization" in backend.seen[0] else "authorization"]


async def test_upgrades_that_refuse_every_token_do_not_cost_one_a_turn(asking: Asking, backend: Backend) -> None:
    backend.upgrades.extend([401] * 100)
    async with asking("auto") as live:
        for _ in range(4):
            is_good(await live.stream(ask()), Good(), stream=True)
        assert (live.sandbox.p1.refreshes, len(backend.seen), len(backend.posts)) == (1, 2, 4)
        assert "401" in live.notes.all("codex_websocket_fallback")[-1]["message"]


async def test_what_an_upgrade_was_refused_with_is_told(asking: Asking, backend: Backend) -> None:
    backend.upgrades.append(body(400, '{"error":{"message":"no\\u0007 such model"}}'))
    async with asking() as live:
        answer = await live.post(ask())
        assert (answer.status, answer.error["message"]) == (400, "no  such model")


async def test_an_upgrade_that_breaks_the_rules_is_told_with_a_way_out(asking: Asking, backend: Backend) -> None:
    backend.upgrades.extend([wrong(Sec_WebSocket_Accept="bm8="), wrong(Sec_WebSocket_Protocol="chat")] * 2)
    async with asking() as live:
        assert (await live.post(ask())).error["message"].endswith("; p1.transport=http goes without WebSocket")


@pytest.mark.parametrize("tunnel", [False, True])
@pytest.mark.parametrize("mode", ["websocket", "auto"])
async def test_a_certificate_that_nobody_trusts_is_told_with_a_way_out(
    asking: Asking, backend: Backend, mode: str, tunnel: bool
) -> None:
    plain, tls = urlsplit(backend.url), Authority().server("localhost")
    async with TlsFront(("127.0.0.1", plain.port or 0), tls) as front, ConnectProxy() as way:
        way.routes = {f"localhost:{front.port}": front.place}
        backend.url = f"https://localhost:{front.port}{plain.path}"
        variables = {"https_proxy": f"http://127.0.0.1:{way.port}"} if tunnel else {}
        async with asking(mode, proxies=OutboundProxies.from_environment(variables)) as live:
            message = (await live.post(ask())).error["message"]
            assert ("TLS with localhost failed" in message) == (mode == "websocket") and "SSL_CERT_FILE" in message
            assert bool(way.asked) == tunnel and not backend.seen


async def test_foreign_markup_is_not_told(asking: Asking, backend: Backend) -> None:
    backend.upgrades.append(body(400, "<script>" + "x" * 100_000))
    async with asking() as live:
        answer = await live.post(ask())
        assert answer.status == 400 and "script" not in answer.error["message"]


@pytest.mark.parametrize("cut", [True, False])
async def test_what_was_handed_to_a_socket_never_goes_over_http(asking: Asking, backend: Backend, cut: bool) -> None:
    backend.plays.extend([saying() if cut else saying(failure("slow_down", 503), then="listen")] * 2)
    async with asking("auto") as live:
        is_good(await live.stream(ask()), Good(3, waits=(1.5, 3.0)), stream=True)
        assert (len(backend.asked), len(backend.posts)) == (3, 0)


async def test_not_even_when_no_second_socket_can_be_had(asking: Asking, backend: Backend) -> None:
    backend.plays.append(saying())
    async with asking("auto") as live:
        task = asyncio.ensure_future(live.post(ask()))
        await until(lambda: backend.asked)
        backend.upgrades.append(426)
        assert (await task).status == 426
        assert (len(backend.seen), len(backend.posts)) == (2, 0)


LASTING: list[tuple[list[Any], int]] = [
    # refusals of the first request, and the upgrades that they are
    ([hanging], 1),
    ([403, 403], 2),
    ([404], 1),
    ([405], 1),
    ([426], 1),
    ([wrong(Sec_WebSocket_Accept="bm8=")], 1),
    ([wrong(Sec_WebSocket_Protocol="chat")], 1),
]


@pytest.mark.parametrize(("steps", "count"), LASTING, ids=["hang", "403", "404", "405", "426", "key", "subprotocol"])
@pytest.mark.parametrize("rest", [300.0, 0.0])
async def test_after_a_refusal_that_lasts_nobody_tries_another_upgrade_for_a_while(
    asking: Asking, backend: Backend, steps: list[Any], count: int, rest: float
) -> None:
    backend.upgrades.extend(steps)
    async with asking("auto", timers={**(QUICK if hanging in steps else {}), "refused": rest}) as live:
        for _ in range(2):
            is_good(await live.stream(ask()), Good(), stream=True)
        again = rest == 0.0
        assert (len(backend.seen), len(backend.posts)) == (count + again, 2 - again)
        reasons = [fields["message"] for fields in live.notes.all("codex_websocket_fallback")]
        assert len(reasons) == 2 - again and all("an earlier upgrade failed (" in reason for reason in reasons[1:])
        live.config = configured(live.config, p1_transport="websocket")
        for _ in range(2):  # what was asked for is tried, and helps the others when it works
            is_good(await live.stream(ask()), Good(), stream=True)
            live.config = configured(live.config, p1_transport="auto")
        assert len(backend.posts) == 2 - again


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_a_refusal_that_may_pass_is_not_remembered(asking: Asking, backend: Backend, status: int) -> None:
    backend.upgrades.append(status)
    async with asking("auto") as live:
        for _ in range(2):
            is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(backend.seen), len(backend.posts), len(backend.asked)) == (2, 1, 1)


async def test_many_turns_do_not_queue_for_upgrades_that_are_refused(asking: Asking, backend: Backend) -> None:
    """Of those that come at the same time each waits once for its second upgrade, none for a long distance."""
    backend.upgrades.extend([403] * 100)
    async with asking("auto") as live:
        for answer in await asyncio.gather(*(live.stream(ask(f"question {number}")) for number in range(10))):
            is_good(answer, Good(), stream=True)
        distances = [seconds for seconds in live.sleeps if seconds != 3.0]
        assert max(distances) <= SocketTimers().patience and len(live.sleeps) - len(distances) <= 10
        await live.stream(ask())  # the first that comes afterwards is sure
        upgrades, waits = len(backend.seen), len(live.sleeps)
        for _ in range(3):
            is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(backend.seen), len(live.sleeps), len(backend.posts)) == (upgrades, waits, 14)


@pytest.mark.parametrize(("mode", "waits", "posts"), [("auto", 0, 1), ("websocket", 1, 0)])
async def test_only_who_can_go_over_http_does_not_wait_for_the_distance(
    asking: Asking, backend: Backend, mode: str, waits: int, posts: int
) -> None:
    async with asking(mode, p1_ws_connect_spacing_ms=5000) as live:
        for _ in range(2):
            is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(live.sleeps), len(backend.posts), len(backend.asked)) == (waits, posts, 2 - posts)
        reasons = [fields["message"] for fields in live.notes.all("codex_websocket_fallback")]
        assert all("distance" in reason for reason in reasons) and len(reasons) == posts


async def test_a_request_that_went_over_http_once_stays_there(asking: Asking, backend: Backend) -> None:
    """The next one tries again."""
    backend.upgrades.append(503)
    backend.refused_posts.append(503)
    async with asking("auto") as live:
        is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(backend.seen), len(backend.posts), len(backend.asked), live.sleeps) == (1, 2, 0, [1.5])
        is_good(await live.stream(ask()), Good(), stream=True)
        assert (len(backend.seen), len(backend.posts), len(backend.asked)) == (2, 2, 1)


@pytest.mark.parametrize("step", [hanging, 403])
async def test_a_client_that_leaves_before_the_socket_is_open_ends_that_too(
    asking: Asking, backend: Backend, step: Any
) -> None:
    backend.upgrades.append(step)
    async with asking("auto", sleep=asyncio.sleep) as live, leaving_nothing(backend):
        task = asyncio.ensure_future(live.post(ask()))
        await until(lambda: backend.seen)
        task.cancel()
        await asyncio.wait({task})
        await until(lambda: live.watcher.names[-1] == "Abandoned")
        assert not backend.posts and not backend.asked


def test_there_is_one_place_that_opens_sockets() -> None:
    """So that outbound proxies need one line."""
    root = Path(dial.__file__).parents[3]
    calls = [path for path in root.rglob("*.py") if ".ws_connect(" in path.read_text() and "sandbox" not in path.parts]
    assert calls == [Path(dial.__file__)]
