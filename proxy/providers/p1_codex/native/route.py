"""One request of the native Responses route, from sign-in to the last byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import aiohttp

from proxy.auth.refresh import Credentials
from proxy.core.sse import dump_json, encode_json
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, NativeAnswer, NativeEnd, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.native.body import native_body
from proxy.providers.p1_codex.native.relay import RelayObserver, aggregated, passed_headers, relayed
from proxy.providers.upstream.transport import HttpTransport


class NativeRoute:
    """Always HTTP, and sent once: only a token that was refused is renewed and the request repeated."""

    def __init__(self, services: Services, credentials: Credentials, transport: HttpTransport) -> None:
        self._services = services
        self._credentials = credentials
        self._transport = transport

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncGenerator[NativeAnswer, None]:
        """The answer, its body still to be read. Raises ProxyError."""
        shaped = native_body(call.request, call.target)
        payload = dump_json(shaped.body).encode()
        credential = await self._credentials.get()
        for number in (1, 2):
            call.record(UpstreamStarted(number))
            config = self._services.config()
            headers = p1_request.headers(config, lite=shaped.lite, session=call.session)
            signed = p1_request.with_credential(headers, credential)
            request = p1_request.post(config, signed, payload, request_id=call.request_id, attempt=number)
            async with self._transport.open(request) as response:
                if response.status == 401 and number == 1:
                    credential = await self._credentials.renew(credential.access)
                    continue
                answer = await self._answer(call, response)
                async with aclosing(answer.chunks):
                    yield answer
                return

    async def _answer(self, call: Call, response: aiohttp.ClientResponse) -> NativeAnswer:
        now, end = self._services.clock(), NativeEnd()
        headers = passed_headers(response)
        if response.status == 200 and call.request.get("stream") is not True:
            body, end.usage = await aggregated(self._transport, response, now=now)
            return NativeAnswer(200, {**headers, "content-type": "application/json"}, _whole(encode_json(body)), end)
        chunks = relayed(self._transport, response, RelayObserver(end, now) if response.status == 200 else None)
        return NativeAnswer(response.status, headers, chunks, end)


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
