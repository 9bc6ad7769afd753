"""How large a JSON value is, as far as it matters: what is over a limit is not written out to learn by how much. And
how large something may be that came packed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proxy.core.sse import encode_json

#: What came packed may be so many bytes in any case, and beyond that MAX_RATIO times as many as came. Events of a model
#: that says the same word again and again pack to a thirtieth, what says nothing to a thousandth.
UNPACKED_BYTES = 1024 * 1024
MAX_RATIO = 100


def most_unpacked(packed: int) -> int:
    """How many bytes may come out of so many.

    >>> most_unpacked(30_000), most_unpacked(1_000_000)
    (3000000, 100000000)
    """
    return max(UNPACKED_BYTES, MAX_RATIO * packed)


def least_size(value: Any, limit: int) -> int:
    """At least how many characters the JSON of a value has. Counting ends as soon as they are over `limit`, and costs
    nothing for the length of a text.

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
    """Bytes of the items as a JSON array; any number over `limit` when they are more than that.

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
