"""What was made of a JSON value, for the next request that brings the same one: a client sends its tools every turn."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: Bytes of the values that each of two generations remembers, or of what was made of them where that is longer: some
#: hundred tools.
MAX_BYTES = 512 * 1024
#: Values that each of them remembers: small ones take more than their bytes.
MAX_VALUES = 4096


class Remembered(Generic[T]):
    """A pure function of a JSON value, with a memory. What it returns is shared: nobody may change it.

    Values are told apart as JSON tells them: `1`, `1.0` and `true` are three, and so are two orders of members. There
    are two generations: what is asked for moves to the newer one, and the older one goes when that is full. Neither
    needs a lock.

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
            key = marshal.dumps(value, 2)  # knows no references: the same bytes for what is equal
        except ValueError:  # a value of another kind than JSON has, such as an enumeration
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
        """Values that are remembered."""
        return len(self._newer) + len(self._older)


def _size_of(made: Any) -> int:
    """A short schema may be long once its references are written out."""
    try:
        return len(marshal.dumps(made, 2))
    except ValueError:
        return 0
