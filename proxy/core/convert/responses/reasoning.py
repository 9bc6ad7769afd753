"""Converts reasoning items of a Responses stream to thinking blocks, with their encrypted content as the signature."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from proxy.core.blocks import SIGNATURE_DELTA, THINKING, THINKING_DELTA
from proxy.core.convert.responses.places import SaidTexts
from proxy.core.convert.responses.signatures import encode_signature
from proxy.core.messages import MessageStream
from proxy.core.reducer import AnswerPolicy


class ReasoningItems:
    """The reasoning of one answer. At most one thinking block is open."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._numbers = count()
        self._open: int | None = None  # place of the open block
        self._key: object = None
        self._known: dict[int, dict[str, str]] = {}
        self._signed: set[str] = set()  # reasoning ids sent to the client: the upstream takes each back once
        self.said = SaidTexts()

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def is_open_at(self, index: int) -> bool:
        return self._open == index

    def begin(self, index: int, item: Mapping[str, Any]) -> None:
        """Handles the beginning of an item."""
        if self._open != index:
            self.said.forget(index)
        self.merge(index, item)

    def merge(self, index: int, item: Mapping[str, Any]) -> None:
        """Merges a copy of the item, the first of which can be incomplete: a later value wins, a missing one keeps the
        earlier."""
        known = self._known.setdefault(index, {})
        for key in ("id", "encrypted_content"):
            if isinstance(item.get(key), str) and item[key]:
                known[key] = item[key]

    def add_summary(self, index: int, delta: str, part: int | None = None) -> bool:
        """Adds a piece of the summary, or of its `part`. Returns whether that opened a block for this item."""
        begins = self._open != index
        if begins:
            self.close()
            self._begin(index)
        self.said.add((index, part), delta)
        self._stream.delta(self._key, THINKING_DELTA.of(delta))
        return begins

    def add_part(self, index: int) -> None:
        """Handles the beginning of another part of the summary."""
        if self._open == index:
            self._stream.delta(self._key, THINKING_DELTA.of("\n\n"))

    def done(self, index: int, item: Mapping[str, Any]) -> bool:
        """Ends the item. One without a summary becomes a block only for its signature. Returns whether a block was
        opened."""
        self.merge(index, item)
        if item.get("status") == "incomplete":
            self._known.pop(index)  # the upstream does not take back unfinished reasoning
        shown = self.whole(index, thought_parts(item))
        was_open = self._open == index
        self.close()
        if shown or was_open or self._signature(index, keep=True) is None:
            return shown
        self._begin(index)
        self.close()
        return True

    def whole(self, index: int, parts: list[str], number: int | None = None) -> bool:
        """Shows a whole thought, or its part `number`, unless it came in pieces. Returns whether it was shown."""
        at, text = (index, number), "\n\n".join(parts)
        is_news = self.said.is_news(at, text) and any(self.said.is_news(at, part) for part in parts)
        for part in (parts if self._parts_are_blocks else [text]) if is_news else ():
            self.add_summary(index, part, number)
            self.part_is_over(index)
        return is_news

    @property
    def _parts_are_blocks(self) -> bool:
        """Whether each part is a block. A block that may get a signature waits for it, and holds all parts."""
        return self._policy.rules.parts and not self._policy.signatures

    def part_is_over(self, index: int) -> None:
        """Handles the end of a part of a thought."""
        if self._open == index and self._parts_are_blocks:
            self.close()

    def _begin(self, index: int) -> None:
        self._open, self._key = index, ("thinking", next(self._numbers))
        self._stream.open(self._key, THINKING.start())

    def close(self) -> None:
        if self._open is None:
            return
        index, self._open = self._open, None
        self.said.end(index)
        reasoning_id = self._known.get(index, {}).get("id", "")
        signature = self._signature(index)
        if signature is not None:
            self._signed.add(reasoning_id)
            self._stream.delta(self._key, SIGNATURE_DELTA.of(signature))
        self._stream.close(self._key)

    def interrupt(self) -> None:
        """Closes an open block without a signature: the first encrypted copy can be incomplete, and a bad one would
        come back with every later request."""
        if self._open is not None:
            self._known.pop(self._open, None)
        self.close()

    def _signature(self, index: int, *, keep: bool = False) -> str | None:
        known = self._known.get(index, {}) if keep else self._known.pop(index, {})
        if not self._policy.signatures or len(known) < 2 or known["id"] in self._signed:
            return None
        return encode_signature(self._policy.signatures, known["id"], known["encrypted_content"])


def thought_parts(item: Mapping[str, Any]) -> list[str]:
    """The texts of a thought's summary, else of the thought itself."""
    for name in ("summary", "content"):
        members = item.get(name)
        texts = [
            part["text"]
            for part in (members if isinstance(members, list) else ())
            if isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"]
        ]
        if texts:
            return texts
    return []
