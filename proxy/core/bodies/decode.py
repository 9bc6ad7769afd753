"""The JSON object in a request body.

Values are counted before a text is parsed: `[],[],…` takes thirty times its length in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any, TypeVar

from proxy.core.bodies.in_pieces import parse_in_pieces, parts_of
from proxy.core.invalid import InvalidRequest
from proxy.core.sse import load_json

#: Values that a request may have: objects, lists, texts, numbers and words, wherever they stand. The largest context
#: windows end at a tenth of that.
MAX_VALUES = 250_000
#: As many bytes are looked at in one step.
PIECE = 256 * 1024
#: Each value but the first stands behind one of these: a member's behind the `,` or the `{` in front of its name.
_BEFORE_VALUES = b",[{"


def check_values(raw: bytes | bytearray) -> None:
    """Raises InvalidRequest for a text with more than MAX_VALUES values. Of one that is no JSON the count means
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
    """What is not within a string, in pieces."""
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

#: JSON nested deeper is refused: nothing real needs it, and recursive code may rely on it.
MAX_DEPTH = 128
#: How an escape of half a surrogate pair begins.
_SURROGATE = re.compile(rb"\\u[dD]")


def decode_body(raw: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in a request body. Raises InvalidRequest for anything else, with "Invalid JSON:" in front."""
    return _object(_decoded(raw, methodcaller("decode"), load_json))


def decode_value(raw: bytes | bytearray) -> Any:
    """The JSON value of whatever kind, within the same bounds."""
    return _decoded(raw, methodcaller("decode"), load_json)


def decode_large_body(raw: bytes | bytearray) -> dict[str, Any]:
    """The same for a thread: others go on meanwhile."""
    return _object(_decoded(raw, parts_of, parse_in_pieces))


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidRequest("Invalid JSON: expected an object at the top level")
    return body


def load_long_json(raw: bytes | bytearray) -> Any:
    """The value of a long JSON text, as `load_json` gives it, for a thread: others go on meanwhile. Raises ValueError,
    also for too many values, and RecursionError."""
    check_values(raw)
    return parse_in_pieces(parts_of(raw))


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
    """Whether there is an escape of one. Looked for in pieces: one search of 60 MB holds everybody up for 50 ms."""
    if len(raw) <= PIECE:
        return _SURROGATE.search(raw) is not None
    return any(_SURROGATE.search(raw, at, at + PIECE + 2) for at in range(0, len(raw), PIECE))


def _check_surrogates(body: Any) -> None:
    r"""An escape like `\ud800` without its other half is no text: it cannot be sent on as UTF-8."""
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
