"""`POST /v1/audio/transcriptions`."""

from __future__ import annotations

from aiohttp import web

from proxy.core.media.readers import boundary_of, transcription_form
from proxy.providers.contract import Transcription
from proxy.server.admission import AdmissionTicket
from proxy.server.exchange import Exchange
from proxy.server.pipeline import HeaderValues, run
from proxy.server.routes.media import FORM, Room, check_head, read, relay, selected, unavailable


async def post_transcription(request: web.Request) -> web.StreamResponse:
    """The text of a recording."""
    return await run(request, _transcribe)


async def _transcribe(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    check_head(exchange, FORM)
    label, writer = _writer(exchange)
    reader = transcription_form(boundary_of(exchange.request.headers["Content-Type"]))
    asked = await read(exchange, ticket, reader)
    room = Room("transcriptions", exchange.state.config().max_concurrent_transcriptions)
    call, chosen = selected(exchange, values, ticket, label, room)
    writer = chosen if isinstance(chosen, Transcription) else writer
    return await relay(exchange, writer.transcribe(call, asked), as_text=asked.as_text)


def _writer(exchange: Exchange) -> tuple[str, Transcription]:
    """Who writes recordings down, and its label."""
    for label, provider in exchange.state.providers.items():
        if isinstance(provider, Transcription):
            return label, provider
    raise unavailable("transcriptions")
