"""Finds the output item that an event of a Responses stream belongs to, and what was already said there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import count, islice
from typing import Any
from zlib import crc32

#: Places from here on are our own: their events did not name an item.
FIRST_LOOSE = 1 << 32

#: Maximum number of texts with the same words that are distinguished, and of unfinished texts compared with a copy.
MAX_ALIKE = 64
#: Pieces of a text that are held before only their checksum is kept.
MAX_PIECES = 64

_IDS = ("id", "call_id")

#: A place, and the part of its message, None if parts are not distinguished.
At = tuple[int, int | None]


class Places:
    """The items of one answer. A place is the `output_index` of an item, or a number of our own if it has none."""

    def __init__(self) -> None:
        self._of_id: dict[str, int] = {}
        self._fresh = count(FIRST_LOOSE)
        self._current: dict[str, int] = {}  # type of an item -> place of the newest one that has not ended
        self._bare: dict[int, str] = {}  # place whose item did not come -> the id that its events name
        self._kinds: dict[int, str] = {}  # place -> type of the item there
        self._ended: set[int] = set()

    def of(self, event: Mapping[str, Any]) -> int | None:
        """The place of an event about a part of an item, None if it names none."""
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
        """The place of an event about a part of an item; if it names none, the unfinished item of this type."""
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
        """The place of an item that is done. An unknown one may be the unfinished one."""
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
        """Makes events that name no place belong elsewhere from now on."""
        for kind in [kind for kind, current in self._current.items() if current == place]:
            del self._current[kind]

    def leave_bare(self, place: int) -> None:
        """Leaves a place of whose item only parts came."""
        if place in self._bare:
            self.leave(place)

    def in_output(self, index: int, item: Mapping[str, Any]) -> int | None:
        """The place of an item that the final output repeats, None if it is unknown."""
        for name in _IDS:
            known = self._of_id.get(_text(item.get(name)))
            if known is not None:
                return known
        kind = self._kinds.get(index)
        return index if kind is not None and kind == item.get("type") else None

    def only_in_output(self, item: Mapping[str, Any]) -> int:
        """A new place for an item that only the final output has."""
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


#: kind of event -> kinds after which it cannot repeat the same text again: an item ends what was in it.
_NOT_AFTER = {
    "done": frozenset(("done", "item", "output")),
    "part": frozenset(("part", "item", "output")),
    "item": frozenset(("item", "output")),
    "output": frozenset(("output",)),
}


class _Shown:
    """A text that the client has seen. `copies`: the kinds of events that have repeated all of it."""

    __slots__ = ("_crc", "_size", "at", "copies", "pieces")

    def __init__(self, at: At) -> None:
        self.at = at
        self.copies: set[str] = set()
        self.pieces: list[str] = []
        self._size = self._crc = 0

    def words(self) -> tuple[int, int]:
        """Length and checksum of the text so far. Releases its pieces."""
        if self.pieces:
            size, self._crc = _words("".join(self.pieces), self._crc)
            self.pieces = []
            self._size += size
        return self._size, self._crc


def _words(text: str, crc: int = 0) -> tuple[int, int]:
    """Length and checksum of a text; `crc` is the checksum of what comes before it."""
    return len(text), crc32(text.encode("utf-8", "surrogatepass"), crc)


class SaidTexts:
    """The texts that came in pieces, so that a copy of the whole is shown only if it is new.

    A copy belongs to the text of its place. If it names no place, or repeats a text that named none, it belongs to the
    text with the same words, unless another event of its kind has repeated that already: a model may say the same
    twice.
    """

    def __init__(self) -> None:
        self._at: set[At] = set()
        self._places: set[int] = set()
        self._growing: dict[At, _Shown] = {}
        self._shown: dict[tuple[int, int], deque[_Shown]] = {}  # `_Shown.words()` -> the ended texts

    def __len__(self) -> int:
        """Number of places where something was said."""
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
        """Ends the text in this place: what comes there now is another one."""
        if not self._growing:
            return
        for at in [at for at in self._growing if at[0] == place]:
            shown = self._growing.pop(at)
            self._shown.setdefault(shown.words(), deque(maxlen=MAX_ALIKE)).append(shown)

    def forget(self, place: int) -> None:
        """Forgets what was said in a place where a new item begins."""
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
        """The place where a text that an event repeats was shown; None if it was not.

        at    the place that the event names
        copy  the kind of event: "done" of a text, "part" of a message, "item", or "output", the last event
        """
        words = _words(text)
        alike: Iterable[_Shown] = self._shown.get(words, ())
        if self._growing:
            growing = islice(reversed(self._growing.values()), MAX_ALIKE)
            alike = [*(shown for shown in growing if shown.words() == words), *alike]
        for shown in alike:
            if shown.copies.isdisjoint(_NOT_AFTER[copy]) and self._may_repeat(at, shown.at):
                shown.copies.add(copy)
                return shown.at
        return (at[0], None) if (at[0], None) in self._at else None

    def _may_repeat(self, at: At, shown: At) -> bool:
        (place, part), (shown_place, shown_part) = at, shown
        if place in self._places:
            return place == shown_place and (part == shown_part or None in (part, shown_part))
        return max(place, shown_place) >= FIRST_LOOSE

    def place_of_item(self, place: int, parts: list[str], copy: str) -> int:
        """The place where the parts of a finished item were shown; `place`, its own, if they were not."""
        at = (place, None)
        whole = self.repeated(at, "".join(parts), copy)
        if whole is None and len(parts) > 1:
            found = [self.repeated(at, part, copy) for part in parts]
            whole = next(filter(None, found), None)
        return place if whole is None else whole[0]
