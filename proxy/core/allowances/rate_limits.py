"""Rate limits in windows of time, as values for the log, the terminal and monitors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

#: Larger numbers are not seconds but milliseconds, or no moment at all.
_MOST_S = 1e11


def moment_of(text: str) -> float | None:
    """Epoch seconds of a moment in a text: ISO 8601, in UTC if it names no zone, or a number; else None.

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


WEEK_MINUTES = 7 * 24 * 60
FULL = 100.0


@dataclass(frozen=True, slots=True)
class Window:
    """One window.

    used       per cent; may pass 100
    minutes    its length, None if the upstream does not say
    resets_at  when it is reset, epoch seconds
    """

    used: float
    minutes: int | None = None
    resets_at: float | None = None

    @property
    def title(self) -> str:
        """
        >>> Window(12, 300).title, Window(3, 10_080).title, Window(1).title
        ('5 hours', 'Weekly', 'Window')
        """
        if self.minutes is None:
            return "Window"
        return "Weekly" if self.minutes == WEEK_MINUTES else length_in_words(self.minutes * 60)


@dataclass(frozen=True, slots=True)
class Credits:
    """Credits that pay for requests once the windows are used up."""

    available: bool = False
    unlimited: bool = False
    balance: str | None = None


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """The rate limits of an account at one moment.

    limits   name of a limit -> its windows, in the upstream's order
    active   the limit that refused the newest request, if one did
    """

    limits: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    credits: Credits | None = None
    plan: str | None = None
    active: str | None = None

    def spent_until(self, limit: str, now: float) -> float | None:
        """The time when all used-up windows of a limit are reset, epoch seconds; None if none is known to be used
        up."""
        moments = [
            window.resets_at
            for window in self.limits.get(limit, ())
            if window.used >= FULL and window.resets_at is not None and window.resets_at > now
        ]
        return max(moments, default=None)


def length_in_words(seconds: float) -> str:
    """
    >>> length_in_words(18_000), length_in_words(604_800), length_in_words(5_400), length_in_words(1)
    ('5 hours', '7 days', '90 minutes', '1 second')
    """
    for name, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            return _counted(seconds / length, name)
    return _counted(seconds, "second")


def _counted(count: float, name: str) -> str:
    return f"{count:g} {name}{'' if count == 1 else 's'}"
