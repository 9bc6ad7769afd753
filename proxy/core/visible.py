"""How much of an answer its client has seen. It decides what may still be done about a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from proxy.core.blocks import REDACTED_THINKING, THINKING

#: Types of events without a word of the model.
FRAMING_EVENTS = frozenset({"message_start", "ping"})
#: Blocks after which an answer may still be asked for again.
_THOUGHTS = frozenset({THINKING.name, REDACTED_THINKING.name})


class Visible(IntEnum):
    """Ordered: more only adds.

    NOTHING   not even the status is out
    FRAMING   the head of a stream, `message_start` and pings: no word of the model
    BUFFERED  a part of the answer exists, and all of it is held back
    THINKING  thoughts alone
    CONTENT   anything else, or the end: nothing may be said in its place
    """

    NOTHING = 0
    FRAMING = 1
    BUFFERED = 2
    THINKING = 3
    CONTENT = 4

    def after(self, events: Iterable[Mapping[str, Any]]) -> Visible:
        """What a client has seen once it also got these Messages events.

        >>> Visible.NOTHING.after([{"type": "message_start"}, {"type": "ping"}]).name
        'FRAMING'
        >>> Visible.FRAMING.after([{"type": "content_block_start", "content_block": {"type": "text"}}]).name
        'CONTENT'
        """
        seen = self
        for event in events:
            if seen is Visible.CONTENT:
                break
            seen = max(seen, _level(event))
        return seen


def _level(event: Mapping[str, Any]) -> Visible:
    kind = event["type"]
    if kind == "content_block_start":
        return Visible.THINKING if event["content_block"]["type"] in _THOUGHTS else Visible.CONTENT
    return _LEVELS.get(kind, Visible.CONTENT)


#: Pieces and the end of a block show no more than its start did.
_LEVELS = dict.fromkeys(FRAMING_EVENTS | {"content_block_delta", "content_block_stop"}, Visible.FRAMING)
