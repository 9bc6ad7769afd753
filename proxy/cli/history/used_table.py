"""The table of a report, for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, takewhile

from proxy.cli.history.prices import Cost
from proxy.cli.history.spans import TimeSpan, day_text, local_text
from proxy.cli.history.tables import GAP, Column, fitted, own, pairs, share_bar
from proxy.cli.history.used import UsedReport, UsedRow, together
from proxy.cli.usage import Terminal
from proxy.observe.history.usage import BY
from proxy.observe.monitor.terminal.cells import cut, wrap
from proxy.observe.monitor.words import NONE, session_name, share, tokens

#: Rows of a table unless `--limit` names a number; what is left is one more row.
SHOWN = 50
#: Cells of a bar, of a name before the bar goes, and of one before columns go.
LEAST_BAR, MOST_BAR, SHORT_NAME, LEAST_NAME = 4, 30, 18, 12
#: Models without a price that are named, and characters of such a name.
_NAMED, _NAME = 8, 60
_NO_BREAK = "\N{NO-BREAK SPACE}"
_TOTAL = "total"
_PERCENTILES = {"p50": 0.5, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    row: UsedRow
    bar: float = 0.0


def report_lines(report: UsedReport, terminal: Terminal, limit: int | None = None) -> list[str]:
    """The report as text: its time, a line for each row, and what else there is to tell."""
    title = title_of(report.span, terminal, f", by {report.by}")
    lines = [*title, *_kept_words(report), ""]
    if not report.total.usage.requests:
        return [*lines, "no requests"]
    shown = _shown(report, terminal, limit)
    return [*lines, *_table(report, shown, terminal), *_notes(report, terminal)]


def title_of(span: TimeSpan, terminal: Terminal, more: str = "") -> list[str]:
    """The first lines of a report."""
    begin, end = local_text(span.since), "now" if span.open else local_text(span.until)
    words = f" ({span.words})" if span.words else ""
    return wrap(f"{begin} to {end}{words}{more}", terminal.columns)


def _kept_words(report: UsedReport) -> Iterator[str]:
    if report.kept_since is not None and report.kept_since > report.span.since:
        yield f"The history begins {local_text(report.kept_since)}."


def _shown(report: UsedReport, terminal: Terminal, limit: int | None) -> list[_Line]:
    """The lines above the total, no more than wanted of those that are not periods."""
    by_period = bool(BY[report.by].periods)
    rows, rest = report.parted(limit or (None if by_period else SHOWN))
    names = _period_names(rows, report.by) if by_period else _names(rows, report.heads)
    full = max((row.tokens for row in rows), default=0) or 1
    lines = [_Line(own(name, terminal), row, row.tokens / full) for name, row in zip(names, rows, strict=True)]
    if not rest:
        return lines
    others = _Line(f"({len(rest):,} more)", together(rest, report.total.cost is not None))
    return [others, *lines] if by_period else [*lines, others]


def _names(rows: Sequence[UsedRow], heads: Sequence[str]) -> list[str]:
    """`p1/gpt-5.6`, or `(no project)`."""
    names = ["/".join(filter(None, row.names)) for row in rows]
    return [name or f"(no {heads[-1]})" for name in (short_names(names) if heads == ("session",) else names)]


def short_names(sessions: Sequence[str]) -> list[str]:
    """Names of sessions: of a UUID its beginning, as much as no other one has.

    >>> short_names(["5f3a91c2-0000-4000-8000-000000000001", "5f3a91c3-0000-4000-8000-000000000001", "mine"])
    ['5f3a91c2', '5f3a91c3', 'mine']
    """
    ordered = sorted({*sessions})
    needed = dict.fromkeys(ordered, 0)
    for one, other in pairwise(ordered):
        alike = 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        needed[one], needed[other] = max(needed[one], alike), alike
    return [one[: max(needed[one], len(session_name(one)))] for one in sessions]


def _period_names(rows: Sequence[UsedRow], by: str) -> list[str]:
    """The days, or the hours, whose offset is told where summer time ends and there are two of them."""
    spans = [row.span for row in rows if row.span is not None]
    if by == "day":
        return [day_text(span.since) for span in spans]
    whole = {datetime.fromtimestamp(span.since).date() for span in spans}
    form = "%H:%M" if len(whole) == 1 else "%a %m-%d %H:%M"
    names = [f"{datetime.fromtimestamp(span.since):{form}}" for span in spans]
    again = {name for name, count in Counter(names).items() if count > 1}
    offsets = [f"{datetime.fromtimestamp(span.since).astimezone():%z}" for span in spans]
    return [f"{name} {offset}" if name in again else name for name, offset in zip(names, offsets, strict=True)]


def _table(report: UsedReport, shown: Sequence[_Line], terminal: Terminal) -> Iterator[str]:
    lines = [*shown, _Line(_TOTAL, report.total)]
    columns, rows = _cells(report, lines)
    table = fitted(columns, rows, terminal.columns - LEAST_BAR - len(GAP))
    if len(table.columns) < len(columns) or table.widths[0] < SHORT_NAME:
        table = fitted(columns, rows, terminal.columns)
    bar = min(MOST_BAR, terminal.columns - table.width - len(GAP))
    *above, heads = table.heads()
    yield from above
    yield f"{heads}{GAP}tokens" if bar >= len("tokens") else heads
    for line, cells in zip(shown, rows, strict=False):
        yield f"{table.line(cells)}{GAP}{share_bar(line.bar, bar, blocks=terminal.blocks)}"
    yield "─" * table.width
    yield table.line(rows[-1])


def _cells(report: UsedReport, lines: Sequence[_Line]) -> tuple[list[Column], list[list[str]]]:
    """The columns but the bar, and the cells of each line."""
    usages = [line.row.usage for line in lines]
    columns: list[tuple[Column, list[str]]] = [
        (Column(report.by, right=False, least=LEAST_NAME), [line.name for line in lines]),
        (Column("reqs"), [count_text(one.requests) for one in usages]),
        (Column("fail", rank=1), [count_text(one.failed) for one in usages]),
        (Column("input"), [tokens(one.input) for one in usages]),
        (Column("cache", rank=2), [share(one.cached_share) for one in usages]),
        (Column("output"), [tokens(one.output) for one in usages]),
    ]
    if report.total.cost is not None:
        columns.append((Column("cost"), [cost_text(line.row.cost) for line in lines]))
    columns.append(_times("first s", [usage.first_ms for usage in usages], 3))
    columns.append(_times("total s", [usage.total_ms for usage in usages], 4))
    return [column for column, _ in columns], [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]


def _times(over: str, times: Sequence[Callable[[float], float | None]], rank: int) -> tuple[Column, list[str]]:
    """A column with two percentiles."""
    cells = [tuple(seconds_text(ms_of(share)) for share in _PERCENTILES.values()) for ms_of in times]
    head, texts = pairs(cells, tuple(_PERCENTILES))
    return Column(head, over=over, rank=rank), texts


def count_text(count: int) -> str:
    """A number, the whole of it where it is short: 9,999 or 12.3k."""
    return f"{count:,}" if count < 10_000 else tokens(count)


def seconds_text(ms: float | None) -> str:
    """Seconds in few cells.

    >>> seconds_text(42), seconds_text(1_440), seconds_text(31_400), seconds_text(None)
    ('0.04', '1.4', '31', '-')
    """
    if ms is None:
        return NONE
    seconds = ms / 1000
    return f"{seconds:.2f}" if seconds < 0.095 else f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"


def cost_text(cost: Cost | None) -> str:
    """An amount; `+` is one with more that has no price.

    >>> cost_text(Cost(1234.5)), cost_text(Cost(0.001, frozenset({"x"}))), cost_text(Cost(None))
    ('1,234.50', '<0.01+', '?')
    """
    if cost is None or cost.amount is None:
        return "?"
    amount = cost.amount
    text = "<0.01" if 0 < amount < 0.005 else f"{amount:,.2f}" if amount < 99_999.995 else f"{amount:,.0f}"
    return f"{text}+" if cost.unpriced else text


def _notes(report: UsedReport, terminal: Terminal) -> Iterator[str]:
    """What has no column: the rarer counts, and which models have no price."""
    usage = report.total.usage
    rare = (
        ("thinking", tokens(usage.thinking)),
        ("abandoned", count_text(usage.abandoned)),
        ("retries", count_text(usage.retries)),
        ("fallbacks", count_text(usage.fallbacks)),
        ("searches", count_text(usage.searches)),
        ("tokens of other models (judge, pictures)", tokens(usage.aside)),
    )
    words = [f"{name} {count}".replace(" ", _NO_BREAK) for name, count in rare if count != "0"]
    if words:
        yield ""
        yield from (line.replace(_NO_BREAK, " ") for line in textwrap.wrap(", ".join(words), terminal.columns))
    unpriced = sorted(report.total.cost.unpriced) if report.total.cost is not None else []
    if unpriced:
        named = ", ".join(own(cut(model, _NAME), terminal) or "(no model)" for model in unpriced[:_NAMED])
        more = f" and {len(unpriced) - _NAMED} more" if len(unpriced) > _NAMED else ""
        yield from wrap(f"The cost is only a part, no price is known of: {named}{more}", terminal.columns)
