"""`POST /v1/images/generations` and `POST /v1/images/edits`."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from proxy.core.media.readers import BodyReader, boundary_of, edit_form, edit_json, generation_json
from proxy.core.media.requests import ImageRequest
from proxy.providers.contract import Images
from proxy.server.admission import AdmissionTicket
from proxy.server.exchange import Exchange
from proxy.server.pipeline import HeaderValues, run
from proxy.server.routes.media import FORM, JSON, Room, check_head, read, relay, selected, unavailable


async def post_generation(request: web.Request) -> web.StreamResponse:
    """Images of a prompt."""
    return await run(request, _generate)


async def post_edit(request: web.Request) -> web.StreamResponse:
    """Images made of others, which come as data URLs in JSON or as files of a form."""
    return await run(request, _edit)


async def _generate(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    check_head(exchange, JSON)
    return await _make(exchange, values, ticket, generation_json)


async def _edit(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    if check_head(exchange, JSON, FORM) == JSON:
        return await _make(exchange, values, ticket, edit_json)
    content_type = exchange.request.headers["Content-Type"]
    return await _make(exchange, values, ticket, lambda model: edit_form(boundary_of(content_type), model))


async def _make(
    exchange: Exchange,
    values: HeaderValues,
    ticket: AdmissionTicket,
    reader: Callable[[str], BodyReader[ImageRequest]],
) -> web.StreamResponse:
    """`reader` is given the model that there is."""
    label, maker = _maker(exchange)
    asked = await read(exchange, ticket, reader(maker.image_model))
    room = Room("images", exchange.state.config().max_concurrent_images)
    call, chosen = selected(exchange, values, ticket, label, room, maker.image_model)
    maker = chosen if isinstance(chosen, Images) else maker
    return await relay(exchange, maker.make_images(call, asked))


def _maker(exchange: Exchange) -> tuple[str, Images]:
    """Who makes images, and its label."""
    for label, provider in exchange.state.providers.items():
        if isinstance(provider, Images):
            return label, provider
    raise unavailable("images")
