"""What is left of an allowance, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.core.allowances.report import FULL, STEPS, Allowance, AllowanceWindow
from proxy.core.allowances.words import age_text, use_text, wait_text

#: Columns of a bar at most and at least, of the titles in front of it, of the words behind it that make it shorter.
MOST_BAR, LEAST_BAR, MOST_TITLE, MOST_TAIL = 30, 8, 24, 46
#: Columns that a title may have however narrow the terminal is; of a wider one a third.
NARROW_TITLE = 12
#: Wide enough for `12.5%`.
_SHARE = 5
_GAP = "  "

_RED, _YELLOW, _GREEN, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the terminal can show.

    columns  its width
    colours  whether it takes colours, and wants them
    blocks   whether it can write block characters
    """

    columns: int = 80
    colours: bool = False
    blocks: bool = True


def bars(known: Allowance, terminal: Terminal, now: float) -> list[str]:
    """A line for each window and each note."""
    most = min(MOST_TITLE, max(NARROW_TITLE, terminal.columns // 3))
    width = min(max((len(window.full_title) for window in known.windows), default=0), most)
    tails = {window: _tails(window, now) for window in known.windows}
    longest = min(MOST_TAIL, max((len(forms[0]) for forms in tails.values()), default=0))
    room = terminal.columns - width - _SHARE - longest - 3 * len(_GAP)
    size = min(MOST_BAR, room) if room >= LEAST_BAR else 0
    rows = [_row(window, forms, (width, size), terminal, now) for window, forms in tails.items()]
    return [*rows, *(note[: terminal.columns] for note in known.notes)]


def kept_title(known: Allowance, now: float) -> str:
    """The heading of what was told some time ago."""
    return f"as of {age_text(now - (known.as_of or now))}:"


def kept_lines(known: Allowance, now: float) -> list[str]:
    """In words, of what was told some time ago: what began again since is not known."""
    return [kept_title(known, now), *(f"  {one.full_title}: {', '.join(_kept(one, now))}" for one in known.windows)]


def _kept(window: AllowanceWindow, now: float) -> Iterator[str]:
    yield "began again since" if window.is_over(now) else use_text(window)
    yield from _resets(window, now)


def _tails(window: AllowanceWindow, now: float) -> tuple[str, ...]:
    """What stands behind the share, the longest first: where there is no room, the end counts more than amounts."""
    if window.is_over(now):
        return ("began again since",)
    amounts = [] if "%" in window.words or not window.words else [window.words]
    resets = ", ".join(_resets(window, now))
    whole = ", ".join(filter(None, (*amounts, resets)))
    return (whole, resets, resets.removeprefix("resets ")) if resets and window.used is not None else (whole,)


def _fitting(forms: tuple[str, ...], room: int) -> str:
    return next((form for form in forms if len(form) <= room), forms[-1])[: max(0, room)]


def _row(
    window: AllowanceWindow, forms: tuple[str, ...], widths: tuple[int, int], terminal: Terminal, now: float
) -> str:
    """`widths`: of the title, and of the bar, 0 for none."""
    width, size = widths
    title = _fit(window.full_title, width).ljust(width) + _GAP
    if window.used is None or window.is_over(now):
        return f"{title}{_fitting(forms, terminal.columns - len(title))}".rstrip()
    share = (f"{window.used:.3g}%" if window.used < 1000 else f"{window.used:.0f}%").rjust(_SHARE)
    free = terminal.columns - len(title) - (size + len(_GAP) if size else 0) - len(share) - len(_GAP)
    drawn = f"{_bar(window.used, size, terminal)}{_GAP}" if size else ""
    return f"{title}{drawn}{share}{_GAP}{_fitting(forms, free)}".rstrip()


def _resets(window: AllowanceWindow, now: float) -> Iterator[str]:
    if window.resets_at is not None and not window.is_over(now):
        yield f"resets in {wait_text(window.resets_at - now)}"
    elif window.resets and window.resets_at is None:
        yield f"resets {window.resets}"


def _bar(used: float, size: int, terminal: Terminal) -> str:
    """Full only when nothing is left, empty only when nothing is used."""
    (on, off), (before, after) = (("█", "░"), ("", "")) if terminal.blocks else (("#", "-"), ("[", "]"))
    cells = size - len(before) - len(after)
    filled = round(min(used, FULL) / FULL * cells)
    filled = max(filled, 1) if used > 0 else filled
    filled = min(filled, cells - 1) if used < FULL else filled
    drawn = f"{before}{on * filled}{off * (cells - filled)}{after}"
    if not terminal.colours:
        return drawn
    return f"{_RED if used >= STEPS[1] else _YELLOW if used >= STEPS[0] else _GREEN}{drawn}{_PLAIN}"


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
