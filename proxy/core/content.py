"""Reading Messages content: text, images, documents. Tolerant: clients send what they like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Claude Code puts this line into its first system block. Its version suffix changes between the requests of one
#: session, so passing it on would spoil every prompt cache.
BILLING_PREFIX = "x-anthropic-billing-header:"

#: What vision models of all our upstreams take.
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_BASE64_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WHITESPACE = b" \t\r\n\f\v"


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message's `content`: a bare string is one text block, other JSON types have none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def texts_of(content: Any) -> Iterator[str]:
    """The texts of a string or of the text blocks of a list."""
    for block in blocks_of(content):
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]


def system_text(system: Any) -> str:
    """The system prompt as one text, without the billing line; "" when there is none.

    Blocks are joined by a blank line. A plain string is taken as it is.
    """
    if isinstance(system, str):
        return system
    if not isinstance(system, list):
        return ""
    texts = [member["text"] for member in system if isinstance(member, dict) and isinstance(member.get("text"), str)]
    return "\n\n".join(text for text in texts if not text.startswith(BILLING_PREFIX))


def clean_base64(data: Any) -> str | None:
    """Standard padded base64 without blanks, or None when `data` is not base64.

    Checked by deleting the alphabet instead of decoding: a conversation resends all its screenshots every turn, and
    this takes a millisecond for a megabyte.

    >>> clean_base64("aG k"), clean_base64("a"), clean_base64("a*k=")
    ('aGk=', None, None)
    """
    if not isinstance(data, str) or not data.isascii():
        return None
    raw = data.encode("ascii")
    if raw.translate(None, _BASE64_ALPHABET + b"="):
        raw = raw.translate(None, _WHITESPACE)
        if raw.translate(None, _BASE64_ALPHABET + b"="):
            return None
    bare = raw.rstrip(b"=")
    if not bare or b"=" in bare or len(bare) % 4 == 1 or len(raw) - len(bare) > 2:
        return None
    return (bare + b"=" * (-len(bare) % 4)).decode("ascii")


def image_data_url(source: Any, *, default_type: str | None = None) -> str | None:
    """A base64 image source as a data URL, or None when it is not a valid one.

    `source`: `{"type": "base64", "media_type": "image/png", "data": "iVBOR…"}`.
    """
    if not isinstance(source, Mapping) or source.get("type") != "base64":
        return None
    media_type = source.get("media_type") or default_type
    data = clean_base64(source.get("data"))
    if not isinstance(media_type, str) or media_type not in IMAGE_TYPES or data is None:
        return None
    return f"data:{media_type};base64,{data}"


def document_text(block: Mapping[str, Any]) -> str | None:
    """The text of a `document` or `search_result` block that has one: title and context first. None otherwise."""
    source = block.get("source")
    if block.get("type") == "search_result":
        parts = list(texts_of(block.get("content")))
        head = [source] if isinstance(source, str) else []
    elif isinstance(source, Mapping) and source.get("type") == "text" and isinstance(source.get("data"), str):
        parts, head = [source["data"]], []
    elif isinstance(source, Mapping) and source.get("type") == "content":
        parts, head = list(texts_of(source.get("content"))), []
    else:
        return None
    head = [value for key in ("title", "context") if isinstance(value := block.get(key), str) and value] + head
    return "\n".join(head + parts) or None


def pdf_data(block: Mapping[str, Any]) -> str | None:
    """The base64 data of a PDF document block, or None."""
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("media_type") == "application/pdf":
        return clean_base64(source.get("data"))
    return None


def omitted(block: Any) -> str:
    """The words that stand where a block could not be passed on, so that the model knows something is missing."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "document" and isinstance(block.get("source"), Mapping) and block["source"].get("media_type"):
        return f"[document omitted: {block['source']['media_type']}]"
    return f"[unsupported content block omitted: {kind if isinstance(kind, str) else 'unknown'}]"
