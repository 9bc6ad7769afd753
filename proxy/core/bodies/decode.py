"""Decodes the JSON object in a request body.

Values are counted before a text is parsed, since `[],[],…` takes thirty times its length in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any, TypeVar

from proxy.core.bodies.in_pieces import parse_in_pieces, parts_of
from proxy.core.invalid import InvalidRequest
from proxy.core.sizes import LARGE_BYTES
from proxy.core.sse import load_json

#: Maximum number of values of a request at all levels: objects, lists, texts, numbers and words. The largest context
#: windows end at a tenth of that.
MAX_VALUES = 250_000
#: Bytes that are checked in one step.
PIECE = 256 * 1024
#: Each value but the first comes after one of these: a member's after the `,` or the `{` before its name.
_BEFORE_VALUES = b",[{"


def check_values(raw: bytes | bytearray) -> None:
    """Raises InvalidRequest for a JSON text with more than MAX_VALUES values. If it is not JSON the count means
    nothing."""
    if not _over(map(_counted, _pieces(raw))):
        return
    if _over(map(_counted, _outside_strings(raw))):
        message = (
            f"Invalid JSON: the body has more than {MAX_VALUES} values; "
            "start a new conversation, or send large data as text in fewer members"
        )
        raise InvalidRequest(message, code="too_many_values")


def _pieces(raw: bytes | bytearray) -> Iterator[bytes | bytearray]:
    return (raw[place : place + PIECE] for place in range(0, len(raw), PIECE))


def _counted(piece: bytes | bytearray) -> int:
    return len(piece) - len(piece.translate(None, _BEFORE_VALUES))


def _over(counts: Iterator[int]) -> bool:
    left = MAX_VALUES
    for count in counts:
        left -= count
        if left < 0:
            return True
    return False


def _outside_strings(raw: bytes | bytearray) -> Iterator[bytes]:
    """Yields what is not within a string, in pieces."""
    inside, rest = False, b""
    for piece in _pieces(raw):
        piece = rest + bytes(piece)
        rest = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece[: len(piece) - len(rest)]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0


T = TypeVar("T")

#: Deepest nesting: nothing real needs more, and recursive code may rely on it.
MAX_DEPTH = 128
#: The beginning of an escape of half a surrogate pair.
_SURROGATE = re.compile(rb"\\u[dD]")


def decode_body(raw: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in a request body. Raises InvalidRequest, which begins with "Invalid JSON:", for anything
    else."""
    return _object(_decoded(raw, methodcaller("decode"), load_json))


def decode_value(raw: bytes | bytearray) -> Any:
    """A JSON value of any type, within the bounds of a body. Raises InvalidRequest."""
    return _decoded(raw, methodcaller("decode"), load_json)


#: Bytes that one search looks at: a longer one would hold the interpreter for milliseconds, in any thread.
_LOOK = 1024 * 1024


def contains(body: bytes | bytearray, word: bytes) -> bool:
    """Whether a long body has a word, found in pieces."""
    return any(body.find(word, at, at + _LOOK + len(word)) >= 0 for at in range(0, len(body), _LOOK))


def decode_large_body(raw: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in a large body, for use in a thread: other threads run meanwhile. Raises InvalidRequest."""
    return _object(_decoded(raw, parts_of, parse_in_pieces))


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidRequest("Invalid JSON: expected an object at the top level")
    return body


def load_long_json(raw: bytes | bytearray) -> Any:
    """The value of a long JSON text, as from `load_json`, for use in a thread: other threads run meanwhile. Raises
    RecursionError, and ValueError, also for too many values."""
    check_values(raw)
    return parse_in_pieces(parts_of(raw))


def load_any_json(text: bytes | bytearray | str) -> Any:
    """The value of a JSON text of any length: `load_long_json` reads a large one, `load_json` any other. Raises
    RecursionError and ValueError."""
    if len(text) > LARGE_BYTES:
        return load_long_json(text.encode() if isinstance(text, str) else text)
    return load_json(text if isinstance(text, str) else text.decode())


def _decoded(raw: bytes | bytearray, text: Callable[[Any], T], parse: Callable[[T], Any]) -> Any:
    if not raw or raw.isspace():
        raise InvalidRequest("Invalid JSON: empty body", code="invalid_json")
    if len(raw) > MAX_VALUES:
        check_values(raw)
    try:
        body = parse(text(raw))
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"Invalid JSON: not UTF-8 at byte {error.start}", code="invalid_json") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidRequest(f"Invalid JSON: {error.msg} at {where}", code="invalid_json") from None
    except (RecursionError, ValueError):  # ValueError: NaN, 1e999, an integer with thousands of digits
        raise InvalidRequest("Invalid JSON: nested too deeply, or a number out of range", code="invalid_json") from None
    _check_depth(body)
    if _has_surrogates(raw):
        _check_surrogates(body)
    return body


def _check_depth(body: Any) -> None:
    level: list[Any] = [body] if isinstance(body, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise InvalidRequest(f"Invalid JSON: nested deeper than {MAX_DEPTH} levels", code="invalid_json")


def _has_surrogates(raw: bytes | bytearray) -> bool:
    """Whether there is an escape of a surrogate. Searches in pieces, since one search of 60 MB blocks all other threads
    for 50 ms."""
    if len(raw) <= PIECE:
        return _SURROGATE.search(raw) is not None
    return any(_SURROGATE.search(raw, at, at + PIECE + 2) for at in range(0, len(raw), PIECE))


def _check_surrogates(body: Any) -> None:
    r"""Raises InvalidRequest for an escape like `\ud800` without its other half, which cannot be sent as UTF-8."""
    try:
        left: list[Any] = [body]
        while left:
            node = left.pop()
            if type(node) is str:
                node.isascii() or node.encode()
            elif type(node) is dict:
                left += node
                left += node.values()
            elif type(node) is list:
                left += node
    except UnicodeEncodeError:
        raise InvalidRequest(
            "Invalid JSON: a string holds half of a surrogate pair (\\ud800 … \\udfff)", code="invalid_json"
        ) from None
