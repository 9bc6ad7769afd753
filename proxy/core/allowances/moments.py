"""Moments as services write them."""

from __future__ import annotations

from datetime import UTC, datetime

#: Numbers beyond this are no seconds: then they are milliseconds, or no moment at all.
_MOST_S = 1e11


def moment_of(text: str) -> float | None:
    """Epoch seconds of a moment in a text: ISO 8601, in UTC where it names no zone, or a number.

    >>> moment_of("2026-10-01T12:00:00.000Z"), moment_of("2026-10-01T14:00:00+02:00"), moment_of("2026-10-01T12:00:00")
    (1790856000.0, 1790856000.0, 1790856000.0)
    >>> moment_of("1790856000"), moment_of("1790856000000"), moment_of("soon"), moment_of("")
    (1790856000.0, 1790856000.0, None, None)
    """
    if text.isascii() and text.isdigit() and len(text) < 20:
        number = float(text)
        return number if number < _MOST_S else number / 1000 if number < _MOST_S * 1000 else None
    try:
        found = datetime.fromisoformat(text[:40])
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
