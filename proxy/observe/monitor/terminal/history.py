"""The lines of the history: what was used in a time, by period and by model, and the allowances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, zip_longest
from typing import Any, NamedTuple

from proxy.core.allowances.report import FULL
from proxy.observe.history.overview_rows import ModelRow, OverviewRows, UsageRow, WindowRow
from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.observe.monitor.terminal.cells import Line, Span, clean, fit_line, line_width, width_of, wrap
from proxy.observe.monitor.terminal.columns import Column, fitting, heading_line, plain, row_line, styled
from proxy.observe.monitor.terminal.strip import is_over, role_of, used
from proxy.observe.monitor.terminal.times import TIMES
from proxy.observe.monitor.terminal.view import ShownHistory, View
from proxy.observe.monitor.words import (
    BAR_FULL,
    NONE,
    duration,
    in_room,
    milliseconds,
    moment,
    share,
    sparkline,
    spinner,
    tokens,
    whole,
    window,
)

#: From this width the periods are beside the rest.
TWO_COLUMNS_FROM = 150
#: From this width there is a line with the keys of the times; below, the title has the time.
KEYS_FROM = 46
#: Rows that are drawn of what another proxy sent, and samples of each.
MAX_ROWS, MAX_SAMPLES = 100, 1_000
#: Columns of a name.
MAX_NAME = 30
_GAP = 3

_NOTE = "p50, p95: the time to the first token that half, and 95 %, of the requests took at most"

#: Columns of what was used; written as in `columns.TABLES`.
_USAGE = "bar:* tokens:6 requests:5? failed:6? cached:6? p50:6? p95:6?"
_MORE = "in:6? out:6? thinking:8? retries:7? fallbacks:9?"
_WINDOW = "curve:* used:5 spent:8? resets:9?"


class UsedLine(NamedTuple):
    """A period or a model. `share`: of the longest bar, 0 to 1; `trend`: tokens of each period."""

    name: str
    usage: UsageRow
    share: float
    trend: Sequence[int] = ()


class WindowLine(NamedTuple):
    """A window, with its newest sample; `begin`: of the time that is shown."""

    name: str
    window: WindowRow
    newest: AllowanceRow
    begin: float


def history_lines(view: View, width: int, now: float) -> list[Line]:
    """All lines, each at most `width` wide."""
    history, rows = view.history, view.history.rows
    found = [*_keys(view, width), *((Span(f" {part}", "wait"),) for part in _problem(history, width))]
    if rows is not None:
        return [*found, *_rows_lines(rows, view, width, now)]
    waits = history.asking or not history.problem
    return [*found, (Span(f" {spinner(now)} Reading the history", "dim"),)] if waits else found


def _keys(view: View, width: int) -> Iterator[Line]:
    if width < KEYS_FROM:
        return
    line: list[Span] = []
    for number, time in enumerate(TIMES, 1):
        chosen = time == view.time
        line += Span(f"  {number}", "key"), Span(f" {time} ", "title" if chosen else "dim", chosen)
    yield tuple(line)


def _problem(history: ShownHistory, width: int) -> list[str]:
    return wrap(history.problem, max(1, width - 2)) if history.problem else []


def _rows_lines(rows: OverviewRows, view: View, width: int, now: float) -> list[Line]:
    upper = [*_flowed(_facts(rows.whole), width), *_since(rows, width, now)]
    beside = width >= TWO_COLUMNS_FROM
    left = 2 * width // 5 if beside else width
    right = width - left - _GAP if beside else width
    periods = _period_lines(rows, view, left, now)
    rest = [*_model_lines(rows, view, right, now), *_window_lines(rows, right, now)]
    tables = _side_by_side(periods, rest, left + _GAP) if beside else [*periods, *rest]
    return [*upper, *tables, *_note(rows, width)]


def _side_by_side(left: Iterable[Line], right: Iterable[Line], width: int) -> Iterator[Line]:
    """`width`: of the left ones."""
    return ((*fit_line(one, width), *other) for one, other in zip_longest(left, right, fillvalue=()))


def _note(rows: OverviewRows, width: int) -> Iterator[Line]:
    if rows.whole.requests:
        yield from ((), *((Span(f" {part}", "dim"),) for part in wrap(_NOTE, max(1, width - 2))))


# Everything together.


def _facts(usage: UsageRow) -> Iterator[Line]:
    if not usage.requests:
        return
    counts = (("failed", usage.failed, "bad"), ("left", usage.abandoned, "bad"), ("retried", usage.retries, "wait"))
    yield _fact("requests", whole(usage.requests), "bold")
    yield from (_fact(name, whole(count), role) for name, count, role in counts if count)
    if usage.fallbacks:
        yield _fact("by another model", whole(usage.fallbacks), "wait")
    yield _fact("in", tokens(usage.input))
    yield _fact("out", tokens(usage.output))
    yield _fact("cached", share(usage.cached_share))
    yield _fact("p50", _ms(usage.first_p50))
    yield _fact("p95", _ms(usage.first_p95))


def _fact(name: str, value: str, role: str = "") -> Line:
    return (Span(f" {name} ", "dim"), Span(f"{value} ", role))


def _flowed(facts: Iterable[Line], width: int) -> Iterator[Line]:
    """Puts as many into a line as fit."""
    line: Line = ()
    for fact in facts:
        if line and line_width((*line, *fact)) > width + 1:  # its last blank may be cut
            yield line
            line = ()
        line += fact
    if line:
        yield line


def _since(rows: OverviewRows, width: int, now: float) -> Iterator[Line]:
    begin = rows.kept_since
    if begin is None:
        words = "No request was kept yet."
    elif begin > rows.edges[0]:
        words = f"The history begins {moment(begin, now)}."
    elif not rows.whole.requests:
        words = "No request ended in this time."
    else:
        return
    yield from ((Span(f" {part}", "dim"),) for part in wrap(words, max(1, width - 2)))


def _ms(value: float | None) -> str:
    return NONE if value is None else milliseconds(value)


# Tables.


def _table(table: str, lines: Sequence[object], width: int, now: float, least: int) -> Iterator[Line]:
    """A blank line, the heading, and the rows; nothing without rows."""
    if lines:
        columns = fitting(table, COLUMNS, width - 1, least)
        yield ()
        yield (Span(" "), *heading_line(columns))
        yield from ((Span(" "), *row_line(columns, line, now)) for line in lines)


def _period_lines(rows: OverviewRows, view: View, width: int, now: float) -> Iterator[Line]:
    """The newest first; those before the first request are left out."""
    division = TIMES[view.time]
    known = list(dropwhile(lambda one: not one[1].requests, zip(rows.edges, rows.periods, strict=False)))
    most = max((usage.tokens for _, usage in known), default=0)
    named = 9 if width >= KEYS_FROM else 5
    lines = [UsedLine(division.label(at, named), usage, _part(usage.tokens, most)) for at, usage in reversed(known)]
    return _table(f"{division.title}:{named} {_USAGE} {_MORE}", lines, width, now, width // 8)


def _model_lines(rows: OverviewRows, view: View, width: int, now: float) -> Iterator[Line]:
    models = rows.models[:MAX_ROWS]
    most = max((model.whole.tokens for model in models), default=0)
    lines = [UsedLine(_model_name(one), one.whole, _part(one.whole.tokens, most), one.tokens) for one in models]
    named = _named((line.name for line in lines), width)
    trend = _TRENDS[TIMES[view.time].title]
    return _table(f"Model:{named} {_USAGE} {trend}:{len(rows.periods)}? {_MORE}", lines, width, now, width // 8)


def _model_name(model: ModelRow) -> str:
    rest = f"{model.others} others" if model.others else "no model"
    return "/".join(filter(None, (model.provider, model.model))) or rest


def _window_lines(rows: OverviewRows, width: int, now: float) -> Iterator[Line]:
    lines = [WindowLine(_window_name(one), one, _newest(one, now), rows.edges[0]) for one in rows.windows[:MAX_ROWS]]
    named = _named((line.name for line in lines), width)
    return _table(f"Allowance:{named} {_WINDOW}", lines, width, now, width // 4)


def _window_name(one: WindowRow) -> str:
    return " ".join(filter(None, (one.account, one.limit, window(one.window))))


def _newest(one: WindowRow, now: float) -> AllowanceRow:
    at, per_cent = one.samples[-1]
    over = one.resets_at is not None and one.resets_at <= now
    return AllowanceRow(one.account, one.window, per_cent, at, one.limit, one.resets_at, over)


def _named(names: Iterable[str], width: int) -> int:
    """The columns of a name."""
    longest = max((width_of(clean(name)) for name in names), default=0)
    return max(8, min(longest, MAX_NAME, width // 3))


def _part(count: int, most: int) -> float:
    return max(0, count) / most if most > 0 else 0.0


# Cells.


def _bar(line: UsedLine, _now: float, width: int) -> Span:
    cells = BAR_FULL * round(width * line.share)
    return Span(cells or ("▏" if line.share else ""), "trend")


def _counted(name: str, role: str = "") -> Callable[[Any, float, int], Span]:
    """A count; `role` colours it unless it is 0."""

    def cell(line: UsedLine, _now: float, width: int) -> Span:
        count = getattr(line.usage, name)
        return Span(in_room(count, width), role if count else "dim")

    return cell


def _trend(line: UsedLine, _now: float, width: int) -> Span:
    return Span(sparkline(line.trend, width, max(line.trend, default=1) or 1), "trend")


def _curve(line: WindowLine, now: float, width: int) -> Span:
    return Span(sparkline(uses(line.window, line.begin, now, width), width, 100.0), role_of(line.newest, now))


def uses(one: WindowRow, begin: float, now: float, steps: int) -> list[float]:
    """The most that was used in each step from `begin` to now, in per cent: a sample counts until the next one. The
    first may be of before `begin`."""
    found = [0.0] * steps

    def step(at: float) -> int:
        return max(0, min(int((at - begin) / max(1.0, now - begin) * steps), steps - 1))

    samples = one.samples[-MAX_SAMPLES:]
    for (at, per_cent), (until, _) in pairwise([*samples, (now, 0.0)]):
        if until > begin:
            for index in range(step(at), step(until) + 1):
                found[index] = max(found[index], per_cent)
    return found


def _spent(line: WindowLine, now: float, _width: int) -> Span:
    window = line.window
    if window.spent_at is not None:
        return Span(duration(window.spent_at - now), "wait")
    unknown = window.pace is None and line.newest.used < FULL and not is_over(line.newest, now)
    return Span("?" if unknown else NONE, "dim")


def _resets(line: WindowLine, now: float, _width: int) -> Span:
    at = line.window.resets_at
    return Span(NONE if at is None else "reset" if is_over(line.newest, now) else duration(at - now), "dim")


_NAME = styled(lambda line: Span(line.name))
#: The first column of each table.
_NAMES = ("Model", "Allowance", *(division.title for division in TIMES.values()))
#: Title of the periods -> the column with the tokens of each.
_TRENDS = {"Hour": "hours", "Day": "days", "Week": "weeks"}

#: Name of a column -> its cell.
COLUMNS: Mapping[str, Column] = {
    **{name: Column(name, _NAME) for name in _NAMES},
    "bar": Column("", _bar),
    "tokens": Column("Tokens", plain(lambda line: tokens(line.usage.tokens)), right=True),
    "requests": Column("Reqs", _counted("requests"), right=True),
    "failed": Column("Failed", _counted("failed", "bad"), right=True),
    "cached": Column("Cached", plain(lambda line: share(line.usage.cached_share)), right=True),
    "p50": Column("p50", plain(lambda line: _ms(line.usage.first_p50)), right=True),
    "p95": Column("p95", plain(lambda line: _ms(line.usage.first_p95)), right=True),
    **{name: Column(f"By {title.lower()}", _trend) for title, name in _TRENDS.items()},
    "in": Column("In", plain(lambda line: tokens(line.usage.input)), right=True),
    "out": Column("Out", plain(lambda line: tokens(line.usage.output)), right=True),
    "thinking": Column("Thinking", plain(lambda line: tokens(line.usage.thinking)), right=True),
    "retries": Column("Retried", _counted("retries"), right=True),
    "fallbacks": Column("Fallbacks", _counted("fallbacks"), right=True),
    "curve": Column("Used", _curve),
    "used": Column("Now", styled(lambda line: Span(used(line.newest), "")), right=True),
    "spent": Column("Spent in", _spent, right=True),
    "resets": Column("Resets in", _resets, right=True),
}
