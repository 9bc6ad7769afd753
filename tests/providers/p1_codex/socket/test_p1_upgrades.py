"""What becomes of a request whose socket cannot be opened: another attempt, HTTP, or an error."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from connect_proxy import Authority, ConnectProxy, TlsFront
from harness import Live, ask, configured, until, with_live
from p1_events import said
from ws_upstream import Backend, Upgrade, goes_well, leaving_nothing, new_session, saying

from proxy.core.outgoing_proxies import OutboundProxies
from proxy.providers.p1_codex.socket import connect as dial
from proxy.providers.p1_codex.socket.connect import SocketTimers

QUICK = {"connect": 0.1}


async def hanging(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


def upgrading(**headers: str | tuple[str, ...]) -> Upgrade:
    """A 101 with these headers instead of the usual ones, and answers over its socket."""

    async def handler(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(compress=False)
        ready, *rest = ws._handshake(request)

        def handshake(_: web.Request) -> Any:
            for name, values in headers.items():
                ready.popall(name.replace("_", "-"), None)
                for value in (values,) if isinstance(values, str) else values:
                    ready.add(name.replace("_", "-"), value)
            return ready, *rest

        ws._handshake = handshake  # type: ignore[method-assign]
        await ws.prepare(request)
        async for _ in ws:
            for event in said("fine", "r"):
                await ws.send_json(event)
        return ws

    return handler


WRONG_KEY, WRONG_PROTOCOL = upgrading(Sec_WebSocket_Accept="bm8="), upgrading(Sec_WebSocket_Protocol="chat")


NO_UPGRADE = r"p1: 127\.0\.0\.1 refused the upgrade to a WebSocket with status {}; p1\.transport=http goes without.*"


def body(status: int, text: str) -> Upgrade:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    return handler


OWNED = {"x-claude-code-session-id": "s"}
UNCLEAR = {**OWNED, "x-claude-code-agent-id": "a, b"}


@pytest.mark.parametrize(
    ("mode", "continues", "headers", "upgrades"),
    [
        ("auto", False, OWNED, 0),
        ("auto", True, {}, 0),
        ("auto", True, UNCLEAR, 0),
        ("auto", True, OWNED, 1),
        ("websocket", False, {}, 1),
        ("websocket", True, OWNED, 1),
        ("http", True, OWNED, 0),
    ],
)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_socket_is_opened_where_a_turn_can_go_on_from_it_or_when_it_is_asked_for(
    backend: Backend, mode: str, continues: bool, headers: dict[str, str], upgrades: int, stream: bool
) -> None:
    async with backend.proxy(mode, p1_previous_response_id=continues) as live, leaving_nothing(backend, live):
        assert (await live.post(ask(stream=stream), headers=headers)).status == 200
        assert backend.traffic == (upgrades, 1 - upgrades, upgrades) and not live.notes.all("codex_websocket_fallback")


@pytest.mark.parametrize("mode", ["websocket", "auto"])
@pytest.mark.parametrize(
    ("step", "status", "waits"),
    [(407, 407, []), (body(200, "hello"), 200, [1.5])],  # no outgoing proxy is in use, so the 407 is the backend's
    ids=["407", "no upgrade"],
)
async def test_an_upgrade_that_fails_is_tried_again_or_goes_over_http(
    backend: Backend, mode: str, step: Any, status: int, waits: list[float]
) -> None:
    """The sandbox's table (`test_p1_websocket_faults`) has the others."""
    backend.upgrades.append(step)
    async with backend.proxy(mode) as live, leaving_nothing(backend, live):
        if mode == "auto":
            await goes_well(live)
            assert (backend.traffic, live.sleeps) == ((1, 1, 0), [])
            return
        assert ((await live.stream(ask())).status, live.sleeps) == (status, waits)
        assert backend.traffic == (1 + len(waits), 0, status == 200)


@with_live(mode="auto")
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
    front: Live, backend: Backend, headers: dict[str, Any], good: bool
) -> None:
    backend.upgrades.append(upgrading(**headers))
    async with leaving_nothing(backend, front):
        await goes_well(front)
        assert backend.traffic[:2] == (1, not good)


@with_live(mode="auto")
async def test_upgrades_that_refuse_every_token_do_not_cost_one_a_turn(front: Live, backend: Backend) -> None:
    backend.upgrades.extend([401] * 100)
    for _ in range(4):
        await goes_well(front)
    assert (backend.sandbox.p1.refreshes, backend.traffic) == (1, (2, 4, 0))
    assert "401" in front.notes.all("codex_websocket_fallback")[-1]["message"]


@pytest.mark.parametrize(
    ("steps", "status", "words"),
    [
        ([body(400, '{"error":{"message":"no\\u0007 such model"}}')], 400, r"no  such model"),
        ([WRONG_KEY, WRONG_PROTOCOL] * 2, 502, r".*; p1\.transport=http goes without WebSocket"),
        ([body(400, "<script>" + "x" * 100_000)], 400, r"(?!.*script).*"),
        # the message must be read: clients take a 404 for a missing model, and hide what it says
        ([body(404, '{"detail":"Not Found"}')], 400, NO_UPGRADE.format(404)),
        ([body(405, '{"detail":"Method Not Allowed"}')], 405, NO_UPGRADE.format(405)),
        ([body(426, "")], 426, NO_UPGRADE.format(426)),
    ],
    ids=["words", "rules", "markup", "404", "405", "426"],
)
async def test_what_an_upgrade_was_refused_with_is_told(
    front: Live, backend: Backend, steps: list[Upgrade], status: int, words: str
) -> None:
    backend.upgrades.extend(steps)
    answer = await front.post(ask())
    assert answer.status == status and re.fullmatch(words, answer.error["message"], re.DOTALL)
    assert answer.headers.get("x-should-retry") == ("false" if status < 500 else None)


@pytest.mark.parametrize("tunnel", [False, True])
@pytest.mark.parametrize("mode", ["websocket", "auto", "http"])
async def test_a_certificate_that_nobody_trusts_is_told_with_a_way_out(
    backend: Backend, mode: str, tunnel: bool
) -> None:
    plain, tls = urlsplit(backend.url), Authority().server("localhost")
    async with TlsFront(("127.0.0.1", plain.port or 0), tls) as front, ConnectProxy() as way:
        way.routes = {f"localhost:{front.port}": front.place}
        backend.url = f"https://localhost:{front.port}{plain.path}"
        variables = {"https_proxy": f"http://127.0.0.1:{way.port}"} if tunnel else {}
        async with backend.proxy(
            mode, proxies=OutboundProxies.from_environment(variables), p1_workspace_routing=False
        ) as live:
            answer = await live.post(ask(), headers=new_session())
            message = answer.error["message"]
            assert "certificate" in message and "is not trusted" in message and "SSL_CERT_FILE" in message
            assert (answer.status, answer.headers["x-should-retry"], live.sleeps) == (502, "false", [])
            assert bool(way.asked) == tunnel and not backend.seen


@with_live(mode="auto")
async def test_what_a_socket_took_is_never_posted_though_no_second_one_opens(front: Live, backend: Backend) -> None:
    backend.plays.append(saying())
    task = asyncio.ensure_future(front.post(ask(), headers=new_session()))
    await until(lambda: backend.asked)
    backend.upgrades.append(426)
    assert (await task).status == 426
    assert backend.traffic[:2] == (2, 0)


#: Refusals of the first request.
LASTING: list[list[Any]] = [[hanging], [403, 403], [404], [405], [426], [WRONG_KEY], [WRONG_PROTOCOL]]


@pytest.mark.parametrize("steps", LASTING, ids=["hang", "403", "404", "405", "426", "key", "subprotocol"])
@pytest.mark.parametrize("rest", [300.0, 0.0])
async def test_after_a_refusal_that_lasts_nobody_tries_another_upgrade_for_a_while(
    backend: Backend, steps: list[Any], rest: float
) -> None:
    backend.upgrades.extend(steps)
    async with backend.proxy("auto", timers={**(QUICK if hanging in steps else {}), "rest": rest}) as live:
        for _ in range(2):
            await goes_well(live)
        again = rest == 0.0
        assert backend.traffic[:2] == (len(steps) + again, 2 - again)
        reasons = [fields["message"] for fields in live.notes.all("codex_websocket_fallback")]
        assert len(reasons) == 2 - again and all("an earlier upgrade failed (" in reason for reason in reasons[1:])
        for mode in ("websocket", "auto"):  # what was asked for is tried, and helps the others when it works
            live.config = configured(live.config, p1_transport=mode)
            await goes_well(live)
        assert len(backend.posts) == 2 - again


@with_live(mode="auto")
@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_a_refusal_that_may_pass_is_not_remembered(front: Live, backend: Backend, status: int) -> None:
    backend.upgrades.append(status)
    for _ in range(2):
        await goes_well(front)
    assert backend.traffic == (2, 1, 1)


@with_live(mode="auto")
async def test_many_turns_do_not_queue_for_upgrades_that_are_refused(front: Live, backend: Backend) -> None:
    """Of those that come at the same time each waits once for its second upgrade, none for a long distance."""
    backend.upgrades.extend([403] * 100)
    await asyncio.gather(*(goes_well(front) for _ in range(10)))
    distances = [seconds for seconds in front.sleeps if seconds != 3.0]
    assert max(distances) <= SocketTimers().patience and len(front.sleeps) - len(distances) <= 10
    await goes_well(front)  # the first that comes afterwards is sure
    upgrades, waits = len(backend.seen), len(front.sleeps)
    for _ in range(3):
        await goes_well(front)
    assert (len(front.sleeps), backend.traffic[:2]) == (waits, (upgrades, 14))


@pytest.mark.parametrize(("mode", "waits", "posts"), [("auto", 0, 1), ("websocket", 1, 0)])
async def test_only_who_can_go_over_http_does_not_wait_for_the_distance(
    backend: Backend, mode: str, waits: int, posts: int
) -> None:
    async with backend.proxy(mode, p1_ws_connect_spacing_ms=5000) as live:
        for _ in range(2):
            await goes_well(live)
        assert (len(live.sleeps), backend.traffic[1:]) == (waits, (posts, 2 - posts))
        reasons = [fields["message"] for fields in live.notes.all("codex_websocket_fallback")]
        assert all("distance" in reason for reason in reasons) and len(reasons) == posts


@with_live(mode="auto")
async def test_a_request_that_went_over_http_once_stays_there(front: Live, backend: Backend) -> None:
    """The next one tries again."""
    backend.upgrades.append(503)
    backend.refused_posts.append(503)
    await goes_well(front)
    assert (backend.traffic, front.sleeps) == ((1, 2, 0), [1.5])
    await goes_well(front)
    assert backend.traffic == (2, 2, 1)


async def endless(seconds: float) -> None:
    await asyncio.Event().wait()


@with_live(mode="auto", sleep=endless)
@pytest.mark.parametrize("step", [hanging, 403])
async def test_a_client_that_leaves_before_the_socket_is_open_ends_that_too(
    front: Live, backend: Backend, step: Any
) -> None:
    backend.upgrades.append(step)
    async with leaving_nothing(backend):
        task = asyncio.ensure_future(front.post(ask(), headers=new_session()))
        await until(lambda: backend.seen)
        task.cancel()
        await asyncio.wait({task})
        await until(lambda: front.watcher.names[-1] == "Abandoned")
        assert backend.traffic[1:] == (0, 0)


def test_there_is_one_place_that_opens_sockets() -> None:
    """So that outbound proxies need one line."""
    root = Path(dial.__file__).parents[3]
    calls = [path for path in root.rglob("*.py") if ".ws_connect(" in path.read_text() and "sandbox" not in path.parts]
    assert calls == [Path(dial.__file__)]
