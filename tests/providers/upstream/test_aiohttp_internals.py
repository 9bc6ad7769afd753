"""What we use of aiohttp beyond its documented interface is there, does what we think, and is used in one place."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer
from samples import rows
from yarl import URL

import proxy
from proxy.providers.upstream import aiohttp_internals as internals
from proxy.providers.upstream.outgoing_proxy import OutboundConnector

PACKAGE = Path(proxy.__file__).parent
#: The routes of the server are aiohttp's other half, and the sandbox stands alone.
ELSEWHERE = ("server", "sandbox")

CALLED = {
    "TCPConnector.connect": ("self", "req", "traces", "timeout"),
    "TCPConnector._create_connection": ("self", "req", "traces", "timeout"),
    "TCPConnector._update_proxy_auth_header_and_build_proxy_req": ("self", "req"),
    "ClientRequest.update_proxy": ("self", "proxy", "proxy_auth", "proxy_headers"),
    "ClientRequest.is_ssl": ("self",),
    "http_websocket.WebSocketWriter.__init__": (
        *("self", "protocol", "transport", "use_mask", "limit", "random", "compress", "notakeover"),
    ),
    "base_protocol.BaseProtocol._drain_helper": ("self",),
    "client_proto.ResponseHandler.data_received": ("self", "data"),
    "client_proto.ResponseHandler.set_exception": ("self", "exc", "exc_cause"),
    "client_proto.ResponseHandler.connection_lost": ("self", "exc"),
    "client_proto.ResponseHandler.eof_received": ("self",),
    "ClientResponse.start": ("self", "connection"),
    "StreamReader._read_nowait": ("self", "n"),
    "StreamReader._wait": ("self", "func_name"),
}


@rows("name, expected", CALLED.items())
def test_hooks_take_what_we_give(name: str, expected: tuple[str, ...]) -> None:
    found = tuple(inspect.signature(attrgetter(name)(aiohttp)).parameters)
    assert found == expected, (
        f"aiohttp {aiohttp.__version__} changed {name}: it takes {found}, aiohttp_internals.py relies on {expected}"
    )


def test_fragments_are_masked_where_and_written_as_we_think() -> None:
    data = bytearray(b"\x00" * 5)
    internals.websocket_mask(b"\x01\x02\x03\x04", data)
    assert data == b"\x01\x02\x03\x04\x01", f"aiohttp {aiohttp.__version__} changed websocket_mask"
    for owner, line in (
        (aiohttp.ClientWebSocketResponse, "self._writer = writer"),
        (aiohttp.http_websocket.WebSocketWriter, "self.protocol = protocol"),
        (aiohttp.http_websocket.WebSocketWriter._write_websocket_frame, "self.transport.write("),
    ):
        assert line in inspect.getsource(owner), f"aiohttp {aiohttp.__version__} changed {owner}: no `{line}` any more"


#: The methods of a body that bring something to its reader.
FEEDS = [
    getattr(aiohttp.StreamReader, name)
    for name in ("feed_data", "feed_eof", "set_exception", "end_http_chunk_receiving")
]


def test_connections_and_bodies_have_what_we_look_at() -> None:
    for owner, line in (
        (aiohttp.BaseConnector.__init__, "self._factory = functools.partial(ResponseHandler, loop=loop)"),
        (aiohttp.TCPConnector._create_proxy_connection, "proxy_resp = await proxy_req.send(conn)"),
        (aiohttp.ClientRequest.send, "response_class = self.response_class"),
        (aiohttp.client_proto.ResponseHandler.data_received, "self._payload = payload"),
        (aiohttp.client_proto.ResponseHandler.should_close.fget, "or self._buffer"),
        (aiohttp.ClientResponse.start, "self.content = payload"),
        (aiohttp.StreamReader.readany, "if self._exception is not None:"),
        (aiohttp.StreamReader._read_nowait, "while self._buffer"),
        # what feeds a body wakes the one future that waits for it, and whoever reads makes the future himself
        *((feeds, "waiter = self._waiter") for feeds in FEEDS),
        (aiohttp.StreamReader._wait, "waiter = self._waiter = self._loop.create_future()"),
        (aiohttp.StreamReader._wait, "with self._timer:"),
        (aiohttp.StreamReader._wait, "if not self._protocol.connected:"),
        (aiohttp.StreamReader._read_nowait, "if n == -1:"),
        (aiohttp.StreamReader._read_nowait_chunk, "self._size -= data_len"),
        (aiohttp.StreamReader.feed_eof, "self._eof = True"),
        (aiohttp.http_parser.DeflateBuffer.__init__, "out.total_compressed_bytes = "),
    ):
        found = line in inspect.getsource(owner)  # type: ignore[arg-type]
        assert found, f"aiohttp {aiohttp.__version__} changed {owner}: no `{line}` any more"


@rows("option", ["response_class", "ws_response_class", "middlewares", "connector_owner"])
def test_a_session_takes_our_classes(option: str) -> None:
    options = inspect.signature(aiohttp.ClientSession.__init__).parameters
    assert option in options, f"aiohttp {aiohttp.__version__} has no ClientSession({option}=…) any more"


def test_a_socket_keeps_connection_and_answer_where_we_look() -> None:
    source = inspect.getsource(aiohttp.ClientWebSocketResponse.__init__)
    for line in ("self._response = response", "self._conn = response.connection"):
        assert line in source, f"aiohttp {aiohttp.__version__} changed ClientWebSocketResponse: no `{line}` any more"


async def test_our_connector_hides_nothing_of_aiohttps() -> None:
    """Its attributes would be taken for the library's own."""
    tree = ast.parse(inspect.getsource(OutboundConnector))
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    async with aiohttp.TCPConnector() as theirs:
        taken = {node.attr for node in stored} & set(dir(theirs))
    assert stored and not taken, f"aiohttp {aiohttp.__version__} uses these names too: {sorted(taken)}"


def test_only_one_module_uses_what_is_not_documented() -> None:
    """No submodule of aiohttp, no subclass of its classes, and nobody's private members."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] in ELSEWHERE or path == Path(internals.__file__):
            continue
        text = path.read_text("utf-8")
        tree = ast.parse(text if "aiohttp" in text else "")
        assert not list(undocumented(tree)), f"{place}: belongs into {Path(internals.__file__).name}"


#: What programs derive their own from, by the manual of aiohttp.
ABSTRACT = "aiohttp.abc"


def undocumented(tree: ast.Module) -> Iterator[str]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    modules = [name for node in imports for name in imported(node) if name.split(".")[0] == "aiohttp"]
    yield from (name for name in modules if "." in name and name != ABSTRACT)
    for node in ast.walk(tree) if modules else ():
        if isinstance(node, ast.ClassDef):
            yield from (text for base in node.bases if (text := ast.unparse(base)).startswith(("aiohttp.", "web.")))
        private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if private and not (text := ast.unparse(node)).startswith(("self", "cls")):
            yield text


def imported(node: ast.ImportFrom | ast.Import) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


@pytest.mark.parametrize(
    "source",
    [
        "from aiohttp.connector import Connection",
        "import aiohttp\nclass Mine(aiohttp.TCPConnector): ...",
        "import aiohttp\ndef f(session): return session._connector",
    ],
)
def test_what_is_not_documented_is_seen(source: str) -> None:
    assert list(undocumented(ast.parse(source)))


# -- and it works


@asynccontextmanager
async def served(handler: Any) -> AsyncIterator[URL]:
    app = web.Application()
    app.router.add_get("/", handler)
    async with TestServer(app) as server:
        yield server.make_url("/")


async def test_every_connection_passes_the_hook() -> None:
    seen: list[str] = []

    class Noting(internals.HookedConnector):
        async def connect_for(self, request: aiohttp.ClientRequest, connect: internals.Connect) -> Any:
            seen.append(str(request.url))
            return await connect()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async with served(hello) as url, aiohttp.ClientSession(connector=Noting()) as session:
        for _ in range(2):
            async with session.get(url) as response:
                assert await response.text() == "hello"
        assert seen == [str(url)] * 2


async def test_a_socket_gives_what_has_arrived_and_never_waits() -> None:
    async def talk(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        ws.headers["x-request-id"] = "r1"
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data)
            await ws.send_str("and more")
        return ws

    async with (
        served(talk) as url,
        aiohttp.ClientSession(ws_response_class=internals.OpenWebSocket) as session,
        session.ws_connect(url) as ws,
    ):
        assert isinstance(ws, internals.OpenWebSocket) and ws.headers["x-request-id"] == "r1"
        assert ws.transport is not None and not ws.lost and ws.receive_nowait() is None
        await ws.send_str("one")
        assert (await ws.receive()).data == "one"
        await asyncio.sleep(0.05)
        message = ws.receive_nowait()
        assert message is not None and (message.type, message.data) == (WSMsgType.TEXT, "and more")
        assert ws.receive_nowait() is None and not ws.lost
        ws.transport.abort()
        assert ws.lost


@rows("sizes", [(5,), (0, 125), (126, 1, 65_535), (65_536, 70_000, 0)])
async def test_a_message_in_fragments_arrives_whole_with_pongs_in_between(sizes: tuple[int, ...]) -> None:
    async def talk(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(autoping=False, max_msg_size=0)
        await ws.prepare(request)
        kinds = []
        while (message := await ws.receive()).type is WSMsgType.PONG:
            kinds.append(message.data)
        await ws.send_json([message.data, len(kinds)])
        return ws

    pieces = [bytes([97 + place]) * size for place, size in enumerate(sizes)]
    async with (
        served(talk) as url,
        aiohttp.ClientSession(ws_response_class=internals.OpenWebSocket) as session,
        session.ws_connect(url) as ws,
    ):
        assert isinstance(ws, internals.OpenWebSocket)
        for place, piece in enumerate(pieces):
            ws.write_fragment(memoryview(piece), first=place == 0, last=place == len(pieces) - 1)
            await ws.drain()
            if place < len(pieces) - 1:
                await ws.pong(b"here")
        assert await ws.receive_json() == [b"".join(pieces).decode(), len(pieces) - 1]
        ws.transport.abort()  # type: ignore[union-attr]
        with pytest.raises(aiohttp.ClientConnectionResetError):
            ws.write_fragment(memoryview(b"x"), first=True, last=True)
