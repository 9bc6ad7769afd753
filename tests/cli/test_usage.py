"""What `usage` draws."""

from __future__ import annotations

import re
from dataclasses import replace

from samples import rows

from proxy.cli.usage import Terminal, bars, kept_lines
from proxy.core.allowances.report import Allowance, AllowanceWindow

NOW = 1_795_180_000.0
FIVE = AllowanceWindow("5 hours", 12.0, NOW, resets_at=NOW + 7200)
WEEK = AllowanceWindow("Weekly", 100.0, NOW, resets_at=NOW + 200_000)
MONTH = AllowanceWindow("Month", 12.5, NOW, words="$2.50 of $20.00 used", resets="soon")
BARE = AllowanceWindow("limits", None, NOW, words="3 used")
OVER = AllowanceWindow("Daily", 100.0, NOW - 90_000, resets_at=NOW)
KNOWN = Allowance((FIVE, WEEK, MONTH, BARE, OVER), notes=("Credits: none",))

SCREENS: dict[Terminal, list[str]] = {
    Terminal(80): [
        "5 hours  ███░░░░░░░░░░░░░░░░░░░░░░░░░░    12%  resets in 2 h 0 min",
        "Weekly   █████████████████████████████   100%  resets in 2 d 7 h",
        "Month    ████░░░░░░░░░░░░░░░░░░░░░░░░░  12.5%  $2.50 of $20.00 used, resets soon",
        "limits   3 used",
        "Daily    began again since",
        "Credits: none",
    ],
    Terminal(62, blocks=False): [
        "5 hours  [#--------]    12%  resets in 2 h 0 min",
        "Weekly   [#########]   100%  resets in 2 d 7 h",
        "Month    [#--------]  12.5%  $2.50 of $20.00 used, resets soon",
        "limits   3 used",
        "Daily    began again since",
        "Credits: none",
    ],
    Terminal(35): [
        "5 hours    12%  resets in 2 h 0 min",
        "Weekly    100%  resets in 2 d 7 h",
        "Month    12.5%  resets soon",
        "limits   3 used",
        "Daily    began again since",
        "Credits: none",
    ],
    Terminal(22): [
        "5 hours    12%  in 2 h",
        "Weekly    100%  in 2 d",
        "Month    12.5%  soon",
        "limits   3 used",
        "Daily    began again s",
        "Credits: none",
    ],
}


@rows("terminal", SCREENS)
def test_screens(terminal: Terminal) -> None:
    assert bars(KNOWN, terminal, NOW) == SCREENS[terminal]


@rows("columns", range(1, 140))
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    wide = replace(FIVE, title="界" if columns == 0 else "A title that is far too long for a column", used=123456.0)
    rows = bars(replace(KNOWN, windows=(*KNOWN.windows, wide)), Terminal(columns, colours=True), NOW)
    shown = [re.sub(r"\x1b\[\d+m", "", row) for row in rows]
    assert columns < 40 or max(map(len, shown)) <= columns


@rows("used, colour", [(0, 32), (79.9, 32), (80, 33), (94.9, 33), (95, 31), (100, 31), (250, 31)])
def test_the_colour_says_how_much_is_left(used: float, colour: int) -> None:
    (row,) = bars(Allowance((replace(FIVE, used=used),)), Terminal(colours=True), NOW)
    assert f"\x1b[{colour}m" in row
    drawn = re.findall("[█░]+", row)[0]
    assert ("░" in drawn, "█" in drawn) == (used < 100, used > 0)


def test_what_was_told_before_says_how_old_it_is() -> None:
    assert kept_lines(replace(KNOWN, windows=(FIVE, OVER, MONTH)), NOW + 3 * 3600) == [
        "as of 3 h ago:",
        "  5 hours: began again since",
        "  Daily: began again since",
        "  Month: $2.50 of $20.00 used, resets soon",
    ]
