"""How many values a JSON text has, counted before it is parsed: `[],[],…` takes thirty times its length in memory."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.core.invalid import InvalidRequest

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
