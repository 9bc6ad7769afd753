"""`POST /v1/images/generations`, `/v1/images/edits` and `/v1/audio/transcriptions`: bodies are checked while they are
read piece by piece, and answers are passed on piece by piece. Neither is kept, logged or shown in monitors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aiohttp import web
from multidict import CIMultiDict

from proxy.core.media.content_types import boundary_of, essence
from proxy.core.media.image_requests import EditForm, ImageJson
from proxy.core.media.pieces import Pieces
from proxy.core.media.recording_form import RecordingForm
from proxy.core.media.refusals import body_too_large
from proxy.core.media.requests import BodyReader, ImageRequest
from proxy.errors import ProxyError, RequestError
from proxy.observe.lifecycle import ModelResolved, Progress, ProviderSelected
from proxy.providers.contract import Images, MediaAnswer, MediaCall, Provider, Transcription
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.candidates import Candidate
from proxy.server.request.ledger import Ledger
from proxy.server.serving.body import receive
from proxy.server.serving.serve import run
from proxy.server.serving.watch import reading_client, watched

JSON = "application/json"
FORM = "multipart/form-data"

T = TypeVar("T")


async def post_generation(request: web.Request) -> web.StreamResponse:
    """Generates images from a prompt."""
    return await run(request, _generate)


async def post_edit(request: web.Request) -> web.StreamResponse:
    """Generates images from others, which are data URLs in JSON or files of a form."""
    return await run(request, _edit)


async def post_transcription(request: web.Request) -> web.StreamResponse:
    """Transcribes a recording."""
    return await run(request, _transcribe)


async def _generate(ledger: Ledger, ticket: AdmissionTicket) -> web.StreamResponse:
    check_head(ledger, JSON)
    return await _make(ledger, ticket, partial(ImageJson, edits=False))


async def _edit(ledger: Ledger, ticket: AdmissionTicket) -> web.StreamResponse:
    if check_head(ledger, JSON, FORM) == JSON:
        return await _make(ledger, ticket, partial(ImageJson, edits=True))
    content_type = ledger.inquiry.request.headers["Content-Type"]
    return await _make(ledger, ticket, lambda model: EditForm(boundary_of(content_type), model))


async def _make(
    ledger: Ledger,
    ticket: AdmissionTicket,
    reader: Callable[[str], BodyReader[ImageRequest]],
) -> web.StreamResponse:
    """Reads the body and relays the images. `reader` makes the reader for the only model."""
    label, maker = _maker(ledger)
    asked = await read(ledger, ticket, reader(maker.image_model))
    room = Slots("images", ledger.inquiry.state.config().max_concurrent_images)
    call, chosen = selected(ledger, ticket, label, room, maker.image_model)
    maker = chosen if isinstance(chosen, Images) else maker
    return await relay(ledger, maker.make_images(call, asked))


def _maker(ledger: Ledger) -> tuple[str, Images]:
    """The provider of images, and its label. Raises ProxyError."""
    for label, provider in ledger.inquiry.state.providers.items():
        if isinstance(provider, Images):
            return label, provider
    raise unavailable("images")


async def _transcribe(ledger: Ledger, ticket: AdmissionTicket) -> web.StreamResponse:
    check_head(ledger, FORM)
    label, writer = _writer(ledger)
    reader = RecordingForm(boundary_of(ledger.inquiry.request.headers["Content-Type"]))
    asked = await read(ledger, ticket, reader)
    room = Slots("transcriptions", ledger.inquiry.state.config().max_concurrent_transcriptions)
    call, chosen = selected(ledger, ticket, label, room)
    writer = chosen if isinstance(chosen, Transcription) else writer
    return await relay(ledger, writer.transcribe(call, asked), as_text=asked.as_text)


def _writer(ledger: Ledger) -> tuple[str, Transcription]:
    """The provider of transcriptions, and its label. Raises ProxyError."""
    for label, provider in ledger.inquiry.state.providers.items():
        if isinstance(provider, Transcription):
            return label, provider
    raise unavailable("transcriptions")


def check_head(ledger: Ledger, *content_types: str) -> str:
    """The body's content type, one of these. Raises ProxyError: 400 for a query string, 415."""
    request = ledger.inquiry.request
    if request.query_string:
        raise RequestError("this route takes no query string; send everything in the body")
    called = essence(request.headers.get("Content-Type", ""))
    if called not in content_types:
        raise ProxyError(f"the Content-Type must be {' or '.join(content_types)}", kind="media_type")
    return called


async def read(ledger: Ledger, ticket: AdmissionTicket, reader: BodyReader[T]) -> T:
    """The request in the body. Raises InvalidRequest and ProxyError."""
    state, limit = ledger.inquiry.state, reader.limit

    def take(piece: bytes) -> None:
        reader.feed(piece)
        ticket.hold(_held(reader))

    too_large = partial(body_too_large, limit)
    await receive(ledger.inquiry.request, state.config(), take, limit=limit, too_large=too_large, packed=state.packed)
    asked = reader.end()
    ledger.inquiry.timings.admitted()
    ticket.hold(_held(reader))
    return asked


def _held(reader: BodyReader[T]) -> int:
    """Bytes of memory that a body takes: about an eighth is still on its way from the connection to the reader."""
    return reader.held * 9 // 8


def unavailable(what: str) -> ProxyError:
    """The error if no provider of this application serves this."""
    return ProxyError(f"no provider serves {what} here", kind="unavailable", code=f"{what}_api_unavailable")


@dataclass(frozen=True, slots=True)
class Slots:
    """A limit of requests of one kind that are with the service at the same time."""

    name: str
    limit: int


def selected(
    ledger: Ledger, ticket: AdmissionTicket, label: str, room: Slots, model: str | None = None
) -> tuple[MediaCall, Provider]:
    """The call of a valid request, if there is room for it, and the provider of the account that serves it. It counts
    in no session. Raises BusyError.

    model  None if there is no choice
    """
    inquiry, state = ledger.inquiry, ledger.inquiry.state
    ledger.names(label, model)
    ticket.take(room.name, room.limit, f"for {room.name}")
    state.admission.select(ticket, label)
    accounts = state.accounts.choose(label, state.config(), session=inquiry.session, caller=inquiry.caller_name)
    name, provider = accounts[0].name, accounts[0].provider
    ledger.session = inquiry.session
    candidate = Candidate(model or "", label, name, provider, model or "")
    ledger.serves(candidate)
    ledger.tell(ProviderSelected(candidate.key, model or "", None))
    if model is not None:
        ledger.tell(ModelResolved(model, model))
    call = MediaCall(
        request_id=inquiry.id,
        session=inquiry.session,
        recorder=state.monitor,
        sent=lambda: ticket.hold(0),
        timings=inquiry.timings,
    )
    return call, provider


@dataclass(frozen=True, slots=True)
class _Shown:
    """The answer that the caller gets."""

    content_type: str
    body: Pieces


async def relay(ledger: Ledger, work: Awaitable[MediaAnswer], *, as_text: bool = False) -> web.StreamResponse:
    """Waits for the answer and passes it on, dropping each piece once it is written. A client that leaves ends both.

    as_text  whether to send the bare transcript in place of the JSON
    """
    async with watched(ledger):
        answer = await work
        ledger.inquiry.timings.generating()
        if answer.usage is not None:
            ledger.used({"type": "message_delta", "usage": answer.usage})
        shown = _text(answer) if as_text else _Shown(JSON, answer.body)
        return await _send(ledger, answer, shown)


def _text(answer: MediaAnswer) -> _Shown:
    answer.body.drop()
    return _Shown("text/plain; charset=utf-8", Pieces([f"{answer.text}\n".encode()]))


async def _send(ledger: Ledger, answer: MediaAnswer, shown: _Shown) -> web.StreamResponse:
    headers = CIMultiDict({**ledger.head, **ledger.inquiry.family.headers, "X-Content-Type-Options": "nosniff"})
    headers.update(answer.headers)
    headers["Content-Type"] = shown.content_type
    ledger.response = response = web.StreamResponse(headers=headers)
    response.content_length = shown.body.size
    await response.prepare(ledger.inquiry.request)
    ledger.note("info", "response_started", status=response.status)
    for piece in shown.body.take():
        async with reading_client(ledger):
            await response.write(piece)
        ledger.tell(Progress(len(piece), 1))
    ledger.completed(response.status)
    await response.write_eof()
    return response
