"""Responses events to Messages events: the reducer behind every Responses upstream.

It does not know which transport feeds it and never gets a failure: `responses_events.responses_failure` is asked
before, and the transport decides what to do about one. It guarantees two things. The order of blocks is legal (see
MessageStream), and a tool call is closed only when its arguments are complete JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from proxy.core.blocks import TEXT, TEXT_DELTA
from proxy.core.convert.hosted_search import HostedSearches
from proxy.core.convert.responses_calls import FunctionCalls
from proxy.core.convert.responses_reasoning import ReasoningItems
from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer, CutAnswer
from proxy.core.responses_events import INCOMPLETE_STOPS, incomplete_reason, responses_usage


@dataclass(slots=True)
class _Text:
    """A text under way. `held` collects it when it has to be rewritten as a whole, and is None when it streams."""

    key: object
    held: list[str] | None
    size: int = 0


class ResponsesToMessages:
    """The reducer. `feed` takes one upstream event and returns the Messages events it causes, `finished` tells that the
    message is over. `produced` is true once the model has said anything at all: before that an end is an empty answer.
    """

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._numbers = count()  # name text blocks: an upstream may use an output_index again
        self._reasoning = ReasoningItems(stream, policy)
        self._texts: dict[int, _Text] = {}
        self._spoken: set[int] = set()  # texts of which something was said
        self._items: dict[str, int] = {}
        self._calls = FunctionCalls(stream, policy)
        self._open_items: set[int] = set()
        self._searches = HostedSearches(stream, policy)
        self._refused = False
        self.produced = False
        self.only_thinking = True
        self.finished = False
        self.incomplete = False
        self.usage: dict[str, Any] = {}

    # -- entry points

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """The Messages events that this upstream event causes. Raises BadAnswer."""
        kind = event.get("type")
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None and not self.finished:
            try:
                handler(self, event)
            except OverflowError as error:
                raise BadAnswer(str(error)) from None
        return self._stream.take()

    def cut(self) -> list[Event]:
        """The end of a stream before its last event. It does no harm behind calls that the upstream said are over, when
        nothing else was under way: the client has to act next anyway. Raises CutAnswer otherwise."""
        if not self.finished:
            under_way = self._open_items or self._calls.under_way or self._texts or self._reasoning.is_open
            if under_way or self._calls.doubtful or not self._calls.any_done:
                raise CutAnswer("the upstream cut the answer: it ended before its last event")
            self._end("tool_use", {"input_tokens": self._stream.input_tokens})
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """What can be said before an error: open text and thinking are closed, held text and links come out."""
        self._reasoning.interrupt()
        try:
            for index in list(self._texts):
                self._close_text(index)
        except OverflowError:
            pass  # behind a block that never ended: nobody would see it
        self._searches.fill()
        self._stream.interrupt()
        return self._stream.take()

    # -- control

    def _control(self, _event: Mapping[str, Any]) -> None:
        # Inside a block nothing is said: silence is measured by the writer, and old clients do not count pings.
        self._stream.start()
        if not self._stream.open_keys:
            self._stream.ping()

    # -- items

    def _item_added(self, event: Mapping[str, Any]) -> None:
        item, index = _item(event), _index(event)
        if item is None:
            return
        kind = item.get("type")
        self._open_items.add(index)
        if isinstance(item.get("id"), str):
            self._items[item["id"]] = index
        if kind == "reasoning":
            self._reasoning.merge(index, item)
        elif kind == "message":
            self._reasoning.close()
            if index not in self._texts:
                self._spoken.discard(index)
            self._open_text(index)
        elif kind == "function_call":
            self._reasoning.close()
            self._calls.add(index, item)

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, index = _item(event), _index(event)
        if item is None:
            return
        kind = item.get("type")
        self._open_items.discard(index)
        if kind == "reasoning":
            self.produced = self._reasoning.done(index, item) or self.produced
        elif kind == "message":
            self._message_done(index, item)
        elif kind == "function_call":
            self._call_done(index, item)
        elif kind == "web_search_call":
            self._search_done(index, item)

    # -- reasoning

    def _summary_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        if isinstance(delta, str) and delta:
            self.produced = True
            self._reasoning.add_summary(_index(event), delta)

    def _summary_part(self, event: Mapping[str, Any]) -> None:
        self._reasoning.add_part(_index(event))

    # -- text

    def _open_text(self, index: int) -> _Text:
        text = self._texts.get(index)
        if text is None:
            text = _Text(("text", next(self._numbers)), [] if self._policy.restore is not None else None)
            self._texts[index] = text
            self._stream.open(text.key, TEXT.start())
        return text

    def _text_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        self._reasoning.close()
        if isinstance(delta, str) and delta:
            self._add_text(self._text_index(event), delta)

    def _text_index(self, event: Mapping[str, Any]) -> int:
        if isinstance(event.get("output_index"), int):
            return _index(event)
        return self._items.get(str(event.get("item_id")), 0)

    def _add_text(self, index: int, text: str) -> None:
        block = self._open_text(index)
        self._spoken.add(index)
        self.produced, self.only_thinking = True, False
        if block.held is not None:
            block.size += len(text)
            if block.size > MAX_HELD_BYTES:
                raise BadAnswer(f"a structured answer passed {MAX_HELD_BYTES} bytes")
            block.held.append(text)
            return
        self._searches.read(text)
        self._stream.delta(block.key, TEXT_DELTA.of(text))

    def _text_done(self, event: Mapping[str, Any]) -> None:
        text, index = event.get("text"), self._text_index(event)
        if isinstance(text, str) and text and index not in self._spoken:
            self._reasoning.close()
            self._add_text(index, text)

    def _refusal_delta(self, event: Mapping[str, Any]) -> None:
        self._refused = self._refused or bool(event.get("delta"))
        self._text_delta(event)

    def _annotation(self, event: Mapping[str, Any]) -> None:
        self._searches.cite(event.get("annotation"))

    def _message_done(self, index: int, item: Mapping[str, Any]) -> None:
        """The item repeats its content: a text of which no delta came is taken from here."""
        said = index in self._spoken
        for part in _mappings(item.get("content")):
            text = part.get("text") if part.get("type") == "output_text" else part.get("refusal")
            if not said and isinstance(text, str) and text:
                self._refused = self._refused or part.get("type") == "refusal"
                self._reasoning.close()
                self._add_text(index, text)
            for annotation in _mappings(part.get("annotations")):
                self._searches.cite(annotation)
        self._close_text(index)

    def _close_text(self, index: int) -> None:
        block = self._texts.pop(index, None)
        if block is None:
            return
        if block.held and self._policy.restore is not None:
            text = self._policy.restore("".join(block.held))
            self._stream.delta(block.key, TEXT_DELTA.of(text))
        self._stream.close(block.key)

    # -- function calls

    def _arguments_delta(self, event: Mapping[str, Any]) -> None:
        call, delta = self._calls.of_event(event), event.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        if call is None:
            self._calls.doubtful = True
            return
        self.produced, self.only_thinking = True, False
        if self._calls.add_arguments(_index(event), call, delta):
            self._end("tool_use", {})

    def _arguments_done(self, event: Mapping[str, Any]) -> None:
        call = self._calls.of_event(event)
        if call is not None:
            self._calls.whole_arguments(call, event)

    def _call_done(self, index: int, item: Mapping[str, Any]) -> None:
        if self._calls.is_repeated(index, item):
            return
        if self._calls.begins(index, item):
            self._reasoning.close()
            self._calls.add(index, item)
        self.produced, self.only_thinking = True, False
        self._calls.done(index, item)

    # -- hosted search

    def _search_done(self, index: int, item: Mapping[str, Any]) -> None:
        self._reasoning.close()
        if self._searches.add(index, item):
            self.produced, self.only_thinking = True, False

    # -- the end

    def _terminal(self, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        usage = response.get("usage") if isinstance(response, Mapping) else None
        reason = incomplete_reason(event)
        stop = INCOMPLETE_STOPS.get(reason) if reason else None
        call = self._calls.under_way
        if stop == "max_tokens":
            self._calls.end_cut()
        elif reason and call is not None:
            raise BadAnswer(f"the answer ended ({reason}) inside the arguments of tool {call.name}")
        self.incomplete = reason is not None
        self._end(stop, usage)

    def _end(self, stop_reason: str | None, usage: Any) -> None:
        if self.incomplete:
            self._reasoning.interrupt()
        else:
            self._reasoning.close()
        for index in list(self._texts):
            self._close_text(index)
        if not self.incomplete:
            self._calls.complete()
        self._searches.fill()
        if stop_reason is None:
            stop_reason = "refusal" if self._refused else "tool_use" if self._calls.begun else "end_turn"
        self.usage = responses_usage(usage, searches=self._searches.count)
        self.finished = True
        self._stream.finish(stop_reason, self.usage)

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        "response.created": _control,
        "response.in_progress": _control,
        "keepalive": _control,
        "codex.rate_limits": _control,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.output_text.delta": _text_delta,
        "response.output_text.done": _text_done,
        "response.output_text.annotation.added": _annotation,
        "response.refusal.delta": _refusal_delta,
        "response.reasoning_summary_part.added": _summary_part,
        "response.reasoning_summary_text.delta": _summary_delta,
        "response.function_call_arguments.delta": _arguments_delta,
        "response.function_call_arguments.done": _arguments_done,
        "response.completed": _terminal,
        "response.done": _terminal,
        "response.incomplete": _terminal,
    }


def _item(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    item = event.get("item")
    return item if isinstance(item, Mapping) else None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("output_index")
    return index if isinstance(index, int) else 0
