"""JSON of values that may be large, written in pieces.

One call of the encoder holds the interpreter until it returns, some 5 ms a megabyte, whatever thread makes it. So what
is large is written a piece a call: others get their turn in between, when it is done in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from proxy.core.sizes import least_size
from proxy.core.sse import dump_json, dump_sorted_json
from proxy.core.tools.remembered import Remembered

#: Characters that one call of the encoder writes, about: half a millisecond.
PIECE_CHARS = 128 * 1024

#: JSON of a value as bytes.
Dump = Callable[[Any], bytes]


def _plain(value: Any) -> bytes:
    return dump_json(value).encode()


def in_order(value: Any) -> bytes:
    """For digests: the keys of every object in order, and text that is none is no error."""
    return dump_sorted_json(value).encode("utf-8", "surrogatepass")


def json_bytes(value: Any) -> bytes:
    """What `dump_json(value).encode()` gives. Raises UnicodeEncodeError as that does.

    >>> json_bytes({"a": [1, "é"]}) == dump_json({"a": [1, "é"]}).encode()
    True
    """
    return b"".join(json_pieces(value))  # joining a megabyte or more lets others go on


def json_pieces(value: Any, dump: Dump = _plain) -> Iterator[bytes]:
    """The same in pieces, by `dump`, which may be `in_order`."""
    if isinstance(value, str) and len(value) > PIECE_CHARS:
        return _text(value, dump)
    if isinstance(value, Mapping) and is_long(value):
        return _around(b"{", member_pieces(value, dump), b"}")
    if isinstance(value, (list, tuple)) and is_long(value):
        return _around(b"[", _joined(value, dump), b"]")
    return iter((dump(value),))


def member_pieces(members: Mapping[str, Any], dump: Dump = _plain) -> Iterator[bytes]:
    """An object without its brackets; nothing of an empty one."""
    if not is_long(members):
        if members:
            yield dump(members)[1:-1]
        return
    comma = b""
    names = members if dump is _plain else sorted(members)
    for batch in _batches((name, members[name]) for name in names):
        if len(batch) == 1:
            ((name, value),) = batch
            yield comma + dump({name: None})[1 : -len("null}")]
            yield from json_pieces(value, dump)
        else:
            yield comma + dump(dict(batch))[1:-1]
        comma = b","


def _joined(items: Sequence[Any], dump: Dump) -> Iterator[bytes]:
    """An array without its brackets."""
    comma = b""
    for batch in _batches((None, item) for item in items):
        yield comma
        if len(batch) == 1:
            yield from json_pieces(batch[0][1], dump)
        else:
            yield dump([item for _, item in batch])[1:-1]
        comma = b","


def _batches(members: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    """Names and values in groups that are one piece; what is longer stands alone."""
    batch: list[tuple[Any, Any]] = []
    size = 0
    for name, value in members:
        more = least_size(value, PIECE_CHARS) + 1
        if batch and size + more > PIECE_CHARS:
            yield batch
            batch, size = [], 0
        batch.append((name, value))
        size += more
    if batch:
        yield batch


def _text(text: str, dump: Dump) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), PIECE_CHARS):
        yield dump(text[start : start + PIECE_CHARS])[1:-1]
    yield b'"'


def _around(before: bytes, pieces: Iterator[bytes], after: bytes) -> Iterator[bytes]:
    yield before
    yield from pieces
    yield after


#: Values of up to so many bytes together are remembered as they were written, in each of two generations: a client
#: sends its history every turn, and most of it is sent on as it was.
REMEMBERED_BYTES = 2 * 1024 * 1024
_written = Remembered(_plain, REMEMBERED_BYTES)


def remembered_json(value: Any, *, large: bool = False) -> bytes:
    """What `json_bytes` gives, written once for equal values.

    large  whether the value may be long; those that are get written in pieces
    """
    return json_bytes(value) if large and is_long(value) else _written(value)


def object_json(members: Mapping[str, Any], lists: Collection[str], *, large: bool = False) -> bytes:
    """The same for an object without its brackets, whose members are written one by one, and those in `lists` item by
    item."""
    written: list[bytes] = []
    small: dict[str, Any] = {}  # neighbours that are written by one call
    for name, value in members.items():
        if type(value) in _SMALL:
            small[name] = value
            continue
        if small:
            written.append(_plain(small)[1:-1])
            small = {}
        if name in lists and type(value) is list:
            items = b"[" + b",".join([remembered_json(item, large=large) for item in value]) + b"]"
        else:
            items = remembered_json(value, large=large)
        written.append(_plain(name) + b":" + items)
    if small:
        written.append(_plain(small)[1:-1])
    return b",".join(written)


#: Types of values that take no time to write.
_SMALL = (bool, int, float, type(None))


def is_long(value: Any) -> bool:
    """Whether one call of the encoder would take too long."""
    return least_size(value, PIECE_CHARS) > PIECE_CHARS
