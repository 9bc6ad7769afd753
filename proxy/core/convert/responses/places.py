"""Which output item an event of a Responses stream is about, and what was said there already."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

#: Places from here on are ours: their events did not say which item they belong to.
FIRST_LOOSE = 1 << 32

_IDS = ("id", "call_id")

#: A place, and the part of its message; None when the upstream does not tell parts apart.
At = tuple[int, int | None]


class Places:
    """The items of one answer. A place is the `output_index` of an item, or a number of ours where there is none."""

    def __init__(self) -> None:
        self._of_id: dict[str, int] = {}
        self._fresh = count(FIRST_LOOSE)
        self._current: dict[str, int] = {}  # type of an item -> where the newest one is that has not ended
        self._bare: set[int] = set()  # places of ours whose item did not show up
        self._kinds: dict[int, str] = {}  # place -> type of the item there
        self._ended: set[int] = set()

    def of(self, event: Mapping[str, Any]) -> int | None:
        """Where an event about a part of an item belongs, None when it does not say so."""
        index = event.get("output_index")
        index = index if type(index) is int else None
        if index in self._kinds:
            return index
        for name in ("item_id", "call_id"):
            known = self._of_id.get(_text(event.get(name)))
            if known is not None:
                return known
        return index

    def or_current(self, event: Mapping[str, Any], kind: str) -> int:
        """The same; one that does not say so belongs to the item of this type that is under way."""
        index = event.get("output_index")
        if type(index) is int and index in self._kinds:  # nearly always
            return index
        place = self.of(event)
        if place is None:
            place = self._current.get(kind)
            if place is None:
                place = self._current[kind] = next(self._fresh)
                self._bare.add(place)
        return place

    def begin(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """The place of an item that begins."""
        place = self._item_place(event, item)
        if place is None or (place in self._ended and place >= FIRST_LOOSE):
            place = next(self._fresh)
        self._current[_text(item.get("type"))] = place
        self._remember(item, place)
        return place

    def end(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """The place of an item that is done. One that is not known may be what is under way."""
        place = self._item_place(event, item)
        if place is None:
            place = self._of_id.get(_text(item.get("call_id")))
        current = self._current.get(_text(item.get("type")))
        if place is None and (current in self._bare or not any(_text(item.get(name)) for name in _IDS)):
            place = current
        if place is None:
            place = next(self._fresh)
        self._remember(item, place)
        self._ended.add(place)
        self.leave(place)
        return place

    def leave(self, place: int) -> None:
        """Nothing more is said there by events that do not name a place."""
        for kind in [kind for kind, current in self._current.items() if current == place]:
            del self._current[kind]

    def leave_bare(self, place: int) -> None:
        """The same, where a part is all that is known of its item."""
        if place in self._bare:
            self.leave(place)

    def in_output(self, index: int, item: Mapping[str, Any]) -> int | None:
        """The place of an item that the final output repeats, None when it is not known by its ids."""
        for name in _IDS:
            known = self._of_id.get(_text(item.get(name)))
            if known is not None:
                return known
        kind = self._kinds.get(index)
        return index if kind is not None and kind == item.get("type") else None

    def only_in_output(self, item: Mapping[str, Any]) -> int:
        """A place for an item that only the final output has."""
        place = next(self._fresh)
        self._remember(item, place)
        self._ended.add(place)
        return place

    def has_ended(self, place: int) -> bool:
        return place in self._ended

    def _item_place(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> int | None:
        index = event.get("output_index")
        if type(index) is int:
            return index
        own = _text(item.get("id"))
        return self._of_id.get(own if own else _text(item.get("call_id")))

    def _remember(self, item: Mapping[str, Any], place: int) -> None:
        self._kinds[place] = _text(item.get("type"))
        for name in _IDS:
            if _text(item.get(name)):
                self._of_id[item[name]] = place


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class Said:
    """What has come piece by piece, so that a copy of the whole is told only when it is news."""

    def __init__(self) -> None:
        self._at: set[At] = set()
        self._places: set[int] = set()
        self._loose: dict[int, list[str]] = {}  # kept, since only their words tell what a copy is a copy of
        self._whole: set[str] = set()

    def __len__(self) -> int:
        """In how many places something was said."""
        return len(self._places)

    def was_in(self, place: int) -> bool:
        return place in self._places

    def add(self, at: At, text: str) -> None:
        if at not in self._at:
            self._at.add(at)
            self._places.add(at[0])
        if at[0] >= FIRST_LOOSE:
            self._loose.setdefault(at[0], []).append(text)

    def end(self, place: int) -> None:
        """Nothing more comes in this place."""
        if place in self._loose:
            self._whole.add("".join(self._loose.pop(place)))

    def forget(self, place: int) -> None:
        """A new item begins in a place that was used."""
        if place in self._places:
            self._places.remove(place)
            self._at = {at for at in self._at if at[0] != place}

    def is_news(self, at: At, text: str) -> bool:
        place, part = at
        if not text or text in self._whole or at in self._at or (place, None) in self._at:
            return False
        return part is not None or place not in self._places

    def is_whole_news(self, place: int, text: str) -> bool:
        """Whether a message may hold news: one that is known only by its words came whole, or not at all."""
        return place < FIRST_LOOSE or text not in self._whole
