"""Large bodies in pieces: never joined, and given back as soon as they are not needed."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Bytes of a block, and of the largest piece that is handed out.
BLOCK = 256 * 1024


@dataclass(slots=True)
class _Block:
    """Memory that comes from the system, and is its own again with the last reference: what bodies take is what they
    have in bytes. The allocator keeps much of what was freed between that which is not, and after some packed bodies
    half as much again as they have.

    begin, end  what of it is used
    """

    memory: mmap.mmap
    begin: int = 0
    end: int = 0

    def add(self, data: memoryview) -> int:
        """Takes what there is room for, and tells how much."""
        size = min(len(data), BLOCK - self.end)
        self.memory[self.end : self.end + size] = data[:size]
        self.end += size
        return size

    def used(self) -> bytes:
        return self.memory[self.begin : self.end]


class Pieces:
    """Bytes in pieces. `size` is their sum, also after they were dropped.

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
        """Appends."""
        self.size += len(piece)
        rest = memoryview(piece)
        while rest:
            if not self._blocks or self._blocks[-1].end == BLOCK:
                self._blocks.append(_Block(mmap.mmap(-1, BLOCK)))
            rest = rest[self._blocks[-1].add(rest) :]

    def move(self, other: Pieces) -> None:
        """Appends those of another, which forgets them."""
        self.size += sum(block.end - block.begin for block in other._blocks)
        self._blocks += other._blocks
        other.drop()

    def __iter__(self) -> Iterator[bytes]:
        """Those that there are at the beginning; they may be dropped meanwhile."""
        for block in tuple(self._blocks):
            yield block.used()

    def begin(self, size: int) -> bytes:
        """The first `size` bytes, or what there is."""
        start = bytearray()
        for block in self._blocks:
            if len(start) == size:
                break
            start += block.memory[block.begin : min(block.end, block.begin + size - len(start))]
        return bytes(start)

    def end(self, size: int) -> bytes:
        """The last `size` bytes, or what there is."""
        end = b""
        for block in reversed(self._blocks):
            if len(end) == size:
                break
            end = block.memory[max(block.begin, block.end - size + len(end)) : block.end] + end
        return end

    def skip(self, size: int) -> None:
        """Forgets the first `size` bytes, which do not count any more."""
        while size and self._blocks:
            block = self._blocks[0]
            skipped = min(size, block.end - block.begin)
            block.begin += skipped
            if block.begin == block.end:
                self._blocks.popleft()
            self.size -= skipped
            size -= skipped

    def take(self) -> Iterator[bytes]:
        """Each piece, which is forgotten as it is handed out."""
        while self._blocks:
            yield self._blocks.popleft().used()

    def drop(self) -> None:
        """Forgets all of them: nobody needs the bytes any more."""
        self._blocks.clear()
