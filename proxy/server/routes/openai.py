"""`POST /v1/chat/completions` and `POST /v1/responses`, in the OpenAI family's own forms.

A body is parsed into a hub request and the hub's answer rendered back, whoever serves it. A provider that speaks the
Responses API itself gets Responses bodies as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.core.convert.chat_request_to_messages import chat_request_to_messages
from proxy.core.convert.messages_to_chat_reply import ChatReply
from proxy.core.convert.messages_to_responses_reply import ResponsesReply
from proxy.core.convert.responses_request_to_messages import responses_request_to_messages
from proxy.core.identity import SESSION_HEADERS
from proxy.core.ingress import Ingress
from proxy.errors import ProxyError, RequestError, UpstreamError
from proxy.observe.lifecycle import GenerationStarted, Progress
from proxy.providers.contract import Call, NativeAnswer, NativeResponses, OwnChat, Provider, Target
from proxy.server.admission import Permit
from proxy.server.body import read_json
from proxy.server.exchange import Exchange
from proxy.server.pipeline import (
    Choice,
    HeaderValues,
    choose,
    find_project,
    first_value,
    provider_of,
    reading_client,
    selected,
    send_json,
    serve,
)
from proxy.server.renderers import ChatForm, Form, ResponsesForm
from proxy.server.stream import fold_stream, record_usage, send_stream, watched

CHAT_PATH = "/v1/chat/completions"
RESPONSES_PATH = "/v1/responses"

#: Codex CLI names its conversation in the last one.
SESSION_NAMES = (*SESSION_HEADERS, "session_id", "x-client-request-id")


async def post_chat_completions(request: web.Request) -> web.StreamResponse:
    """`chat.completion`, or its chunks when the body says `"stream": true`."""
    return await serve(Exchange(request, "chat_completions", "openai"), SESSION_NAMES, _chat)


async def post_responses(request: web.Request) -> web.StreamResponse:
    """A response object, or the events that build it."""
    return await serve(Exchange(request, "responses", "openai"), SESSION_NAMES, _responses)


async def get_responses(request: web.Request) -> web.StreamResponse:
    """No WebSocket is served here. Codex CLI tries one first and goes on over HTTP after a 426, without waiting."""
    if "websocket" in request.headers.get("Upgrade", "").lower():
        raise ProxyError("this route is served over HTTP only: POST the request", kind="no_upgrade")
    raise web.HTTPMethodNotAllowed(request.method, ["POST"])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request whose model is known to somebody."""

    body: dict[str, Any]
    session: str | None
    choice: Choice
    provider: Provider


async def _asked(exchange: Exchange, values: HeaderValues, permit: Permit) -> _Asked:
    config = exchange.state.config()
    body = await read_json(exchange.request, config, permit, packed=exchange.state.packed)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError("`model` must be a non-empty string", param="model")
    session = first_value(values, SESSION_NAMES)
    choice = choose(exchange, config, model, session)
    return _Asked({**body, "model": choice.model}, session, choice, provider_of(exchange, choice, permit))


async def _chat(exchange: Exchange, values: HeaderValues, permit: Permit) -> web.StreamResponse:
    asked = await _asked(exchange, values, permit)
    if isinstance(asked.provider, OwnChat):
        ingress = asked.provider.chat_request(asked.body, asked.choice.model)
    else:
        ingress = chat_request_to_messages(asked.body, asked.provider.ingress, session=asked.session)
    completion_id = f"chatcmpl-{uuid.uuid4().hex}"
    created = int(exchange.state.clock())
    form = ChatForm(ChatReply(ingress, completion_id=completion_id, created=created, model=asked.choice.model))
    return await _answer(exchange, asked, ingress, form)


async def _responses(exchange: Exchange, values: HeaderValues, permit: Permit) -> web.StreamResponse:
    asked = await _asked(exchange, values, permit)
    if isinstance(asked.provider, NativeResponses):
        return await _native(exchange, asked, asked.provider)
    ingress = responses_request_to_messages(asked.body, asked.provider.ingress, session=asked.session)
    created = int(exchange.state.clock())
    reply = ResponsesReply(ingress, response_id=uuid.uuid4().hex, created=created, model=asked.choice.model)
    return await _answer(exchange, asked, ingress, ResponsesForm(reply))


async def _answer(exchange: Exchange, asked: _Asked, ingress: Ingress, form: Form) -> web.StreamResponse:
    target = asked.provider.resolve(asked.choice.model, ingress.request, auto_review=False)
    await find_project(exchange, ingress.request)
    batches = asked.provider.stream(_call(exchange, asked, ingress.request, target))
    if ingress.stream:
        return await send_stream(exchange, batches, form, exchange.state.config().stream_grace_ms / 1000)
    return await send_json(exchange, await fold_stream(exchange, batches, form))


def _call(exchange: Exchange, asked: _Asked, request: Mapping[str, Any], target: Target) -> Call:
    """A request that is right and will be served. It leaves no conversation state behind."""
    selected(exchange, asked.choice, target, asked.session)
    return Call(
        request=request,
        model=asked.choice.model,
        target=target,
        request_id=exchange.id,
        session=asked.session,
        recorder=exchange.state.recorder,
    )


# -- passed through


async def _native(exchange: Exchange, asked: _Asked, provider: NativeResponses) -> web.StreamResponse:
    call = _call(exchange, asked, asked.body, provider.native_target(asked.choice.model, asked.body))
    async with watched(exchange), provider.native(call) as answer:
        response = web.StreamResponse(status=answer.status, headers={**exchange.id_headers, **answer.headers})
        exchange.response = response  # from here on nothing is made up: a body that breaks has no end
        await response.prepare(exchange.request)
        exchange.log("info", "response_started", status=answer.status)
        await _relay(exchange, answer, response)
        _note_end(exchange, answer)
        async with reading_client(exchange):
            await response.write_eof()
    return response


async def _relay(exchange: Exchange, answer: NativeAnswer, response: web.StreamResponse) -> None:
    begun = False
    async for chunk in answer.chunks:
        if not begun and answer.status == 200:
            begun = True
            exchange.record(GenerationStarted())
        async with reading_client(exchange):
            await response.write(chunk)
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
