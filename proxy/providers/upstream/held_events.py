"""Events of an answer that are kept back, as few as they can be: neighbouring pieces of a text become one."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.core.blocks import DELTAS, How
from proxy.core.messages import MAX_REPLY_CHARS, Event, block_delta
from proxy.core.reducer import BadAnswer
from proxy.core.sizes import least_size

_JOINED = (How.APPEND, How.PARSE)


class HeldEvents:
    """The events since the last `take`. False while there are none.

    >>> held = HeldEvents()
    >>> held.add(block_delta(0, {"type": "text_delta", "text": text}) for text in "abc")
    >>> held.take()
    [{'type': 'content_block_delta', 'index': 0, 'delta': {'type': 'text_delta', 'text': 'abc'}}]
    """

    def __init__(self, max_chars: int = MAX_REPLY_CHARS) -> None:
        self._max_chars = max_chars
        self._size = 0
        self._events: list[Event] = []
        self._run: tuple[int, str] | None = None  # index of the block and type of the delta that goes on
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._events or self._pieces)

    def add(self, events: Iterable[Event]) -> None:
        """Raises BadAnswer when it becomes too much."""
        for event in events:
            delta = event["delta"] if event["type"] == "content_block_delta" else None
            kind = DELTAS.get(delta["type"]) if delta is not None else None
            if delta is None or kind is None or kind.how not in _JOINED:
                self._end_run()
                self._events.append(event)
                self._grow(least_size(event, self._max_chars))
                continue
            run = (event["index"], kind.name)
            if run != self._run:
                self._end_run()
                self._run = run
            self._pieces.append(delta[kind.carries])
            self._grow(len(delta[kind.carries]))

    def take(self) -> list[Event]:
        self._end_run()
        events, self._events, self._size = self._events, [], 0
        return events

    def _end_run(self) -> None:
        if self._run is not None:
            (index, name), pieces = self._run, self._pieces
            self._events.append(block_delta(index, DELTAS[name].of("".join(pieces))))
            self._run, self._pieces = None, []

    def _grow(self, chars: int) -> None:
        self._size += chars
        if self._size > self._max_chars:
            raise BadAnswer(f"the answer passed {self._max_chars} characters")
