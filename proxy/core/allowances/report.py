"""A service's report on an account's allowance, in one form for all services, and the merging of reports.

Times are epoch seconds of this machine's clock. Nothing here reads a clock: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

#: Maximum number of windows of an account.
MAX_WINDOWS = 32

FULL = 100.0
#: Per cent of a window that cause a warning, each once until the window is reset.
STEPS = (80, 95, 100)
#: A use below this means that the window was reset, whatever its times are. Well below the first step, since the use of
#: a rolling window goes up and down.
REARMED_BELOW = 70.0


@dataclass(frozen=True, slots=True)
class AllowanceWindow:
    """A period of time, and how much of it is used.

    title      its name: `5 hours`, `Weekly`
    used       per cent, may pass 100; None if only amounts are known
    as_of      time of the report
    limit      what is limited, "" for everything
    minutes    its length, None if the service does not say
    resets_at  when it is reset
    words      its use in words, if the service reports more than the share: `3 of 100 used, 97 left`
    resets     when it is reset in the service's words, "" if that was a number
    name       its name for programs, "" for the title
    beyond     whether it only counts what is spent after the others are used up, and refuses nothing
    warned     the highest of the STEPS for which there was a warning
    """

    title: str
    used: float | None
    as_of: float
    limit: str = ""
    minutes: int | None = None
    resets_at: float | None = None
    words: str = ""
    resets: str = ""
    name: str = ""
    beyond: bool = False
    warned: int = 0

    def is_over(self, now: float) -> bool:
        """Whether it was reset since it was reported: then its use is unknown."""
        ends = [self.resets_at] if self.resets_at is not None else []
        if self.minutes:
            ends.append(self.as_of + self.minutes * 60)
        return bool(ends) and min(ends) <= now

    def is_spent(self, now: float) -> bool:
        """Whether nothing is left until a known end."""
        return self.used is not None and self.used >= FULL and self.resets_at is not None and not self.is_over(now)

    @property
    def full_title(self) -> str:
        """The title with what it limits.

        >>> AllowanceWindow("Weekly", 3, 0).full_title, AllowanceWindow("Weekly", 3, 0, "Spark").full_title
        ('Weekly', 'Spark, Weekly')
        """
        return f"{self.limit}, {self.title}" if self.limit else self.title


@dataclass(frozen=True, slots=True)
class Allowance:
    """The allowance of an account.

    windows   windows that limit everything come first
    plan      the service's name of the plan, "" if unknown
    notes     further facts in words: `Credits: none`
    whole     whether it is complete; otherwise there may be other limits than those of its windows
    pays_on   whether something pays for requests once the windows are used up
    """

    windows: tuple[AllowanceWindow, ...] = ()
    plan: str = ""
    notes: tuple[str, ...] = ()
    whole: bool = True
    pays_on: bool = False

    @property
    def as_of(self) -> float | None:
        """Time of the newest report in it, None without any."""
        return max((window.as_of for window in self.windows), default=None)


@dataclass(frozen=True, slots=True)
class Low:
    """A window that has passed one of the STEPS."""

    window: AllowanceWindow
    step: int


def merged(old: Allowance, new: Allowance, now: float) -> Allowance:
    """The allowance after the report `new`. The order of reports counts, not their times, since a clock may have been
    set back."""
    before = {(window.limit, window.title): window for window in old.windows}
    fresh = [_rearmed(window, before.get((window.limit, window.title)), now) for window in new.windows]
    named = {window.limit for window in new.windows}
    kept = [window for window in old.windows if window.limit not in named] if not new.whole else []
    windows = sorted([*fresh, *kept][:MAX_WINDOWS], key=lambda window: window.limit != "")
    if new.whole:
        return replace(new, windows=tuple(windows))
    return Allowance(tuple(windows), new.plan or old.plan, new.notes or old.notes, old.whole, new.pays_on)


def _rearmed(window: AllowanceWindow, before: AllowanceWindow | None, now: float) -> AllowanceWindow:
    """The window with the step already warned of in this period. An end that is past when it is reported, because of a
    wrong clock, means nothing."""
    if before is None or (window.used or 0) < REARMED_BELOW:
        return window
    begun_again = (before.is_over(now) and not window.is_over(now)) or _moved_on(before, window)
    return window if begun_again else replace(window, warned=before.warned)


def _moved_on(before: AllowanceWindow, window: AllowanceWindow) -> bool:
    """Whether the end is in another period. The ends of rolling windows move a little all the time."""
    if before.resets_at is None or window.resets_at is None:
        return False
    return window.resets_at - before.resets_at > max(60.0, (window.minutes or 0) * 60 / 2)


def lows(known: Allowance) -> tuple[Allowance, tuple[Low, ...]]:
    """The allowance with new steps noted, and every window that has passed one, with the highest of these steps."""
    found, windows = [], []
    for window in known.windows:
        step = max((step for step in STEPS if (window.used or 0) >= step), default=0)
        if step > window.warned:
            found.append(Low(window, step))
            window = replace(window, warned=step)
        windows.append(window)
    return replace(known, windows=tuple(windows)), tuple(found)


def moved(allowance: Allowance, by: float) -> Allowance:
    """The allowance with all ends moved by `by` seconds: for a service whose clock differs from ours."""
    return replace(
        allowance,
        windows=tuple(
            window if window.resets_at is None else replace(window, resets_at=window.resets_at + by)
            for window in allowance.windows
        ),
    )


#: Title of a window known only from a refusal, with just its end. Its limit is a family of models.
NOTED = "Usage limit"


def with_noted(known: Allowance, family: str, ends: float, now: float) -> Allowance:
    """The allowance with a window for a refusal: some limit is used up until `ends`."""
    window = AllowanceWindow(NOTED, FULL, now, limit=family, resets_at=ends)
    return replace(known, windows=(*_others(known, family), window), whole=True)


def without_noted(known: Allowance, family: str) -> Allowance:
    """The allowance after a success of this family."""
    return replace(known, windows=_others(known, family))


def has_noted(known: Allowance) -> bool:
    """Whether there is a window from a refusal."""
    return NOTED in [window.title for window in known.windows]


def _others(known: Allowance, family: str) -> tuple[AllowanceWindow, ...]:
    return tuple(window for window in known.windows if (window.title, window.limit) != (NOTED, family))


#: Greatest difference of ends that count as equal, since services round.
SAME_END_S = 120.0
#: A shorter wait only means the next try, a longer one the end of a window.
NEXT_TRY_S = 300.0


def spent_window(known: Allowance, now: float, wait: float | None = None, family: str = "") -> AllowanceWindow | None:
    """The used-up window that refuses requests; None if none is known.

    family  the family of the requested model: a limit of it counts, that of another family does not
    wait    seconds until the service accepts requests again, if it said so: then the window is the one that ends then
    """
    spent = [window for window in known.windows if window.is_spent(now) and not window.beyond]
    if wait is not None:
        exact = [window for window in spent if abs(_end(window) - now - wait) <= SAME_END_S]
        if exact:
            return max(exact, key=_end)
        if wait > NEXT_TRY_S:
            return None
    return max((window for window in spent if window.limit in ("", family)), key=_end, default=None)


def _end(window: AllowanceWindow) -> float:
    return window.resets_at or 0.0


def status_of(windows: Iterable[AllowanceWindow], now: float) -> str:
    """ok, warning (at most a fifth is left) or critical (at most a twentieth), by the fullest window."""
    used = max((window.used for window in windows if window.used is not None and not window.is_over(now)), default=0.0)
    return "critical" if used >= STEPS[1] else "warning" if used >= STEPS[0] else "ok"
