"""The two channels of a run over HTTP/1.1: a stream that the service talks on, and a call for each message of ours."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import aiohttp

from proxy.errors import UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, AttemptCapture, RequestCapture
from proxy.observe.timings import Timings
from proxy.providers.contract import Services
from proxy.providers.p5_cursor.failures import PROFILE, refusal
from proxy.providers.p5_cursor.headers import call_headers
from proxy.providers.p5_cursor.run.timers import RunTimers
from proxy.providers.p5_cursor.wire.envelopes import envelope
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.providers.upstream.client import in_pieces, read_error
from proxy.providers.upstream.transport import unreachable

STREAM_PATH = "/agent.v1.AgentService/RunSSE"
APPEND_PATH = "/aiserver.v1.BidiService/BidiAppend"
STREAM_TYPE = "application/connect+proto"
APPEND_TYPE = "application/proto"

#: As the vendor's client has it: envelopes may be packed, the stream of them is not.
_PACKED = {"connect-accept-encoding": "gzip", "accept-encoding": "identity"}

#: Bodies up to this size are written at once, in bytes.
_PIECE = 64 * 1024

#: No connection came to be, so nothing of the request was sent and it may be tried once more.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Channels:
    """Both channels of the run `id`.

    token, version  the access token, and the build of the vendor's client that the service is told
    timings         of the request that begins the run
    """

    def __init__(
        self, services: Services, base_url: str, token: str, version: str, timers: RunTimers, timings: Timings
    ) -> None:
        self.id = str(uuid.UUID(services.new_id()))
        self._services = services
        self._session = services.client_for(base_url)
        self._base_url = base_url
        self._token = token
        self._version = version
        self._timers = timers
        self._timings = timings

    def attempt(self, capture: RequestCapture, message: Mapping[str, Any], **details: Any) -> AttemptCapture:
        """Tells what a request begins or goes on with. It is not the body of the stream's own call, which only names
        the run."""
        url, headers = f"{self._base_url}{STREAM_PATH}", self._headers(self.id, STREAM_TYPE)
        return capture.attempt(
            transport="connect", method="POST", url=url, headers=headers, body=message, run=self.id, **details
        )

    async def open(self, told: AttemptCapture) -> aiohttp.ClientResponse:
        """The stream, whose head has come: `release` it. Raises UpstreamError."""
        headers = self._headers(self.id, STREAM_TYPE) | _PACKED
        body = envelope(encode("BidiRequestId", {"request_id": self.id}))
        response = await self._post(STREAM_PATH, headers, body, self._timers.headers, self._timings)
        self._timings.answered(self.id)  # the name that the service has for it from us
        told.answered(response.status, response.headers)
        if response.status != 200:
            raise await self._refusal(response, STREAM_TYPE, told)
        return response

    async def append(self, number: int, message: bytes) -> None:
        """Sends one message; its answer says nothing but that it came. Raises UpstreamError, of which none is worth
        another try: the run had begun."""

        def write() -> bytes:
            # a little at a time: no other thread runs while a piece is written
            data = "".join(message[at : at + _PIECE].hex() for at in range(0, len(message), _PIECE))
            run = {"request_id": self.id}
            return encode("BidiAppendRequest", {"data": data, "request_id": run, "append_seqno": number})

        # pictures take long enough for others to notice
        body = await asyncio.to_thread(write) if len(message) > _PIECE else write()
        headers = self._headers(str(uuid.UUID(self._services.new_id())), APPEND_TYPE)
        response = await self._post(APPEND_PATH, headers, body, self._timers.append)
        if response.status != 200:
            raise (await self._refusal(response, APPEND_TYPE, NULL_ATTEMPT)).replaced(repeatable=False)
        await read_error(response)
        response.release()

    def _headers(self, call_id: str, content_type: str) -> dict[str, str]:
        return call_headers(self._token, self._version, call_id, self.id, content_type)

    async def _refusal(self, response: aiohttp.ClientResponse, sent: str, told: AttemptCapture) -> UpstreamError:
        """The error behind an answer that is none, which is given back."""
        body = await read_error(response)
        told.refused(body)
        response.close()
        types = f"sent {sent}, answered {response.headers.get('content-type', 'no content type')}"
        waits = response.headers.get("retry-after")
        return refusal(response.status, waits, body, types, now=self._services.clock())

    async def _post(
        self, path: str, headers: dict[str, str], body: bytes, limit_s: float, timings: Timings | None = None
    ) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(limit_s) as timer:
                try:
                    return await self._send(path, in_pieces(body, headers, timer, limit_s), timings)
                except _NOT_SENT as error:
                    if isinstance(error, aiohttp.ClientConnectorCertificateError):
                        raise
                    return await self._send(path, in_pieces(body, headers, timer, limit_s), timings)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            failure = unreachable(PROFILE, error, limit_s).replaced(repeatable=False)
            late = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError)
            raise failure.replaced(kind="upstream_timeout") if late else failure from None

    async def _send(
        self, path: str, sent: tuple[Any, dict[str, str]], timings: Timings | None
    ) -> aiohttp.ClientResponse:
        data, headers = sent
        url = f"{self._base_url}{path}"
        return await self._session.post(
            url, data=data, headers=headers, allow_redirects=False, trace_request_ctx=timings
        )
