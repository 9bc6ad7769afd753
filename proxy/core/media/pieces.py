"""Large bodies as the pieces that they came in: never joined, and dropped as soon as they are not needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

#: Neighbours that are no more than this together become one: a piece costs some fifty bytes besides its own, and a body
#: may well come byte by byte.
SMALL_PIECE = 4096


class Pieces:
    """Bytes in pieces. `size` is their sum, also after they were dropped.

    >>> body = Pieces([b"ab", b"c"])
    >>> body.size, b"".join(body), body.begin(2), body.end(2)
    (3, b'abc', b'ab', b'bc')
    """

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self._pieces: deque[bytes] = deque()
        self.size = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Appends; empty pieces are left out."""
        if not piece:
            return
        self.size += len(piece)
        if self._pieces and len(self._pieces[-1]) + len(piece) <= SMALL_PIECE:
            self._pieces[-1] += piece
        else:
            self._pieces.append(piece)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def begin(self, size: int) -> bytes:
        """The first `size` bytes, or what there is."""
        start = bytearray()
        for piece in self._pieces:
            start += piece[: size - len(start)]
            if len(start) == size:
                break
        return bytes(start)

    def end(self, size: int) -> bytes:
        """The last `size` bytes, or what there is."""
        end = b""
        for piece in reversed(self._pieces):
            if len(end) == size:
                break
            end = piece[-(size - len(end)) :] + end
        return end

    def skip(self, size: int) -> None:
        """Forgets the first `size` bytes, which do not count any more."""
        while size and self._pieces:
            piece = self._pieces.popleft()
            if len(piece) > size:
                self._pieces.appendleft(piece[size:])
            skipped = min(size, len(piece))
            self.size -= skipped
            size -= skipped

    def take(self) -> Iterator[bytes]:
        """Each piece, which is forgotten as it is handed out."""
        while self._pieces:
            yield self._pieces.popleft()

    def drop(self) -> None:
        """Forgets all of them: nobody needs the bytes any more."""
        self._pieces.clear()
