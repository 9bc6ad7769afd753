"""Converts the text of a Responses stream to text blocks, with their citations.

A block is the text of a message, or of one part of it. If parts are blocks, one stays open until another block begins,
since some citations come after their text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from proxy.core.blocks import CITATIONS_DELTA, REFUSAL, TEXT, TEXT_DELTA
from proxy.core.convert.responses.places import FIRST_LOOSE, At, SaidTexts
from proxy.core.messages import MAX_HELD_BYTES, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer

#: Maximum number of texts that are open at once: each new block checks all of them.
MAX_OPEN = 1024
#: Maximum number of citations of one answer; more are dropped.
MAX_CITATIONS = 4096


@dataclass(slots=True)
class _Text:
    """An unfinished text.

    held     its pieces, if it must be rewritten as a whole; None if it streams
    over     whether only citations may follow
    refuses  whether it is a refusal
    """

    key: object
    held: list[str] | None
    size: int = 0
    over: bool = False
    refuses: bool = False


class TextBlocks:
    """The texts of one answer."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._parts = policy.rules.parts
        self._numbers = count()  # keys of text blocks: an upstream may use an output_index again
        self._texts: dict[At, _Text] = {}
        self._cited: set[tuple[Any, ...]] = set()
        self._waiting: list[dict[str, Any]] = []  # citations that came before their text
        self.said = SaidTexts()

    @property
    def are_open(self) -> bool:
        return any(not text.over for text in self._texts.values())

    def at(self, place: int, part: Any) -> At:
        """The place of a text; `part` is the `content_index` of its event."""
        return (place, part) if self._parts and type(part) is int else (place, None)

    def begin(self, place: int) -> None:
        """Handles the beginning of a message, which has no text yet."""
        if not any(at[0] == place and not text.over for at, text in self._texts.items()):
            self.said.forget(place)
        if not self._parts:
            self._open((place, None))

    def _open(self, at: At, *, refuses: bool = False) -> _Text:
        text = self._texts.get(at)
        if text is not None and not text.over:
            return text
        self.settle()
        if len(self._texts) >= MAX_OPEN:
            raise BadAnswer(f"more than {MAX_OPEN} texts are open")
        held: list[str] | None = [] if self._policy.restore is not None and not refuses else None
        text = self._texts[at] = _Text(("text", next(self._numbers)), held, refuses=refuses)
        self._stream.open(text.key, REFUSAL.start() if refuses else TEXT.start())
        for citation in self._waiting:
            self._stream.delta(text.key, CITATIONS_DELTA.of(citation))
        self._waiting = []
        return text

    def add(self, at: At, piece: str) -> None:
        """Adds a piece of a text. Raises BadAnswer."""
        text = self._texts.get(at)
        if text is None or text.over:
            text = self._open(at)
        self.said.add(at, piece)
        if text.held is None:
            self._stream.delta(text.key, TEXT_DELTA.of(piece))
            return
        text.size += len(piece)
        if text.size > MAX_HELD_BYTES:
            raise BadAnswer(f"a structured answer passed {MAX_HELD_BYTES} bytes")
        text.held.append(piece)

    def refuse(self, at: At, piece: str) -> None:
        """Adds a piece of a refusal: a block of its own, for readers whose API marks it. Raises BadAnswer."""
        text = self._texts.get(at)
        if self._policy.converted and (text is None or not text.refuses):
            if text is not None:
                self._close(at)
            self._open(at, refuses=True)
        self.add(at, piece)

    # -- the end of a text

    def part_is_over(self, at: At) -> None:
        """Handles the upstream's end of a part of a message."""
        if at in self._texts:
            self._texts[at].over = self._parts
            self.said.end(at[0])

    def end(self, place: int) -> None:
        """Handles the upstream's end of a message."""
        self.said.end(place)
        for at in [at for at in self._texts if at[0] == place]:
            if self._parts:
                self._texts[at].over = True
            else:
                self._close(at)

    def settle(self) -> None:
        """Closes, as another block begins, texts that only wait for citations or that nothing would end."""
        if self._texts:
            for at in [at for at, text in self._texts.items() if text.over or at[0] >= FIRST_LOOSE]:
                self._close(at)

    def end_all(self) -> None:
        """Ends all texts: only what the answer's last event repeats may follow."""
        if not self._parts:
            self.close_all()
        for (place, _), text in self._texts.items():
            text.over = True
            self.said.end(place)

    def close_all(self) -> None:
        for at in list(self._texts):
            self._close(at)

    def _close(self, at: At) -> None:
        text = self._texts.pop(at)
        self.said.end(at[0])
        if text.held and self._policy.restore is not None:
            self._stream.delta(text.key, TEXT_DELTA.of(self._policy.restore("".join(text.held))))
        self._stream.close(text.key)

    # -- citations

    def cite(self, annotation: Any, at: At) -> None:
        """Adds a citation to its text, else to the newest open one, else to the next."""
        if (
            not self._policy.rules.cites
            or not isinstance(annotation, Mapping)
            or annotation.get("type") != "url_citation"
        ):
            return
        same = tuple(map(repr, map(annotation.get, ("url", "start_index", "end_index"))))
        if same in self._cited or len(self._cited) >= MAX_CITATIONS:
            return
        self._cited.add(same)
        citation = self._citation(annotation)
        text = self._texts.get(at) or next(reversed(self._texts.values()), None)
        if text is None:
            self._waiting.append(citation)
        else:
            self._stream.delta(text.key, CITATIONS_DELTA.of(citation))

    def _citation(self, annotation: Mapping[str, Any]) -> dict[str, Any]:
        members = {"url": "url", "title": "title", "cited_text": "text"}
        texts = {name: value if isinstance(value := annotation.get(of), str) else "" for name, of in members.items()}
        places = ("start_index", "end_index") if self._policy.converted else ()
        numbers = {name: value for name in places if type(value := annotation.get(name)) is int}
        return {"type": "web_search_result_location", **texts, **numbers}
