"""Writes JSON of values that may be large, in pieces.

One call of the encoder holds the interpreter until it returns, about 5 ms a megabyte, in any thread. So large values
are written one piece a call: when a thread does it, other threads run in between.

Results are remembered for the next request with the same value: a client sends its tools every turn.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from proxy.core.sizes import least_size
from proxy.core.sse import dump_json, dump_sorted_json

T = TypeVar("T")

#: Bytes of the values, or of their results if longer, that each of two generations remembers: some hundred tools.
MAX_BYTES = 512 * 1024
#: Values that each generation remembers: small ones take more than their bytes.
MAX_VALUES = 4096


class Remembered(Generic[T]):
    """A pure function of a JSON value, with a memory. Its results are shared and must not be changed.

    Values differ as their JSON does: `1`, `1.0` and `true` are three values, and so are two orders of members. There
    are two generations: a used value moves to the newer one; when that is full, the older one is dropped. Neither needs
    a lock.

    >>> made = Remembered(len)
    >>> made({"a": 1}), made.known, made({"a": 1}), made.known
    (1, 1, 1, 1)
    """

    def __init__(self, work: Callable[[Any], T], max_bytes: int = MAX_BYTES) -> None:
        self._work = work
        self._max = max_bytes
        self._size = 0
        self._newer: dict[bytes, tuple[T, int]] = {}  # what was made, and what it counts
        self._older: dict[bytes, tuple[T, int]] = {}

    def __call__(self, value: Any) -> T:
        try:
            key = marshal.dumps(value, 2)  # version 2 has no references: equal values have equal bytes
        except ValueError:  # not a JSON value, such as an enumeration
            return self._work(value)
        found = self._newer.get(key)
        if found is not None:
            return found[0]
        found = self._older.get(key)
        if found is None:
            made = self._work(value)
            found = made, max(len(key), _size_of(made))
        self._keep(key, found)
        return found[0]

    def _keep(self, key: bytes, found: tuple[T, int]) -> None:
        size = found[1]
        if size <= self._max:
            self._size += size
            if self._size > self._max or len(self._newer) >= MAX_VALUES:
                self._older, self._newer, self._size = self._newer, {}, size
            self._newer[key] = found

    @property
    def known(self) -> int:
        """Number of remembered values."""
        return len(self._newer) + len(self._older)


def _size_of(made: Any) -> int:
    """Size of a result, 0 if unknown. A short schema may be long once its references are expanded."""
    try:
        return len(marshal.dumps(made, 2))
    except ValueError:
        return 0


#: Characters that one call of the encoder writes, about half a millisecond.
PIECE_CHARS = 128 * 1024

#: JSON of a value as bytes.
Dump = Callable[[Any], bytes]


def _plain(value: Any) -> bytes:
    return dump_json(value).encode()


def in_order(value: Any) -> bytes:
    """JSON for digests: the keys of every object are sorted, and lone surrogates are no error."""
    return dump_sorted_json(value).encode("utf-8", "surrogatepass")


def json_bytes(value: Any) -> bytes:
    """Equals `dump_json(value).encode()`, written in pieces. Raises UnicodeEncodeError.

    >>> json_bytes({"a": [1, "é"]}) == dump_json({"a": [1, "é"]}).encode()
    True
    """
    return b"".join(json_pieces(value))  # joining a megabyte or more releases the interpreter


def json_pieces(value: Any, dump: Dump = _plain) -> Iterator[bytes]:
    """Yields the JSON in pieces, each written by `dump`, which may be `in_order`."""
    if isinstance(value, str) and len(value) > PIECE_CHARS:
        return _text(value, dump)
    if isinstance(value, Mapping) and is_long(value):
        return _around(b"{", member_pieces(value, dump), b"}")
    if isinstance(value, (list, tuple)) and is_long(value):
        return _around(b"[", _joined(value, dump), b"]")
    return iter((dump(value),))


def member_pieces(members: Mapping[str, Any], dump: Dump = _plain) -> Iterator[bytes]:
    """Yields an object's JSON without its brackets; nothing for an empty one."""
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
    """Yields an array's JSON without its brackets."""
    comma = b""
    for batch in _batches((None, item) for item in items):
        yield comma
        if len(batch) == 1:
            yield from json_pieces(batch[0][1], dump)
        else:
            yield dump([item for _, item in batch])[1:-1]
        comma = b","


def _batches(members: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    """Yields names and values in groups of one piece; a longer value is a group of its own."""
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


#: Bytes of written JSON that each generation remembers: a client sends its history every turn, and most of it is sent
#: on unchanged.
REMEMBERED_BYTES = 2 * 1024 * 1024
_written = Remembered(_plain, REMEMBERED_BYTES)


def remembered_json(value: Any, *, large: bool = False) -> bytes:
    """Equals `json_bytes`, but equal values are written only once.

    large  whether the value may be long; a long one is written in pieces and not remembered
    """
    return json_bytes(value) if large and is_long(value) else _written(value)


def object_json(members: Mapping[str, Any], lists: Collection[str], *, large: bool = False) -> bytes:
    """Equals `remembered_json` of an object, without its brackets. Members are remembered one by one, those in `lists`
    item by item."""
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
