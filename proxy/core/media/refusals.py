"""The errors of the media routes: each has a code, and repeats little of what the caller wrote."""

from __future__ import annotations

from proxy.core.invalid import InvalidRequest, TooLarge, cut

#: Characters of a caller's name or value that an error repeats.
MAX_REPEATED = 100

UNSUPPORTED = "unsupported_parameter"


def repeated(text: str) -> str:
    """A name or a value as an error repeats it: printable, and only its beginning.

    >>> repeated("Auto"), len(repeated("x" * 1000))
    ("'Auto'", 100)
    """
    return cut(repr(text[:MAX_REPEATED]), MAX_REPEATED)


def refused(message: str, param: str | None = None, code: str = "invalid_request") -> InvalidRequest:
    """A 400."""
    return InvalidRequest(message, param=param, code=code)


def broken(why: str) -> InvalidRequest:
    """A 400 for a form that cannot be read."""
    return refused(f"the multipart body cannot be read: {why}", code="invalid_multipart")


def too_large(message: str, param: str | None = None) -> TooLarge:
    """A 413."""
    return TooLarge(message, param=param, code="request_too_large")


def body_too_large(limit: int) -> TooLarge:
    """A 413 for a body that is longer than its route accepts, by its head or its bytes."""
    return too_large(f"the request body is larger than {limit} bytes")
