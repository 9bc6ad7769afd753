"""The transport of one request to the backend: a socket, or HTTP when no socket can be opened.

The choice is made before anything is sent. A request that was sent over a socket never goes over HTTP, since the model
may be at work on it. Only a socket that is closed because of the request's size, before any answer, did not accept it.
"""

from __future__ import annotations

from contextlib import aclosing

from proxy.errors import UpstreamError
from proxy.providers.p1_codex.socket.connect import upgrade_digest
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.exchange import Attempt, SocketExchange
from proxy.providers.p1_codex.socket.frames import SIZE
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, HandshakeFailed
from proxy.providers.p1_codex.socket.manager import SocketManager
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.transport import Transport

AUTO, WEBSOCKET, HTTP = "auto", "websocket", "http"


class TransportSelection:
    """Sends the attempts of one request. Each request needs its own."""

    def __init__(self, mode: str, sockets: SocketManager, http: Transport, continuation: TurnContinuation) -> None:
        # a socket whose conversation cannot be continued costs a handshake and gives nothing
        self._mode = HTTP if mode == AUTO and not continuation.active else mode
        self._sockets = sockets
        self._http = http
        self.continuation = continuation
        self._sent = False  # whether the request was sent over a socket

    def stream(self, attempt: Attempt) -> Batches:
        """The events of one answer; EOF in place of the last one when a socket breaks. Raises UpstreamError."""
        return self._http(attempt.post()) if self._mode == HTTP else self._over_a_socket(attempt)

    async def _over_a_socket(self, attempt: Attempt) -> Batches:
        """Streams over a socket, or over HTTP when no socket can be opened."""
        attempt.timings.sent(attempt.number)
        socket = await self._socket(attempt)
        if socket is not None:
            exchange, heard = SocketExchange(socket, attempt, self.continuation, self._sockets.timers), False
            try:
                async with aclosing(exchange.run()) as batches:
                    async for batch in batches:
                        heard = True
                        attempt.timings.answered(socket.upstream_id)
                        yield batch
            except UpstreamError as error:
                if error.code != SIZE or heard or not self._goes_on(exchange, attempt):
                    raise
            finally:
                self._sent = self._sent or exchange.sent
                if exchange.died is not None and self._mode != HTTP:
                    self._sockets.ended(died=exchange.died)
        if self._mode == HTTP:
            async with aclosing(self._http(attempt.post())) as batches:
                async for batch in batches:
                    yield batch

    def _goes_on(self, exchange: SocketExchange, attempt: Attempt) -> bool:
        """Whether to send the request over HTTP after the upstream refused its size. Requests of this conversation that
        are as large then use HTTP at once."""
        if exchange.sent:  # a kept socket may be closed like this before anything is sent
            self.continuation.refuse(exchange.size)
        if self._mode != AUTO or self._sent:
            return False
        self._mode = HTTP
        attempt.note("info", "websocket_fallback", bytes=exchange.size)
        return True

    async def _socket(self, attempt: Attempt) -> Socket | None:
        """An open socket; None for HTTP, which this request then keeps."""
        upgrade = attempt.upgrade()
        if attempt.number > 1:
            self.continuation.send_whole()
        elif (socket := await self.continuation.socket(upgrade_digest(*upgrade))) is not None:
            return socket
        may_post, renewed = self._mode == AUTO and not self._sent, attempt.renewed
        if may_post and await self._is_too_large(attempt):
            self._mode = HTTP
            return None
        attempt.timings.connecting()
        try:
            socket = await self._sockets.open(*upgrade, hurried=may_post, renewed=renewed, capture=attempt.capture)
        except HandshakeFailed as failure:
            # an upgrade may refuse tokens that HTTP accepts, but the token is renewed first
            if not may_post or (failure.status == UNAUTHORIZED and not renewed):
                raise failure.error from None
            self._mode = HTTP
            attempt.timings.connected()
            attempt.note("info", "websocket_fallback", status=failure.status, message=failure.error.message)
            return None
        attempt.timings.connected()
        attempt.note("info", "websocket_opened", socket=socket.number, upstreamId=socket.upstream_id)
        return socket

    async def _is_too_large(self, attempt: Attempt) -> bool:
        """Whether a request of this conversation that was no larger was refused for its size."""
        refused = self.continuation.refused_size
        return refused is not None and len(await attempt.frame()) >= refused
