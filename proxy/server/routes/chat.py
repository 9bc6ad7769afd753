"""`POST /v1/chat/completions`."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from proxy.core.convert.chat_request_to_messages import chat_request_to_messages
from proxy.core.convert.openai_mode import by_mode
from proxy.core.ingress import Ingress
from proxy.providers.contract import OwnChat
from proxy.server.admission import AdmissionTicket
from proxy.server.exchange import Exchange
from proxy.server.pipeline import HeaderValues, by_size, run
from proxy.server.routes.converted import RoutedBody, answer_converted, read_routed


async def post_chat_completions(request: web.Request) -> web.StreamResponse:
    """`chat.completion`, or its chunks when the body says `"stream": true`."""
    return await run(request, _chat)


async def _chat(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    asked = await read_routed(exchange, values, ticket)
    return await answer_converted(exchange, asked, await by_size(exchange, partial(_ingress, asked)))


def _ingress(asked: RoutedBody) -> Ingress:
    """Raises InvalidRequest."""
    body, provider, model = asked.body, asked.provider, asked.choice.model
    parse = partial(chat_request_to_messages, body, provider.ingress(model), session=asked.session)
    strict = partial(provider.chat_request, body, model) if isinstance(provider, OwnChat) else parse
    return by_mode(strict, partial(parse, lenient=True), leniently=asked.lenient)
