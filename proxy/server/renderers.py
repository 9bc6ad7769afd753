"""How an answer looks on the route that it was asked on: events of the hub to bytes of a stream, or to one object."""

from __future__ import annotations

from typing import Any, Protocol

from proxy.core.blocks import KEEPALIVES
from proxy.core.convert.messages_to_chat_reply import ChatReply
from proxy.core.convert.messages_to_responses_reply import ResponsesReply
from proxy.core.messages import PING, Event, Fold, block_delta
from proxy.core.sse import encode_data, encode_events
from proxy.errors import ProxyError, messages_event, openai_body, responses_failure

#: Older clients do not count pings as life and hang up after 300 s; after this long something else is sent.
LIFE_S = 120.0

_STILL_HERE: Event = {
    "type": "message_delta",
    "delta": {"stop_reason": None, "stop_sequence": None},
    "usage": {"output_tokens": 0},
}
_DONE = b"data: [DONE]\n\n"


class Form(Protocol):
    """One answer in the form of its route. Use once, for a stream or for a whole reply.

    has_incomplete  whether the form can say that a tool call is not complete, so that an answer may end inside one
    """

    has_incomplete: bool

    def encode(self, events: list[Event], now: float) -> bytes:
        """A batch as bytes; b"" when it says nothing in this form. Raises BadAnswer."""
        ...

    def sign_of_life(self, now: float) -> bytes:
        """What is sent into a long silence."""
        ...

    def failure(self, error: ProxyError) -> bytes:
        """The end of a stream that broke."""
        ...

    def fold(self, events: list[Event]) -> None:
        """Takes a batch of an answer that is not streamed. Raises BadAnswer and OverflowError."""
        ...

    def reply(self) -> dict[str, Any] | None:
        """The whole answer; None while it is not complete."""
        ...


class MessagesForm:
    """The Messages API: the hub's own."""

    has_incomplete = False

    def __init__(self) -> None:
        self._fold = Fold()
        self._open: tuple[int, str] | None = None
        self._alive: float | None = None

    def encode(self, events: list[Event], now: float) -> bytes:
        for event in events:
            if event["type"] == "content_block_start":
                block = event["content_block"]["type"]
                self._open = (event["index"], block) if block in KEEPALIVES else None
            elif event["type"] == "content_block_stop":
                self._open = None
        if self._alive is None or events[-1]["type"] != "ping":
            self._alive = now
        return encode_events(events)

    def sign_of_life(self, now: float) -> bytes:
        """An empty delta of the open block, which every client counts as life; otherwise a ping, and once in a while
        more than that."""
        if self._open is not None:
            index, kind = self._open
            event = block_delta(index, KEEPALIVES[kind])
        else:
            event = PING if self._alive is not None and now - self._alive < LIFE_S else _STILL_HERE
        return self.encode([event], now)

    def failure(self, error: ProxyError) -> bytes:
        return encode_events([messages_event(error)])

    def fold(self, events: list[Event]) -> None:
        self._fold.add(events)

    def reply(self) -> dict[str, Any] | None:
        return self._fold.message if self._fold.complete else None


class ChatForm:
    """`chat.completion`, or its chunks up to `[DONE]`."""

    has_incomplete = True

    def __init__(self, reply: ChatReply) -> None:
        self._reply = reply

    def encode(self, events: list[Event], now: float) -> bytes:
        data = encode_data(self._reply.feed(events))
        return data + _DONE if self._reply.finished else data

    def sign_of_life(self, now: float) -> bytes:
        return b": keepalive\n\n"

    def failure(self, error: ProxyError) -> bytes:
        return encode_data([openai_body(error)]) + _DONE

    def fold(self, events: list[Event]) -> None:
        self._reply.feed(events)

    def reply(self) -> dict[str, Any] | None:
        return self._reply.completion if self._reply.finished else None


class ResponsesForm:
    """A response object, or the events that build it. Codex CLI counts only data events as life, so its sign of life is
    one."""

    has_incomplete = True

    def __init__(self, reply: ResponsesReply) -> None:
        self._reply = reply

    def encode(self, events: list[Event], now: float) -> bytes:
        return encode_events(self._reply.feed(events))

    def sign_of_life(self, now: float) -> bytes:
        return encode_events([self._reply.keepalive()])

    def failure(self, error: ProxyError) -> bytes:
        return encode_events(self._reply.fail(*responses_failure(error)))

    def fold(self, events: list[Event]) -> None:
        self._reply.feed(events)

    def reply(self) -> dict[str, Any] | None:
        return self._reply.response if self._reply.finished else None
