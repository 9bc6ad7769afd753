"""Widths, and what of a foreign text reaches the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.observe.monitor.terminal import screen
from proxy.observe.monitor.terminal.cells import Span, clean, cut, fit, laid_over, line_width, width_of, wrap
from proxy.observe.monitor.terminal.columns import TABLES, columns_of, tier_of
from proxy.observe.monitor.terminal.display import ASCII, LOOKS, as_ascii
from proxy.observe.monitor.terminal.view import PANES, Pane, View

from .screen_picture import rgb
from .shown import shown

#: Where the signs of the screen are written.
TERMINAL = Path(screen.__file__).parent


@rows(
    "text, width, shown",
    [
        ("abc", 5, "abc  "),
        ("abcdef", 4, "abc…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日… "),  # half of a sign is none
        ("a\x1b[2Jb\x07", 9, "a?[2Jb?  "),
        ("one\r\ntwo\tthree", 14, "one  two three"),
        ("\u202eabc\u200d\ufeff", 4, "abc "),
        ("👩\u200d💻!", 6, "👩💻! "),
        ("cafe\u0301", 5, "café "),
        ("\udcff", 1, "?"),
        ("x", 0, ""),
    ],
)
def test_texts_fit(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown


@given(text=st.text(), width=st.integers(0, 40))
def test_any_text_fits_and_cannot_command_the_terminal(text: str, width: int) -> None:
    assert width_of(fit(text, width)) == width == width_of(fit(text, width, right=True))
    assert fit(text, width).isprintable()
    assert all(width_of(line) <= max(2, width) for line in wrap(text, max(1, width)))


@given(text=st.text(), over=st.text(max_size=8), left=st.integers(0, 20))
def test_a_line_over_a_line_keeps_its_width(text: str, over: str, left: int) -> None:
    line = (Span(fit(text, 40)),)
    assert line_width(laid_over(line, (Span(cut(clean(over), 20)),), left)) == 40


@rows(
    "inner, tier",
    [(0, "emergency"), (75, "emergency"), (76, "narrow"), (88, "medium"), (118, "expanded"), (152, "wide")],
)
def test_tiers(inner: int, tier: str) -> None:
    assert tier_of(inner) == tier


@rows("pane", PANES)
def test_columns_take_the_whole_width(pane: Pane) -> None:
    for inner in range(58, 240):
        columns = columns_of(pane, inner)
        blanks = len(columns) - 1 - (pane == "sessions")
        assert sum(column.width for column in columns) + blanks == inner, inner


def headings(pane: Pane, inner: int) -> str:
    return " ".join(sized.heading.strip() for sized in columns_of(pane, inner)).strip()


@rows(
    "pane, inner, expected",
    [
        ("sessions", 198, "ID Project A R F Provider Model Effort In Out Cache Rate Tokens/10s · 4k Status"),
        ("sessions", 118, "ID Project A/R/F Prov Model Effort In Out Cache Rate Tok/10s Status"),
        ("sessions", 98, "ID Project A/R/F Prov Model Cache Rate Tok/10s Status"),
        ("sessions", 78, "ID Project A/R/F Target Rate Trend Status"),
        ("sessions", 58, "ID Target Status"),
        ("active", 198, "Started Status Project Session Provider Model Effort Endpoint In Out Rate Elapsed"),
        ("active", 118, "Started Status Project Session Prov Model Effort Endpoint Rate Elapsed"),
        ("active", 98, "Started Status Prov Model Effort Endpoint Rate Elapsed"),
        ("active", 78, "Started Status Prov Model Effort Rate Elapsed"),
        ("active", 58, "Started Status Target Elapsed"),
        (
            "recent",
            198,
            "Finished Code Project Session Provider Model Effort Endpoint Latency Rate In Out Cached Details",
        ),
        ("recent", 118, "Finished Code Project Session Prov Model Effort Latency Rate In Out Cached !"),
        ("recent", 98, "Finished Code Prov Model Effort Latency Rate In Out Cached !"),
        ("recent", 78, "Finished Code Prov Model Latency Rate In Out !"),
        ("recent", 58, "Finished Code Target Latency !"),
        ("events", 198, "Time Code Project Session Provider Model Message"),
        ("events", 118, "Time Code Project Prov Model Message"),
        ("events", 98, "Time Code Prov Model Message"),
        ("events", 58, "Time Code Message"),
    ],
)
def test_columns_by_width(pane: Pane, inner: int, expected: str) -> None:
    assert headings(pane, inner) == expected


@pytest.mark.parametrize("size", [(40, 12), (100, 30)])
def test_a_filter_of_wide_signs_has_the_room_there_is(size: tuple[int, int]) -> None:
    words = "日本語の検索語は長い"
    titles = [line for line in shown(View(words=words), size=size) if "Sessions" in line]
    assert titles and f"/{words} ─" in titles[0]
    typing = shown(View(words=words * 6, typing=True), size=size)[-1]
    assert typing.rstrip().endswith("長い▏") and width_of(typing.rstrip()) >= size[0] - 1


def test_ascii_names_the_keys() -> None:
    assert "^ v j k move" in as_ascii(shown(View())[-1])
    help = "\n".join(map(as_ascii, shown(View(overlays=frozenset({"help"})))))
    assert "Tab < >" in help and "^ v   " in help


def test_every_sign_of_ours_has_one_in_ascii() -> None:
    assert all(len(chr(sign)) == len(str(plain)) == 1 and str(plain).isascii() for sign, plain in ASCII.items())
    written = {sign for file in TERMINAL.glob("*.py") for sign in file.read_text(encoding="utf-8")}
    assert {sign for sign in written if not sign.isascii()} <= {chr(sign) for sign in ASCII}
    assert TABLES.keys() == set(PANES)


def contrast(colour: int, ground: int) -> float:
    """The ratio of WCAG 2."""

    def luminance(one: int) -> float:
        linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels(one))
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    def channels(one: int) -> list[float]:
        return [part / 255 for part in rgb(one)]

    lower, upper = sorted((luminance(colour), luminance(ground)))
    return (upper + 0.05) / (lower + 0.05)


@rows("chosen", [False, True])
@rows("role", LOOKS)
def test_every_text_can_be_read(role: str, chosen: bool) -> None:
    """On a light terminal as on a dark one: both colours of a pair are ours. Borders are lines, no text."""
    colour, ground = LOOKS[role].pair(True, chosen)
    assert min(colour, ground) >= 16, "the first 16 differ between terminals"
    assert contrast(colour, ground) >= (3 if role == "border" else 4.5)
    colour, ground = LOOKS[role].pair(False, chosen)
    assert 0 <= min(colour, ground) <= max(colour, ground) < 8
    assert contrast(colour, ground) >= 3.5  # pure red on black; such terminals brighten what is bold
