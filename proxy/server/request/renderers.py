"""Renders an answer for each client API: hub events to bytes of a stream, or to one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from proxy.core.blocks import KEEPALIVES
from proxy.core.convert.messages_to_chat_reply import ChatReply
from proxy.core.convert.messages_to_responses_reply import ResponsesReply
from proxy.core.ingress import Ingress
from proxy.core.messages import PING, Event, Fold, block_delta
from proxy.core.sse import encode_data, encode_events
from proxy.errors import ProxyError, messages_event, openai_body, responses_failure

_EMPTY_MESSAGE_DELTA: Event = {
    "type": "message_delta",
    "delta": {"stop_reason": None, "stop_sequence": None},
    "usage": {"output_tokens": 0},
}
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The facts of a request for its renderer.

    ingress     the parsed request
    answer_id   unique, without a prefix
    model       the name asked for
    created     epoch seconds
    no_pings_s  after this long with only pings something else is sent
    """

    ingress: Ingress
    answer_id: str
    model: str
    created: int
    no_pings_s: float


class Renderer(Protocol):
    """One answer in the format of a client API. Use once, for a stream or for a whole reply."""

    def encode(self, events: list[Event], now: float) -> bytes:
        """A batch as bytes; b"" if this API has nothing for it. Raises BadAnswer."""
        ...

    def keepalive(self, now: float) -> bytes:
        """Bytes to send during a long silence."""
        ...

    def failure(self, error: ProxyError) -> bytes:
        """The last bytes of a stream that broke."""
        ...

    def fold(self, events: list[Event]) -> None:
        """Adds a batch of an answer that is not streamed. Raises BadAnswer and OverflowError."""
        ...

    def reply(self) -> dict[str, Any] | None:
        """The whole answer; None if it is incomplete."""
        ...


class MessagesRenderer:
    """The Messages API, which is the hub's own format, except for a tool call that the token limit cut. As in the
    original API, it is stopped with the arguments so far, and clients tell their model that it was cut. In a whole
    reply, where a client could not see that, it is left out."""

    def __init__(self, context: RenderContext) -> None:
        self._no_pings_s = context.no_pings_s
        self._fold = Fold()
        self._open: tuple[int, str] | None = None
        self._active_at: float | None = None

    def encode(self, events: list[Event], now: float) -> bytes:
        for event in events:
            kind = event["type"]
            if kind == "content_block_start":
                block = event["content_block"]["type"]
                self._open = (event["index"], block) if block in KEEPALIVES else None
            elif kind == "content_block_stop":
                self._open = None
            elif kind == "message_delta" and self._open is not None:
                events = self._with_stop(events, self._open)
        if self._active_at is None or events[-1]["type"] != "ping":
            self._active_at = now
        return encode_events(events)

    def _with_stop(self, events: list[Event], open_block: tuple[int, str]) -> list[Event]:
        """The last batch of an answer, with a stop of the open block."""
        self._open = None
        place = next(place for place, event in enumerate(events) if event["type"] == "message_delta")
        return [*events[:place], {"type": "content_block_stop", "index": open_block[0]}, *events[place:]]

    def keepalive(self, now: float) -> bytes:
        """An empty delta of the open block, which every client counts as activity; else a ping, and now and then a
        message delta, since older clients ignore pings."""
        if self._open is not None:
            index, kind = self._open
            event = block_delta(index, KEEPALIVES[kind])
        else:
            event = (
                PING
                if self._active_at is not None and now - self._active_at < self._no_pings_s
                else _EMPTY_MESSAGE_DELTA
            )
        return self.encode([event], now)

    def failure(self, error: ProxyError) -> bytes:
        return encode_events([messages_event(error)])

    def fold(self, events: list[Event]) -> None:
        self._fold.add(events)

    def reply(self) -> dict[str, Any] | None:
        return self._fold.message if self._fold.complete else None


class ChatRenderer:
    """The Chat Completions API: `chat.completion`, or its chunks up to `[DONE]`."""

    def __init__(self, context: RenderContext) -> None:
        self._reply = ChatReply(
            context.ingress,
            completion_id=f"chatcmpl-{context.answer_id}",
            created=context.created,
            model=context.model,
        )

    def encode(self, events: list[Event], now: float) -> bytes:
        data = encode_data(self._reply.feed(events))
        return data + _DONE if self._reply.finished else data

    def keepalive(self, now: float) -> bytes:
        return b": keepalive\n\n"

    def failure(self, error: ProxyError) -> bytes:
        return encode_data([openai_body(error)]) + _DONE

    def fold(self, events: list[Event]) -> None:
        self._reply.feed(events)

    def reply(self) -> dict[str, Any] | None:
        return self._reply.completion if self._reply.finished else None


class ResponsesRenderer:
    """The Responses API: a response object, or the events that build it. The keepalive is an event, since Codex CLI
    counts only data events as activity."""

    def __init__(self, context: RenderContext) -> None:
        self._reply = ResponsesReply(
            context.ingress, response_id=context.answer_id, created=context.created, model=context.model
        )

    def encode(self, events: list[Event], now: float) -> bytes:
        return encode_events(self._reply.feed(events))

    def keepalive(self, now: float) -> bytes:
        return encode_events([self._reply.keepalive()])

    def failure(self, error: ProxyError) -> bytes:
        return encode_events(self._reply.fail(*responses_failure(error)))

    def fold(self, events: list[Event]) -> None:
        self._reply.feed(events)

    def reply(self) -> dict[str, Any] | None:
        return self._reply.response if self._reply.finished else None
