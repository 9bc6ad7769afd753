"""Shared parts of all token counts, and the count of a Responses body. The encoder of text is an argument, so nothing
here loads a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.long_json import Remembered
from proxy.core.sse import dump_sorted_json

#: Tokens of an image, whatever its size.
IMAGE_TOKENS = 2000
#: Characters of base64 of a page of a PDF, about. Services read a page as text and as an image.
PAGE_CHARS = 64 * 1024
#: Text is cut into pieces of this size before encoding. A run of a million blanks makes the encoder panic with an
#: exception that `except Exception` does not catch, and one huge piece would take seconds that cannot be interrupted.
MAX_PIECE = 100_000

#: Bytes of UTF-8 a token, without a vocabulary. Close for English and code, and sane for CJK, where a character has
#: three bytes and costs about one token.
BYTES_A_TOKEN = 3.5

Length = Callable[[str], int]


def pdf_tokens(data: str) -> int:
    """Tokens of a PDF, by its length alone.

    >>> pdf_tokens("JVBERi0="), pdf_tokens("A" * 200_000)
    (2000, 8000)
    """
    return IMAGE_TOKENS * (1 + len(data) // PAGE_CHARS)


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that are safe to encode."""
    for start in range(0, len(text), MAX_PIECE):
        yield text[start : start + MAX_PIECE]


def rough_length(text: str) -> int:
    """Estimated tokens of a text, without a vocabulary."""
    return rough_tokens(len(text.encode("utf-8", "replace")))


def rough_tokens(size: int) -> int:
    """Estimated tokens of `size` bytes of text."""
    return int(size / BYTES_A_TOKEN + 0.999)


#: Tokens of an item or a tool in addition to its texts.
ITEM_OVERHEAD = 4

_schema_text = Remembered(dump_sorted_json)


@dataclass(frozen=True, slots=True)
class Prices:
    """Tokens of what has no text."""

    image: int = IMAGE_TOKENS
    search: int = 10


def count_responses(body: Mapping[str, Any], length: Length, prices: Prices = Prices()) -> int:
    """Tokens of a Responses body as `messages_to_responses` builds it; at least 1.

    Within a few per cent of the upstream's own count on prose, code, CJK and base64.
    """
    total = length(body["model"]) + length(body.get("instructions") or "")
    total += sum(_item(item, length, prices) + ITEM_OVERHEAD for item in body["input"])
    total += sum(_tool(tool, length, prices) + ITEM_OVERHEAD for tool in body.get("tools") or ())
    form = (body.get("text") or {}).get("format") or {}
    if form.get("schema"):
        total += length(_schema_text(form["schema"]))
    return max(total, 1)


def _item(item: Mapping[str, Any], length: Length, prices: Prices) -> int:
    kind = item.get("type")
    if kind == "message":
        return sum(_part(part, length, prices) for part in item["content"])
    if kind == "function_call":
        return length(item["name"]) + length(item["arguments"])
    if kind == "function_call_output":
        output = item["output"]
        return length(output) if isinstance(output, str) else sum(_part(part, length, prices) for part in output)
    if kind in ("reasoning", "compaction"):
        return encrypted_tokens(item.get("encrypted_content") or "")
    if kind == "additional_tools":
        return sum(length(_schema_text(tool)) for tool in item["tools"])
    return 0


def _part(part: Mapping[str, Any], length: Length, prices: Prices) -> int:
    if "text" in part:
        return length(part["text"])
    return pdf_tokens(part["file_data"]) if "file_data" in part else prices.image


def encrypted_tokens(content: str) -> int:
    """Tokens of encrypted reasoning: base64 of about 650 bytes of frame and four bytes a token.

    >>> encrypted_tokens("x" * 4000), encrypted_tokens("x" * 5)
    (588, 0)
    """
    return -(-max(0, len(content) * 3 // 4 - 650) // 4)


def _tool(tool: Mapping[str, Any], length: Length, prices: Prices) -> int:
    if tool["type"] != "function":
        return prices.search
    parameters = length(_schema_text(tool.get("parameters") or {}))
    return length(tool["name"]) + length(tool.get("description") or "") + parameters
