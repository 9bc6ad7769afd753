"""Writes moments, ages and windows in words."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from proxy.core.allowances.report import Allowance, AllowanceWindow

#: Older reports are shown with their age.
FRESH_S = 300.0


def utc_text(seconds: float) -> str:
    """
    >>> utc_text(1795189371.5)
    '2026-11-20T15:42:51Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wait_text(seconds: float) -> str:
    """A wait in words, rounded up.

    >>> wait_text(7200), wait_text(90), wait_text(200_000)
    ('2 h 0 min', '2 min', '2 d 7 h')
    """
    minutes = -(-math.ceil(max(0.0, seconds)) // 60)
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def age_text(seconds: float) -> str:
    """An age in words, rounded down. A negative one counts as 0, since a clock may have been set back.

    >>> age_text(30), age_text(3 * 3600 + 1700), age_text(-5), age_text(3 * 86_400)
    ('just now', '3 h ago', 'just now', '3 d ago')
    """
    for name, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {name} ago"
    return "just now"


def use_text(window: AllowanceWindow) -> str:
    """
    >>> use_text(AllowanceWindow("Weekly", 12.5, 0)), use_text(AllowanceWindow("Weekly", 3, 0, words="3 of 100 used"))
    ('12.5% used', '3 of 100 used')
    """
    return window.words or ("" if window.used is None else f"{window.used:g}% used")


def window_line(window: AllowanceWindow) -> str:
    """
    >>> window_line(AllowanceWindow("Weekly", 3, 0, resets_at=1795189371))
    'Weekly: 3% used, resets 2026-11-20T15:42:51Z'
    """
    resets = window.resets or ("" if window.resets_at is None else utc_text(window.resets_at))
    return f"{window.full_title}: {use_text(window)}{f', resets {resets}' if resets else ''}"


def plain_lines(known: Allowance) -> list[str]:
    """A line for each window and each note."""
    return [*(window_line(window) for window in known.windows), *known.notes]


def spent_text(label: str, window: AllowanceWindow, now: float) -> str:
    """The words for a refused caller about a used-up window: which, until when, and the age of the report if it is old.

    >>> spent_text("p1", AllowanceWindow("Weekly", 100, 1795180000, resets_at=1795189371), 1795180000)
    'p1: Weekly window used up until 2026-11-20T15:42:51Z, in 2 h 37 min'
    """
    until = "" if window.resets_at is None else f" until {utc_text(window.resets_at)}, in "
    wait = wait_text(window.resets_at - now) if window.resets_at is not None else ""
    old = f", as of {age_text(now - window.as_of)}" if now - window.as_of > FRESH_S else ""
    return f"{label}: {window.full_title} window used up{until}{wait}{old}"
