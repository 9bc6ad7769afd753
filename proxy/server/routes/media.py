"""What the routes of images and audio share: what is checked before the body is read, a body that is read piece by
piece, and an answer that is passed on the same way. Nothing of either is kept, logged or shown to whoever watches."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aiohttp import web
from multidict import CIMultiDict

from proxy.core.media.content_types import essence
from proxy.core.media.pieces import Pieces
from proxy.core.media.readers import BodyReader, body_too_large
from proxy.errors import ProxyError, RequestError
from proxy.observe.lifecycle import ModelResolved, Progress, ProviderSelected
from proxy.providers.contract import MediaAnswer, MediaCall, Provider
from proxy.server.accounts.serving import served_by
from proxy.server.admission import AdmissionTicket
from proxy.server.body import receive
from proxy.server.exchange import Exchange
from proxy.server.pipeline import HeaderValues, first_value, reading_client
from proxy.server.stream import record_usage, watched

JSON = "application/json"
FORM = "multipart/form-data"

T = TypeVar("T")


def check_head(exchange: Exchange, *content_types: str) -> str:
    """Which of these the body calls itself. Raises ProxyError: 400 for a query string, 415."""
    request = exchange.request
    if request.query_string:
        raise RequestError("this route takes no query string; send everything in the body")
    called = essence(request.headers.get("Content-Type", ""))
    if called not in content_types:
        raise ProxyError(f"the Content-Type must be {' or '.join(content_types)}", kind="media_type")
    return called


async def read(exchange: Exchange, ticket: AdmissionTicket, reader: BodyReader[T]) -> T:
    """What the body asks for. Raises InvalidRequest and ProxyError."""
    state, limit = exchange.state, reader.limit

    def take(piece: bytes) -> None:
        reader.feed(piece)
        ticket.hold(_held(reader))

    too_large = partial(body_too_large, limit)
    await receive(exchange.request, state.config(), take, limit=limit, too_large=too_large, packed=state.packed)
    asked = reader.end()
    exchange.timings.admitted()
    ticket.hold(_held(reader))
    return asked


def _held(reader: BodyReader[T]) -> int:
    """What a body takes of the memory: about an eighth more is on its way from the connection to the reader."""
    return reader.held * 9 // 8


def unavailable(what: str) -> ProxyError:
    """No provider of this application can do it."""
    return ProxyError(f"no provider serves {what} here", kind="unavailable", code=f"{what}_api_unavailable")


@dataclass(frozen=True, slots=True)
class Room:
    """How many requests of one kind are with the service at the same time."""

    name: str
    limit: int


def selected(
    exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket, label: str, room: Room, model: str | None = None
) -> tuple[MediaCall, Provider]:
    """A request that is right, when there is room for it, and the provider of the account that serves it. It counts in
    no session. Raises BusyError.

    model  None where there is nothing to choose
    """
    exchange.provider, exchange.model = label, model
    ticket.take(room.name, room.limit, f"for {room.name}")
    exchange.state.admission.select(ticket, label)
    session = first_value(values, exchange.family.session_headers)
    provider = served_by(exchange, label, session)
    exchange.record(ProviderSelected(exchange.account_key, model or "", None))
    if model is not None:
        exchange.record(ModelResolved(model, model))
    call = MediaCall(
        request_id=exchange.id,
        session=session,
        recorder=exchange.state.monitor,
        sent=lambda: ticket.hold(0),
        timings=exchange.timings,
    )
    return call, provider


@dataclass(frozen=True, slots=True)
class _Shown:
    """An answer as the caller gets it."""

    content_type: str
    body: Pieces


async def relay(exchange: Exchange, work: Awaitable[MediaAnswer], *, as_text: bool = False) -> web.StreamResponse:
    """Waits for the answer and passes it on, each piece forgotten once it is written. A client that leaves ends both.

    as_text  the bare transcript in place of the JSON
    """
    async with watched(exchange):
        answer = await work
        exchange.timings.generating()
        if answer.usage is not None:
            record_usage(exchange, {"type": "message_delta", "usage": answer.usage})
        shown = _text(answer) if as_text else _Shown(JSON, answer.body)
        return await _send(exchange, answer, shown)


def _text(answer: MediaAnswer) -> _Shown:
    answer.body.drop()
    return _Shown("text/plain; charset=utf-8", Pieces([f"{answer.text}\n".encode()]))


async def _send(exchange: Exchange, answer: MediaAnswer, shown: _Shown) -> web.StreamResponse:
    headers = CIMultiDict({**exchange.head, **exchange.family.headers, "X-Content-Type-Options": "nosniff"})
    headers.update(answer.headers)
    headers["Content-Type"] = shown.content_type
    exchange.response = response = web.StreamResponse(headers=headers)
    response.content_length = shown.body.size
    await response.prepare(exchange.request)
    exchange.log("info", "response_started", status=response.status)
    for piece in shown.body.take():
        async with reading_client(exchange):
            await response.write(piece)
        exchange.record(Progress(len(piece), 1))
    exchange.completed(response.status)
    await response.write_eof()
    return response
