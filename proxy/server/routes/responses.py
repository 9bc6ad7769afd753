"""`POST /v1/responses`. A provider that speaks the Responses API itself gets the bodies as they are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from aiohttp import web

from proxy.core.cache_health.fingerprint import of_responses
from proxy.core.convert.openai_mode import by_mode
from proxy.core.convert.responses_request_to_messages import responses_request_to_messages
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import Progress
from proxy.providers.contract import NativeAnswer, NativeResponses
from proxy.server.accounts.serving import native_answer
from proxy.server.admission import AdmissionTicket
from proxy.server.cache_watch import owner_by
from proxy.server.exchange import Exchange
from proxy.server.fallback.native import check_native, kept_back
from proxy.server.pipeline import HeaderValues, by_size, compare, find_project, reading_client, run
from proxy.server.routes.converted import RoutedBody, answer_converted, call_for, read_routed
from proxy.server.stream import note_answer, record_usage, watched


async def post_responses(request: web.Request) -> web.StreamResponse:
    """A response object, or the events that build it."""
    return await run(request, _responses)


async def get_responses(request: web.Request) -> web.StreamResponse:
    """No WebSocket is served here. Codex CLI tries one first and goes on over HTTP after a 426, without waiting."""
    if "websocket" in request.headers.get("Upgrade", "").lower():
        raise ProxyError("this route is served over HTTP only: POST the request", kind="no_upgrade")
    raise web.HTTPMethodNotAllowed(request.method, ["POST"])


async def _responses(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    asked = await read_routed(exchange, values, ticket)
    if isinstance(asked.provider, NativeResponses):
        return await _native(exchange, asked, asked.provider)
    rules = asked.provider.ingress(asked.choice.model)
    parse = partial(responses_request_to_messages, asked.body, rules, session=asked.session)
    read = partial(by_mode, parse, partial(parse, lenient=True), leniently=asked.lenient)
    ingress = await by_size(exchange, read)
    return await answer_converted(exchange, asked, ingress)


# -- passed through


async def _native(exchange: Exchange, asked: RoutedBody, provider: NativeResponses) -> web.StreamResponse:
    if asked.lenient:
        body, ignored = provider.lenient_body(asked.body)
        asked = replace(asked, body=body)
        exchange.ignore(ignored)
    await find_project(exchange, asked.body)
    call = call_for(exchange, asked, asked.body, provider.native_target(asked.choice.model, asked.body))
    compare(exchange, owner_by(call.cache_key), asked.provider, call, fingerprint=of_responses)
    async with watched(exchange), native_answer(exchange, provider, call) as answer:
        check_native(exchange, answer, asked.provider.label)
        streams = answer.status == 200 and call.request.get("stream") is True
        waits = streams and bool(exchange.fallback.left)
        async with aclosing(kept_back(exchange.fallback, answer) if waits else answer.chunks) as chunks:
            first = await anext(chunks, b"") if waits else b""
            response = web.StreamResponse(status=answer.status, headers={**exchange.head, **answer.headers})
            exchange.response = response  # from here on nothing is made up: a body that breaks has no end
            await response.prepare(exchange.request)
            exchange.log("info", "response_started", status=answer.status)
            await _relay(exchange, answer, response, _behind(first, chunks), streams=streams)
        _note_end(exchange, answer)
        async with reading_client(exchange):
            await response.write_eof()
    return response


async def _behind(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk


async def _relay(
    exchange: Exchange,
    answer: NativeAnswer,
    response: web.StreamResponse,
    chunks: AsyncGenerator[bytes, None],
    *,
    streams: bool,
) -> None:
    """Passes the body on. One that is no stream comes in one piece."""
    tell = exchange.capture.streamed if streams else exchange.capture.replied
    begun = False
    async for chunk in chunks:
        if not begun and answer.status == 200:
            begun = True
            note_answer(exchange)
        async with reading_client(exchange):
            await response.write(chunk)
        tell(chunk)
        exchange.record(Progress(len(chunk), 1))


def _note_end(exchange: Exchange, answer: NativeAnswer) -> None:
    if answer.end.usage is not None:
        record_usage(exchange, {"type": "message_delta", "usage": answer.end.usage})
    if answer.status >= 400:
        message = f"the upstream answered with status {answer.status}"
        exchange.failed(UpstreamError(message, kind="upstream", status=answer.status))
    elif answer.end.failure is not None:
        exchange.failed(answer.end.failure, in_band=True)
    else:
        exchange.completed(answer.status)
