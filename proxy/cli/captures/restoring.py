"""Restores a request from a capture: valid values replace redacted ones.

Pure. The key and its neighbours say what was redacted. Other notes stay: `[redacted len=9]` in place of an e-mail
address is a text like any other for the service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.responses.signatures import decode_signature, encode_signature
from proxy.core.hiding.keys import folded, is_secret_key, media_type
from proxy.core.hiding.secret import NOTE

#: Width and height of the pictures below.
SIDE = 32

_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAGUlEQVR4nO3BMQEAAADCoPVP7WENoAAAAG4MIAABt9NlCQAAAABJRU5ErkJggg=="
)
_JPEG = (
    "/9j/2wBDAAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQH/wAALCAAgAC"
    "ABAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AAAAAAP/Z"
)
#: media type -> a file of it as base64: plain pictures, an empty page, a tenth of a second of silence
_SAMPLES = {
    "image/png": _PNG,
    "image/jpeg": _JPEG,
    "image/jpg": _JPEG,
    "image/gif": (
        "R0lGODlhIAAgAIEAAAAAAP///wAAAAAAACwAAAAAIAAgAEAINQABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatzIsaPHjyBDihxJsq"
        "TJkyhTqlzJUmRAADs="
    ),
    "image/webp": "UklGRhQAAABXRUJQVlA4TAgAAAAvH8AHAIiICA==",
    "application/pdf": (
        "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbMy"
        "AwIFJdL0NvdW50IDE+PmVuZG9iagozIDAgb2JqPDwvVHlwZS9QYWdlL1BhcmVudCAyIDAgUi9NZWRpYUJveFswIDAgNzIgNzJdPj5lbmRv"
        "YmoKdHJhaWxlcjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo="
    ),
    "audio/wav": "UklGRmQGAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YUAG" + "A" * 2136,
}

#: In a schema these only say more of a property; without their words they are wrong.
_DROPPED = frozenset({"format", "pattern", "$ref", "enum", "const", "default", "required"})

#: Length of a JSON schema type's name -> the type; the most frequent one of equal length.
_TYPES = {4: "null", 5: "array", 6: "string", 7: "integer"}

#: Headers of a request that belong to its connection, or would be refused here.
_NOT_SENT = frozenset(
    {
        *("host", "content-length", "content-encoding", "content-type", "transfer-encoding", "connection"),
        *("keep-alive", "upgrade", "te", "trailer", "expect", "accept-encoding"),
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


def sample(media_type: str) -> str:
    """A small file of this type as base64; a PNG for an unknown type."""
    return _SAMPLES.get(media_type.lower(), _PNG)


def restored_headers(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers of a capture that are sent again; a list is a header that came more than once."""
    kept = []
    for name, values in headers.items():
        for value in values if isinstance(values, list) else [values]:
            is_sent = name.lower() not in _NOT_SENT and not is_secret_key(name)
            if not is_sent or not isinstance(value, str) or not _LINE.fullmatch(f"{name}:{value}"):
                continue
            if not _is_redacted(value):
                kept.append((name, value))
            elif _AGENT in name.lower():
                kept.append((name, STAND_IN))
    return kept


def _is_redacted(value: Any) -> bool:
    return isinstance(value, str) and NOTE.fullmatch(value) is not None


def _data(_restorer: Restorer, text: str, parent: Mapping[str, Any]) -> str:
    """Base64 beside the type that it has."""
    if parent.get("type") == "redacted_thinking":
        return text
    kind = media_type({folded(name): value for name, value in parent.items()})
    return sample(kind or (f"audio/{parent['format']}" if "format" in parent else "image/png"))


def _picture(_restorer: Restorer, _text: str, _parent: Mapping[str, Any]) -> str:
    return f"data:image/png;base64,{_PNG}"


def _schema_type(_restorer: Restorer, text: str, parent: Mapping[str, Any]) -> str:
    if "properties" in parent:
        return "object"
    found = NOTE.fullmatch(text)
    return _TYPES.get(int(found["length"] or 0) if found else 0, "string")


_ID_PREFIXES = {"compaction": "cmp"}

#: Keys whose values are opaque to us, redacted or not.
_SEALED = frozenset({"encrypted_content", "signature"})

#: key -> a stand-in for its value
_MAKERS: dict[str, Callable[[Restorer, str, Mapping[str, Any]], str]] = {
    "data": _data,
    "image_url": _picture,
    "url": _picture,
    "b64_json": lambda _restorer, _text, _parent: _PNG,
    "result": lambda _restorer, _text, _parent: _PNG,
    "file_data": lambda _restorer, _text, _parent: f"data:application/pdf;base64,{_SAMPLES['application/pdf']}",
    "encrypted_content": Restorer.sealed,
    "signature": Restorer.signature,
    "type": _schema_type,
}
