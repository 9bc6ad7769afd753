"""The way to a socket of the simulated P1: headers, limits, and what a script makes of an upgrade."""

import asyncio
from typing import Any

import aiohttp
import pytest
from p1_sandbox_client import ACCEPT, BETA, HANDSHAKE, LITE, SocketClient, frame_of, full, lite, user
from samples import rows
from yarl import URL

from proxy.sandbox import FAULTS, Limits, P1Options, Place, Sandbox, ScriptError

HEADERS: list[tuple[str, dict[str, str | None], int, str]] = [
    ("no bearer", {"authorization": None}, 401, "token_expired"),
    ("unknown bearer", {"authorization": "Bearer x"}, 401, "token_expired"),
    ("no account", {"chatgpt-account-id": None}, 403, "account id"),
    ("wrong account", {"chatgpt-account-id": "acct-else"}, 403, "account id"),
    ("no beta", {"openai-beta": None}, 400, "openai-beta"),
    ("beta of HTTP", {"openai-beta": "responses=experimental"}, 400, "openai-beta"),
    ("beta without a version", {"openai-beta": "responses_websockets"}, 400, "openai-beta"),
    ("no originator", {"originator": None}, 400, "originator"),
    ("underscore session", {"session_id": "s"}, 400, "session_id"),
    ("type of a body", {"content-type": "application/json"}, 400, "content-type"),
    ("compressed body", {"content-encoding": "gzip"}, 400, "content-encoding"),
    ("accepts a stream", {"accept": "text/event-stream"}, 406, "HTTP only"),
    ("odd lite header", {LITE: "1"}, 400, LITE),
    ("no upgrade", {"upgrade": None, "connection": None}, 426, "Upgrade Required"),
    ("other upgrade", {"upgrade": "h2c"}, 426, "Upgrade Required"),
]


@pytest.mark.parametrize(("changes", "status", "words"), [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
async def test_refused(sockets: SocketClient, changes: dict[str, str | None], status: int, words: str) -> None:
    response = await sockets.knock(changes)
    assert (response.status, words in await response.text()) == (status, True), await response.text()
    p1 = sockets.sandbox.p1
    assert [(one.status, one.number) for one in p1.sockets.seen] == [(status, 1)]
    assert (p1.sockets.open, p1.total_requests) == (0, 0)


@rows(
    "changes",
    [
        {},
        {"accept": "*/*"},
        {"session-id": None},
        {LITE: "true"},
        {"openai-beta": f"x=1,{BETA}"},
        {"sec-websocket-extensions": "permessage-deflate; client_max_window_bits"},
    ],
)
async def test_accepted(sockets: SocketClient, changes: dict[str, str | None]) -> None:
    response = await sockets.knock(changes)
    assert (response.status, response.headers["sec-websocket-accept"]) == (101, ACCEPT)
    assert not {"sec-websocket-extensions", "sec-websocket-protocol"} & {name.lower() for name in response.headers}
    for name in ("x-request-id", "x-codex-turn-state", "x-models-etag", "x-codex-primary-used-percent"):
        assert response.headers[name]


async def test_an_upstream_without_sockets(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.accept_sockets = False
    assert (await sockets.knock()).status == 426
    assert (await sockets.session.put(sockets.url)).status == 405


#: Fault, parameters -> status, words of the body, headers.
ANSWERS: list[tuple[str, dict[str, Any], int, str, dict[str, str]]] = [
    ("upgrade_unauthorized", {}, 401, "token_expired", {}),
    ("upgrade_forbidden", {}, 403, "", {"content-length": "0"}),
    ("upgrade_limits", {"per_second": 0}, 403, "", {"content-length": "0"}),
    ("upgrade_limits", {"most_open": 0}, 403, "", {}),
    ("upgrade_limits", {"per_second": 1, "most_open": 1}, 101, "", {"sec-websocket-accept": ACCEPT}),
    ("upgrade_not_found", {}, 404, "Not Found", {}),
    ("upgrade_required", {}, 426, "Upgrade Required", {}),
    ("upgrade_rate_limit", {"seconds": 2}, 429, "rate_limit_exceeded", {"retry-after": "2"}),
    ("upgrade_usage_limit", {"seconds": 60}, 429, '"resets_in_seconds":60', {"x-codex-active-limit": "codex"}),
    ("upgrade_server_error", {"status": 502}, 502, "server_error", {}),
    ("upgrade_overloaded", {"retry_after": 3}, 503, "server_is_overloaded", {"retry-after": "3"}),
    ("upgrade_html", {}, 502, "<html>", {}),
    ("upgrade_redirect", {}, 302, "", {"location": "/elsewhere"}),
    ("upgrade_wrong_accept", {}, 101, "", {"sec-websocket-accept": "AAAAAAAAAAAAAAAAAAAAAAAAAAA="}),
    ("upgrade_no_accept", {}, 101, "", {"upgrade": "websocket"}),
    ("upgrade_other_protocol", {}, 101, "", {"upgrade": "h2c", "sec-websocket-accept": ACCEPT}),
    ("upgrade_extension", {}, 101, "", {"sec-websocket-extensions": "permessage-deflate"}),
    ("upgrade_subprotocol", {}, 101, "", {"sec-websocket-protocol": "unasked"}),
]


@pytest.mark.parametrize(("fault", "params", "status", "words", "headers"), ANSWERS)
async def test_faults(
    sockets: SocketClient, fault: str, params: dict[str, Any], status: int, words: str, headers: dict[str, str]
) -> None:
    sockets.sandbox.p1.script.extend([{"fault": fault, **params}])
    response = await sockets.knock()
    assert response.status == status
    assert {name: response.headers[name] for name in headers} == headers
    assert ("sec-websocket-accept" in response.headers) is (status == 101 and fault != "upgrade_no_accept")
    if status != 101:
        assert words in await response.text()
    assert sockets.sandbox.p1.sockets.seen[-1].status == status
    async with sockets.open() as line:
        assert (await line.ask()).broken is None, "a step is used once"


@pytest.mark.parametrize("reset", [False, True])
async def test_cut_instead_of_an_answer(sockets: SocketClient, reset: bool) -> None:
    # aiohttp tries a GET again by itself when it gets no answer
    sockets.sandbox.p1.script.extend([{"fault": "upgrade_cut", "reset": reset, "times": 2}])
    with pytest.raises(aiohttp.ClientConnectionError):
        await sockets.knock()
    assert [seen.status for seen in sockets.sandbox.p1.sockets.seen] == [0, 0]


@rows("reset", [False, True])
async def test_a_reset_is_told_from_an_end(sockets: SocketClient, reset: bool) -> None:
    sockets.sandbox.p1.script.extend([{"fault": "upgrade_cut", "reset": reset}])
    reader, writer = await asyncio.open_connection("127.0.0.1", sockets.sandbox.port)
    headers = {"host": "x", **sockets.headers(), **HANDSHAKE}
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    writer.write(f"GET {URL(sockets.url).path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode())
    try:
        assert await reader.read() == b"" and not reset
    except ConnectionResetError:
        assert reset
    writer.close()


async def test_an_upgrade_that_hangs(sockets: SocketClient) -> None:
    sockets.sandbox.p1.script.extend([{"fault": "upgrade_hang"}])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sockets.knock(), 0.05)
    assert (await sockets.knock()).status == 101


def test_every_fault_has_a_test() -> None:
    seen = {row[0] for row in ANSWERS} | {"upgrade_cut", "upgrade_hang"}
    assert set(FAULTS[Place("p1", "upgrade", stream=False)]) == seen


async def test_steps_of_the_wire(sockets: SocketClient) -> None:
    script = sockets.sandbox.p1.script
    script.extend([{"status": 500}, {"match": {"wire": "upgrade"}, "status": 418, "body": {"detail": "teapot"}}, {}])
    response = await sockets.knock()
    assert (response.status, await response.json()) == (418, {"detail": "teapot"})
    async with sockets.open() as line:
        assert (await line.ask()).events[-1]["status"] == 500, "a status without a wire waits for a request"
        assert (await line.ask()).types[-1] == "response.completed"
    assert script.left == 0


async def test_a_refused_upgrade_uses_no_step(sockets: SocketClient) -> None:
    sockets.sandbox.p1.script.extend([{"fault": "upgrade_required"}])
    assert [(await sockets.knock(changes)).status for changes in ({"originator": None}, None)] == [400, 426]


@pytest.mark.parametrize(
    "step",
    [
        {"match": {"wire": "upgrade"}, "events": []},
        {"match": {"wire": "upgrade"}, "fault": "cut_text"},
        {"match": {"wire": "responses"}, "fault": "upgrade_required"},
    ],
)
def test_steps_that_make_no_sense(step: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        Sandbox(script=[step])


async def test_a_burst_is_refused(session: aiohttp.ClientSession) -> None:
    now = [1_000.0]
    options = P1Options(limits=Limits(per_second=2))
    async with Sandbox(options=[options], clock=lambda: now[0]) as sandbox:
        client = SocketClient(sandbox, session)
        assert [(await client.knock()).status for _ in range(4)] == [101, 101, 403, 403]
        now[0] += 0.9
        assert (await client.knock({"authorization": None})).status == 403, "the edge does not look at who knocks"
        now[0] += 0.2
        assert [(await client.knock()).status for _ in range(2)] == [101, 403], "refused ones count as well"
        assert sandbox.p1.sockets.total == 7


async def test_so_many_sockets_are_open_at_the_most(sockets: SocketClient) -> None:
    registry = sockets.sandbox.p1.sockets
    sockets.sandbox.p1.options.limits = Limits(most_open=2)
    async with sockets.open(), sockets.open():
        assert (await sockets.knock()).status == 403
        assert (registry.open, registry.most_open) == (2, 2)
    async with asyncio.timeout(10):
        while registry.open:
            await asyncio.sleep(0.005)
    async with sockets.open() as line:
        assert (await line.ask()).broken is None


async def test_upgrades_at_the_same_time_count_each_other(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.limits = Limits(most_open=2)
    await asyncio.gather(*(sockets.knock() for _ in range(8)))
    assert sockets.sandbox.p1.sockets.most_open <= 2


async def test_a_socket_older_than_allowed_is_sent_away(session: aiohttp.ClientSession) -> None:
    now = [1_000.0]
    sandbox = Sandbox(options=[P1Options(socket_age_s=60)], clock=lambda: now[0])
    async with sandbox, SocketClient(sandbox, session).open() as line:
        first = await line.ask()
        now[0] += 60
        assert (await line.ask(previous_response_id=first.final["id"])).types[-1] == "response.completed"
        now[0] += 1
        (event,) = (await line.ask()).events
        assert (event["status"], event["error"]["code"]) == (400, "websocket_connection_limit_reached")
        assert (await line.listen()).status == 1000


async def test_an_answer_that_began_in_time_is_finished(session: aiohttp.ClientSession) -> None:
    now = [1_000.0]
    sandbox = Sandbox(options=[P1Options(socket_age_s=60, word_delay_s=0.002)], clock=lambda: now[0])
    async with sandbox, SocketClient(sandbox, session).open() as line:
        await line.send(frame_of(full(user("stream 10 words"))))
        await line.listen(("response.created",))
        now[0] += 61
        await line.send(frame_of(full()))
        refused = (await line.listen(("error",))).events[-1]
        assert "already" in refused["error"]["message"], "nor is it closed for a request that comes too early"
        assert (await line.listen()).types[-1] == "response.completed"


async def test_the_lite_lane(sockets: SocketClient) -> None:
    body = lite()
    async with sockets.open() as line:
        assert (await line.ask(body)).types[-1] == "response.completed", "the marker is enough"
        unmarked = {name: value for name, value in body.items() if name != "client_metadata"}
        assert (await line.ask(unmarked)).events[-1]["status"] == 404
        assert (await line.ask(full())).types[-1] == "response.completed", "the next frame is free to be full"
    async with sockets.open(lite=True) as line:
        assert (await line.ask(unmarked)).types[-1] == "response.completed", "so is the header"
        assert "Responses Lite" in (await line.ask(full())).events[-1]["error"]["message"]
