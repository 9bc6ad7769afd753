"""A screen of the monitor as SVG, in the colours of a terminal that has 256."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from proxy.observe.monitor.terminal.cells import Line, Span, line_width, width_of
from proxy.observe.monitor.terminal.display import GROUND, LOOKS

#: Of a cell, in the units of the picture; `UP`: from its lower edge to the line that letters stand on.
WIDE, HIGH, UP = 8, 17, 4
MARGIN = 6
FONT = "13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def rgb(colour: int) -> tuple[int, int, int]:
    """Of the 256: the first 8 as xterm has them, the others as every terminal has."""
    if colour < 8:
        low = ("000000", "cd0000", "00cd00", "cdcd00", "0000ee", "cd00cd", "00cdcd", "e5e5e5")[colour]
        return int(low[:2], 16), int(low[2:4], 16), int(low[4:], 16)
    if colour >= 232:
        return (8 + 10 * (colour - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(colour - 16) // 36], levels[(colour - 16) // 6 % 6], levels[(colour - 16) % 6]


def picture(lines: Sequence[Line], title: str) -> str:
    """Every text has the length of its cells, whatever the font."""
    width, height = WIDE * line_width(lines[0]) + 2 * MARGIN, HIGH * len(lines) + 2 * MARGIN
    parts = [part for row, line in enumerate(lines) for part in _line(line, MARGIN + HIGH * row)]
    used = sorted({f".{_name(run)}{{fill:{_hex(_pair(run)[0])}{_weight(run)}}}" for line in lines for run in line})
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">',
            f"<title>{escape(title)}</title>",
            f"<style>text{{font:{FONT};white-space:pre}}{''.join(used)}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{_hex(GROUND)}"/>',
            *parts,
            "</svg>\n",
        )
    )


def _line(line: Line, top: int) -> Iterator[str]:
    column = 0
    for (_, ground), runs in groupby(line, key=lambda run: (_name(run), _pair(run)[1])):
        run, *rest = runs
        text = run.text + "".join(each.text for each in rest)
        left, cells = MARGIN + WIDE * column, width_of(text)
        column += cells
        if ground != GROUND:
            yield f'<rect x="{left}" y="{top}" width="{WIDE * cells}" height="{HIGH}" fill="{_hex(ground)}"/>'
        if shown := text.strip():
            left += WIDE * (len(text) - len(text.lstrip()))
            size = f'x="{left}" y="{top + HIGH - UP}" textLength="{WIDE * width_of(shown)}"'
            yield f'<text class="{_name(run)}" {size}>{escape(shown)}</text>'


def _name(run: Span) -> str:
    return (run.role or "text") + "-chosen" * run.chosen


def _pair(run: Span) -> tuple[int, int]:
    return LOOKS[run.role].pair(True, run.chosen)


def _weight(run: Span) -> str:
    return ";font-weight:bold" if "bold" in LOOKS[run.role].emphasis else ""


def _hex(colour: int) -> str:
    return "#" + bytes(rgb(colour)).hex()
