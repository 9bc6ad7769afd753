"""Shared by the replies of both OpenAI-style routes: reading the hub's events, finish reasons, token counts.

A reply is a builder between the hub and a client. `AnswerReader` checks that it is fed a legal Messages stream and
collects it; `ChatReply` and `ResponsesReply` write each step for their wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proxy.core.blocks import (
    BLOCKS,
    CITATIONS_DELTA,
    DELTAS,
    INPUT_DELTA,
    REFUSAL_MARK,
    SERVER_TOOL_USE,
    SIGNATURE_DELTA,
    TOOL_USE,
    How,
    answer_block,
)
from proxy.core.messages import BROKEN, MAX_REPLY_CHARS, Event
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json
from proxy.core.tokens.usage import thinking_tokens
from proxy.core.tools.calls import are_readable, unique_id

#: Characters that a block or a citation counts in addition to its text, so that empty ones are bounded as well.
WEIGHT = 256

#: stop reason -> `finish_reason` of a chat completion; any other is a plain end.
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
#: `finish_reason` -> why a response is incomplete; with any other it is complete.
INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}

#: The form of a text in which the model refuses.
REFUSAL = "refusal"

#: type of a block that is shown -> delta type -> the member with its text. Blocks of other types are hidden.
_TEXTS: dict[str, dict[str, str]] = {
    row.name: {delta.name: delta.carries for delta in row.deltas if delta.how in (How.APPEND, How.PARSE)}
    for row in BLOCKS.values()
    if row.answers & {"chat", "responses"}
}
_COUNTERS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


@dataclass(slots=True)
class ReplyBlock:
    """A block of the answer.

    form       how it is shown: its kind, or a form that only OpenAI's APIs distinguish (`REFUSAL`)
    texts      delta type -> member, see `_TEXTS`
    pieces     its text so far; joined in `text` when it is closed
    citations  {"url", "title", "start_index", "end_index"}; the indexes are positions in this block
    signature  a thought's signature, which the upstream wants back
    lead       separator between this text and the one before it, if both are shown as one
    where      its names and indexes on the client's wire; empty until the client has seen any of it
    cut        whether it is incomplete: the token limit ended the answer inside a call, or the answer broke in it
    sources    addresses that a search found
    """

    kind: str
    form: str
    index: int
    texts: Mapping[str, str]
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    text: str = ""
    citations: list[dict[str, Any]] = field(default_factory=list)
    signature: str = ""
    lead: str = ""
    where: dict[str, Any] = field(default_factory=dict)
    cut: bool = False
    sources: list[str] = field(default_factory=list)


class Totals(NamedTuple):
    """Token counts as OpenAI defines them: `input` includes cache reads and writes, `output` the reasoning, which is
    None if unknown."""

    input: int
    cached: int
    written: int
    output: int
    reasoning: int | None


def _ignore(_reader: AnswerReader, _event: Event) -> None:
    """Ignores a ping, which only shows the writer that the stream is alive."""


class AnswerReader(ABC):
    """Reads one answer: Messages events as `MessageStream` builds them, in any batches. `finished` is True after its
    end.

    Only one block is open at a time and indexes grow, with gaps allowed. A call that is open when the answer ends at
    the token limit is cut; any other open block makes the answer a broken one.
    """

    def __init__(self, max_chars: int = MAX_REPLY_CHARS) -> None:
        self._max_chars = max_chars
        self.finished = False
        self._out: list[dict[str, Any]] = []
        self._blocks: list[ReplyBlock] = []  # closed ones that the client has seen
        self._finish = "stop"
        self._begun = False
        self._started = False
        self._open: ReplyBlock | None = None
        self._last_index = -1
        self._size = 0
        self._call_ids: set[str] = set()
        self._id_counts: dict[str, int] = {}
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self._thought: int | None = None

    # -- steps that a wire writes

    @abstractmethod
    def _begin(self) -> None:
        """Writes what precedes the answer."""

    @abstractmethod
    def _opened(self, block: ReplyBlock) -> None:
        """Handles the beginning of a block that is not hidden; texts and thoughts may stay empty."""

    @abstractmethod
    def _said(self, block: ReplyBlock, text: str) -> None:
        """Writes a piece of its text, never an empty one."""

    @abstractmethod
    def _cited(self, block: ReplyBlock, citation: dict[str, Any]) -> None:
        """Writes one more citation, which is not in `block.citations` yet."""

    @abstractmethod
    def _closed(self, block: ReplyBlock) -> None:
        """Handles the end of a block, which is complete or cut."""

    @abstractmethod
    def _found(self, block: ReplyBlock) -> None:
        """Handles the result of a search that was shown, directly after it."""

    @abstractmethod
    def _ended(self) -> None:
        """Writes the end of the answer, whose reason is `_finish`."""

    # -- entry points

    def feed(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        """The wire's objects for a batch of events. Drops what comes after the end. Raises BadAnswer for an illegal
        Messages stream, and past `max_chars`; then only a failure can follow."""
        self._begin_once()
        try:
            for event in events:
                if self.finished:
                    break
                handler = self._HANDLERS.get(event["type"])
                if handler is None:
                    raise BadAnswer(f"the provider sent an unknown event: {event['type']}")
                handler(self, event)
        except (KeyError, TypeError, AttributeError) as error:
            raise BadAnswer(f"the provider's stream is out of order ({type(error).__name__})") from None
        return self._take()

    def _begin_once(self) -> None:
        if not self._begun:
            self._begun = True
            self._begin()

    def _take(self) -> list[dict[str, Any]]:
        out, self._out = self._out, []
        return out

    # -- events

    def _message_start(self, event: Event) -> None:
        message = event.get("message")
        if not isinstance(message, Mapping):
            raise BadAnswer("the provider sent a message_start without its message")
        self._started = True
        self._count(message.get("usage"))

    def _block_start(self, event: Event) -> None:
        block = self._new_block(event.get("index"), event.get("content_block"))
        self._open, self._last_index = block, block.index
        if block.kind not in _TEXTS:
            self._read_result(event["content_block"])
            return
        self._opened(block)
        if event["content_block"].get("input"):  # complete arguments from the start
            self._say(block, dump_json(event["content_block"]["input"]))

    def _new_block(self, index: Any, content: Any) -> ReplyBlock:
        kind = content.get("type") if isinstance(content, Mapping) else None
        if not self._started or self._open is not None:
            raise BadAnswer("the provider began a block inside another one, or before its answer")
        if type(index) is not int or index <= self._last_index:
            raise BadAnswer(f"the provider began a block with the index {index!r} after {self._last_index}")
        if not isinstance(kind, str):
            raise BadAnswer(f"the provider began a block of no type: {kind!r}")
        form = REFUSAL if content.get(REFUSAL_MARK) else kind
        block = ReplyBlock(kind, form, index, _TEXTS.get(kind, {}))
        self._grow(WEIGHT)
        if kind == TOOL_USE.name:
            call_id, block.name = content.get("id"), content.get("name")
            if not (isinstance(call_id, str) and call_id and isinstance(block.name, str) and block.name):
                raise BadAnswer("the provider sent a tool call without an id or a name")
            self._grow(len(call_id) + len(block.name))
            block.call_id = unique_id(call_id, self._call_ids, self._id_counts)
        elif kind == SERVER_TOOL_USE.name and isinstance(content.get("id"), str):
            block.call_id = content["id"]
            self._grow(len(block.call_id))
        return block

    def _read_result(self, result: Mapping[str, Any]) -> None:
        """Takes the links of a search from its result, which itself is hidden."""
        search = self._blocks[-1] if self._blocks else None
        if search is None or search.kind != SERVER_TOOL_USE.name or search.call_id != result.get("tool_use_id"):
            return
        links = result.get("content")  # an object for a search that failed
        urls = [link.get("url") for link in links if isinstance(link, Mapping)] if isinstance(links, list) else []
        search.sources = [url for url in urls if isinstance(url, str)]
        self._grow(sum(WEIGHT + len(url) for url in search.sources))
        self._found(search)

    def _block_delta(self, event: Event) -> None:
        block = self._open
        delta = event["delta"]
        if block is None or event["index"] != block.index:
            raise BadAnswer("the provider sent a delta of no open block")
        member = block.texts.get(delta["type"])
        if member is None:
            self._silent_delta(block, delta)
            return
        text = delta[member]
        if text:
            self._say(block, text)

    def _say(self, block: ReplyBlock, text: str) -> None:
        self._grow(len(text))
        block.pieces.append(text)
        self._said(block, text)

    def _grow(self, chars: int) -> None:
        self._size += chars
        if self._size > self._max_chars:
            raise BadAnswer(f"the answer passed {self._max_chars} characters")

    def _silent_delta(self, block: ReplyBlock, delta: Mapping[str, Any]) -> None:
        """Handles a delta that is no text. Deltas of blocks of unknown types are hidden."""
        row, kind = answer_block(block.kind), DELTAS.get(delta["type"])
        if row is None:
            return
        if kind is None or kind not in row.deltas:
            raise BadAnswer(f"the provider sent a {delta['type']} in a {block.kind} block")
        if kind is SIGNATURE_DELTA:
            block.signature = str(delta.get(kind.carries) or "")
            self._grow(len(block.signature))
        elif kind is CITATIONS_DELTA:
            citation = _citation(delta.get("citation"))
            self._grow(WEIGHT + len(citation["url"]) + len(citation["title"]))
            self._cited(block, citation)
            block.citations.append(citation)

    def _block_stop(self, event: Event) -> None:
        block = self._open
        if block is None or event.get("index") != block.index:
            raise BadAnswer("the provider ended a block that is not open")
        if block.kind == TOOL_USE.name and not any(map(str.strip, block.pieces)):
            self._say(block, "{}")  # without arguments clients parse an empty object
        block.cut = BROKEN in event and block.kind != SERVER_TOOL_USE.name
        self._close(block)
        if INPUT_DELTA.name in block.texts and not are_readable(block.text):
            raise BadAnswer("the provider sent tool arguments that are not JSON")
        self._show_end(block)

    def _close(self, block: ReplyBlock) -> None:
        block.text, block.pieces = "".join(block.pieces), []
        self._open = None

    def _show_end(self, block: ReplyBlock) -> None:
        self._closed(block)
        if block.where:
            self._blocks.append(block)

    def _message_delta(self, event: Event) -> None:
        self._count(event.get("usage"))
        reason = event["delta"].get("stop_reason")
        if not isinstance(reason, str):
            return
        self._finish = FINISH_REASONS.get(reason, "stop")
        block = self._open
        if block is not None and block.kind == TOOL_USE.name and self._finish == "length":
            block.cut = True
            self._close(block)
            self._show_end(block)
        self._nothing_is_open()

    def _message_stop(self, _event: Event) -> None:
        self._nothing_is_open()
        self.finished = True
        self._ended()

    def _nothing_is_open(self) -> None:
        if not self._started or self._open is not None:
            raise BadAnswer("the provider ended its answer inside a block, or before it began")

    def _error(self, event: Event) -> None:
        error = event.get("error")
        message = error.get("message") if isinstance(error, Mapping) else None
        raise BadAnswer(str(message or "the provider reported an error"))

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        "content_block_delta": _block_delta,
        "content_block_start": _block_start,
        "content_block_stop": _block_stop,
        "message_start": _message_start,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": _ignore,
        "error": _error,
    }

    # -- token counts

    def _count(self, usage: Any) -> None:
        """Takes token counts. Later values win, since some providers know the input only at the end."""
        if not isinstance(usage, Mapping):
            return
        for name in _COUNTERS:
            self._counts[name] = _number(usage.get(name), self._counts[name])
        thought = thinking_tokens(usage)
        self._thought = self._thought if thought is None else thought

    def _totals(self) -> Totals:
        plain, cached, written, output = (self._counts[name] for name in _COUNTERS)
        thought = None if self._thought is None else min(self._thought, output)
        return Totals(plain + cached + written, cached, written, output, thought)


def _number(value: Any, default: int) -> int:
    return value if type(value) is int and value >= 0 else default


def _citation(citation: Any) -> dict[str, Any]:
    citation = citation if isinstance(citation, Mapping) else {}
    texts = {name: citation.get(name) for name in ("url", "title")}
    places = {name: citation.get(name) for name in ("start_index", "end_index")}
    return {
        **{name: value if isinstance(value, str) else "" for name, value in texts.items()},
        **{name: value if type(value) is int else 0 for name, value in places.items()},
    }
