"""Whole answers of all providers behind an outgoing proxy, and what a client is told when that one fails."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from connect_proxy import Authority, Company, ConnectProxy, Names, company, place_of, whole
from harness import Answer, Live, ask
from media_live import GENERATIONS, SWITCHES, TRANSCRIPTIONS
from samples import each
from wires import WIRES, message_of

from proxy.core.outgoing_proxies import OutboundProxies
from proxy.providers.upstream.outgoing_proxy import TunnelTimers
from proxy.sandbox import Sandbox
from proxy.sandbox.p1.socket.link import Link

Serve = Callable[..., contextlib.AbstractAsyncContextManager[Live]]


@pytest.fixture
async def office(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Company]:
    authority = Authority()
    authority.trusted(monkeypatch)
    names = Names.installed(monkeypatch)
    async with company(sandbox, authority) as found:
        yield found
    assert names.looked_up == []  # no name of a vendor: nothing went, or tried to go, directly


@pytest.fixture
def serve(sandbox: Sandbox, tmp_path: Path, office: Company) -> Serve:
    """The proxy in that office. `user` as its variable says."""

    def start(user: str = "me:p%40ss@", *, lifetime_s: int = 3600, **more: Any) -> Live:
        variables = {"HTTPS_PROXY": f"http://{user}127.0.0.1:{office.proxy.port}"}
        live = behind(variables, sandbox, tmp_path, settings=office.settings, **more)
        sandbox.write_credentials(tmp_path, lifetime_s=lifetime_s)
        signed_in = tmp_path / "p3" / "auth.json"  # by an issuer that has another name in that office
        signed_in.write_text(signed_in.read_text().replace(sandbox.origin, office.settings["PROXY_P3_ISSUER"]))
        return live

    return start


def behind(variables: dict[str, str], sandbox: Sandbox, root: Path, **more: Any) -> Live:
    return Live(sandbox, root, proxies=OutboundProxies.from_environment(variables), **more)


#: In the mode `auto` a socket is for conversations that can be continued.
SESSION = {"x-agent-session-id": "s"}
AUTO: dict[str, Any] = {"p1_transport": "auto", "p1_previous_response_id": True}

RUNS = [wire.model for wire in WIRES if wire.traits.run]
WAYS: list[tuple[str, dict[str, Any]]] = [
    *(("gpt-5.5", {"p1_transport": transport}) for transport in ("http", "websocket")),
    ("gpt-5.5", AUTO),
    *((wire.model, {}) for wire in WIRES),
]


@each(1)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "settings"), WAYS)
async def test_every_wire_answers_through_the_tunnel(
    serve: Serve, office: Company, model: str, settings: dict[str, Any], stream: bool
) -> None:
    async with serve(**settings) as live:
        message = message_of(await live.post(ask("hello", model=model, stream=stream), headers=SESSION))
        sockets = live.sandbox.p1.sockets.seen
        assert [(socket.status, len(socket.frames)) for socket in sockets] == [(101, 1)] * len(sockets)
        assert bool(sockets) is (settings.get("p1_transport") in ("websocket", "auto"))
        assert not [socket for socket in sockets if "proxy-authorization" in socket.headers]
        assert live.upstream == int(model == "gpt-5.5")
    assert message["stop_reason"] == "end_turn" and message["content"][-1]["text"]
    # the stream of a run is one, its messages are the other, and a list of models may be asked for beside them
    tunnels = (2, 3) if model in RUNS else (1,)
    assert office.only_tunnels and len(office.proxy.asked) in tunnels and live.sleeps == []


@pytest.mark.parametrize("label", ["p1", "p2"])
async def test_a_sign_in_is_renewed_through_the_tunnel(serve: Serve, office: Company, label: str) -> None:
    model = {"p1": "gpt-5.5", "p2": "kimi-for-coding"}[label]
    async with serve(lifetime_s=-1) as live:
        assert (await live.post(ask(model=model))).status == 200
        issuer = getattr(live.sandbox, label).issuer
        assert issuer.refresh_requests == 1
    assert office.only_tunnels


async def test_a_search_goes_through_the_tunnel(serve: Serve, office: Company) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    choice = {"type": "tool", "name": "web_search"}
    async with serve() as live:
        answer = await live.post(ask("Perform a web search for the query: tea", tools=tools, tool_choice=choice))
        assert answer.status == 200, answer.raw
    assert office.only_tunnels


async def make_image(live: Live) -> Answer:
    return await live.post({"prompt": "x"}, GENERATIONS)


async def test_images_and_audio_go_through_the_tunnel(serve: Serve, office: Company) -> None:
    async with serve(**SWITCHES) as live:
        assert (await make_image(live)).json["data"]
        form = aiohttp.FormData()
        form.add_field("file", b"RIFF....WAVE" * 20_000, filename="a.wav", content_type="audio/wav")
        assert (await live.request("POST", TRANSCRIPTIONS, data=form)).json["text"]
    assert office.only_tunnels
    async with serve("me:wrong@", **SWITCHES) as live:
        answer = await make_image(live)
        error = answer.json["error"]
        assert (answer.status, error["code"], answer.headers["x-should-retry"]) == (502, "upstream_error", "false")
        assert "wants authentication" in error["message"] and "HTTPS_PROXY" in error["message"]
        assert "wrong" not in str(live.notes.records) + answer.raw.decode()


@each(2)
@pytest.mark.parametrize("lifetime_s", [3600, -1], ids=["request", "renewal"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("model", "settings"), WAYS[:4], ids=["http", "websocket", "auto", "p2"])
async def test_wrong_credentials_are_told_once_and_nothing_goes_directly(
    serve: Serve, office: Company, model: str, settings: dict[str, Any], stream: bool, lifetime_s: int
) -> None:
    """Neither another attempt, nor HTTP instead of an upgrade, nor a direct connection."""
    async with serve("me:wrong@", lifetime_s=lifetime_s, **settings) as live:
        before = credentials(live)
        answer = await live.post(ask(model=model, stream=stream), headers=SESSION)
        assert answer.status == 502 and answer.headers["x-should-retry"] == "false"
        assert answer.error == {"type": "api_error", "message": answer.error["message"]}
        assert "wants authentication" in answer.error["message"] and "HTTPS_PROXY" in answer.error["message"]
        assert "wrong" not in str(live.notes.records) + str(live.notes.captures) + answer.raw.decode()
        assert credentials(live) == before
        assert live.upstream == live.sandbox.p1.sockets.total == 0
    assert len(office.proxy.asked) == 1 and office.front.connections == 0 and live.sleeps == []


def credentials(live: Live) -> dict[str, bytes]:
    """What is stored; markers of a renewal under way would show as well, locks do not count."""
    return {str(path): path.read_bytes() for path in live.root.rglob("*") if path.is_file() and path.suffix != ".lock"}


async def test_a_closed_tunnel_is_told_once_with_its_hint(serve: Serve, office: Company) -> None:
    async with serve() as live:
        office.proxy.answers = [whole("503 Busy", "Retry-After: 17")] * 9
        for number in (1, 2):
            answer = await live.post(ask(stream=True))
            assert (answer.status, answer.headers["retry-after"]) == (502, "17")
            assert "x-should-retry" not in answer.headers
            assert "refused the tunnel to vendors.test:443 (status 503)" in answer.error["message"]
            assert len(office.proxy.asked) == number
        office.proxy.answers = []
        assert (await live.post(ask())).status == 200
    assert live.sleeps == [] and office.only_tunnels


@pytest.mark.parametrize(("settings", "method"), [({"p1_transport": "http"}, "POST"), (AUTO, "GET")])
@pytest.mark.parametrize(("user", "status"), [("me:p%40ss@", 200), ("me:wrong@", 502)], ids=["welcome", "wrong"])
async def test_plain_upstreams_are_asked_in_absolute_form(
    sandbox: Sandbox, tmp_path: Path, settings: dict[str, Any], method: str, user: str, status: int
) -> None:
    """Loopback is no exception: what must be reached directly stands in NO_PROXY."""
    host, port = place_of(sandbox)
    async with ConnectProxy({f"{host}:{port}": (host, port)}, user="me:p@ss") as proxy:
        variables = {"HTTP_PROXY": f"http://{user}127.0.0.1:{proxy.port}"}
        async with behind(variables, sandbox, tmp_path, p1_workspace_routing=False, **settings) as live:
            answer = await live.post(ask(), headers=SESSION)
            assert answer.status == status
            assert status == 200 or "wants authentication" in answer.error["message"]
            assert live.upstream == int(status == 200)
            assert live.sandbox.p1.sockets.total == int(status == 200 and settings is AUTO)
        assert proxy.targets == [f"{method} {sandbox.origin}/backend-api/codex/responses"]
        variables["NO_PROXY"] = "127.0.0.1"
        async with behind(variables, sandbox, tmp_path, p1_workspace_routing=False, **settings) as live:
            assert (await live.post(ask(), headers=SESSION)).status == 200
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("model", ["kimi-for-coding", "opencode-go/kimi-k2.6"])
async def test_p2_and_p4_on_this_machine_are_reached_directly(sandbox: Sandbox, tmp_path: Path, model: str) -> None:
    async with behind({"HTTP_PROXY": "http://127.0.0.1:9"}, sandbox, tmp_path) as live:
        assert (await live.post(ask(model=model))).status == 200
        refused = await live.post(ask())
    assert refused.status == 502 and "HTTP_PROXY" in refused.error["message"]


# -- the WebSocket of P1


@pytest.mark.parametrize(
    ("answer", "words"),
    [(whole("503 Busy"), "status 503"), (b"", "broke off"), (None, "50 ms")],
    ids=["refused", "broken", "silent"],
)
async def test_a_tunnel_that_fails_is_no_reason_for_http(
    serve: Serve, office: Company, answer: bytes | None, words: str
) -> None:
    office.proxy.answers = [answer]
    async with serve(tuning=(TunnelTimers(connect=0.05),), **AUTO) as live:
        told = await live.post(ask(), headers=SESSION)
        assert told.status == 502 and words in told.error["message"]
        assert live.upstream == live.sandbox.p1.sockets.total == 0 and live.sleeps == []
    assert len(office.proxy.asked) == 1


async def test_a_long_request_goes_through_the_tunnel_in_fragments(serve: Serve, office: Company) -> None:
    """In TLS as well what waits is bounded, and pings are answered."""
    async with serve(p1_transport="websocket") as live:
        live.sandbox.p1.options.link = Link(bytes_per_s=4_000_000, ping_s=0.01, pong_s=0.5)
        assert (await live.post(ask("x" * 900_000))).status == 200
        (seen,) = live.sandbox.p1.sockets.seen
        assert seen.pongs and seen.frames[0].size > 900_000 and live.sleeps == []
    assert office.only_tunnels and len(office.proxy.asked) == 1
