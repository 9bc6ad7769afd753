"""The degrees to which a client has seen an answer, which decide what may still be done about a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from proxy.core.blocks import REDACTED_THINKING, THINKING

#: Types of events that carry no word of the model.
FRAMING_EVENTS = frozenset({"message_start", "ping"})
#: Deltas and the end of a block, which show no more than its start did.
_PARTS = frozenset({"content_block_delta", "content_block_stop"})
#: Blocks after which the request may still be repeated.
_THOUGHTS = frozenset({THINKING.name, REDACTED_THINKING.name})


class Visible(IntEnum):
    """Levels, ordered from free to repeat to final.

    NOTHING   not even the status was sent
    FRAMING   the head of a stream, `message_start` and pings were sent: no word of the model
    BUFFERED  the model has said something, and all of it, the head too, is held back
    THINKING  only thoughts were sent
    CONTENT   anything else was sent, or the end: nothing may replace it
    """

    NOTHING = 0
    FRAMING = 1
    BUFFERED = 2
    THINKING = 3
    CONTENT = 4

    def after(self, events: Iterable[Mapping[str, Any]]) -> Visible:
        """The level once the client also got these Messages events.

        >>> Visible.NOTHING.after([{"type": "message_start"}, {"type": "ping"}]).name
        'FRAMING'
        >>> Visible.FRAMING.after([{"type": "content_block_start", "content_block": {"type": "text"}}]).name
        'CONTENT'
        """
        seen = self
        for event in events:
            kind = event["type"]
            if kind == "content_block_start" and event["content_block"]["type"] in _THOUGHTS:
                seen = max(seen, Visible.THINKING)
            elif kind in FRAMING_EVENTS:
                seen = max(seen, Visible.FRAMING)
            elif kind not in _PARTS:
                return Visible.CONTENT
        return seen
