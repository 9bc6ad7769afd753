"""The shared client behind real outgoing proxies: tunnels, absolute form, credentials, exemptions, and proxies that
fail. What is called `up.test` exists behind the proxy only; a direct way to it would be seen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from connect_proxy import Authority, ConnectProxy, Names, TlsFront, whole
from samples import each

from proxy.auth.http import TokenClient
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.core.visible import Visible
from proxy.errors import UpstreamError, headers, messages_body
from proxy.providers.upstream.client import client_session
from proxy.providers.upstream.failures import GiveUp, decide
from proxy.providers.upstream.outgoing_proxy import TunnelTimers

USER = "me:p@ss"
SCHEMES = ("http", "https", "ws", "wss")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@dataclass
class Net:
    """An upstream, plain and behind TLS, and the proxies that know the way to it."""

    plain: tuple[str, int]
    front: TlsFront
    proxy: ConnectProxy
    tls_proxy: ConnectProxy
    names: type[Names]
    authority: Authority
    requests: list[web.Request]

    def url(self, scheme: str, host: str = "up.test", path: str = "/deep/path?a=1") -> str:
        """One that leads to the upstream also without a proxy."""
        port = self.plain[1] if scheme in ("http", "ws") else self.front.port
        return f"{scheme}://{host}:{port}{path}"

    def through(self, user: str = "me:p%40ss@", scheme: str = "http", **more: str) -> Any:
        """A client whose proxy is that of this scheme."""
        port = {"http": self.proxy, "https": self.tls_proxy}[scheme].port
        environment = {"ALL_PROXY": f"{scheme}://{user}127.0.0.1:{port}", **more}
        return client_session(OutboundProxies.from_environment(environment))

    @property
    def asked(self) -> list[str]:
        return self.proxy.targets + self.tls_proxy.targets


@contextlib.asynccontextmanager
async def listening(answer: Any) -> AsyncIterator[Any]:
    """Where this handler answers."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0]
    await runner.cleanup()


@pytest.fixture
async def net(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Net]:
    authority.trusted(monkeypatch)
    names = Names.installed(monkeypatch)
    requests: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        if "upgrade" not in request.headers:
            return web.json_response({"said": await request.text()})
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_json({"said": message.data})
        return socket

    async with (
        listening(answer) as plain,
        TlsFront(plain, authority.server("up.test", "ws.up.test", "localhost", "127.0.0.1")) as front,
        ConnectProxy(user=USER) as proxy,
        ConnectProxy(user=USER, tls=authority.server("127.0.0.1")) as tls_proxy,
    ):
        for one in (proxy, tls_proxy):
            one.routes = {f"up.test:{plain[1]}": plain, f"up.test:{front.port}": front.place}
        yield Net(plain, front, proxy, tls_proxy, names, authority, requests)


async def said(session: aiohttp.ClientSession, url: str, text: str = "hello") -> str:
    """What the upstream heard: one question, over HTTP or a WebSocket by the URL."""
    if url.startswith("ws"):
        async with asyncio.timeout(5), session.ws_connect(url) as socket:
            await socket.send_str(text)
            heard = await socket.receive_json()
    else:
        async with asyncio.timeout(5), session.post(url, data=text, allow_redirects=False) as response:
            heard = await response.json()
    return str(heard["said"])


# -- ways that lead there


@pytest.mark.parametrize("way", ["http", "https"])
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_every_destination_is_reached_through_every_proxy(net: Net, scheme: str, way: str) -> None:
    async with net.through(scheme=way) as session:
        assert await said(session, net.url(scheme)) == "hello"
    port = net.plain[1] if scheme in ("http", "ws") else net.front.port
    assert net.asked == {
        "http": [f"POST http://up.test:{port}/deep/path?a=1"],
        "ws": [f"GET http://up.test:{port}/deep/path?a=1"],
    }.get(scheme, [f"CONNECT up.test:{port}"])
    assert net.names.looked_up == [] and len(net.requests) == 1
    arrived = net.requests[0]
    assert arrived.path_qs == "/deep/path?a=1" and arrived.host == f"up.test:{port}"
    assert "Proxy-Authorization" not in arrived.headers and "Authorization" not in arrived.headers


async def test_a_tunnel_is_used_again(net: Net) -> None:
    async with net.through() as session:
        for number in range(3):
            assert await said(session, net.url("https"), str(number)) == str(number)
    assert len(net.asked) == net.proxy.connections == net.front.connections == 1


async def test_an_address_of_six_parts_is_asked_for_in_brackets(net: Net) -> None:
    async with net.through() as session:
        with pytest.raises(UpstreamError, match=r"refused the tunnel to \[::1\]:443 \(status 502\)"):
            await said(session, "wss://[::1]/x")
    assert net.asked == ["CONNECT [::1]:443"]


async def test_a_proxy_without_user_info_gets_none(net: Net) -> None:
    net.proxy._basic = None
    async with net.through(user="") as session:
        for scheme in SCHEMES:
            assert await said(session, net.url(scheme)) == "hello"
    assert all("proxy-authorization" not in asked.headers for asked in net.proxy.asked)


@each(1)
@pytest.mark.parametrize(
    ("exempt", "host"),
    [
        *(("up.test", "up.test"), ("*", "up.test"), ("up.test", "ws.up.test"), (".UP.test", "ws.up.test")),
        *(("127.0.0.1", "127.0.0.1"), ("10.0.0.0/8, 127.0.0.0/8", "127.0.0.1")),
    ],
)
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_what_is_exempt_is_reached_directly(net: Net, scheme: str, exempt: str, host: str) -> None:
    async with net.through(NO_PROXY=exempt) as session:
        assert await said(session, net.url(scheme, host)) == "hello"
    assert net.asked == [] and net.proxy.connections == 0
    assert net.names.looked_up == ([host] if host.endswith(".test") else [])


@pytest.mark.parametrize(
    ("exempt", "host"), [("p.test", "up.test"), ("10.0.0.0/8", "127.0.0.1"), ("localhost", "127.0.0.1")]
)
async def test_what_only_looks_exempt_is_not(net: Net, exempt: str, host: str) -> None:
    async with net.through(NO_PROXY=exempt) as session:
        with contextlib.suppress(UpstreamError):
            await said(session, net.url("wss", host))
    assert net.asked == [f"CONNECT {host}:{net.front.port}"]


async def test_variables_of_the_process_are_not_read(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{net.proxy.place[0]}:{net.proxy.port}")
    async with client_session(OutboundProxies()) as session:
        for scheme in SCHEMES:
            assert await said(session, net.url(scheme)) == "hello"
    assert net.proxy.connections == 0


@pytest.mark.parametrize("opened", ["201 Created", "202 Accepted", "204 No Content", "299 Tunnel"])
@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_any_2xx_opens_a_tunnel(net: Net, scheme: str, opened: str) -> None:
    net.proxy.opened = opened
    async with net.through() as session:
        assert await said(session, net.url(scheme)) == "hello"


# -- proxies that fail


HEAD = b"HTTP/1.1 200 Connection established\r\n"
#: What a proxy does to CONNECT -> what is said about it, and after how long it asks to come again.
FAILING: dict[str, tuple[bytes | None, str, float | None]] = {
    "refused": (whole("403 Forbidden"), "refused the tunnel to up.test:443 (status 403)", None),
    "busy": (whole("503 Busy", "Retry-After: 17"), "(status 503)", 17.0),
    "date": (whole("503 Busy", "Retry-After: Thu, 01 Jan 1970 00:02:00 GMT"), "(status 503)", 20.0),
    "no hint": (whole("503 Busy", "Retry-After: soon"), "(status 503)", None),
    "upgrade": (b"HTTP/1.1 101 Switching\r\n\r\n", "(status 101)", None),
    "redirect": (whole("302 Found", "Location: http://up.test/"), "(status 302)", None),
    "1xx first": (b"HTTP/1.1 100 Continue\r\n\r\n" + whole("404 Nowhere"), "(status 404)", None),
    "closed": (b"", "opened no tunnel to up.test:443", None),
    "half a head": (HEAD, "opened no tunnel to up.test:443", None),
    "no HTTP": (b"220 ftp ready\r\n\r\n", "opened no tunnel to up.test:443", None),
    "long line": (HEAD + b"x: " + b"y" * 9000 + b"\r\n\r\n", "opened no tunnel to up.test:443", None),
    "silent": (None, "opened no connection within 50 ms", None),
}


@each(1)
@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_a_tunnel_that_does_not_open(net: Net, scheme: str, failing: str) -> None:
    answer, words, after = FAILING[failing]
    net.proxy.answers = [answer] * 9
    environment = {"HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{net.proxy.port}"}
    proxies, timers = OutboundProxies.from_environment(environment), TunnelTimers(connect=0.05)
    async with client_session(proxies, clock=lambda: 100.0, timers=timers) as session:
        with pytest.raises(UpstreamError) as caught:
            await said(session, f"{scheme}://up.test/x")
    error = caught.value
    assert words in error.message and error.message.startswith(f"The outgoing proxy 127.0.0.1:{net.proxy.port} ")
    assert (error.kind, error.status, error.retry_after) == ("outbound", 502, after)
    assert ("x-should-retry" in headers(error)) == ("(status" in words and after is None)
    assert_final_and_silent(error)
    assert len(net.asked) == 1 and net.names.looked_up == [] and net.front.connections == 0


def assert_final_and_silent(error: UpstreamError) -> None:
    """Never repeated, and without a credential."""
    assert not error.repeatable
    assert decide(error, attempt=0, visible=Visible.NOTHING, chance=0.5) == GiveUp()
    assert error.row.messages == "api_error" and error.__cause__ is None
    assert "p@ss" not in error.message and "p%40ss" not in error.message and "me:" not in error.message


@each(2)
@pytest.mark.parametrize("user", ["", "me:wrong@", "you:p%40ss@"])
@pytest.mark.parametrize("way", ["http", "https"])
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_proxy_that_wants_authentication(net: Net, scheme: str, way: str, user: str) -> None:
    async with net.through(user=user, scheme=way) as session:
        with pytest.raises(UpstreamError) as caught:
            await said(session, net.url(scheme))
        assert session.connector is not None and not session.connector._acquired
    error = caught.value
    assert error.message.endswith("wants authentication (status 407): check the user and password in ALL_PROXY.")
    assert (error.kind, error.status) == ("outbound_auth", 502)
    assert headers(error) == {"x-should-retry": "false"}
    assert messages_body(error, "r")["error"] == {"type": "api_error", "message": error.message}
    assert_final_and_silent(error)
    assert len(net.asked) == 1 and net.requests == [] and net.front.connections == 0 and net.names.looked_up == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("http://me:p%40ss@127.0.0.1:{closed}", "no connection"),
        ("https://me:p%40ss@other.test:{tls}", "TLS with it failed"),
        ("http://me:p%40ss@nowhere.test:{closed}", "its name is not known"),
    ],
)
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_proxy_that_cannot_be_reached(net: Net, scheme: str, value: str, why: str) -> None:
    async with ConnectProxy() as closed:
        pass
    net.names.unknown = ("nowhere.test",)
    value = value.format(closed=closed.port, tls=net.tls_proxy.port)
    async with client_session(OutboundProxies.from_environment({"ALL_PROXY": value})) as session:
        with pytest.raises(UpstreamError, match=rf"could not be reached \({why}\); check ALL_PROXY\.$") as caught:
            await said(session, net.url(scheme))
    assert_final_and_silent(caught.value)
    assert net.requests == [] and net.front.connections == 0 and "up.test" not in net.names.looked_up


async def test_a_destination_that_fails_at_the_end_of_the_tunnel_is_not_the_proxys_fault(net: Net) -> None:
    net.proxy.routes = {"stranger.test:443": net.front.place, "plain.test:443": net.plain}
    async with net.through() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await said(session, "https://stranger.test/x")
        with pytest.raises(aiohttp.ClientConnectorError):
            await said(session, "wss://plain.test/x")
    assert net.requests == []


async def test_a_407_of_a_destination_behind_tls_is_its_own_answer(net: Net) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=407)

    async with (
        listening(answer) as place,
        TlsFront(place, net.authority.server("odd.test")) as front,
        net.through() as session,
    ):
        net.proxy.routes["odd.test:443"] = front.place
        async with session.post("https://odd.test/") as response:
            assert response.status == 407


# -- the calls of sign-in and usage


async def test_calls_to_an_issuer_take_the_same_way(net: Net) -> None:
    async with net.through() as session:
        answer = await TokenClient("p1", session).post_form(net.url("https"), {"a": "1"})
        assert answer.data == {"said": "a=1"}
        await TokenClient("p1", session).get(net.url("https"))
    assert net.asked == [f"CONNECT up.test:{net.front.port}"] * 2 and net.names.looked_up == []


async def test_a_token_is_not_sent_again_when_the_proxy_fails(net: Net) -> None:
    async with net.through(user="") as session:
        client = TokenClient("p1", session)
        for call in (client.post_form(net.url("https"), {"a": "1"}), client.get(net.url("https"))):
            with pytest.raises(UpstreamError, match="wants authentication"):
                await call
    assert len(net.asked) == 2 and net.requests == []
