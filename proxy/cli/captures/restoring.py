"""Restores a request from a capture: valid values replace redacted ones.

Pure. The key and its neighbours say what was redacted. Other notes stay: `[redacted len=9]` in place of an e-mail
address is a text like any other for the service.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.responses.signatures import decode_signature, encode_signature

SIDE = 32


def sample(media_type: str) -> str:
    """A file of this type as base64; a PNG for unknown types."""
    return base64.b64encode(_SAMPLES.get(media_type.lower(), _png)()).decode()


def data_url(media_type: str) -> str:
    known = media_type if media_type in _SAMPLES else "image/png"
    return f"data:{known};base64,{sample(known)}"


def _png() -> bytes:
    rows = (b"\0" * (SIDE * 3 + 1)) * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _jpeg() -> bytes:
    """Grey: a Huffman table with one code for "no difference" and one for "end of block", two zero bits a block."""
    one_code = b"\1" + bytes(15) + b"\0"
    segments = [
        (0xDB, b"\0" + b"\1" * 64),
        (0xC0, struct.pack(">BHHBBBB", 8, SIDE, SIDE, 1, 1, 0x11, 0)),
        (0xC4, b"\0" + one_code),
        (0xC4, b"\x10" + one_code),
        (0xDA, b"\1\1\0\0\x3f\0"),
    ]
    head = b"".join(struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body for kind, body in segments)
    return b"\xff\xd8" + head + bytes(SIDE * SIDE // 64 * 2 // 8) + b"\xff\xd9"


def _gif() -> bytes:
    """The dictionary is cleared after every two pixels, so all codes have three bits."""
    data = _bits([code for _ in range(SIDE * SIDE // 2) for code in ((4, 3), (0, 3), (0, 3))] + [(5, 3)])
    pieces = [data[at : at + 255] for at in range(0, len(data), 255)]
    head = b"GIF89a" + struct.pack("<HHBBB", SIDE, SIDE, 0x80, 0, 0) + bytes(6)
    image = b"," + struct.pack("<HHHHB", 0, 0, SIDE, SIDE, 0) + b"\2"
    return head + image + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\0;"


def _webp() -> bytes:
    """Lossless, without transforms; each of the five Huffman codes has one symbol, so pixels take no bits."""
    head = [(SIDE - 1, 14), (SIDE - 1, 14), (0, 4), (0, 3)]
    body = b"\x2f" + _bits(head + [(1, 4)] * 5)
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBPVP8L" + struct.pack("<I", len(body)) + body


def _bits(codes: list[tuple[int, int]]) -> bytes:
    """Packs `(value, bits)` one after another, the lowest bit first."""
    value = size = 0
    for code, width in codes:
        value |= code << size
        size += width
    return value.to_bytes(-(-size // 8), "little")


def _pdf() -> bytes:
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
    )


def _wav() -> bytes:
    """A tenth of a second of silence."""
    sound = bytes(1600)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + len(sound)) + b"WAVE" + form + b"data" + struct.pack("<I", 1600) + sound


_SAMPLES: dict[str, Callable[[], bytes]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/jpg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "application/pdf": _pdf,
    "audio/wav": _wav,
}


_REDACTED = re.compile(r"\[(?:redacted|bytes)(?: [a-z0-9-]+)?(?: len=(?P<length>\d+))?\]")

#: Optional members of a schema's property; without their words they are wrong.
_DROPPED = frozenset({"format", "pattern", "$ref", "enum", "const", "default", "required"})

#: Length of a JSON schema type's name -> the type; the most frequent one of equal length.
_TYPES = {4: "null", 5: "array", 6: "string", 7: "integer"}

#: Headers of the connection or the caller, or that would be refused here.
_NOT_SENT = frozenset(
    {
        *("host", "content-length", "content-encoding", "content-type", "transfer-encoding", "connection"),
        *("keep-alive", "upgrade", "te", "trailer", "expect", "accept-encoding"),
        *("authorization", "proxy-authorization", "x-api-key", "cookie"),
        *("origin", "referer", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"),
    }
)
#: A header that HTTP can carry; an edited capture may have others.
_LINE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*")

#: Headers that distinguish conversations, so they need some value.
_AGENT = "agent-id"
STAND_IN = "replayed"


@dataclass(slots=True)
class Restorer:
    """Restores one request.

    label      the provider of the capture: thoughts are in its form
    encrypted  returns the content that its service would have given to an item of this id
    restored   the number of restored values
    """

    label: str
    encrypted: Callable[[str], str]
    restored: int = field(default=0, init=False)

    def value(self, value: Any, key: str = "", parent: Mapping[str, Any] | None = None) -> Any:
        """The value, restored at every depth."""
        if isinstance(value, Mapping):
            return {name: self.value(one, name, value) for name, one in value.items() if not self._is_lost(name, one)}
        if isinstance(value, list):
            return [self.value(one, key, parent) for one in value]
        return self._text(value, key, parent or {}) if isinstance(value, str) else value

    def _is_lost(self, name: str, value: Any) -> bool:
        lost = name in _DROPPED and any(map(_is_redacted, value if isinstance(value, list) else [value]))
        self.restored += lost
        return lost

    def _text(self, text: str, key: str, parent: Mapping[str, Any]) -> str:
        make = _MAKERS.get(key)
        if make is None or not (_is_redacted(text) or key in _SEALED):
            return text
        made = make(self, text, parent)
        self.restored += made != text
        return made

    def sealed(self, _text: str, parent: Mapping[str, Any]) -> str:
        """Always replaces encrypted content: that of another account cannot be read by this one."""
        return self.encrypted(str(parent.get("id") or f"{_ID_PREFIXES.get(str(parent.get('type')), 'rs')}_{STAND_IN}"))

    def signature(self, text: str, _parent: Mapping[str, Any]) -> str:
        """Restores a signature; those of other providers are dropped on the way up, whatever they hold."""
        found = decode_signature(self.label, text)
        if found is None and not _is_redacted(text):
            return text
        item = found[0] if found else f"rs_{STAND_IN}"
        return encode_signature(self.label, item, self.encrypted(item)) or text


def restored_headers(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers of a capture that are sent again; a list is a header that came more than once."""
    kept = []
    for name, values in headers.items():
        for value in values if isinstance(values, list) else [values]:
            if not isinstance(value, str) or name.lower() in _NOT_SENT or not _LINE.fullmatch(f"{name}:{value}"):
                continue
            if not _is_redacted(value):
                kept.append((name, value))
            elif _AGENT in name.lower():
                kept.append((name, STAND_IN))
    return kept


def _is_redacted(value: Any) -> bool:
    return isinstance(value, str) and _REDACTED.fullmatch(value) is not None


def _data(_restorer: Restorer, text: str, parent: Mapping[str, Any]) -> str:
    """Base64 of the type that is named beside it."""
    kind = next((parent[name] for name in _MEDIA_TYPES if name in parent), None)
    if parent.get("type") == "redacted_thinking":
        return text
    return sample(kind if isinstance(kind, str) else f"audio/{parent['format']}" if "format" in parent else "image/png")


def _picture(_restorer: Restorer, _text: str, _parent: Mapping[str, Any]) -> str:
    return data_url("image/png")


def _schema_type(_restorer: Restorer, text: str, parent: Mapping[str, Any]) -> str:
    if "properties" in parent:
        return "object"
    found = _REDACTED.fullmatch(text)
    return _TYPES.get(int(found["length"] or 0) if found else 0, "string")


#: Spellings of the member with the type of data.
_MEDIA_TYPES = ("media_type", "mime_type", "mimeType")

_ID_PREFIXES = {"compaction": "cmp"}

#: Keys whose values are opaque to us, redacted or not.
_SEALED = frozenset({"encrypted_content", "signature"})

#: key -> a stand-in for its value
_MAKERS: dict[str, Callable[[Restorer, str, Mapping[str, Any]], str]] = {
    "data": _data,
    "image_url": _picture,
    "url": _picture,
    "b64_json": lambda _restorer, _text, _parent: sample("image/png"),
    "result": lambda _restorer, _text, _parent: sample("image/png"),
    "file_data": lambda _restorer, _text, _parent: data_url("application/pdf"),
    "encrypted_content": Restorer.sealed,
    "signature": Restorer.signature,
    "type": _schema_type,
}
