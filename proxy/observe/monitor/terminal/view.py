"""The user's choices of what to see, as a value: every key makes a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from proxy.observe.history.overview_rows import OverviewRows
from proxy.observe.monitor.terminal.times import Time

Pane = Literal["sessions", "active", "recent", "events"]
PANES: tuple[Pane, ...] = ("sessions", "active", "recent", "events")

#: Key of a row: the id of a session, of a session and its agent, or of a request.
Key = tuple[str | None, ...]
Overlay = Literal["quit", "help", "setup", "allowances", "history"]
#: The upper one first.
OVERLAYS: tuple[Overlay, ...] = ("quit", "help", "setup", "allowances", "history")


@dataclass(frozen=True, slots=True)
class Selection:
    """A selected row: its key, and its position when it was selected, in case it goes away. `key` None: the first
    one."""

    key: Key | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Detail:
    """The detail that replaces the upper panes, and its scrolled lines."""

    kind: Literal["session", "request"]
    id: str | None
    top: int = 0


@dataclass(frozen=True, slots=True)
class ShownHistory:
    """What is known of the history of a time.

    rows     None: nothing was read yet
    problem  why it could not be read, the last time
    asking   it is being read
    """

    rows: OverviewRows | None = None
    problem: str = ""
    asking: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """focus     the pane that the keys move in
    places    pane -> its selected row
    opened    sessions with their agents shown
    sorts     pane -> its order, a name of `rows.SORTS`
    words     only rows with all of these are shown; `typing`: they are being typed
    overlays  the open ones; `top`: scrolled lines of the upper one
    setup     the lines of the setup overlay
    time      the time that the history overlay shows; `history`: what is known of it
    attached  to a proxy that runs elsewhere: leaving it stops nothing
    note      the fault of the connection
    stopping  the proxy ends
    """

    focus: Pane = "sessions"
    places: Mapping[Pane, Selection] = field(default_factory=lambda: MappingProxyType({}))
    opened: frozenset[str | None] = frozenset()
    sorts: Mapping[Pane, str] = field(default_factory=lambda: MappingProxyType({}))
    words: str = ""
    typing: bool = False
    detail: Detail | None = None
    overlays: frozenset[Overlay] = frozenset()
    top: int = 0
    setup: tuple[str, ...] = ()
    time: Time = "7 days"
    history: ShownHistory = ShownHistory()
    attached: bool = False
    note: str = ""
    stopping: bool = False

    @property
    def upper(self) -> Overlay | None:
        """The uppermost open overlay."""
        return next((one for one in OVERLAYS if one in self.overlays), None)

    def place(self, pane: Pane) -> Selection:
        return self.places.get(pane, Selection())
