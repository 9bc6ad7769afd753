"""Reads Messages content: text, images, documents. Tolerant, since clients send anything."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.media.content_types import LONGEST, image_type
from proxy.core.sse import dump_json
from proxy.core.tools.calls import short_name

#: Beginning of a line in Claude Code's first system block. Its version suffix changes between requests of one session,
#: so passing it on would spoil every prompt cache.
BILLING_PREFIX = "x-anthropic-billing-header:"

#: Types that the vision models of all our upstreams accept.
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
#: other name -> the type in IMAGE_TYPES
_SAME_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}

_BASE64_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Bytes that one call checks: a millisecond.
_BASE64_PIECE = 1024 * 1024
_WHITESPACE = b" \t\r\n\f\v"


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a message's `content`: a bare string is one text block, other JSON types have none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def messages_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages of a Messages request, without members that are no objects."""
    messages = request.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def texts_of(content: Any) -> Iterator[str]:
    """Yields the texts of a string or of the text blocks of a list, and changes of the tools in words."""
    for block in blocks_of(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            yield block["text"]
        elif kind in TOOL_CHANGES:
            yield change_text(block)


#: Blocks of system messages in which clients add or remove tools during a conversation.
TOOL_CHANGES = ("tool_addition", "tool_removal")


def change_text(block: Mapping[str, Any]) -> str:
    """A block of TOOL_CHANGES as the model reads it."""
    return dump_json({name: value for name, value in block.items() if name != "cache_control"})


def system_text(system: Any, gap: str = "\n\n") -> str:
    """The system prompt as one text, without blocks that begin with the billing line; "" if there is no prompt.

    Blocks are joined by `gap`. A plain string is returned unchanged.
    """
    if isinstance(system, str):
        return system
    if not isinstance(system, list):
        return ""
    texts = [member["text"] for member in system if isinstance(member, dict) and isinstance(member.get("text"), str)]
    return gap.join(text for text in texts if not text.startswith(BILLING_PREFIX))


def without_billing(text: str) -> str:
    """A system prompt in one string, without the billing line that it may begin with."""
    return text.partition("\n")[2].lstrip("\n") if text.startswith(BILLING_PREFIX) else text


def clean_base64(data: Any) -> str | None:
    """Standard padded base64 without blanks, or None if `data` is not base64; `data` itself if nothing changes.

    Checks by deleting the alphabet instead of decoding, at a millisecond a megabyte: a conversation resends all its
    screenshots every turn.

    >>> clean_base64("aG k"), clean_base64("a"), clean_base64("a*k=")
    ('aGk=', None, None)
    """
    if not isinstance(data, str) or not data.isascii():
        return None
    raw = data.encode("ascii")
    if _has_strays(raw):
        raw = raw.translate(None, _WHITESPACE)
        if _has_strays(raw):
            return None
    bare = raw.rstrip(b"=")
    if not bare or b"=" in bare or len(bare) % 4 == 1 or len(raw) - len(bare) > 2:
        return None
    size = len(bare) + -len(bare) % 4
    return data if size == len(raw) == len(data) else (bare + b"=" * (size - len(bare))).decode("ascii")


def _has_strays(raw: bytes) -> bool:
    """Whether there are bytes outside the alphabet. Checked in pieces, since one call blocks all other threads."""
    pieces = (raw[start : start + _BASE64_PIECE] for start in range(0, len(raw), _BASE64_PIECE))
    return any(piece.translate(None, _BASE64_ALPHABET + b"=") for piece in pieces)


def media_type_of(value: str) -> str:
    """The standard name of a media type, without parameters.

    >>> media_type_of("IMAGE/PNG"), media_type_of("image/jpg; charset=binary")
    ('image/png', 'image/jpeg')
    """
    bare = value.partition(";")[0].strip().lower()
    return _SAME_TYPES.get(bare, bare)


def image_data_url(source: Any, *, default_type: str | None = None) -> str | None:
    """A base64 image source as a data URL, or None if it is invalid.

    source  {"type": "base64", "media_type": "image/png", "data": "iVBOR…"}
    """
    if not isinstance(source, Mapping) or source.get("type", "base64") != "base64":
        return None
    media_type = source.get("media_type") or default_type
    media_type = media_type_of(media_type) if isinstance(media_type, str) else None
    data = clean_base64(source.get("data"))
    return f"data:{media_type};base64,{data}" if media_type in IMAGE_TYPES and data is not None else None


def image_url(source: Any, *, default_type: str | None = None) -> str | None:
    """An image source as a data URL or a web address; None if it is invalid or not http(s)."""
    if not isinstance(source, Mapping) or source.get("type") != "url":
        return image_data_url(source, default_type=default_type)
    url = source.get("url")
    if not isinstance(url, str):
        return None
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "data":
        kind, _, data = rest.partition(",")
        return image_data_url({"media_type": kind, "data": data}) if kind.endswith(";base64") else None
    return url if scheme.lower() in ("http", "https") and rest.startswith("//") else None


#: Characters of base64, blanks included, that hold the signature of a picture.
_SIGNATURE = 4 * LONGEST
NO_PICTURE = "[image omitted: its data are not a PNG, JPEG, GIF or WebP picture]"


class PictureWalk:
    """Visits the pictures of a conversation, also those in results and documents."""

    def picture(self, block: dict[str, Any], *, in_result: bool) -> dict[str, Any]:
        """The block, or another one in place of it. `in_result`: whether it is in the result of a tool."""
        raise NotImplementedError

    def in_messages(self, messages: list[Any]) -> list[Any]:
        """The messages with what `picture` made of their pictures; the list itself if it changed none."""
        found: dict[int, Any] = {}
        for place, message in enumerate(messages):
            content = message.get("content")
            if type(content) is list and (blocks := self._in_blocks(content)) is not content:
                found[place] = {**message, "content": blocks}
        return [found.get(place, message) for place, message in enumerate(messages)] if found else messages

    def _in_blocks(self, blocks: list[Any], *, in_result: bool = False) -> list[Any]:
        found: dict[int, Any] = {}
        for place, block in enumerate(blocks):
            kind = block.get("type") if type(block) is dict else None
            if kind == "image":
                checked = self.picture(block, in_result=in_result)
            elif kind in ("tool_result", "search_result"):
                checked = self._inside(block, in_result=in_result or kind == "tool_result")
            elif kind == "document" and isinstance(block.get("source"), dict):
                source = self._inside(block["source"], in_result=in_result)
                checked = block if source is block["source"] else {**block, "source": source}
            else:
                continue
            if checked is not block:
                found[place] = checked
        return [found.get(place, block) for place, block in enumerate(blocks)] if found else blocks

    def _inside(self, holder: dict[str, Any], *, in_result: bool) -> dict[str, Any]:
        content = holder.get("content")
        blocks = self._in_blocks(content, in_result=in_result) if type(content) is list else content
        return holder if blocks is content else {**holder, "content": blocks}


@dataclass(slots=True)
class PictureCheck(PictureWalk):
    """Corrects the types of a request's pictures by their first bytes, and leaves out what is no picture: a service
    would refuse it, and every later turn with it.

    seen       number of image blocks
    corrected  number of pictures with another type than they named
    left_out   number of those that are no picture
    """

    seen: int = 0
    corrected: int = 0
    left_out: int = 0

    def picture(self, block: dict[str, Any], *, in_result: bool) -> dict[str, Any]:
        """The block, corrected or replaced. Types outside IMAGE_TYPES are left for each upstream to judge."""
        self.seen += 1
        source = in_base64(block.get("source"))
        if source is None:
            return block
        named, known = source.get("media_type") or "image/png", picture_type(source["data"])
        named = media_type_of(named) if isinstance(named, str) else ""
        if known == named or (known is None and named not in IMAGE_TYPES):
            return block
        if known is not None:
            self.corrected += 1
            return {**block, "source": {**source, "media_type": known}}
        self.left_out += 1
        return picture_in_words(block, NO_PICTURE)


def picture_in_words(block: dict[str, Any], text: str) -> dict[str, Any]:
    """A text block in place of an image block; a breakpoint stays."""
    return {**{key: value for key, value in block.items() if key != "source"}, "type": "text", "text": text}


def in_base64(source: Any) -> dict[str, Any] | None:
    """The source as one of type base64, also if its data are in a `data:` URL; None for any other."""
    if not isinstance(source, dict):
        return None
    if source.get("type", "base64") == "base64":
        return source if isinstance(source.get("data"), str) and source["data"] else None
    url = source.get("url") if source.get("type") == "url" else None
    if not isinstance(url, str) or url[:5].lower() != "data:":
        return None
    head, _, data = url[5:].partition(",")
    words, _, coding = head.rpartition(";")
    return {"type": "base64", "media_type": words, "data": data} if coding.lower() == "base64" and data else None


def picture_type(data: str) -> str | None:
    """The type of a picture in base64, by its first bytes: only these are decoded."""
    try:
        return image_type(binascii.a2b_base64("".join(data[:_SIGNATURE].split())[: (LONGEST + 2) // 3 * 4]))
    except ValueError:  # not ASCII, or not base64
        return None


def document_blocks(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The texts and images of a `document` or `search_result` block, title and context first; [] if none can be read.
    Neighbouring texts are joined."""
    source = block.get("source")
    head = [value for key in ("title", "context") if isinstance(value := block.get(key), str) and value]
    if block.get("type") == "search_result":
        parts, head = blocks_of(block.get("content")), head + ([source] if isinstance(source, str) else [])
    elif isinstance(source, Mapping) and source.get("type") == "text" and isinstance(source.get("data"), str):
        parts = blocks_of(source["data"])
    elif isinstance(source, Mapping) and source.get("type") == "content":
        parts = blocks_of(source.get("content"))
    else:
        return []
    found: list[dict[str, Any]] = []
    texts = head
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "image":
            found += [*_one_text(texts), part]
            texts = []
        else:
            texts += texts_of([part])
    return found + _one_text(texts)


def _one_text(texts: list[str]) -> list[dict[str, Any]]:
    text = "\n".join(texts)
    return [{"type": "text", "text": text}] if text else []


def reference_text(block: Mapping[str, Any]) -> str:
    """A `tool_reference` block, with which clients load tools, in words; the tool's name is that of the upstream."""
    name = block.get("tool_name")
    return f"[tool reference: {short_name(name)}]" if isinstance(name, str) and name else omitted(block)


def without_links(block: dict[str, Any]) -> dict[str, Any]:
    """A text block without citations of a hosted search: what they cite is left out, and those made by the proxy lack
    members of the official service."""
    links = block.get("citations")
    cited = links if isinstance(links, list) else []
    if not any(isinstance(link, dict) and link.get("type") == "web_search_result_location" for link in cited):
        return block
    return {key: value for key, value in block.items() if key != "citations"}


def pdf_data(block: Mapping[str, Any]) -> str | None:
    """The base64 data of a PDF document block, or None."""
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("media_type") == "application/pdf":
        return clean_base64(source.get("data"))
    return None


def omitted(block: Any) -> str:
    """A note in place of a block that could not be passed on, so that the model knows something is missing."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "document" and isinstance(block.get("source"), Mapping) and block["source"].get("media_type"):
        return f"[document omitted: {block['source']['media_type']}]"
    return f"[unsupported content block omitted: {kind if isinstance(kind, str) else 'unknown'}]"
