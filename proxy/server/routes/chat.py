"""`POST /v1/chat/completions`."""

from __future__ import annotations

from aiohttp import web

from proxy.core.convert.chat_request_to_messages import chat_request_to_messages
from proxy.providers.contract import OwnChat
from proxy.server.admission import AdmissionTicket
from proxy.server.exchange import Exchange
from proxy.server.pipeline import HeaderValues, run
from proxy.server.routes.converted import answer_converted, read_routed


async def post_chat_completions(request: web.Request) -> web.StreamResponse:
    """`chat.completion`, or its chunks when the body says `"stream": true`."""
    return await run(request, _chat)


async def _chat(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    asked = await read_routed(exchange, values, ticket)
    if isinstance(asked.provider, OwnChat):
        ingress = asked.provider.chat_request(asked.body, asked.choice.model)
    else:
        ingress = chat_request_to_messages(
            asked.body, asked.provider.ingress(asked.choice.model), session=asked.session
        )
    return await answer_converted(exchange, asked, ingress)
