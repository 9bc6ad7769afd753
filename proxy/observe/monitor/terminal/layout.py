"""Places each pane, by the size of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from proxy.observe.monitor.terminal.view import PANES, Pane, View

#: Shares of the rows.
WEIGHTS: dict[Pane, int] = {"sessions": 30, "active": 20, "recent": 25, "events": 25}
#: Least lines at which a pane is shown; below the last one only the focused pane is.
FROM_LINES: dict[Pane, int] = {"sessions": 0, "recent": 9, "active": 12, "events": 16}
#: From this many lines each pane has a border of its own; below, neighbours share a line.
OWN_BORDERS_FROM = 34
#: Rows of a pane, even an empty one.
LEAST = 2
#: From this many lines the allowances have a line below the header.
STRIP_FROM = 12
#: From this many lines there is a footer.
FOOTER_FROM = 4


@dataclass(frozen=True, slots=True)
class Area:
    """A pane with its borders. `joined`: its upper border is its neighbour's lower one; `closed`: it has a lower border
    of its own."""

    pane: Pane | Literal["detail"]
    top: int
    height: int
    joined: bool
    closed: bool

    @property
    def inner(self) -> int:
        """The number of lines between the borders."""
        return max(0, self.height - 1 - self.closed)

    @property
    def rows(self) -> int:
        """The number of lines below the heading."""
        return self.inner - self.headed

    @property
    def headed(self) -> bool:
        """Whether it has a heading: a single line is better used for a row."""
        return self.pane != "detail" and self.inner > 1


def visible(focus: Pane, height: int) -> tuple[Pane, ...]:
    """The panes that fit."""
    found = tuple(pane for pane in PANES if height >= FROM_LINES[pane])
    return found if len(found) > 1 else (focus,)


def areas(view: View, height: int, strip: bool, counts: Mapping[Pane, int]) -> list[Area]:
    """The panes from top to bottom, an open detail in place of sessions and active requests. `counts`: the rows of
    each."""
    panes = visible(view.focus, height)
    body = height - 1 - strip - (height >= FOOTER_FROM)
    own = height >= OWN_BORDERS_FROM
    borders = 2 * len(panes) if own else len(panes) + 1
    rows = _shared(body - borders - len(panes), panes)
    if view.detail is None:
        rows = _given(rows, [counts[pane] for pane in panes], [WEIGHTS[pane] for pane in panes])
    heights = [count + 2 + (own or index == len(panes) - 1) for index, count in enumerate(rows)]
    found, top = [], 1 + strip
    for index, (pane, size) in enumerate(zip(panes, heights, strict=True)):
        last = index == len(panes) - 1
        found.append(Area(pane, top, size, joined=not own and index > 0, closed=own or last))
        top += size
    return _with_detail(found) if view.detail is not None else found


def _shared(rows: int, panes: Sequence[Pane]) -> list[int]:
    """Divides the rows by the weights, the largest remainders first; one each where there are enough."""
    if rows < len(panes):
        return [int(index < rows) for index in range(len(panes))] if rows >= 0 else _short(rows, len(panes))
    whole = sum(WEIGHTS[pane] for pane in panes)
    exact = [rows * WEIGHTS[pane] / whole for pane in panes]
    found = [max(1, int(share)) for share in exact]
    for index in sorted(range(len(panes)), key=lambda index: found[index] - exact[index]):
        found[index] += sum(found) < rows
    found[0] += rows - sum(found)
    return found


def _given(shares: list[int], counts: Sequence[int], weights: Sequence[int]) -> list[int]:
    """The shares, with empty rows of a pane given to those that scroll. Each keeps LEAST, so that not every request
    moves the borders."""
    found = list(shares)
    free = [max(0, share - max(count, LEAST)) for share, count in zip(shares, counts, strict=True)]
    while sum(free):
        wanting = [index for index, count in enumerate(counts) if count > found[index]]
        if not wanting:
            break
        giver = max(range(len(free)), key=lambda index: free[index])
        taker = min(wanting, key=lambda index: found[index] / weights[index])
        free[giver] -= 1
        found[giver] -= 1
        found[taker] += 1
    return found


def _short(rows: int, panes: int) -> list[int]:
    """Shrinks the first pane, which gives up its heading and its border."""
    return [rows] + [0] * (panes - 1)


def _with_detail(found: list[Area]) -> list[Area]:
    upper = [area for area in found if area.pane in ("sessions", "active")] or found[:1]
    rest = [area for area in found if area not in upper]
    height = sum(area.height for area in upper)
    return [Area("detail", upper[0].top, height, joined=False, closed=upper[-1].closed), *rest]
