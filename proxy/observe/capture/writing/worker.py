"""The process that writes captures: `main` reads messages from its standard input until that ends.

It imports neither aiohttp nor the server, so that it starts in a moment and stays small. A frame on the pipe is the
length of its head (8 bytes), the head, and the large values:

    head    marshalled (messages, sizes); Ellipsis replaces a large value of a message
    values  the bytes themselves, in order, so that they need not be copied into the head

Reports go to standard output, a line of JSON each: [level, message, fields].
"""

from __future__ import annotations

import json
import marshal
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from proxy.observe.capture.writing.files import CaptureLimits
from proxy.observe.capture.writing.writer import CaptureWriter

#: Larger values of a message follow the head.
LARGE_BYTES = 32 * 1024

LENGTH_BYTES = 8

#: The lowest priority: only what the processes that answer requests leave over.
_NICENESS = 19

#: Arguments of the interpreter: paths of modules, folder, limits.
PROGRAM = (
    "import json,sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from proxy.observe.capture.writing.worker import main; main(*sys.argv[2:])"
)


def main(root: str, *limits: str) -> None:
    """Writes captures below `root` until the input ends."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a signal for all processes of a service: answers are not over yet
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    writer = CaptureWriter(Path(root), CaptureLimits(*map(int, limits)), _report)
    for message in messages(sys.stdin.buffer):
        writer.take(message)


def frame(messages: Sequence[tuple[tuple[Any, ...], int]]) -> list[Any]:
    """The pieces of a frame of messages, each with its size; those of large values are references. Raises ValueError
    for what cannot be marshalled."""
    large: list[bytes] = []
    slim = [message if size <= LARGE_BYTES else _slim(message, large) for message, size in messages]
    head = marshal.dumps((slim, [len(value) for value in large]), 2)
    return [len(head).to_bytes(LENGTH_BYTES, "little") + head, *large]


def messages(stream: BinaryIO) -> Iterator[list[Any]]:
    """The messages of all frames, up to the end or a frame that is not whole."""
    while len(length := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        head = stream.read(int.from_bytes(length, "little"))
        try:
            slim, sizes = marshal.loads(head)  # noqa: S302  made by our own process
        except (EOFError, ValueError):
            return
        large = (stream.read(size) for size in sizes)
        for message in slim:
            yield [next(large) if value is Ellipsis else _whole(value, large) for value in message]


def _slim(message: tuple[Any, ...], large: list[bytes]) -> tuple[Any, ...]:
    return tuple(_slim_value(value, large) for value in message)


def _slim_value(value: Any, large: list[bytes]) -> Any:
    if type(value) is bytes and len(value) > LARGE_BYTES:
        large.append(value)
        return Ellipsis
    if type(value) is dict and type(body := value.get("body")) is bytes and len(body) > LARGE_BYTES:
        large.append(body)  # a request
        return {**value, "body": Ellipsis}
    return value


def _whole(value: Any, large: Iterator[bytes]) -> Any:
    if type(value) is dict and value.get("body") is Ellipsis:
        value["body"] = next(large)
    return value


def _report(level: str, msg: str, fields: dict[str, Any]) -> None:
    print(json.dumps([level, msg, fields]), flush=True)
