"""Holds and checks answers with pictures or a transcript. Their bytes are passed on unchanged; the check works on a
copy with long runs of base64 and blanks shortened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.core.bodies.decode import load_long_json
from proxy.core.media.base64_text import strays
from proxy.core.media.pieces import Pieces
from proxy.core.reducer import BadAnswer
from proxy.core.tokens.usage import Usage, reported_count, usage_of

#: Bytes that are kept at either end of a run that is longer than twice this.
KEPT = 64

#: Base64 of both alphabets, and blanks.
_RUNS = (rb"[A-Za-z0-9+/=_-]", rb"[ \t\r\n]")
#: A run is matched from its first character only, else runs that are just too short would take quadratic time.
_LONG_RUN = re.compile(b"|".join(rb"(?<!%b)%b{%d,}" % (run, run, 2 * KEPT + 1) for run in _RUNS))


def shortened(chunk: bytes) -> bytes:
    r"""A piece of JSON with only the first and the last 64 characters of each long run of base64 or blanks.

    Each chunk is handled by itself: chunks may be cut anywhere, even within a run or an escape. Only the middle of runs
    is dropped, in which no escape begins; `\/` becomes a slash. So strings stay strings, empty or not, and long numbers
    stay numbers.

    >>> shortened(b'{"b64_json":"' + b"A" * 100_000 + b'"}').replace(b"A", b"") , len(shortened(b"A" * 100_000))
    (b'{"b64_json":""}', 128)
    """
    if len(chunk) > 2 * KEPT and not strays(chunk):
        return _ends(chunk)  # most chunks of a picture; ten times as fast
    return _LONG_RUN.sub(lambda found: _ends(found[0]), chunk.replace(rb"\/", b"/"))


def _ends(run: bytes) -> bytes:
    return run[:KEPT] + run[-KEPT:]


#: Small chunks are joined up to this size: each is handled by itself, and there may be a hundred million.
PIECE_BYTES = 64 * 1024
#: Most bytes of an answer without its pictures, which are parsed at once.
MAX_PARSED_BYTES = 1024 * 1024

#: Escapes of signs of base64 by some writers of JSON, and of line ends: their beginning, the pattern, and a sign that
#: continues the run in their place. An escaped backslash before them changes their meaning; that is checked last, since
#: a search for a fixed beginning is many times faster.
_ESCAPES = (
    (b"\\u002", re.compile(rb'\\u002(?<=[A-Za-z0-9+/="]\\u002)[bB]'), b"+"),
    (b"\\u002", re.compile(rb'\\u002(?<=[A-Za-z0-9+/="]\\u002)[fF]'), b"/"),
    (b"\\n", re.compile(rb"\\[rn](?<=[A-Za-z0-9+/=_-]\\[rn])"), b"/"),
)


class HeldAnswer:
    """An answer as it arrives. `body` holds its bytes, of which `end` adds the last ones.

    limit     most bytes
    shortens  whether the check shortens base64
    """

    def __init__(self, limit: int, *, shortens: bool = False) -> None:
        self.body = Pieces()
        self._limit = limit
        self._shortens = shortens
        self._parsed = bytearray()
        self._small: list[bytes] = []
        self._small_size = 0

    def add(self, chunk: bytes) -> None:
        """Adds a chunk. Raises BadAnswer if the answer is too long."""
        self._small.append(chunk)
        self._small_size += len(chunk)
        if self.body.size + self._small_size > self._limit:
            raise BadAnswer(f"the answer passed {self._limit} bytes")
        if self._small_size >= PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        piece = self._small[0] if len(self._small) == 1 else b"".join(self._small)
        self._small, self._small_size = [], 0
        self.body.add(piece)
        self._parsed += _without_pictures(piece) if self._shortens else piece
        if len(self._parsed) > MAX_PARSED_BYTES:
            raise BadAnswer(f"the answer has more than {MAX_PARSED_BYTES} bytes without its pictures")

    def end(self) -> Mapping[str, Any]:
        """The whole answer as an object, perhaps with shortened base64; for use in a thread. Raises BadAnswer if it is
        no object."""
        self._flush()
        try:
            answer = load_long_json(self._parsed)
        except (ValueError, RecursionError):
            answer = None
        self._parsed.clear()
        if not isinstance(answer, dict):
            raise BadAnswer("the answer is not a JSON object")
        return answer


def _without_pictures(piece: bytes) -> bytes:
    if b"\\" in piece:
        for begins, escape, sign in _ESCAPES:
            if begins in piece:
                piece = escape.sub(sign, piece)
    return shortened(piece)


def check_images(answer: Mapping[str, Any]) -> None:
    """Raises BadAnswer for an answer without pictures."""
    if reported_count(answer.get("created")) is None:
        raise BadAnswer("the answer does not say when it was made")
    pictures = answer.get("data")
    if not isinstance(pictures, list) or not pictures:
        raise BadAnswer("the answer has no pictures")
    if not all(isinstance(one, Mapping) and _is_filled(one.get("b64_json")) for one in pictures):
        raise BadAnswer("a picture of the answer has no data")


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def images_usage(answer: Mapping[str, Any]) -> Usage | None:
    """The token counts of an answer with pictures; None if they are missing or invalid."""
    usage = answer.get("usage")
    if not isinstance(usage, Mapping):
        return None
    given, made = (reported_count(usage.get(name)) for name in ("input_tokens", "output_tokens"))
    return None if given is None or made is None else usage_of(given, made)


def transcript_of(answer: Mapping[str, Any]) -> str:
    """The transcript, with U+FFFD for half of a surrogate pair. Raises BadAnswer if it is missing or blank."""
    text = answer.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadAnswer("the answer has no text")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
