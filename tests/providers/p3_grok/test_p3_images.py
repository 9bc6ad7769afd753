"""What the header of a picture says, and which are sent."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.providers.p3_grok.images import (
    MAX_MARKERS,
    Header,
    checked,
    gif_header,
    header_of,
    jpeg_header,
    png_header,
    unfit,
)

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + struct.pack(">IIBB", 40, 50, 8, 2)


def sof(marker: int = 0xC0, *, precision: int = 8, components: int = 3, length: int | None = None) -> bytes:
    body = struct.pack(">BHHB", precision, 50, 40, components) + bytes(3 * components)
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2 if length is None else length) + body


@rows(
    "depth, color, pixel",
    [(8, 2, 4), (8, 3, 4), (8, 6, 4), (8, 0, 2), (8, 4, 2), (1, 0, 2), (4, 3, 4), (16, 2, 8), (16, 0, 4)],
)
def test_png(depth: int, color: int, pixel: int) -> None:
    assert png_header(PNG[:24] + bytes([depth, color])) == Header("image/png", 40, 50, pixel)


@rows(
    "data", [PNG[:25], PNG[:24] + b"\x03\x02", PNG[:24] + b"\x08\x01", b"\x88" + PNG[1:], PNG.replace(b"\x0d", b"\x0e")]
)
def test_no_png(data: bytes) -> None:
    assert png_header(data) is None


@rows(
    "segments, pixel",
    [
        (sof(), 3),
        (sof(0xC2, components=1), 1),
        (sof(precision=12), 6),
        (b"\xff\xe0\x00\x04ab" + sof(0xCF), 3),
        (b"\xff\x01\xff\xd3\xff\xd8\xff\xff\xff\xe1\x00\x02" + sof(), 3),
        # tables whose markers stand between those of frames
        (b"\xff\xc4\x00\x03x\xff\xc8\x00\x02\xff\xcc\x00\x02" + sof(), 3),
    ],
)
def test_jpeg(segments: bytes, pixel: int) -> None:
    assert jpeg_header(b"\xff\xd8" + segments + b"\xff\xd9") == Header("image/jpeg", 40, 50, pixel)


@rows(
    "data",
    [
        b"\xff\xd8",
        b"\xff\xd9" + sof(),
        b"\xff\xd8ab" + sof(),
        b"\xff\xd8\xff\xe0\x00\x01" + sof(),
        b"\xff\xd8\xff\xe0\xff\xff" + sof(),
        b"\xff\xd8" + sof(components=0),
        b"\xff\xd8" + sof(length=16),
        b"\xff\xd8" + sof()[:-1],
        b"\xff\xd8\xff\xff\xff",
    ],
)
def test_no_jpeg(data: bytes) -> None:
    assert jpeg_header(data) is None


@pytest.mark.parametrize("marker", [b"\xff", b"\xff\x01", b"\xff\xe0\x00\x02"])
def test_a_jpeg_of_nothing_but_markers_is_not_read_to_its_end(marker: bytes) -> None:
    """Thirty megabytes of them would take ten seconds, in which nobody else is served."""
    assert jpeg_header(b"\xff\xd8" + marker * (MAX_MARKERS - 1) + sof()) is not None
    assert jpeg_header(b"\xff\xd8" + marker * MAX_MARKERS + sof()) is None


def test_gif() -> None:
    assert gif_header(b"GIF87a" + struct.pack("<HH", 40, 50)) == Header("image/gif", 40, 50, 4)
    assert gif_header(b"GIF88a" + bytes(4)) is gif_header(b"GIF89a\x01\x00\x01") is None


def test_a_header_behind_much_else_is_found() -> None:
    extra = b"\xff\xe2\xff\xff" + bytes(0xFFFD)
    for data in (b"\xff\xd8" + extra * times + sof() for times in (0, 1, 3)):
        assert header_of("image/jpeg", base64.b64encode(data).decode()) == Header("image/jpeg", 40, 50, 3)


@rows(
    "header, reason",
    [
        (Header("", 8, 64, 4), ""),
        (Header("", 8, 63, 4), "8x63 below minimum area 512px"),
        (Header("", 7, 10_000, 4), "7x10000 below minimum side 8px"),
        (Header("", 1280, 1024, 4), ""),
        (Header("", 1281, 1024, 4), "1281x1024 too large (decoded ~5MB > 5MB cap)"),
        (Header("", 65_535, 65_535, 4), "65535x65535 too large (decoded ~16383MB > 5MB cap)"),
    ],
)
def test_what_is_refused(header: Header, reason: str) -> None:
    assert unfit(header) == reason


@given(st.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp", "x"]), st.binary(max_size=60), st.data())
def test_any_bytes_are_checked(media_type: str, tail: bytes, data: Any) -> None:
    head = data.draw(st.sampled_from([b"", PNG, b"\xff\xd8", b"\xff\xd8\xff\xc0", b"GIF89a"]))
    source = {"media_type": media_type, "data": base64.b64encode(head + tail).decode()}
    url, reason = checked(source)
    assert bool(url) != bool(reason)


@given(st.text(alphabet="aB/+=-_ \n", max_size=12))
def test_only_clean_base64_is_sent(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
        clean = base64.b64encode(base64.b64decode(text)).decode() == text
    except ValueError:
        clean = False
    assert (checked({"media_type": "image/png", "data": text})[1] == "undecodable base64") is not clean
