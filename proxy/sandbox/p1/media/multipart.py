"""How the simulated services read a form: whole, and only in the form that careful clients write."""

from __future__ import annotations

import re
from typing import NamedTuple

from proxy.sandbox.wires.refusal import Refused, detail

_BOUNDARY = re.compile(r'multipart/form-data; *boundary=(?:"([\w\'()+,./:=? -]{1,70})"|([\w\'+.-]{1,70}))', re.ASCII)
_DISPOSITION = re.compile(r'form-data; name="([^"\r\n]+)"(?:; filename="([^"\r\n]*)")?')
#: What a part may say of itself.
_HEADERS = ("content-disposition", "content-type")


class Part(NamedTuple):
    """`filename` and `kind` (the media type) are None where they are not told."""

    name: str
    filename: str | None
    kind: str | None
    data: bytes


def read_form(content_type: str, body: bytes) -> list[Part]:
    """The parts in their order. Raises Refused (400) for what is no form: no boundary, bare line feeds, anything before
    the first boundary or behind the last, headers that no part has, or a name that is not UTF-8."""
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
    if not colon or word not in _HEADERS:
        raise detail("a part of the form has a strange header")
    try:
        return word, value.decode().strip(" ")
    except UnicodeDecodeError:
        raise _not_text() from None


def _not_text() -> Refused:
    return detail("a header of the form is not UTF-8")
