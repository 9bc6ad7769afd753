"""What the user chose to see. A value: every key makes a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Pane = Literal["sessions", "active", "recent", "events"]
PANES: tuple[Pane, ...] = ("sessions", "active", "recent", "events")

#: What marks a row: of a session its id, with an agent of it both; of a request its id.
Key = tuple[str | None, ...]
#: What lies over everything, the upper one first.
Overlay = Literal["help", "setup", "allowances", "quit"]


@dataclass(frozen=True, slots=True)
class Place:
    """A selected row: which, and where it was when it was selected, for the case that it went away. `key` None: the
    first one, whatever it is."""

    key: Key | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Detail:
    """What is open in place of the upper panes, and how far it is scrolled, in lines."""

    kind: Literal["session", "request"]
    id: str | None
    top: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """focus     the pane that the keys move in
    places    pane -> its selected row
    opened    sessions whose agents are shown
    sorts     pane -> its order, a name of `rows.SORTS`
    words     only rows with all of these are shown; `typing`: they are being typed
    overlays  what is open over the panes; `top`: how far the upper one is scrolled
    setup     the lines of the setup overlay
    attached  to a proxy that runs elsewhere: leaving it stops nothing
    note      what is wrong with the connection
    stopping  the proxy ends
    """

    focus: Pane = "sessions"
    places: Mapping[Pane, Place] = field(default_factory=lambda: MappingProxyType({}))
    opened: frozenset[str | None] = frozenset()
    sorts: Mapping[Pane, str] = field(default_factory=lambda: MappingProxyType({}))
    words: str = ""
    typing: bool = False
    detail: Detail | None = None
    overlays: frozenset[Overlay] = frozenset()
    top: int = 0
    setup: tuple[str, ...] = ()
    attached: bool = False
    note: str = ""
    stopping: bool = False

    def place(self, pane: Pane) -> Place:
        return self.places.get(pane, Place())
