"""Large bodies in pieces: never joined, and released as soon as they are not needed."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Bytes of a block, and of the largest piece that is returned.
BLOCK = 256 * 1024


@dataclass(slots=True)
class _Block:
    """Memory from the system, which returns there with the last reference, so that bodies take no more than their
    bytes. The allocator would keep much of what was freed: after some packed bodies half of their size.

    begin, end  the used range
    """

    memory: mmap.mmap
    begin: int = 0
    end: int = 0

    def add(self, data: memoryview) -> int:
        """Adds as many bytes as there is room for; returns their number."""
        size = min(len(data), BLOCK - self.end)
        self.memory[self.end : self.end + size] = data[:size]
        self.end += size
        return size

    def used(self) -> bytes:
        return self.memory[self.begin : self.end]


class Pieces:
    """Bytes in pieces. `size` is their number, even after they were dropped.

    >>> body = Pieces([b"ab", b"c"])
    >>> body.size, b"".join(body), body.begin(2), body.end(2)
    (3, b'abc', b'ab', b'bc')
    """

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self._blocks: deque[_Block] = deque()
        self.size = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Appends a piece."""
        self.size += len(piece)
        rest = memoryview(piece)
        while rest:
            if not self._blocks or self._blocks[-1].end == BLOCK:
                self._blocks.append(_Block(mmap.mmap(-1, BLOCK)))
            rest = rest[self._blocks[-1].add(rest) :]

    def move(self, other: Pieces) -> None:
        """Moves the pieces of another to the end of these."""
        self.size += sum(block.end - block.begin for block in other._blocks)
        self._blocks += other._blocks
        other.drop()

    def __iter__(self) -> Iterator[bytes]:
        """Yields the pieces that exist at the start; they may be dropped meanwhile."""
        for block in tuple(self._blocks):
            yield block.used()

    def begin(self, size: int) -> bytes:
        """The first `size` bytes, or all if there are fewer."""
        start = bytearray()
        for block in self._blocks:
            if len(start) == size:
                break
            start += block.memory[block.begin : min(block.end, block.begin + size - len(start))]
        return bytes(start)

    def end(self, size: int) -> bytes:
        """The last `size` bytes, or all if there are fewer."""
        end = b""
        for block in reversed(self._blocks):
            if len(end) == size:
                break
            end = block.memory[max(block.begin, block.end - size + len(end)) : block.end] + end
        return end

    def skip(self, size: int) -> None:
        """Drops the first `size` bytes, which no longer count in `size`."""
        while size and self._blocks:
            block = self._blocks[0]
            skipped = min(size, block.end - block.begin)
            block.begin += skipped
            if block.begin == block.end:
                self._blocks.popleft()
            self.size -= skipped
            size -= skipped

    def take(self) -> Iterator[bytes]:
        """Yields each piece and drops it."""
        while self._blocks:
            yield self._blocks.popleft().used()

    def drop(self) -> None:
        """Drops all pieces."""
        self._blocks.clear()
