"""Stop sequences for upstreams without them: the answer is cut here.

Claude Code's safety classifier relies on them: it asks for an answer up to `</block>` and takes a longer one for a
refusal to answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proxy.core.blocks import TEXT_DELTA
from proxy.core.messages import Event, block_delta
from proxy.core.tokens.usage import usage_of

#: More, or longer, ones are ignored: no client sends them, and each costs a search per piece of text.
MAX_STOPS = 16
MAX_LENGTH = 1024
#: The upstream does not report the length of the shortened answer, so it is estimated at four characters a token.
CHARS_A_TOKEN = 4


def stops_of(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The usable stop sequences of a Messages request."""
    stops = request.get("stop_sequences")
    if not isinstance(stops, list):
        return ()
    return tuple(stop for stop in stops if isinstance(stop, str) and 0 < len(stop) <= MAX_LENGTH)[:MAX_STOPS]


class StopSequences:
    """Passes Messages events on until the visible text contains a stop sequence, then ends the message there.

    Text that may begin a stop sequence is held until that is decided. `done` is True after the cut: what follows is
    dropped.
    """

    def __init__(self, stops: tuple[str, ...], *, input_tokens: int) -> None:
        self._stops = stops
        self._input_tokens = input_tokens
        self._held = ""
        self._chars = 0
        self.done = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if self.done:
                break
            self._one(event, out)
        return out

    def _one(self, event: Event, out: list[Event]) -> None:
        kind = event["type"]
        if kind == "content_block_delta" and event["delta"]["type"] == TEXT_DELTA.name:
            self._text(event["index"], event["delta"][TEXT_DELTA.carries], out)
            return
        if kind == "content_block_stop" and self._held:
            out.append(_text_delta(event["index"], self._held))
            self._chars += len(self._held)
            self._held = ""
        out.append(event)

    def _text(self, index: int, text: str, out: list[Event]) -> None:
        whole = self._held + text
        # The one that ends first, so that the answer does not depend on how the text was cut into pieces.
        found = min(
            ((at, stop) for stop in self._stops if (at := whole.find(stop)) >= 0),
            default=None,
            key=lambda pair: (pair[0] + len(pair[1]), pair[0]),
        )
        if found is not None:
            self._cut(index, whole[: found[0]], found[1], out)
            return
        keep = self._possible_beginning(whole)
        passed, self._held = whole[: len(whole) - keep], whole[len(whole) - keep :]
        self._chars += len(passed)
        if passed:
            out.append(_text_delta(index, passed))

    def _possible_beginning(self, text: str) -> int:
        return max(_beginning_at_end(text, stop) for stop in self._stops)

    def _cut(self, index: int, text: str, stop: str, out: list[Event]) -> None:
        self.done = True
        self._chars += len(text)
        if text:
            out.append(_text_delta(index, text))
        usage = usage_of(self._input_tokens, -(-self._chars // CHARS_A_TOKEN) or 1)
        delta = {"stop_reason": "stop_sequence", "stop_sequence": stop}
        out.append({"type": "content_block_stop", "index": index})
        out.append({"type": "message_delta", "delta": delta, "usage": usage})
        out.append({"type": "message_stop"})


def _beginning_at_end(text: str, stop: str) -> int:
    """Number of characters at the end of a text that begin a stop sequence.

    >>> _beginning_at_end("a </", "</block>"), _beginning_at_end("a", "</block>")
    (2, 0)
    """
    at = text.find(stop[0], max(0, len(text) - len(stop) + 1))
    while at >= 0 and not stop.startswith(text[at:]):
        at = text.find(stop[0], at + 1)
    return len(text) - at if at >= 0 else 0


def _text_delta(index: int, text: str) -> Event:
    return block_delta(index, TEXT_DELTA.of(text))
