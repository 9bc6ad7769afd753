"""What holds for every reader: any split of a body comes to the same, and memory is what `held` says."""

from __future__ import annotations

import gc
import json
import mmap
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from media_live import Form, edit, recording
from samples import rows

from core.media.bodies import BOUNDARY, MODEL, PNG, WAV, Refusal, data_url, form, part, read
from core.media.test_image_requests import EDITS, FORMS, GENERATIONS
from core.media.test_transcription_requests import NAMES, REQUESTS
from core.strategies import cut_places, pieces
from proxy.core.invalid import InvalidRequest, TooLarge
from proxy.core.media.content_types import boundary_of
from proxy.core.media.image_requests import EditForm, ImageJson
from proxy.core.media.pieces import BLOCK, Pieces
from proxy.core.media.recording_form import RecordingForm
from proxy.core.media.refusals import body_too_large
from proxy.core.media.requests import BodyReader, ImageRequest, TranscriptionRequest
from proxy.server.request.replies import as_proxy_error

Make = Callable[[], BodyReader[Any]]

GENERATION: Make = lambda: ImageJson(MODEL, edits=False)  # noqa: E731
EDIT: Make = lambda: ImageJson(MODEL, edits=True)  # noqa: E731
EDIT_FORM: Make = lambda: EditForm(BOUNDARY, MODEL)  # noqa: E731
TRANSCRIPTION: Make = lambda: RecordingForm(BOUNDARY)  # noqa: E731

LONG_PNG = PNG + bytes(range(256)) * 20
LONG_EDIT = {"prompt": 'a\n"fox" é😀' * 300, "images": [{"image_url": data_url(LONG_PNG)}] * 3, "n": 2}
FILE = 'Content-Disposition: form-data; name="file"; '

BODIES: list[tuple[Make, bytes]] = [
    *((GENERATION, body.encode()) for body, _ in GENERATIONS if len(body) < 6000),
    *((EDIT, json.dumps({"prompt": "x"} | given).encode()) for given, _ in EDITS),
    (EDIT, json.dumps(LONG_EDIT).encode()),
    (EDIT, json.dumps(LONG_EDIT, ensure_ascii=False, indent=80).replace("/", r"\/").encode()),
    (EDIT, json.dumps(LONG_EDIT)[:-1].encode()),
    *((EDIT_FORM, form(*parts)) for parts, _ in FORMS),
    (EDIT_FORM, form(part("prompt", "é" * 3000), part("image", LONG_PNG), part("image[]", LONG_PNG[:-1]))),
    *((TRANSCRIPTION, form(*parts)) for parts, _ in REQUESTS if sum(map(len, parts)) < 1_000_000),
    *((TRANSCRIPTION, form(f"{FILE}{head}\r\n\r\n".encode() + WAV)) for head, _ in NAMES),
]


def outcome(make: Make, chunks: list[bytes]) -> Any:
    """What a body comes to, in a form that can be compared."""
    try:
        request = read(make(), chunks)
    except InvalidRequest as error:
        return type(error), error.code, error.param
    if isinstance(request, ImageRequest):
        return request.fields, [(image.media_type, b"".join(image.base64)) for image in request.images]
    assert isinstance(request, TranscriptionRequest)
    return request.name, request.media_type, request.language, request.as_text, b"".join(request.audio)


@pytest.mark.parametrize("size", [1, 7, 500])
def test_a_body_in_chunks_says_what_it_says_as_a_whole(size: int) -> None:
    for make, body in BODIES:
        chunks = [body[start : start + size] for start in range(0, len(body), size)]
        assert outcome(make, chunks) == outcome(make, [body]), body[:200]


@given(st.sampled_from(BODIES), cut_places)
def test_any_split_comes_to_the_same(case: tuple[Make, bytes], cuts: list[int]) -> None:
    make, body = case
    assert outcome(make, pieces(body, cuts)) == outcome(make, [body])


@given(st.sampled_from(BODIES), cut_places, st.integers(0, 10_000), st.integers(0, 20), st.binary(max_size=3))
def test_any_damage_comes_to_the_same(
    case: tuple[Make, bytes], cuts: list[int], place: int, length: int, instead: bytes
) -> None:
    make, body = case
    place %= len(body) + 1
    body = body[:place] + instead + body[place + length :]
    assert outcome(make, pieces(body, cuts)) == outcome(make, [body])


MB = 1024 * 1024


def url_chunks(size: int, total: int) -> Iterator[bytes]:
    yield b'{"prompt":"x","images":[{"image_url":"data:image/png;base64,'
    yield b"iVBORw0KGgoA"
    for _ in range(total // size):
        yield b"A" * size
    yield b"A" * (-(total // size * size) % 4)
    yield b'"}]}'


def form_chunks(name: str, size: int, total: int, begin: bytes, *more: bytes) -> Iterator[bytes]:
    body = form(*more, part(name, begin, filename="a"))
    yield body[:-18]
    for _ in range(total // size):
        yield b"\0" * size
    yield body[-18:]


class Mapped(mmap.mmap):
    """The blocks of pieces, counted: they are the system's memory."""

    alive: ClassVar[weakref.WeakSet[Mapped]] = weakref.WeakSet()

    def __new__(cls, *where: int) -> Mapped:
        made = super().__new__(cls, *where)
        cls.alive.add(made)
        return made


Chunks = Callable[[int, int], Iterator[bytes]]
LARGE: list[tuple[Make, Chunks]] = [
    (EDIT, url_chunks),
    (EDIT_FORM, lambda size, total: form_chunks("image", size, total, PNG, part("prompt", "x"))),
    (EDIT_FORM, lambda size, total: form_chunks("prompt", size, total, b"x", part("image", PNG))),
    (TRANSCRIPTION, lambda size, total: form_chunks("file", size, total, WAV)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "total"), [(1, 20_000), (1000, 700_000), (65_536, 2 * MB), (300_000, 2_100_000)])
@pytest.mark.parametrize(("make", "chunks"), LARGE)
def test_memory_is_what_held_says(
    make: Make, chunks: Chunks, size: int, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks, which may have room at their ends, and whatever else there is."""
    monkeypatch.setattr(Mapped, "alive", alive := weakref.WeakSet())
    monkeypatch.setattr(mmap, "mmap", Mapped)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        reader = make()
        for chunk in chunks(size, total):
            reader.feed(chunk)
        del chunk
        traced = tracemalloc.get_traced_memory()[0] - before
        mapped, room = len(alive) * BLOCK, 2 * BLOCK + 10_000
        assert total <= reader.held <= total * 4 // 3 + 500
        assert reader.held <= traced + mapped <= reader.held * 1.06 + room
        request = reader.end()
        traced, peak = (each - before for each in tracemalloc.get_traced_memory())
        assert total <= reader.held <= traced + len(alive) * BLOCK <= reader.held * 1.06 + room
        assert peak <= 2.1 * reader.held + 10_000  # when the text of a prompt is made, its blocks are gone
        assert request
    finally:
        tracemalloc.stop()


def test_what_is_refused_has_a_status_at_the_edge() -> None:
    cases = {
        400: InvalidRequest("no", param="n", code="invalid_request"),
        413: body_too_large(7),
    }
    for status, error in cases.items():
        known = as_proxy_error(error)
        assert known is not None
        assert (known.status, known.message, known.param, known.code) == (
            status,
            error.message,
            error.param,
            error.code,
        )


@rows("make, limit", [(GENERATION, 262_144), (EDIT, 64 * MB), (EDIT_FORM, 64 * MB), (TRANSCRIPTION, 26 * MB)])
def test_limits(make: Make, limit: int) -> None:
    assert make().limit == limit
    reader = make()
    with pytest.raises(TooLarge) as raised:
        reader.feed(bytes(limit + 1))
    refusal: Refusal = (413, raised.value.code, raised.value.param)
    assert refusal == (413, "request_too_large", None)


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 40), st.integers(0, 40))
def test_pieces(parts: list[bytes], first: int, last: int) -> None:
    body, whole = Pieces(parts), b"".join(parts)
    assert (body.begin(first), body.end(last)) == (whole[:first], whole[max(0, len(whole) - last) :])
    body.skip(first)
    assert (b"".join(body), body.size) == (whole[first:], len(whole[first:]))
    assert (b"".join(body.take()), list(body), body.size) == (whole[first:], [], len(whole[first:]))


@rows("size", [100, 1000, BLOCK - 1, BLOCK, 2 * BLOCK + 1])
def test_pieces_are_as_large_as_a_block(size: int) -> None:
    whole = bytes(range(256)) * (BLOCK // 64)
    body = Pieces([b"-"])
    body.move(Pieces(whole[place : place + size] for place in range(0, len(whole), size)))
    assert [len(piece) for piece in body] == [1, BLOCK, BLOCK, BLOCK, BLOCK] and body.size == len(whole) + 1
    assert (body.begin(BLOCK + 2), body.end(BLOCK + 1)) == (b"-" + whole[: BLOCK + 1], whole[-BLOCK - 1 :])
    body.skip(BLOCK + 2)
    body.add(b"+")
    pieces = iter(body)
    first = next(pieces)
    body.drop()
    assert first + b"".join(pieces) == whole[BLOCK + 1 :] + b"+" and not list(body)


FORM_BOUNDARY = boundary_of(Form(()).content_type)
READERS: dict[str, tuple[Any, bytes]] = {
    "generation": (lambda: ImageJson("m", edits=False), b'{"prompt": "' + b"x" * 10_000),
    "edit": (lambda: ImageJson("m", edits=True), b'{"images": [{"image_url": "' + b"x" * 10_000),
    "edit form": (lambda: EditForm(FORM_BOUNDARY, "m"), edit(n="1").body),
    "recording": (lambda: RecordingForm(FORM_BOUNDARY), recording(response_format="json").body),
}


@rows("cut", [0, 10, 100])
@rows("name", READERS)
def test_a_reader_leaves_nothing_behind(name: str, cut: int) -> None:
    make, body = READERS[name]
    reader = make()
    gc.disable()
    try:
        reader.feed(body[: len(body) - cut])
        left = weakref.ref(reader)
        del reader
        assert left() is None
    finally:
        gc.enable()
