"""Which pictures P3 is sent. One that the service does not accept fails the whole turn, and with it every later one of
the conversation. So a picture is sent only if its header shows that it passes. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import clean_base64
from proxy.core.convert.history.responses_dialect import Item, input_image, input_text
from proxy.core.invalid import InvalidRequest, cut

MIN_SIDE = 8
MIN_AREA = 512
#: Bytes of an unpacked picture.
MAX_UNPACKED = 5 * 1024 * 1024
#: Pictures sent in a request, the newest ones.
MAX_PICTURES = 4

#: Characters of base64 that contain the header of nearly every picture.
_HEAD = 4 * 16 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a picture; `pixel` is bytes a pixel once it is unpacked."""

    media_type: str
    width: int
    height: int
    pixel: int


#: colour type -> samples a pixel; a grey or palette picture may get transparency later in the file
_PNG_SAMPLES = {0: 2, 4: 2, 2: 4, 3: 4, 6: 4}
_PNG_DEPTHS = {1: 1, 2: 1, 4: 1, 8: 1, 16: 2}


def png_header(data: bytes) -> Header | None:
    if len(data) < 26 or data[:16] != b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR":
        return None
    depth, samples = _PNG_DEPTHS.get(data[24]), _PNG_SAMPLES.get(data[25])
    if depth is None or samples is None:
        return None
    return Header("image/png", int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"), depth * samples)


def gif_header(data: bytes) -> Header | None:
    if len(data) < 10 or data[:6] not in (b"GIF87a", b"GIF89a"):
        return None
    return Header("image/gif", int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"), 4)


#: Markers without a length, and those that begin a frame.
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
#: Markers that are read of a picture. Real ones have some dozens before their frame; megabytes of them would hold up
#: every other request.
MAX_MARKERS = 4096


def jpeg_header(data: bytes) -> Header | None:
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    for _ in range(MAX_MARKERS):
        if data[at : at + 1] != b"\xff":
            return None
        marker = data[at + 1] if at + 1 < len(data) else 0xFF
        if marker in _JPEG_ALONE or marker == 0xFF:
            at += 1 if marker == 0xFF else 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2 or at + 2 + length > len(data):
            return None
        if marker in _JPEG_FRAMES:
            return _jpeg_frame(data[at + 4 : at + 2 + length])
        at += 2 + length
    return None


def _jpeg_frame(frame: bytes) -> Header | None:
    if len(frame) < 6 or frame[5] < 1 or len(frame) < 6 + 3 * frame[5]:
        return None
    sample = -(-frame[0] // 8)
    return Header("image/jpeg", int.from_bytes(frame[3:5], "big"), int.from_bytes(frame[1:3], "big"), sample * frame[5])


_PARSERS: dict[str, Callable[[bytes], Header | None]] = {
    "image/png": png_header,
    "image/jpeg": jpeg_header,
    "image/gif": gif_header,
}


def header_of(media_type: str, data: str) -> Header | None:
    """The header of a picture in base64. Its type selects the reader; all readers try an unknown one."""
    known = _PARSERS.get(media_type)
    for part in (data[:_HEAD], data) if len(data) > _HEAD else (data,):
        raw = base64.b64decode(part)
        for parse in (known,) if known else _PARSERS.values():
            if found := parse(raw):
                return found
    return None


def _is_base64(data: str) -> bool:
    """Whether the text is standard, padded base64 without any other character."""
    if not data:
        return True
    if clean_base64(data) != data:
        return False
    return base64.b64encode(base64.b64decode(data[-4:])).decode() == data[-4:]


def unfit(header: Header) -> str:
    """Why the service would refuse such a picture, "" when it would not."""
    size = f"{header.width}x{header.height}"
    if min(header.width, header.height) < MIN_SIDE:
        return f"{size} below minimum side {MIN_SIDE}px"
    area = header.width * header.height
    if area < MIN_AREA:
        return f"{size} below minimum area {MIN_AREA}px"
    if area * header.pixel > MAX_UNPACKED:
        return f"{size} too large (decoded ~{area * header.pixel >> 20}MB > {MAX_UNPACKED >> 20}MB cap)"
    return ""


def checked(source: Mapping[str, Any]) -> tuple[str, str]:
    """The data URL of a picture that can be sent, "" for others; and the reason."""
    if source.get("type") == "url":
        return "", "url source cannot be gated"
    media_type, data = source.get("media_type"), source.get("data")
    if not isinstance(media_type, str) or not isinstance(data, str) or not _is_base64(data):
        return "", "undecodable base64"
    header = header_of(media_type, data)
    if header is None:
        return "", f"unreadable dimensions for {cut(media_type)}"
    reason = unfit(header)
    return ("", reason) if reason else (f"data:{header.media_type};base64,{data}", "")


def _kind(source: Any) -> str:
    """The kind of a picture for notes: its media type, `url`, `file`, or `unknown`."""
    kind = source.get("type", "base64") if isinstance(source, Mapping) else None
    if kind in ("url", "file"):
        return str(kind)
    media_type = source.get("media_type") if kind == "base64" else None
    return cut(media_type) if isinstance(media_type, str) and media_type else "unknown"


class GrokImages:
    """Decides about the pictures of one request.

    passing  how many of them could be sent
    """

    def __init__(self, mode: str) -> None:
        """mode: a word of the setting."""
        self.passing = 0
        self._mode = mode
        self._skip = 0
        #: results by the identity of a source: megabytes are checked once
        self._known: dict[int, tuple[str, str]] = {}

    def begin_again(self) -> bool:
        """Whether there were too many pictures, so that translation must start again to leave the older ones out."""
        self._skip = max(0, self.passing - MAX_PICTURES)
        self.passing = 0
        return self._skip > 0

    def in_message(self, block: Mapping[str, Any]) -> Item:
        words = self.in_words(block)
        url, why = self._url(block)
        return input_image(url) if url else input_text(words + why)

    def in_result(self, block: Mapping[str, Any]) -> tuple[Item, Item | None]:
        words = self.in_words(block)
        url, why = self._url(block)
        if not url:
            return input_text(words + why), None
        return (input_image(url), None) if self._mode == "inline" else (input_text(words), input_image(url))

    def in_words(self, block: Mapping[str, Any]) -> str:
        if self._mode == "reject":
            raise InvalidRequest(
                "`image` blocks are refused by PROXY_P3_TOOL_IMAGE=reject; omit, reattach and inline take them",
                param="messages",
            )
        return f"[image omitted: {_kind(block.get('source'))}]"

    def _url(self, block: Mapping[str, Any]) -> tuple[str, str]:
        """The data URL of a picture that is sent, "" for others; and the reason for its note."""
        source = block.get("source")
        if self._mode == "omit" or not isinstance(source, Mapping) or _kind(source) in ("unknown", "file"):
            return "", ""
        if id(source) not in self._known:
            self._known[id(source)] = checked(source)
        url, reason = self._known[id(source)]
        if url:
            self.passing += 1
            if self.passing <= self._skip:
                url, reason = "", f"only the last {MAX_PICTURES} images are attached per request"
        return url, f" ({reason})" if reason else ""
