"""Base64 in an answer, shortened, and long blanks: what is left can be parsed in no time, and is JSON of the same
shape."""

from __future__ import annotations

import re

from proxy.core.media.base64_text import strays

#: Of a run that is longer than twice this, so much stays at either end.
KEPT = 64

#: Base64 of both alphabets, and blanks.
_RUNS = (rb"[A-Za-z0-9+/=_-]", rb"[ \t\r\n]")
#: A run is tried from its first character only, else runs that are just too short would cost their square.
_LONG_RUN = re.compile(b"|".join(rb"(?<!%b)%b{%d,}" % (run, run, 2 * KEPT + 1) for run in _RUNS))


def shortened(chunk: bytes) -> bytes:
    r"""A piece of JSON with the first and the last 64 characters of each long run of base64 or blanks in it.

    Each chunk is looked at by itself: chunks may be cut anywhere, also within a run or an escape. Only the middle of
    runs goes, in which no escape begins; `\/` becomes the slash that it stands for. So strings stay strings, and their
    emptiness what it was; long numbers stay numbers.

    >>> shortened(b'{"b64_json":"' + b"A" * 100_000 + b'"}').replace(b"A", b"") , len(shortened(b"A" * 100_000))
    (b'{"b64_json":""}', 128)
    """
    if len(chunk) > 2 * KEPT and not strays(chunk):
        return _ends(chunk)  # most chunks of a picture; found ten times as fast
    return _LONG_RUN.sub(lambda found: _ends(found[0]), chunk.replace(rb"\/", b"/"))


def _ends(run: bytes) -> bytes:
    return run[:KEPT] + run[-KEPT:]
