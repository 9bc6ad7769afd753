"""Base64 in an answer, shortened: what is left can be parsed in no time, and is JSON of the same shape."""

from __future__ import annotations

import re

#: Of a run of base64 that is longer than twice this, so much stays at either end.
KEPT = 64

_RUN = rb"[A-Za-z0-9+/=]"
#: A run is tried from its first character only, else runs that are just too short would cost their square.
_LONG_RUN = re.compile(rb"(?<!%b)%b{%d,}" % (_RUN, _RUN, 2 * KEPT + 1))


def shortened(chunk: bytes) -> bytes:
    r"""A piece of JSON with the first and the last 64 characters of each long run of base64 in it.

    Each chunk is looked at by itself: chunks may be cut anywhere, also within a run or an escape. Only the middle of
    runs goes, in which no escape begins; `\/` becomes the slash that it stands for. So strings stay strings, and their
    emptiness what it was; long numbers stay numbers.

    >>> shortened(b'{"b64_json":"' + b"A" * 100_000 + b'"}').replace(b"A", b"") , len(shortened(b"A" * 100_000))
    (b'{"b64_json":""}', 128)
    """
    return _LONG_RUN.sub(_ends, chunk.replace(rb"\/", b"/"))


def _ends(found: re.Match[bytes]) -> bytes:
    run = found[0]
    return run[:KEPT] + run[-KEPT:]
