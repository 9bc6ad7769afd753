"""What scenarios are made of: a list to stand in, an expectation that says what was seen, a small picture."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

Client = TypeVar("Client")

#: Called with the client and a folder for the proxy. Raises AssertionError when it fails.
Scenario = Callable[[Client, Path], Awaitable[None]]


class Scenarios(list[Scenario[Client]], Generic[Client]):
    """The scenarios of one client, in the order in which they are written."""

    def add(self, scenario: Scenario[Client]) -> Scenario[Client]:
        self.append(scenario)
        return scenario


def named(scenario: Scenario[Client], words: str) -> Scenario[Client]:
    """The scenario, under a name made of the words."""
    scenario.__name__ = re.sub(r"\W+", "_", words)
    return scenario


#: How much of what was seen is shown, from its beginning and from its end: where a program failed stands in the last
#: line of what it said.
SHOWN_FIRST, SHOWN_LAST = 600, 1200


def expect(condition: object, what: str, seen: object = "") -> None:
    if not condition:
        told = str(seen)
        if len(told) > SHOWN_FIRST + SHOWN_LAST:
            told = f"{told[:SHOWN_FIRST]} … {told[-SHOWN_LAST:]}"
        raise AssertionError(f"{what}; seen: {told}")


def red_png(size: int = 8) -> bytes:
    """A red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
