"""What a service tells of an account's allowance, in one form for all of them; and what is known once it told more.

Times are epoch seconds of this machine's clock. Nothing here asks for the time: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

#: Beyond this an account is not that of one user.
MAX_WINDOWS = 32

FULL = 100.0
#: Per cent of a window that are worth a word, each once until the window begins again.
STEPS = (80, 95, 100)
#: A use below this says that the window began again, whatever its times say. Below the first step, since that of a
#: rolling window goes up and down.
REARMED_BELOW = 70.0


@dataclass(frozen=True, slots=True)
class AllowanceWindow:
    """A stretch of time, and what may be used in it.

    title      how it is called: `5 hours`, `Weekly`
    used       per cent, may pass 100; None when only amounts are known
    as_of      when the service said so
    limit      what is limited, "" for everything
    minutes    how long it is, None when the service does not say
    resets_at  when it begins again
    words      what is used of it, where the service tells more than the share: `3 of 100 used, 97 left`
    resets     when it begins again as the service wrote it, "" where it wrote a number
    name       what programs call it, "" for the title
    beyond     what may be spent when the others are used up: it refuses nobody
    warned     the highest of the STEPS that was told of
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
        """Whether it has begun again since it was told of: then nobody knows what is used."""
        ends = [self.resets_at] if self.resets_at is not None else []
        if self.minutes:
            ends.append(self.as_of + self.minutes * 60)
        return bool(ends) and min(ends) <= now

    def is_spent(self, now: float) -> bool:
        """Whether nothing is left until an end that is known."""
        return self.used is not None and self.used >= FULL and self.resets_at is not None and not self.is_over(now)

    @property
    def full_title(self) -> str:
        """With what it limits.

        >>> AllowanceWindow("Weekly", 3, 0).full_title, AllowanceWindow("Weekly", 3, 0, "Spark").full_title
        ('Weekly', 'Spark, Weekly')
        """
        return f"{self.limit}, {self.title}" if self.limit else self.title


@dataclass(frozen=True, slots=True)
class Allowance:
    """The allowance of an account.

    windows   those of everything first
    plan      as the service calls it, "" when it does not say
    notes     what else is known, in words: `Credits: none`
    whole     whether it tells all there is; otherwise other limits than those of its windows may exist
    pays_on   whether something pays for requests when the windows are used up
    """

    windows: tuple[AllowanceWindow, ...] = ()
    plan: str = ""
    notes: tuple[str, ...] = ()
    whole: bool = True
    pays_on: bool = False

    @property
    def as_of(self) -> float | None:
        """When the newest of it was told."""
        return max((window.as_of for window in self.windows), default=None)


@dataclass(frozen=True, slots=True)
class Low:
    """A window that has passed one of the STEPS."""

    window: AllowanceWindow
    step: int


def merged(old: Allowance, new: Allowance, now: float) -> Allowance:
    """What is known once `new` was told. The order in which reports came counts, and not their times: a clock may have
    been set back."""
    before = {(window.limit, window.title): window for window in old.windows}
    fresh = [_rearmed(window, before.get((window.limit, window.title)), now) for window in new.windows]
    named = {window.limit for window in new.windows}
    kept = [window for window in old.windows if window.limit not in named] if not new.whole else []
    windows = sorted([*fresh, *kept][:MAX_WINDOWS], key=lambda window: window.limit != "")
    if new.whole:
        return replace(new, windows=tuple(windows))
    return Allowance(tuple(windows), new.plan or old.plan, new.notes or old.notes, old.whole, new.pays_on)


def _rearmed(window: AllowanceWindow, before: AllowanceWindow | None, now: float) -> AllowanceWindow:
    """The window with the steps that were told of in this period of it. An end that has passed when it is told, by a
    clock that is wrong, says nothing."""
    if before is None or (window.used or 0) < REARMED_BELOW:
        return window
    begun_again = (before.is_over(now) and not window.is_over(now)) or _moved_on(before, window)
    return window if begun_again else replace(window, warned=before.warned)


def _moved_on(before: AllowanceWindow, window: AllowanceWindow) -> bool:
    """Whether the end lies in another period. The ends of rolling windows move on all the time, a little."""
    if before.resets_at is None or window.resets_at is None:
        return False
    return window.resets_at - before.resets_at > max(60.0, (window.minutes or 0) * 60 / 2)


def lows(known: Allowance) -> tuple[Allowance, tuple[Low, ...]]:
    """Every window that has passed a step nobody was told of, and the allowance with that noted. One that passes
    several at once is told of once."""
    found, windows = [], []
    for window in known.windows:
        step = max((step for step in STEPS if (window.used or 0) >= step), default=0)
        if step > window.warned:
            found.append(Low(window, step))
            window = replace(window, warned=step)
        windows.append(window)
    return replace(known, windows=tuple(windows)), tuple(found)


def moved(allowance: Allowance, by: float) -> Allowance:
    """With all ends moved by so many seconds: for a service whose clock differs from ours."""
    return replace(
        allowance,
        windows=tuple(
            window if window.resets_at is None else replace(window, resets_at=window.resets_at + by)
            for window in allowance.windows
        ),
    )


#: The title of a window that a refusal told of: only its end is known. Its limit is a family of models.
NOTED = "Usage limit"


def with_noted(known: Allowance, family: str, ends: float, now: float) -> Allowance:
    """The allowance with what a refusal tells: some limit is used up until `ends`."""
    window = AllowanceWindow(NOTED, FULL, now, limit=family, resets_at=ends)
    return replace(known, windows=(*_others(known, family), window), whole=True)


def without_noted(known: Allowance, family: str) -> Allowance:
    """The allowance after a success of this family."""
    return replace(known, windows=_others(known, family))


def has_noted(known: Allowance) -> bool:
    """Whether a refusal told of a window."""
    return NOTED in [window.title for window in known.windows]


def _others(known: Allowance, family: str) -> tuple[AllowanceWindow, ...]:
    return tuple(window for window in known.windows if (window.title, window.limit) != (NOTED, family))


#: Ends that differ by no more than this are the same: services round.
SAME_END_S = 120.0
#: A shorter wait says when to try again, a longer one when a window ends.
NEXT_TRY_S = 300.0


def spent_window(known: Allowance, now: float, wait: float | None = None, family: str = "") -> AllowanceWindow | None:
    """The used-up window that refuses requests; None when none is known that could.

    family  of the models that are asked for: a limit of it counts, that of others does not
    wait  seconds until the service takes requests again, where it said: then the window is the one that ends with it,
          and of another one the service knows more
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
