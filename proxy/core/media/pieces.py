"""Large bodies as the pieces that they came in: never joined, and dropped as soon as they are not needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator


class Pieces:
    """Bytes in pieces. `size` is their sum, also after they were dropped.

    >>> body = Pieces([b"ab", b"c"])
    >>> body.size, b"".join(body)
    (3, b'abc')
    """

    def __init__(self, pieces: Iterable[bytes] = ()) -> None:
        self._pieces: deque[bytes] = deque()
        self.size = 0
        for piece in pieces:
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Appends; empty pieces are left out."""
        if piece:
            self._pieces.append(piece)
            self.size += len(piece)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def begin(self, size: int) -> bytes:
        """The first `size` bytes, or what there is."""
        start = b""
        for piece in self._pieces:
            start += piece[: size - len(start)]
            if len(start) == size:
                break
        return start

    def take(self) -> Iterator[bytes]:
        """Each piece, which is forgotten as it is handed out."""
        while self._pieces:
            yield self._pieces.popleft()

    def drop(self) -> None:
        """Forgets all of them: nobody needs the bytes any more."""
        self._pieces.clear()
