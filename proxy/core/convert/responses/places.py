"""Which output item an event of a Responses stream is about, and what was said there already."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import count, islice
from typing import Any
from zlib import crc32

#: Places from here on are ours: their events did not say which item they belong to.
FIRST_LOOSE = 1 << 32

#: So many texts with the same words are told apart, and so many texts under way are compared with a copy.
MAX_ALIKE = 64
#: So many pieces of a text are held before only their checksum is kept.
MAX_PIECES = 64

_IDS = ("id", "call_id")

#: A place, and the part of its message; None when the upstream does not tell parts apart.
At = tuple[int, int | None]


class Places:
    """The items of one answer. A place is the `output_index` of an item, or a number of ours where there is none."""

    def __init__(self) -> None:
        self._of_id: dict[str, int] = {}
        self._fresh = count(FIRST_LOOSE)
        self._current: dict[str, int] = {}  # type of an item -> where the newest one is that has not ended
        self._bare: dict[int, str] = {}  # place whose item did not show up -> the id that its events tell
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
        place, own = self.of(event), _text(event.get("item_id"))
        if place is None:
            place = self._current.get(kind)
            if place is None or (own and self._bare.get(place)):
                place = next(self._fresh)
            if own:
                self._of_id[own] = place
        if place not in self._kinds:
            self._current[kind] = place
            self._bare[place] = own or self._bare.get(place, "")
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
        if place is None:
            current = self._current.get(_text(item.get("type")))
            if current in self._bare or not any(_text(item.get(name)) for name in _IDS):
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
            value = item.get(name)
            if isinstance(value, str) and value:
                self._of_id[value] = place


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


#: kind of event -> the kinds after which it does not repeat the same text once more: an item ends what was in it
_NOT_BEHIND = {
    "done": frozenset(("done", "item", "output")),
    "part": frozenset(("part", "item", "output")),
    "item": frozenset(("item", "output")),
    "output": frozenset(("output",)),
}


class _Shown:
    """A text that the client has seen. `copies` are the kinds of event that have repeated it as a whole."""

    __slots__ = ("_crc", "_size", "at", "copies", "pieces")

    def __init__(self, at: At) -> None:
        self.at = at
        self.copies: set[str] = set()
        self.pieces: list[str] = []
        self._size = self._crc = 0

    def words(self) -> tuple[int, int]:
        """Length and checksum of the text so far. Its pieces are let go."""
        if self.pieces:
            size, self._crc = _words("".join(self.pieces), self._crc)
            self.pieces = []
            self._size += size
        return self._size, self._crc


def _words(text: str, crc: int = 0) -> tuple[int, int]:
    """Length and checksum of a text; `crc`: of what comes before it."""
    return len(text), crc32(text.encode("utf-8", "surrogatepass"), crc)


class Said:
    """What has come piece by piece, so that a copy of the whole is told only when it is news.

    A copy belongs to the text of its place. One that does not say where it belongs, or repeats a text that did not,
    belongs to the text with the same words, unless another event of its kind has repeated that already: a model may
    well say the same twice.
    """

    def __init__(self) -> None:
        self._at: set[At] = set()
        self._places: set[int] = set()
        self._growing: dict[At, _Shown] = {}
        self._shown: dict[tuple[int, int], deque[_Shown]] = {}  # by their words

    def __len__(self) -> int:
        """In how many places something was said."""
        return len(self._places)

    def was_in(self, place: int) -> bool:
        return place in self._places

    def add(self, at: At, piece: str) -> None:
        shown = self._growing.get(at)
        if shown is None:
            shown = self._growing[at] = _Shown(at)
            self._at.add(at)
            self._places.add(at[0])
        shown.pieces.append(piece)
        if len(shown.pieces) > MAX_PIECES:
            shown.words()

    def end(self, place: int) -> None:
        """What comes in this place from here on is another text."""
        if not self._growing:
            return
        for at in [at for at in self._growing if at[0] == place]:
            shown = self._growing.pop(at)
            self._shown.setdefault(shown.words(), deque(maxlen=MAX_ALIKE)).append(shown)

    def forget(self, place: int) -> None:
        """A new item begins in a place that was used."""
        if place in self._places:
            self.end(place)
            self._places.remove(place)
            self._at = {at for at in self._at if at[0] != place}

    def is_news(self, at: At, text: str) -> bool:
        place, part = at
        if not text or at in self._at or (place, None) in self._at:
            return False
        return part is not None or place not in self._places

    def repeated(self, at: At, text: str, copy: str) -> At | None:
        """Where the text was shown that an event repeats, which names the place `at`; None for none.

        copy  the kind of event: "done" of a text, "part" of a message, "item", or "output", the last event
        """
        words = _words(text)
        alike: Iterable[_Shown] = self._shown.get(words, ())
        if self._growing:
            growing = islice(reversed(self._growing.values()), MAX_ALIKE)
            alike = [*(shown for shown in growing if shown.words() == words), *alike]
        for shown in alike:
            if shown.copies.isdisjoint(_NOT_BEHIND[copy]) and self._may_repeat(at, shown.at):
                shown.copies.add(copy)
                return shown.at
        return (at[0], None) if (at[0], None) in self._at else None

    def _may_repeat(self, at: At, shown: At) -> bool:
        (place, part), (shown_place, shown_part) = at, shown
        if place in self._places:
            return place == shown_place and (part == shown_part or None in (part, shown_part))
        return max(place, shown_place) >= FIRST_LOOSE

    def place_of_item(self, place: int, parts: list[str], copy: str) -> int:
        """Where the parts of an item were shown that is done in `place`; that place, when they were not."""
        at = (place, None)
        whole = self.repeated(at, "".join(parts), copy)
        if whole is None and len(parts) > 1:
            found = [self.repeated(at, part, copy) for part in parts]
            whole = next(filter(None, found), None)
        return place if whole is None else whole[0]
