"""The hub format: checks Messages requests, builds and folds event sequences.

An event is a dict from the `data:` line of a Messages stream. `MessageStream` is the only place that writes block
events, and what it writes is legal: one `message_start`, blocks one after another with indexes 0, 1, 2 …, one open at
a time, each with its deltas between its start and its stop, then `message_delta` and `message_stop`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.blocks import (
    BLOCKS,
    DELTAS,
    TOOL_USE,
    DeltaType,
    How,
    has_content,
)
from proxy.core.invalid import InvalidRequest
from proxy.core.reducer import BadAnswer
from proxy.core.sizes import least_size
from proxy.core.tokens.usage import Usage, usage_of
from proxy.core.tools.calls import parse_arguments
from proxy.core.visible import Visible

Event = dict[str, Any]
Key = object

#: No known client sends more messages; bounds all work that is linear in them.
MAX_MESSAGES = 8192
MAX_U32 = 2**32 - 1
#: Bytes that later blocks may hold while an earlier one is open (a search waits for its links, calls may interleave).
MAX_HELD_BYTES = 8 * 1024 * 1024
#: Longest folded answer, which is held whole.
MAX_REPLY_CHARS = 64 * 1024 * 1024

PING: Event = {"type": "ping"}
#: Events that end a Messages stream.
LAST_EVENTS = frozenset({"message_stop", "error"})


#: A member of a block's stop event: the block was closed because its answer broke, for readers that mark unfinished
#: parts.
BROKEN = "broken"


def broken_off(events: Iterable[Event]) -> list[Event]:
    """The last events of an interrupted reducer, with the blocks that end there marked BROKEN."""
    return [{**event, BROKEN: True} if event["type"] == "content_block_stop" else event for event in events]


def block_delta(index: int, delta: Mapping[str, Any]) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def merged(events: list[Event]) -> list[Event]:
    """The events with neighbouring pieces of one text joined.

    >>> one, two = (block_delta(0, {"type": "text_delta", "text": text}) for text in "ab")
    >>> merged([one, two, PING, two])[0]["delta"]["text"], len(merged([one, two, PING, two]))
    ('ab', 3)
    """
    if len(events) < 2:
        return events
    out: list[Event] = []
    pieces: list[str] = []
    place: tuple[int, str] | None = None  # of the text that may continue: its block and the type of its deltas
    member = ""
    for event in events:
        delta = event["delta"] if event["type"] == "content_block_delta" else None
        if delta is None or delta["type"] not in _MERGED:
            if pieces:
                _joined(out, pieces, member)
            place = None
            out.append(event)
        elif place == (here := (event["index"], delta["type"])):
            pieces.append(delta[member])
        else:
            if pieces:
                _joined(out, pieces, member)
            place, member = here, _MERGED[delta["type"]]
            pieces.append(delta[member])
            out.append(event)
    if pieces:
        _joined(out, pieces, member)
    return out


def _joined(out: list[Event], pieces: list[str], member: str) -> None:
    """Gives the last event all pieces of its text."""
    if len(pieces) > 1:
        out[-1] = {**out[-1], "delta": {**out[-1]["delta"], member: "".join(pieces)}}
    pieces.clear()


#: type of a delta that may come in any number of pieces -> its member with the text.
_MERGED = {delta.name: delta.carries for delta in DELTAS.values() if delta.how in (How.APPEND, How.PARSE)}


#: The error by which the SDKs learn that a server has no message threads. They send only the newest message of an
#: existing thread; after this error, also at the creation, they repeat the request with the full history.
_THREADS = "capability_rejected: beta_header:message-threads-2026-08-12"
_NO_THREADS = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


def check_request(body: Mapping[str, Any]) -> None:
    """Checks the shape that every Messages request must have; unknown members are allowed. Raises InvalidRequest.

    `model` may be absent, since that error belongs to the catalogue; `messages` defaults to an empty list.
    """
    _check_member(body, "model", lambda value: isinstance(value, str), "a string")
    _check_member(body, "stream", lambda value: isinstance(value, bool), "true or false")
    _check_member(body, "max_tokens", _is_u32, "a whole number from 0 to 4294967295")
    messages = body.get("messages", [])
    if not isinstance(messages, list):
        raise InvalidRequest("Invalid JSON: `messages` must be a list", param="messages")
    if len(messages) > MAX_MESSAGES:
        raise InvalidRequest(f"`messages` has {len(messages)} entries; the limit is {MAX_MESSAGES}", param="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InvalidRequest(f"Invalid JSON: `messages[{index}]` must be an object", param=f"messages[{index}]")
        if not isinstance(message.get("role"), str):
            raise InvalidRequest(f"Invalid JSON: `messages[{index}].role` must be a string", param=f"messages[{index}]")
        if "content" not in message:
            raise InvalidRequest(f"Invalid JSON: `messages[{index}].content` is missing", param=f"messages[{index}]")
    _check_names(body.get("tools"))
    if body.get("thread") is not None:
        raise InvalidRequest(_THREADS, param="thread", details=_NO_THREADS)


def _check_names(tools: Any) -> None:
    """Checks that names of tools are strings, since they become keys. Each wire checks the rest of a tool."""
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if name is not None and not isinstance(name, str):
            raise InvalidRequest(f"Invalid JSON: `tools[{index}].name` must be a string", param=f"tools[{index}].name")


def _is_u32(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_U32


def _check_member(body: Mapping[str, Any], name: str, accepts: Any, what: str) -> None:
    value = body.get(name)
    if value is not None and not accepts(value):
        raise InvalidRequest(f"Invalid JSON: `{name}` must be {what}", param=name)
    if name == "model" and name in body and value is None:
        raise InvalidRequest("Invalid JSON: `model` must be a string", param=name)


@dataclass(slots=True)
class _QueuedBlock:
    """A block that waits for its turn, or the open one. `start` is None until its content is known."""

    start: dict[str, Any] | None
    takes: Container[str] = ()  # the types of its deltas
    deltas: list[dict[str, Any]] = field(default_factory=list)
    held: int = 0  # bytes of the deltas that wait
    closed: bool = False


_MISFIT = "the upstream sent a delta that does not fit its block"


class _AnyType(Container[str]):
    """All types of deltas: those of a block of unknown type."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


def _deltas_of(block: Mapping[str, Any]) -> Container[str]:
    row = BLOCKS.get(block["type"])
    return _AnyType() if row is None else row.takes


class MessageStream:
    """Builds one legal event sequence.

    The caller names each block by a key. Blocks open in the order of `open`/`hold`; events of later ones are kept until
    the open one closes, so interleaved upstream items come out one after another. A key can be used again once its
    block has come out.
    Events collect until `take` fetches them: one batch a piece of upstream data.
    `open`, `hold` and `delta` raise BadAnswer for what has no place in a legal stream.
    `visible` is what a client has seen that got every event.
    """

    def __init__(self, message_id: str, model: str, *, input_tokens: int = 0, max_held: int = MAX_HELD_BYTES) -> None:
        self.message_id = message_id
        self.model = model
        self.input_tokens = input_tokens
        self.started = False
        self.finished = False
        self.begun = 0  # blocks whose start was written
        self.visible = Visible.NOTHING
        self._max_held = max_held
        self._next_index = 0
        self._live: Key | None = None
        self._live_takes: Container[str] = ()
        self._blocks: dict[Key, _QueuedBlock] = {}  # in block order; the first is the live one
        self._held_bytes = 0
        self._out: list[Event] = []

    def take(self) -> list[Event]:
        """The events since the last call."""
        out, self._out = self._out, []
        return out

    def commit(self) -> None:
        """Marks the answer as seen: the upstream did what must not be done twice, although no block shows it yet."""
        self.visible = Visible.CONTENT

    def afresh(self, *, shown: bool) -> MessageStream:
        """A stream for another attempt at the same message. It continues after the blocks that came out, if the client
        was `shown` them."""
        again = MessageStream(self.message_id, self.model, input_tokens=self.input_tokens, max_held=self._max_held)
        if self.started:
            again.started, again.visible = True, Visible.FRAMING
        again._next_index = self._next_index if shown else 0
        return again

    def start(self) -> None:
        """Writes `message_start`, once."""
        if self.started:
            return
        self.started = True
        self.visible = max(self.visible, Visible.FRAMING)
        message: dict[str, Any] = {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_of(self.input_tokens, 0),
        }
        self._out.append({"type": "message_start", "message": message})

    def ping(self) -> None:
        if not self.started:
            self.start()
        if not self._out or self._out[-1] is not PING:
            self._out.append(PING)

    def open(self, key: Key, block: dict[str, Any]) -> None:
        """Adds a block after all others: `block` is what `content_block_start` carries, with empty content."""
        self._add(key, _QueuedBlock(block, _deltas_of(block)))
        self._advance()

    def hold(self, key: Key) -> None:
        """Reserves the place of a block whose content is not known yet; `fill` sets it."""
        self._add(key, _QueuedBlock(None))

    def _add(self, key: Key, block: _QueuedBlock) -> None:
        if key in self._blocks:
            raise BadAnswer("the upstream began a block twice")
        self._blocks[key] = block

    def fill(self, key: Key, block: dict[str, Any]) -> None:
        """Gives a held block its content and closes it."""
        held = self._blocks[key]
        held.start, held.closed = block, True
        self._advance()

    def delta(self, key: Key, delta: dict[str, Any]) -> None:
        if key == self._live:
            if delta["type"] not in self._live_takes:
                raise BadAnswer(_MISFIT)
            self._out.append({"type": "content_block_delta", "index": self._next_index, "delta": delta})
            return
        block = self._blocks.get(key)
        if block is None or delta["type"] not in block.takes:
            raise BadAnswer(_MISFIT)
        size = sum(map(self._size_of, delta.values()))
        if self._held_bytes + size > self._max_held:
            raise BadAnswer(f"more than {self._max_held} bytes of later blocks wait for an earlier one")
        block.deltas.append(delta)
        block.held += size
        self._held_bytes += size

    def _size_of(self, value: Any) -> int:
        return len(value) if isinstance(value, str) else least_size(value, self._max_held)

    def close(self, key: Key) -> None:
        """Completes the block. For a tool call this is the moment in which the client runs it."""
        block = self._blocks.get(key)
        if block is not None:
            block.closed = True
            self._advance()

    @property
    def in_block(self) -> bool:
        """Whether a block is open or held."""
        return bool(self._blocks)

    def _advance(self) -> None:
        """Writes the first block, and the next ones as far as all before them are closed."""
        while self._blocks:
            key, block = next(iter(self._blocks.items()))
            if block.start is None:
                return
            if self._live is None:
                if not self.started:
                    self.start()
                self._live, self._live_takes = key, block.takes
                self.begun += 1
                start = {"type": "content_block_start", "index": self._next_index, "content_block": block.start}
                self.visible = self.visible.after((start,))
                self._out.append(start)
                for delta in block.deltas:
                    self._out.append(block_delta(self._next_index, delta))
                self._held_bytes -= block.held
                block.deltas, block.held = [], 0
            if not block.closed:
                return
            self._out.append({"type": "content_block_stop", "index": self._next_index})
            del self._blocks[key]
            self._live = None
            self._next_index += 1

    def finish(self, stop_reason: str, usage: Usage, *, stop_sequence: str | None = None) -> None:
        """Ends the answer. All blocks must be closed, except a call that the token limit cut: it is never closed in the
        hub, and the blocks after it never come out."""
        if not self.started:
            self.start()
        self.finished, self.visible = True, Visible.CONTENT
        delta = {"stop_reason": stop_reason, "stop_sequence": stop_sequence}
        self._out.append({"type": "message_delta", "delta": delta, "usage": usage})
        self._out.append({"type": "message_stop"})

    def interrupt(self) -> None:
        """Closes text and thinking before an error. An open tool call stays open, since closing it would make the
        client run it; the blocks after it never come out."""
        for key, block in list(self._blocks.items()):
            if block.start is None or (not block.closed and block.start.get("type") == TOOL_USE.name):
                break
            self.close(key)


class Fold:
    """Folds event batches into the reply of a request that is not streamed. `add` raises OverflowError past
    `max_chars`.

    Deltas fill their blocks by the table in `core.blocks`; a block of an unknown type takes every known delta.

    >>> fold = Fold()
    >>> fold.add([{"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}}])
    >>> fold.complete
    False
    """

    def __init__(self, max_chars: int = MAX_REPLY_CHARS) -> None:
        self.message: dict[str, Any] = {}
        self.complete = False
        self._max_chars = max_chars
        self._size = 0
        self._blocks: dict[int, dict[str, Any]] = {}
        self._values: dict[int, dict[DeltaType, list[Any]]] = {}  # what deltas brought for the blocks that are open

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            handler = self._HANDLERS.get(event["type"])
            if handler is not None:
                handler(self, event)

    def _message_start(self, event: Event) -> None:
        self.message = {**event["message"]}

    def _block_start(self, event: Event) -> None:
        block = dict(event["content_block"])
        self._grow(block)
        row = BLOCKS.get(block["type"])
        self._blocks[event["index"]] = block
        self._values[event["index"]] = {delta: [] for delta in (DELTAS.values() if row is None else row.deltas)}

    def _block_delta(self, event: Event) -> None:
        delta = event["delta"]
        kind = DELTAS.get(delta["type"])
        values = self._values[event["index"]].get(kind) if kind is not None else None
        if kind is not None and values is not None and delta.get(kind.carries) is not None:
            self._grow(delta[kind.carries])
            values.append(delta[kind.carries])

    def _grow(self, value: Any) -> None:
        self._size += len(value) if isinstance(value, str) else least_size(value, self._max_chars)
        if self._size > self._max_chars:
            raise OverflowError(f"the answer passed {self._max_chars} characters")

    def _block_stop(self, event: Event) -> None:
        block = self._blocks[event["index"]]
        for delta, values in self._values.pop(event["index"]).items():
            if values:
                block[delta.fills] = _FILLED[delta.how](block.get(delta.fills), values)

    def _message_delta(self, event: Event) -> None:
        self.message |= event["delta"]
        self.message["usage"] = {**self.message.get("usage", {}), **(event.get("usage") or {})}

    def _message_stop(self, _event: Event) -> None:
        self.complete = True
        whole = sorted(self._blocks.keys() - self._values.keys())  # a call that the token limit cut is left out
        self.message["content"] = [self._blocks[index] for index in whole if has_content(self._blocks[index])]

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
    }


def _parsed(start: Any, values: list[str]) -> Any:
    """The input of a call: that of the start if no text came. Clients want an object, so a text that is not one
    becomes an object that holds the text, which no tool accepts."""
    text = "".join(values)
    if not text:
        return start
    arguments = parse_arguments(text)
    return {"_raw": text} if arguments is None else arguments


#: how deltas fill a member -> the member, from its value at the start of the block and those of the deltas
_FILLED: Mapping[How, Callable[[Any, list[Any]], Any]] = {
    How.APPEND: lambda start, values: "".join([start or "", *values]),
    How.REPLACE: lambda _start, values: values[-1],
    How.COLLECT: lambda start, values: [*(start or ()), *values],
    How.PARSE: _parsed,
}
