"""The checks of the simulated image and transcription services, in their order.

A form is read whole, and only in the form that careful clients write; aiohttp's reader would accept more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy.sandbox.p1.headers import CLIENT, FORMAT, LITE_HEADER
from proxy.sandbox.wires.field_checks import Each, Known, Table, check, fits, one_of, optional, required
from proxy.sandbox.wires.refusal import NOT_ONE_OF, Refused, bare, detail, invalid

_BOUNDARY = re.compile(r'multipart/form-data; *boundary=(?:"([\w\'()+,./:=? -]{1,70})"|([\w\'+.-]{1,70}))', re.ASCII)
_DISPOSITION = re.compile(r'form-data; name="([^"\r\n]+)"(?:; filename="([^"\r\n]*)")?')
#: Headers that a part may have.
_PART_HEADERS = ("content-disposition", "content-type")


class Part(NamedTuple):
    """A part of a form. `filename` and `kind` (the media type) are None when missing."""

    name: str
    filename: str | None
    kind: str | None
    data: bytes


def read_form(content_type: str, body: bytes) -> list[Part]:
    """The parts in their order. Raises Refused (400) for an invalid form: no boundary, bare line feeds, anything
    outside of the boundaries, unknown headers of a part, or a name that is not UTF-8."""
    found = _BOUNDARY.fullmatch(content_type)
    if found is None:
        raise detail("multipart boundary is missing")
    delimiter = b"--" + (found[1] or found[2]).encode()
    if not body.startswith(delimiter + b"\r\n"):
        raise detail("the form does not begin with its boundary")
    *pieces, last = (b"\r\n" + body).split(b"\r\n" + delimiter)
    if last not in (b"--", b"--\r\n"):
        raise detail("the form does not end with its boundary")
    return [_part(piece) for piece in pieces[1:]]


def _part(piece: bytes) -> Part:
    head, between, data = piece.partition(b"\r\n\r\n")
    if not between or not head.startswith(b"\r\n"):
        raise detail("a part of the form has no headers")
    headers = dict(_header(line) for line in head[2:].split(b"\r\n"))
    found = _DISPOSITION.fullmatch(headers.get("content-disposition", ""))
    if found is None:
        raise detail("a part of the form has no name")
    return Part(found[1], found[2], headers.get("content-type"), data)


def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    word = name.decode("latin-1").lower()
    if not colon or word not in _PART_HEADERS:
        raise detail("a part of the form has a strange header")
    try:
        return word, value.decode().strip(" ")
    except UnicodeDecodeError:
        raise detail("a header of the form is not UTF-8") from None


IMAGE_MODEL = "gpt-image-2"

MAX_PICTURE_BYTES = 20 * 1024 * 1024
MAX_PICTURES = 5
MAX_AUDIO_BYTES = 25 * 1024 * 1024

#: Media type -> the beginning of such a file; dots match any byte.
_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_AUDIO = re.compile(r"audio/(?:flac|m4a|mp3|mp4|mpeg|ogg|wave?|webm|x-m4a|x-wav)(?:;.*)?")
#: The client whose recordings are transcribed.
_RECORDER = "Codex Desktop"

_NEVER = fits(lambda _value: False)
#: Headers that belong to requests for a model's answer.
_OF_ANSWERS = ("openai-beta", "x-codex-beta-features", "session-id", "x-codex-window-id", "version", LITE_HEADER)
_HEADERS: Table = (
    required("content-length", fits(lambda value: (value or "").isdigit()), bare("Length Required", 411)),
    *(optional(name, _NEVER, bare(f"Unexpected header: {name}")) for name in _OF_ANSWERS),
    optional("x-client-request-id", "filled", bare("Invalid value for header x-client-request-id")),
)


class ReceivedPicture(NamedTuple):
    """A received picture, as tests look at it instead of its bytes."""

    media_type: str
    size: int
    sha256: str


def check_image_headers(headers: Mapping[str, str]) -> None:
    check(headers, FORMAT, "application/json")
    check(headers, _HEADERS)


def check_audio_headers(headers: Mapping[str, str]) -> None:
    check(headers, CLIENT, "application/json")
    check(headers, (*_HEADERS, required("originator", one_of(_RECORDER), bare("Unknown client {value}", 403))))


def _is_data_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("data:image/") and ";base64," in value


def _is_prompt(value: Any) -> bool:
    """Whether the value is text, without half of a surrogate pair."""
    return isinstance(value, str) and bool(value.strip()) and value.encode("utf-8", "replace").decode() == value


_SIZE = fits(
    lambda value: isinstance(value, str) and (value == "auto" or re.fullmatch(r"[1-9]\d{1,3}x[1-9]\d{1,3}", value)),
    "'1024x1024', '1024x1536', '1536x1024', and 'auto'",
)
_NUMBER = fits(lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10, "1 to 10")
_IMAGES = fits(lambda value: isinstance(value, list) and 1 <= len(value) <= MAX_PICTURES, "1 to 5 images")
_NO_NULL = bare("Input should be a valid value: {where}", 422)

_MEMBERS = "prompt background model quality size n"
_COMMON: Table = (
    required("prompt", fits(_is_prompt)),
    required("model", one_of(IMAGE_MODEL), bare("The '{value}' model is not supported when using Codex.")),
    required("background", one_of("auto", "transparent", "opaque"), NOT_ONE_OF),
    required("quality", one_of("auto", "low", "medium", "high"), NOT_ONE_OF),
    required("size", _SIZE, NOT_ONE_OF),
    optional("n", _NUMBER),
)


def _no_null(item: Any, _where: str, _seen: Any) -> None:
    """Raises Refused for null: unused members must be left out."""
    for name, value in item.items():
        if value is None:
            raise _NO_NULL.fill(name)


_OBJECT = required("", "object", bare("Invalid JSON body"))
GENERATION: Table = (_OBJECT, Known(_MEMBERS), _no_null, *_COMMON)
EDIT: Table = (
    _OBJECT,
    Known(f"{_MEMBERS} images"),
    _no_null,
    *_COMMON,
    required("images", _IMAGES),
    Each("images", (required("", "object"), Known("image_url"), required("image_url", fits(_is_data_url)))),
)


def check_generation(body: Any) -> None:
    check(body, GENERATION)


def check_edit(body: Any) -> list[ReceivedPicture]:
    """The pictures to edit. Raises Refused."""
    check(body, EDIT)
    return [_picture(item["image_url"], number) for number, item in enumerate(body["images"])]


def _picture(url: str, number: int) -> ReceivedPicture:
    kind, _, text = url.removeprefix("data:").partition(";base64,")
    where = f"images[{number}]"
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _bad_image("is not base64", where) from None
    if kind not in _SIGNATURES:
        raise _bad_image("has an unsupported media type", where)
    if not _SIGNATURES[kind].match(data):
        raise _bad_image("is not of its media type", where)
    if len(data) > MAX_PICTURE_BYTES:
        raise _bad_image("is too large", where, 413)
    # stray bits after the last byte: no encoder writes such text
    if base64.b64encode(data[-3:] if len(data) % 3 == 0 else data[-(len(data) % 3) :]).decode() != text[-4:]:
        raise _bad_image("is not base64", where)
    return ReceivedPicture(kind, len(data), hashlib.sha256(data).hexdigest())


def _bad_image(words: str, where: str, status: int = 400) -> Refused:
    return invalid(f"The image at {where} {words}.", status=status, code="invalid_image", param=where)


def check_recording(parts: list[Part]) -> tuple[Part, str | None]:
    """The file and its language. Raises Refused."""
    names = [part.name for part in parts]
    if names not in (["file"], ["file", "language"]):
        raise detail(f"expected a file and perhaps its language, not {', '.join(names)}")
    file = parts[0]
    if not file.filename or not file.data:
        raise detail("the file has no name or no content")
    if not _AUDIO.fullmatch(file.kind or ""):
        raise detail(f"unsupported media type {file.kind}", 415)
    if len(file.data) > MAX_AUDIO_BYTES:
        raise detail("the file is too large", 413)
    return file, _language(parts[1]) if len(parts) > 1 else None


def _language(part: Part) -> str:
    if part.filename is not None or part.kind is not None:
        raise detail("language is no file")
    try:
        language = part.data.decode()
    except UnicodeDecodeError:
        raise detail("language is no text") from None
    if not language.strip():
        raise detail("language is empty")
    return language
