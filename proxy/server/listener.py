"""The listener of a proxy that runs alone. It bounds the number of connections, and the time that they may be idle or
take for the head of a request.

A program that mounts the application has its own runner, which decides about both.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError

from proxy.config import Config
from proxy.core.sse import encode_json
from proxy.errors import ProxyError, RequestError, messages_body
from proxy.server.request.families import MODELS
from proxy.server.request.inquiry import id_headers
from proxy.server.request.replies import error_response

#: How long a refused connection may take to read the answer.
REFUSED_S = 1.0

_NO_ACCESS_LOG: Final[dict[str, Any]] = {"access_log": None}  # aiohttp accepts it, but its types do not


class Listener:
    """The socket for clients, and the runner of the application.

    cut_s  how long the runner may take at the end, after the time that answers have to finish
    """

    def __init__(self, app: web.Application, config: Config, cut_s: float) -> None:
        # Handlers are cancelled when their client leaves; the watch of a request would do it too, half a second later.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=cut_s)
        self._config = config
        self._listening: asyncio.Server | None = None

    async def start(self) -> int:
        """Starts to listen, and returns the port. Raises OSError if it is taken; then there is nothing to close."""
        await self._runner.setup()
        config = self._config
        try:
            loop = asyncio.get_running_loop()
            self._listening = await loop.create_server(self._accept, config.bind_address, config.port)
        except OSError:
            await self._runner.cleanup()
            raise
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    @property
    def server(self) -> web.Server:
        """The server with the connections; only after `start`."""
        server = self._runner.server
        if server is None:
            raise RuntimeError("not started")
        return server

    def _accept(self) -> asyncio.BaseProtocol:
        if len(self.server.connections) < self._config.max_connections:
            return _Connection(self.server, self._config)
        return _RefusedConnection(self._config.max_connections)

    async def close(self) -> None:
        """Stops accepting, lets answers finish, and cuts the rest after the limit."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()


class _Connection(web.RequestHandler):
    """A connection of a client. Answers what is not HTTP, and so reaches no route, in a form that clients of either API
    read."""

    __slots__ = ()

    def __init__(self, server: web.Server, config: Config) -> None:
        # Bodies are unpacked by us, with bounds. The timer of idle connections runs until a head is complete.
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            auto_decompress=False,
            keepalive_timeout=config.idle_timeout_ms / 1000,
            **_NO_ACCESS_LOG,
        )

    def close(self) -> None:
        """Ends the connection with the program. aiohttp would only stop reading. A request whose body is still to come
        would wait in vain, so its answer ends the connection (`edge`). An idle connection is closed at once, since a
        request on it would wait for the end of all other answers, and get none."""
        waiter, request = self._waiter, self._current_request
        coming = request.content if request is not None else self._messages[0][1] if self._messages else None
        if coming is not None and not coming.is_eof():
            return
        idle = waiter is not None and not waiter.done()
        super().close()
        if idle and self.transport is not None:
            self.transport.close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        answer = super().handle_error(request, status, exc, message)  # which also logs it
        if not isinstance(exc, HttpProcessingError):
            return answer
        request_id = str(uuid.uuid4())
        response = error_response(RequestError(f"this is not an HTTP request: {_fault(exc)}"), request_id, MODELS)
        response.headers.update(id_headers(request_id))
        response.force_close()
        return response


def _fault(error: HttpProcessingError) -> str:
    """The fault, without the parser's quotes, which may be a header or an address with a key."""
    if isinstance(error, InvalidURLError):
        return "its address cannot be read"
    return error.message.strip().partition("\n")[0].partition(" when reading:")[0].rstrip(":")


class _RefusedConnection(asyncio.Protocol):
    """A connection beyond the limit, which is refused."""

    def __init__(self, limit: int) -> None:
        message = f"busy: {limit} connections at a time are served; try again in a second"
        body = encode_json(messages_body(ProxyError(message, kind="unavailable"), ""))
        head = "HTTP/1.1 503 Service Unavailable", "Content-Type: application/json", f"Content-Length: {len(body)}"
        self._answer = "\r\n".join((*head, "Retry-After: 1", "Connection: close", "", "")).encode() + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        link = cast("asyncio.Transport", transport)
        link.write(self._answer)
        if link.can_write_eof():
            link.write_eof()
        # If it were closed at once, with unread bytes of the client, it would be reset and the answer lost.
        asyncio.get_running_loop().call_later(REFUSED_S, link.abort)
