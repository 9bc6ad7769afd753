"""What the forms of this room share: parts are handed to what keeps them, in their order, the body is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from proxy.core.media.multipart import MultipartParser, PartEnd, PartHead
from proxy.core.media.refusals import body_too_large


class Part(Protocol):
    """Keeps what is needed of a part. Both raise InvalidRequest."""

    def add(self, data: bytes) -> None: ...

    def end(self) -> None: ...


class FormParts:
    """Reads a form of at most `limit` bytes. It keeps nothing that leads back to its owner: what an owner holds, many
    megabytes, is gone with the last reference to it and not at some later collection."""

    def __init__(self, boundary: bytes, limit: int) -> None:
        self._parser = MultipartParser(boundary)
        self._left = limit
        self._limit = limit
        self._part: Part | None = None

    @property
    def held(self) -> int:
        """Bytes held now, those of parts not counted."""
        return self._parser.held

    def feed(self, data: bytes, begin: Callable[[PartHead], Part]) -> None:
        """Takes the next bytes. Raises InvalidRequest and TooLarge.

        begin  decides by the head of a part what keeps its data; raises InvalidRequest for one that is not taken
        """
        self._left -= len(data)
        if self._left < 0:
            raise body_too_large(self._limit)
        for event in self._parser.feed(data):
            if isinstance(event, PartHead):
                self._part = begin(event)
            elif self._part is not None:
                self._part.end() if isinstance(event, PartEnd) else self._part.add(event)

    def end(self) -> None:
        """No more bytes follow. Raises InvalidRequest when the form is not whole."""
        self._parser.end()
