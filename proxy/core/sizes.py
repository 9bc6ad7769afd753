"""Sizes of JSON values, counted only up to a limit; what counts as large; how far packed data may unpack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proxy.core.sse import encode_json

#: Translating, reading or writing more would hold an event loop for milliseconds; a thread costs a tenth of one.
LARGE_BYTES = 128 * 1024
#: Packed data may unpack to UNPACKED_BYTES in any case, and beyond that to MAX_RATIO times its packed size. Events of a
#: model that repeats one word pack to a thirtieth, data without content to a thousandth.
UNPACKED_BYTES = 1024 * 1024
MAX_RATIO = 100


def most_unpacked(packed: int) -> int:
    """Maximum unpacked size of `packed` bytes.

    >>> most_unpacked(30_000), most_unpacked(1_000_000)
    (3000000, 100000000)
    """
    return max(UNPACKED_BYTES, MAX_RATIO * packed)


def least_size(value: Any, limit: int) -> int:
    """A lower bound of the characters of a value's JSON. Counting ends once it is over `limit`; a long text costs no
    more than a short one.

    >>> least_size({"text": "abc"}, 100), least_size(["a" * 1000], 100)
    (4, 1001)
    """
    size, left = 0, [value]
    while left and size <= limit:
        value = left.pop()
        if isinstance(value, (str, list, dict)):
            size += len(value)
            if size <= limit and not isinstance(value, str):
                left.extend(value.values() if isinstance(value, dict) else value)
    return size


def json_size(items: Iterable[Any], limit: int) -> int:
    """Bytes of the items as a JSON array; if that is more than `limit`, any number above it.

    >>> json_size([{"a": 1}, "é"], 100)
    14
    """
    items = list(items)
    size = least_size(items, limit)
    if size > limit:
        return size
    size = 2 + max(0, len(items) - 1)  # brackets and commas
    for item in items:
        size += len(encode_json(item))
        if size > limit:
            break
    return size
