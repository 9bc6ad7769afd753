"""Pictures of a request: their words in the prompt, and those that are sent along. Pure, and slow for megabytes: call
it in a thread."""

from __future__ import annotations

import binascii
import hashlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.content import clean_base64, document_blocks, media_type_of, messages_of

#: Equal pictures have equal ids, so that the service recognises them.
_NAMESPACE = uuid.UUID("6f1d3c52-1f0e-4f4f-9a3e-2b8a5d7c9e10")

#: Characters of base64 that are decoded at once; four characters are three bytes.
_SLICE = 256 * 1024

_ENDINGS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """The source of an image block: an address, or base64 text.

    media_type  as sent, "" when missing
    """

    url: str | None = None
    media_type: str = ""
    data: str = ""

    @property
    def words(self) -> str:
        """The text that replaces it in the prompt."""
        if self.url is not None:
            return f"[image: {self.url}]"
        return f"[image: {self.media_type or 'unknown'}, {len(self.data)} base64 chars]"


def picture_of(block: Mapping[str, Any]) -> Picture:
    """The picture of an image block; an empty one for an invalid source."""
    source = block.get("source")
    members = source if isinstance(source, Mapping) else {}
    if members.get("type") == "url":
        return _addressed(_text(members.get("url")))
    return Picture(media_type=_text(members.get("media_type")), data=_text(members.get("data")))


def _addressed(url: str) -> Picture:
    """The picture at an address, which may contain the picture itself."""
    head, comma, data = url.partition(",")
    if head[:5].lower() == "data:" and comma and head.lower().endswith(";base64"):
        return Picture(media_type=head[5:-7].strip(), data=data)
    return Picture(url=url)


def selected_images(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pictures of the user's last turn as SelectedImage dicts, also those in documents and tool results. Earlier
    ones stay words: the service has seen them, and fails when they come again under other names."""
    found: list[dict[str, Any]] = []
    number = 0
    for message in _last_turn(messages_of(request)):
        for block in _image_blocks(_opened(message.get("content"))):
            picture = picture_of(block)
            if picture.url is None:
                number += 1
                found += _selected(picture, number)
    return found


def _last_turn(messages: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The user's last message, with the user's messages directly before it."""
    end = next((place for place in range(len(messages), 0, -1) if _is_user(messages[place - 1])), 0)
    start = end
    while start and _is_user(messages[start - 1]):
        start -= 1
    return messages[start:end]


def _is_user(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "user"


def _opened(content: Any) -> Any:
    """A message's content with its documents replaced by their parts, as the prompt shows them."""
    if not isinstance(content, list):
        return content
    return [part for block in content for part in (document_blocks(block) if _is_document(block) else [block])]


def _is_document(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in ("document", "search_result")


def _image_blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "image":
            yield block
        elif isinstance(block, Mapping) and block.get("type") == "tool_result":
            yield from _image_blocks(block.get("content"))


def _selected(picture: Picture, number: int) -> list[dict[str, Any]]:
    """The picture in the form of the wire; [] for one that cannot be read."""
    data = _decoded(picture.data)
    if not data:
        return []
    media_type = media_type_of(picture.media_type) or "image/png"
    return [
        {
            "uuid": str(uuid.uuid5(_NAMESPACE, hashlib.sha256(data).hexdigest())),
            "path": f"claude-image-{number}.{_ENDINGS.get(media_type, 'img')}",
            "mime_type": media_type,
            "data": data,
        }
    ]


def _decoded(text: str) -> bytes:
    """The bytes of a base64 text, b"" when it is invalid."""
    try:
        return _in_slices(text)
    except ValueError:  # blanks, or no padding
        clean = clean_base64(text)
        return b"" if clean is None else _in_slices(clean)


def _in_slices(text: str) -> bytes:
    """Decodes standard base64 in slices, since no other thread runs during a slice. Raises ValueError."""
    pieces = [binascii.a2b_base64(text[at : at + _SLICE], strict_mode=True) for at in range(0, len(text), _SLICE)]
    if any(len(piece) != _SLICE // 4 * 3 for piece in pieces[:-1]):
        raise ValueError("padding in the middle")
    return b"".join(pieces)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
