"""`POST /v1/images/generations` and `POST /v1/images/edits`."""

from __future__ import annotations

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
    label, maker = _maker(exchange)
    asked = await read(exchange, ticket, generation_json(maker.image_model))
    call = selected(exchange, values, ticket, label, _room(exchange), maker.image_model)
    return await relay(exchange, maker.make_images(call, asked))


async def _edit(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    content_type = check_head(exchange, JSON, FORM)
    label, maker = _maker(exchange)
    asked = await read(exchange, ticket, _edit_reader(exchange, content_type, maker.image_model))
    call = selected(exchange, values, ticket, label, _room(exchange), maker.image_model)
    return await relay(exchange, maker.make_images(call, asked))


def _edit_reader(exchange: Exchange, content_type: str, model: str) -> BodyReader[ImageRequest]:
    if content_type == JSON:
        return edit_json(model)
    return edit_form(boundary_of(exchange.request.headers["Content-Type"]), model)


def _maker(exchange: Exchange) -> tuple[str, Images]:
    """Who makes images, and its label."""
    for label, provider in exchange.state.providers.items():
        if isinstance(provider, Images):
            return label, provider
    raise unavailable("images")


def _room(exchange: Exchange) -> Room:
    return Room("images", exchange.state.config().max_concurrent_images)
