"""Checks of the items in `input`: kinds, roles, parts, sizes of pictures, pairs of calls, encrypted reasoning."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from typing import Any

from proxy.sandbox.p3.catalog import is_readable
from proxy.sandbox.p3.refusals import argument, image_refused
from proxy.sandbox.wires.field_checks import (
    ByKind,
    Checked,
    Each,
    Field,
    Known,
    Table,
    by_type,
    fits,
    matches,
    members,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import WRONG_TYPE
from proxy.sandbox.wires.responses.checks import typed
from proxy.sandbox.wires.responses.tool_checks import NAME

#: Smallest accepted picture, in pixels.
SMALLEST_SIDE = 8
SMALLEST_AREA = 512

Size = tuple[int, int]

_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def image_fault(url: str) -> str | None:
    """The fault of an image in a request, in the service's words; None when it has none.

    Links are not followed."""
    if url.startswith("https://"):
        return None
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        return "Could not process image: expected a data URL or https."
    try:
        size = size_of(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        size = None
    if size is None:
        return "Could not process image"
    width, height = size
    if min(size) < SMALLEST_SIDE or width * height < SMALLEST_AREA:
        return f"Image is too small: {width}x{height}. It needs at least {SMALLEST_AREA} pixels."
    return None


def size_of(data: bytes) -> Size | None:
    """Width and height; None for anything but a picture of these kinds."""
    for magic, read in _KINDS:
        if data.startswith(magic):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def _png(data: bytes) -> Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> Size | None:
    place = 2
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 if marker in _BARE_MARKERS else 2 + struct.unpack_from(">H", data, place + 2)[0]
    return None


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


_KINDS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
)


_UNKNOWN_KIND = argument("Unsupported item type at {where}: {value}")
_UNKNOWN_PART = argument("Unsupported content type at {where}: {value}")
_BAD_ROLE = argument("Invalid role at {where}: {value}")
_UNREADABLE = argument(
    "Could not read the encrypted_content of the reasoning item at {here}: it was made for another model."
)
_NULL = argument("{where} must not be null.")


def _seen_image(part: Any, _where: str, _seen: Checked) -> None:
    fault = image_fault(part["image_url"])
    if fault is not None:
        raise image_refused(fault)


_PARTS: dict[str, Table] = {
    "input_text": (Known("type text"), required("text", "text")),
    "input_image": (
        Known("type image_url detail"),
        optional("detail", one_of("auto", "low", "high"), argument("Invalid {where}: {value}")),
        required("image_url", "text"),
        _seen_image,
    ),
    "output_text": (Known("type text annotations logprobs"), required("text", "text")),
    "refusal": (Known("type refusal"), required("refusal", "text")),
}


def _parts(path: str, kinds: str) -> Table:
    """A text, or a list of parts of these types."""
    text_or_list = fits(lambda value: isinstance(value, str | list), "a string or a sequence")
    known = one_of(*kinds.split())
    part: Table = (required("", "object", WRONG_TYPE), *by_type(_PARTS, _UNKNOWN_PART, known))
    return (required(path, text_or_list, WRONG_TYPE), Each(path, part))


#: Role -> the content of its messages.
_CONTENTS = {
    "system": _parts("content", "input_text"),
    "user": _parts("content", "input_text input_image"),
    "assistant": _parts("content", "output_text refusal"),
}


def _settled(body: Any, _where: str, seen: Checked) -> None:
    """Requires a result for each call that a user's message follows."""
    items = body["input"]
    spoken = [place for place, item in enumerate(items) if item.get("role") == "user"]
    for item in items[: max(spoken, default=0)]:
        if item.get("type") == "function_call" and not seen.open_calls[item["call_id"]]:
            raise argument("No tool output found for function call {value}.").fill("input", value=item["call_id"])


def _called(item: Any, where: str, seen: Checked) -> None:
    if item["call_id"] in seen.open_calls:
        raise argument("Duplicate call_id at {where}: {value}").fill(where, value=item["call_id"])
    seen.open_calls[item["call_id"]] = False


def _answered(item: Any, where: str, seen: Checked) -> None:
    if seen.open_calls.get(item["call_id"]) is not False:
        raise argument("No open function call for the output at {where}: {value}").fill(where, value=item["call_id"])
    seen.open_calls[item["call_id"]] = True


def _not_null(name: str) -> Field:
    return required("", fits(lambda item: item.get(name, "") is not None), _NULL, at=name)


def _unreadable(content: Any, seen: Checked) -> str | None:
    return None if is_readable(content, seen.rules.reader) else ""


def _texts(path: str, kind: str, *, needed: bool = False) -> Table:
    """A list of texts of this type."""
    part: Table = (
        required("", "object", WRONG_TYPE),
        Known("type text"),
        required("type", one_of(kind)),
        required("text", "text"),
    )
    return (optional(path, "list", WRONG_TYPE, needed=needed), Each(path, part))


_CALL_ID = required("call_id", "filled")

#: Item type -> its checks; a type without any is not inspected.
_ITEMS: dict[str, Table] = {
    "message": (
        Known("type role content id status"),
        required("role", one_of(*_CONTENTS), _BAD_ROLE),
        ByKind("role", _CONTENTS),
    ),
    "function_call": (
        Known("type call_id name arguments id status"),
        _CALL_ID,
        *NAME,
        required("arguments", "text", WRONG_TYPE),
        _called,
    ),
    "function_call_output": (
        Known("type call_id output id status"),
        _CALL_ID,
        *_parts("output", "input_text input_image"),
        _answered,
    ),
    # the service's own searches, as the vendor's client sends them back
    "web_search_call": (
        Known("type id status action"),
        required("id", "filled"),
        required("action", "object", WRONG_TYPE),
        required("action.type", one_of("search", "open_page", "find_in_page"), argument("Invalid {where}: {value}")),
    ),
    "custom_tool_call": (
        Known("type id call_id name input status"),
        _CALL_ID,
        required("name", matches("x_[a-z_]+"), argument("Unsupported custom tool at {where}: {value}")),
        required("input", "text", WRONG_TYPE),
    ),
    "reasoning": (
        # no `status`, although it came with one
        Known("type id summary content encrypted_content"),
        *members("id: text"),
        *_texts("summary", "summary_text", needed=True),
        *map(_not_null, ("content", "encrypted_content")),
        *_texts("content", "reasoning_text"),
        optional("encrypted_content", "text", WRONG_TYPE),
        optional("encrypted_content", _unreadable, _UNREADABLE),
    ),
}


INPUT: Table = (
    required("input", "filled list"),
    Each("input", (required("", "object", WRONG_TYPE), *by_type(_ITEMS, _UNKNOWN_KIND)), typed),
    _settled,
)
