"""Tables for a terminal: columns as wide as their longest cell, narrowed or left out until a line fits. Names come from
clients, so they are measured in cells of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from proxy.cli.usage import Terminal, terminal_of_output
from proxy.observe.monitor.terminal.cells import ELLIPSIS, clean, cut, fit, width_of

GAP = "  "
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_PLAIN = str.maketrans({ELLIPSIS: "~", "─": "-", "–": "-"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    head   its heading; `over`: a line above it
    right  whether it is aligned to the right
    least  cells that it may be narrowed to, 0 if it may not be
    rank   columns with the highest number go first where there is no room; 0 stays
    """

    head: str
    over: str = ""
    right: bool = True
    least: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table that fits; `widths`: of its columns, `numbers`: which columns of the rows these are."""

    columns: Sequence[Column]
    widths: Sequence[int]
    numbers: Sequence[int]

    @property
    def width(self) -> int:
        return sum(self.widths) + len(GAP) * (len(self.widths) - 1)

    def heads(self) -> list[str]:
        """One line of headings, or two."""
        lines = [[one.over for one in self.columns], [one.head for one in self.columns]]
        return [self._joined(line) for line in lines if any(line)]

    def line(self, cells: Sequence[str]) -> str:
        return self._joined([cells[number] for number in self.numbers])

    def _joined(self, cells: Sequence[str]) -> str:
        fitted = (
            fit(cell, width, right=column.right)
            for cell, width, column in zip(cells, self.widths, self.columns, strict=True)
        )
        return GAP.join(fitted)


def fitted(columns: Sequence[Column], rows: Iterable[Sequence[str]], room: int) -> Table:
    """The widths that columns get in a line, and which of them there are."""
    heads = [max(width_of(one.head), width_of(one.over)) for one in columns]
    wanted: list[int] = [max(cells) for cells in zip(heads, *(map(width_of, row) for row in rows), strict=True)]
    numbers = _that_fit(columns, wanted, room)
    widths = {number: wanted[number] for number in numbers}
    over = sum(widths.values()) + len(GAP) * (len(numbers) - 1) - room
    while over > 0:
        widest = max(numbers, key=lambda number: widths[number] - columns[number].least if columns[number].least else 0)
        if not columns[widest].least or widths[widest] <= columns[widest].least:
            break
        widths[widest] -= 1
        over -= 1
    return Table([columns[number] for number in numbers], [widths[number] for number in numbers], numbers)


def _that_fit(columns: Sequence[Column], wanted: Sequence[int], room: int) -> list[int]:
    """The numbers of the columns for which there is room when names are narrowed."""
    numbers = [*range(len(columns))]

    def needed() -> int:
        least: list[int] = [min(wanted[number], columns[number].least or wanted[number]) for number in numbers]
        return sum(least) + len(GAP) * (len(least) - 1)

    while needed() > room:
        last = max(numbers, key=lambda number: (columns[number].rank, number))
        if not columns[last].rank:
            break
        numbers.remove(last)
    return numbers


def pairs(cells: Sequence[Sequence[str]], heads: Sequence[str]) -> tuple[str, list[str]]:
    """Two narrow columns as one: its heading, and its cells.

    >>> pairs([("1.5", "12"), ("310", "-")], ("p50", "p95"))
    ('p50 p95', ['1.5  12', '310   -'])
    """
    left, right = (max(map(len, column)) for column in zip(heads, *cells, strict=True))
    head, *lines = (f"{one:>{left}} {other:>{right}}" for one, other in (heads, *cells))
    return head, lines


def share_bar(share: float, cells: int, *, blocks: bool) -> str:
    """A bar whose length is a share (0 to 1); one that is not empty is seen.

    >>> share_bar(0.5, 5, blocks=True), share_bar(0.5, 5, blocks=False), share_bar(0.001, 5, blocks=True)
    ('██▌', '##', '▏')
    """
    if share <= 0 or cells <= 0:
        return ""
    if not blocks:
        return "#" * max(1, round(share * cells - 0.1))
    eighths = max(1, round(8 * min(share, 1.0) * cells))
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def report_terminal() -> Terminal:
    """The abilities of the standard output, for reports: some encodings have full blocks alone."""
    terminal = terminal_of_output()
    try:
        (_EIGHTHS + "".join(map(chr, _PLAIN))).encode(terminal.encoding)
    except (UnicodeError, LookupError):
        return replace(terminal, blocks=False)
    return terminal


def own(text: str, terminal: Terminal) -> str:
    """A foreign text, of characters that the terminal has, without any that it would obey."""
    return clean(text).encode(terminal.encoding, "replace").decode(terminal.encoding)


def own_line(text: str, terminal: Terminal) -> str:
    """A foreign text as `own` has it, no wider than the terminal."""
    return cut(own(text, terminal), terminal.columns)


def written(lines: Iterable[str], terminal: Terminal) -> str:
    """The lines of a report as they are printed."""
    text = "\n".join(line.rstrip() for line in lines)
    return text if terminal.blocks else text.translate(_PLAIN)
