"""The lines of the history: what is said where there is none, bars, curves and names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples, rows

from proxy.observe.history.overview import MAX_MODELS
from proxy.observe.history.overview_rows import ModelRow, OverviewRows, UsageRow, WindowRow
from proxy.observe.monitor.terminal.cells import width_of
from proxy.observe.monitor.terminal.history import history_lines, uses
from proxy.observe.monitor.terminal.times import TIMES
from proxy.observe.monitor.terminal.view import ShownHistory, View

from .shown import NOW, shown, text_of

DAY = 86_400.0
EDGES = tuple(NOW + (number - 3) * DAY for number in range(4))
USED = UsageRow(1_200, 30, 4, 5, 6, 3_000_000, 90_000, 20_000, 0.91, 900, 2_100)
PERIODS = (UsageRow(), USED, replace(USED, input=1_410_000, failed=0))
WINDOW = WindowRow("p1", "5 hours", ((NOW - DAY, 20.0), (NOW - 60, 60.0)), "", NOW + 6000, NOW + 300)
OVERVIEW = OverviewRows(EDGES, USED, PERIODS, (ModelRow("p1", "gpt-5.5", (0, 5, 10), USED),), (WINDOW,), NOW - 9 * DAY)


def lines(history: ShownHistory, width: int = 78) -> list[str]:
    return [line.rstrip() for line in text_of(history_lines(View(history=history), width, NOW))]


def body(**changes: Any) -> str:
    return "\n".join(lines(ShownHistory(replace(OVERVIEW, **changes))))


@rows(
    "history, said",
    [
        (ShownHistory(), "Reading the history"),
        (ShownHistory(asking=True), "Reading the history"),
        (ShownHistory(problem="it is off"), "it is off"),
        (ShownHistory(OVERVIEW, problem="gone"), "gone"),
        (ShownHistory(replace(OVERVIEW, kept_since=None, whole=UsageRow())), "No request was kept yet."),
        (ShownHistory(replace(OVERVIEW, whole=UsageRow())), "No request ended in this time."),
        (ShownHistory(replace(OVERVIEW, kept_since=NOW - DAY)), "The history begins 2026-08-"),
    ],
)
def test_what_is_known_is_said(history: ShownHistory, said: str) -> None:
    found = lines(history)
    assert said in "\n".join(found[1:4])
    assert ("gpt-5.5" in "\n".join(found)) == (history.rows is not None)


def test_numbers_and_bars() -> None:
    found = lines(ShownHistory(OVERVIEW))
    assert found[1:3] == [
        " requests 1,200  failed 30  left 4  retried 5  by another model 6  in 3.0M",
        " out 90.0k  cached 91%  p50 900 ms  p95 2.1s",
    ]
    newest, other = found[5:7]  # without the day before anything
    assert newest.split()[2:] == ["█" * 6, "1.5M", "1200", "0", "91%", "900", "ms", "2.1s", "1.4M", "90.0k"]
    assert other.count("█") == 12 and found[7] == ""
    assert found[9].split() == ["p1/gpt-5.5", "█" * 14, "3.1M", "1200", "30", "91%", "900", "ms", "2.1s", "▄█", "3.0M"]
    assert found[12].split()[0:2] == ["p1", "5h"] and found[12].split()[-3:] == ["60%", "5m00s", "1h40m"]


def test_models_without_a_name_and_the_rest() -> None:
    models = [
        *(ModelRow("p1", f"m{number}", (0, 1, 1)) for number in range(MAX_MODELS - 1)),
        ModelRow(tokens=(0, 0, 0)),
    ]
    text = body(models=(*models, ModelRow(tokens=(0, 0, 0), others=4)))
    assert text.index("p1/m18") < text.index("no model") < text.index("4 others")


def test_a_window_that_was_reset_has_no_use_and_one_that_lasts_is_not_spent() -> None:
    over = replace(WINDOW, resets_at=NOW - 5, spent_at=None)
    assert body(windows=(over,)).split("\n")[12].split()[-3:] == ["-", "-", "reset"]
    endless = replace(WINDOW, resets_at=None, spent_at=NOW - 5)
    assert body(windows=(endless,)).split("\n")[12].split()[-3:] == ["60%", "0s", "-"]


@rows(
    "samples, found",
    [
        ([(2, 30)], [0, 0, 30, 30, 30]),
        ([(1, 10), (3, 20)], [0, 10, 10, 20, 20]),
        ([(1, 90), (2.5, 0)], [0, 90, 90, 0, 0]),  # it was reset
        ([(1, 10), (1.2, 40), (1.9, 60)], [0, 60, 60, 60, 60]),
        ([(-3, 50), (2.5, 60)], [50, 50, 60, 60, 60]),  # from before
        ([(-3, 50), (-2, 10)], [10, 10, 10, 10, 10]),
        ([(9, 70)], [0, 0, 0, 0, 70]),  # of a clock that is ahead
    ],
)
def test_a_curve_keeps_its_use_until_the_next_sample(samples: list[tuple[float, float]], found: list[float]) -> None:
    assert uses(WindowRow("p1", "Weekly", tuple(samples)), 0.0, 5.0, 5) == found


def test_names_of_others_are_text() -> None:
    models = (ModelRow("p1\x1b[31m", "日本語モデル" * 9, (1, 2, 3), USED),)
    found = lines(ShownHistory(replace(OVERVIEW, models=models, windows=(replace(WINDOW, account="\x9b2J\n"),))))
    assert all(line.isprintable() and width_of(line) <= 78 for line in found)
    assert "p1?[31m/日本語" in found[9]


NUMBERS = st.integers(-(2**63), 2**63) | st.integers(0, 10**9)
FLOATS = st.floats(-(2.0**63), 2.0**63) | st.floats(0, 2 * NOW)
USAGES = st.builds(
    UsageRow,
    **dict.fromkeys(("requests", "failed", "abandoned", "retries", "fallbacks", "input", "output"), NUMBERS),
    **dict.fromkeys(("cached_share", "first_p50", "first_p95"), st.none() | FLOATS),
)


@st.composite
def overviews(draw: st.DrawFn) -> OverviewRows:
    """Anything that the reader of overviews lets through."""
    count = draw(st.integers(1, 5))
    curves = st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=5).map(lambda one: tuple(sorted(one)))
    tokens = st.lists(NUMBERS, min_size=count, max_size=count).map(tuple)
    return OverviewRows(
        tuple(draw(st.lists(FLOATS, min_size=count + 1, max_size=count + 1))),
        draw(USAGES),
        tuple(draw(st.lists(USAGES, min_size=count, max_size=count))),
        tuple(draw(st.lists(st.builds(ModelRow, st.text(max_size=9), st.text(), tokens, USAGES), max_size=3))),
        tuple(
            draw(st.lists(st.builds(WindowRow, st.text(max_size=9), st.text(), curves, st.text(), FLOATS), max_size=3))
        ),
        draw(st.none() | FLOATS),
    )


@settings(max_examples=examples(200), deadline=None)
@given(overview=overviews(), time=st.sampled_from(list(TIMES)), size=st.tuples(st.integers(0, 230), st.integers(0, 70)))
def test_any_overview_gives_a_whole_screen(overview: OverviewRows, time: Any, size: tuple[int, int]) -> None:
    found = shown(View(time=time, history=ShownHistory(overview), overlays=frozenset({"history"})), size=size)
    assert [width_of(line) for line in found] == [size[0]] * (size[1] if size[0] else 0)
    assert all(line.isprintable() for line in found)
