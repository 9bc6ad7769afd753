"""Responses events to Messages events: the reducer behind every Responses upstream.

It does not know which transport feeds it and never gets a failure: `responses_events.responses_failure` is asked
before, and the transport decides what to do about one. It guarantees two things. The order of blocks is legal (see
MessageStream), and a tool call is closed only when its arguments are complete JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.convert.hosted_search import HostedSearches
from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer, CallCut, CutAnswer
from proxy.core.responses_events import INCOMPLETE_STOPS, incomplete_reason, responses_usage
from proxy.core.signatures import encode_signature
from proxy.core.sse import dump_json
from proxy.core.tools.calls import ArgumentStream, parse_arguments, unique_id
from proxy.core.tools.read_tool import MAX_ARGUMENTS, STALL_BLANKS, repair_arguments, stalled_arguments
from proxy.core.tools.read_tool import NAME as READ


@dataclass(slots=True)
class _Call:
    """A function call under way. `text` is what the upstream sent, `sent` whether the client has seen any of it."""

    key: object
    sent_as: str  # the upstream's own call id
    call_id: str
    name: str
    filter: ArgumentStream
    buffered: bool
    text: list[str] = field(default_factory=list)
    size: int = 0
    sent: bool = False
    blanks: int = 0  # length of the run of blanks at the end
    next_look: int = STALL_BLANKS
    cut: bool = False  # the upstream ended it before its arguments were whole


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
        self._keys = 0
        self._thinking: int | None = None  # output_index of the open thinking block
        self._thinking_key: object = None
        self._reasoning: dict[int, dict[str, str]] = {}
        self._signed: set[str] = set()  # reasoning ids handed to the client: the upstream takes each back once
        self._texts: dict[int, _Text] = {}
        self._spoken: set[int] = set()  # texts of which something was said
        self._items: dict[str, int] = {}
        self._calls: dict[int, _Call] = {}
        self._done_calls: set[tuple[int, str]] = set()  # (output_index, the upstream's call id)
        self._open_items: set[int] = set()
        self._doubtful = False  # a call may not be complete, or not be the last one
        self._searches = HostedSearches(stream, policy)
        self._refused = False
        self.saw_tool_use = False
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
            under_way = self._open_items or self._calls or self._texts or self._thinking is not None
            if under_way or self._doubtful or not self._done_calls:
                raise CutAnswer("the upstream cut the answer: it ended before its last event")
            self._end("tool_use", {"input_tokens": self._stream.input_tokens})
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """What can be said before an error: open text and thinking are closed, held text and links come out.

        Reasoning that did not end gets no signature: the encrypted copy that came first can be incomplete, and a bad
        one would come back with every later turn.
        """
        if self._thinking is not None:
            self._reasoning.pop(self._thinking, None)
        self._close_thinking()
        try:
            for index in list(self._texts):
                self._close_text(index)
        except OverflowError:
            pass  # behind a block that never ended: nobody would see it
        self._searches.fill()
        self._stream.interrupt()
        return self._stream.take()

    def _key(self, kind: str) -> object:
        """A name for a block. Never the output_index: an upstream may use one again, or name none."""
        self._keys += 1
        return kind, self._keys

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
            self._merge_reasoning(index, item)
        elif kind == "message":
            self._close_thinking()
            if index not in self._texts:
                self._spoken.discard(index)
            self._open_text(index)
        elif kind == "function_call":
            self._close_thinking()
            self._call_added(index, item)

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item, index = _item(event), _index(event)
        if item is None:
            return
        kind = item.get("type")
        self._open_items.discard(index)
        if kind == "reasoning":
            self._reasoning_done(index, item)
        elif kind == "message":
            self._message_done(index, item)
        elif kind == "function_call":
            self._call_done(index, item)
        elif kind == "web_search_call":
            self._search_done(index, item)

    # -- reasoning

    def _merge_reasoning(self, index: int, item: Mapping[str, Any]) -> None:
        """The copy in `added` can be incomplete; a later value wins, a missing one keeps the earlier."""
        known = self._reasoning.setdefault(index, {})
        for key in ("id", "encrypted_content"):
            if isinstance(item.get(key), str) and item[key]:
                known[key] = item[key]

    def _summary_delta(self, event: Mapping[str, Any]) -> None:
        delta, index = event.get("delta"), _index(event)
        if not isinstance(delta, str) or not delta:
            return
        if self._thinking != index:
            self._close_thinking()
            self._open_thinking(index)
        self._stream.delta(self._thinking_key, {"type": "thinking_delta", "thinking": delta})

    def _summary_part(self, event: Mapping[str, Any]) -> None:
        index = _index(event)
        if self._thinking == index:
            self._stream.delta(self._thinking_key, {"type": "thinking_delta", "thinking": "\n\n"})

    def _open_thinking(self, index: int) -> None:
        self.produced = True
        self._thinking, self._thinking_key = index, self._key("thinking")
        self._stream.open(self._thinking_key, {"type": "thinking", "thinking": "", "signature": ""})

    def _close_thinking(self) -> None:
        if self._thinking is None:
            return
        index, self._thinking = self._thinking, None
        reasoning_id = self._reasoning.get(index, {}).get("id", "")
        signature = self._signature(index)
        if signature is not None:
            self._signed.add(reasoning_id)
            self._stream.delta(self._thinking_key, {"type": "signature_delta", "signature": signature})
        self._stream.close(self._thinking_key)

    def _reasoning_done(self, index: int, item: Mapping[str, Any]) -> None:
        self._merge_reasoning(index, item)
        if self._thinking == index:
            self._close_thinking()
            return
        self._close_thinking()
        if self._signature(index, keep=True) is not None:
            self._open_thinking(index)
            self._close_thinking()

    def _signature(self, index: int, *, keep: bool = False) -> str | None:
        known = self._reasoning.get(index, {}) if keep else self._reasoning.pop(index, {})
        if not self._policy.signatures or len(known) < 2 or known["id"] in self._signed:
            return None
        return encode_signature(known["id"], known["encrypted_content"])

    # -- text

    def _open_text(self, index: int) -> _Text:
        text = self._texts.get(index)
        if text is None:
            text = _Text(self._key("text"), [] if self._policy.restore is not None else None)
            self._texts[index] = text
            self._stream.open(text.key, {"type": "text", "text": ""})
        return text

    def _text_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        self._close_thinking()
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
        self._stream.delta(block.key, {"type": "text_delta", "text": text})

    def _text_done(self, event: Mapping[str, Any]) -> None:
        text, index = event.get("text"), self._text_index(event)
        if isinstance(text, str) and text and index not in self._spoken:
            self._close_thinking()
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
                self._close_thinking()
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
            self._stream.delta(block.key, {"type": "text_delta", "text": text})
        self._stream.close(block.key)

    # -- function calls

    def _call_added(self, index: int, item: Mapping[str, Any]) -> None:
        """Opens a call, unless it is known. One that never ended in this place must be complete by now."""
        call_id = _call_id(item)
        if call_id and (index, call_id) in self._done_calls:
            return
        earlier = self._calls.get(index)
        if earlier is not None:
            if not _is_other(earlier, item):
                return
            if not earlier.text:
                raise BadAnswer(f"the upstream never ended the call of tool {earlier.name}")
            self._complete(index, earlier, "".join(earlier.text))
            self._doubtful = True
        self._open_call(index, item)

    def _open_call(self, index: int, item: Mapping[str, Any]) -> None:
        name = item.get("name") if isinstance(item.get("name"), str) else ""
        if not name:
            raise BadAnswer("the upstream sent a tool call without a name")
        name = self._policy.names.get(name, name)
        call_id = unique_id(_call_id(item), self._policy.used_ids)
        self.saw_tool_use = True
        key = self._key("call")
        self._calls[index] = _Call(
            key=key,
            sent_as=_call_id(item),
            call_id=call_id,
            name=name,
            filter=ArgumentStream(self._policy.optional(name)),
            buffered=name == READ and self._policy.offsets is not None,
        )
        self._stream.open(key, {"type": "tool_use", "id": call_id, "name": name, "input": {}})

    def _arguments_delta(self, event: Mapping[str, Any]) -> None:
        call, delta = self._call_of(event), event.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        if call is None:
            self._doubtful = True
            return
        self.produced, self.only_thinking = True, False
        self._append(call, delta)
        if not call.buffered:
            self._send(call, call.filter.feed(delta))
        else:
            self._finish_if_stalled(_index(event), call, delta)

    def _call_of(self, event: Mapping[str, Any]) -> _Call | None:
        """The call that an arguments event belongs to; one that does not say so belongs to none."""
        index = event.get("output_index")
        return self._calls.get(index) if isinstance(index, int) else None

    def _append(self, call: _Call, text: str) -> None:
        call.text.append(text)
        call.size += len(text)
        if call.size > MAX_ARGUMENTS:
            raise BadAnswer(f"the arguments of tool {call.name} passed {MAX_ARGUMENTS} bytes")

    def _send(self, call: _Call, text: str) -> None:
        if text:
            call.sent = True
            self._stream.delta(call.key, {"type": "input_json_delta", "partial_json": text})

    def _arguments_done(self, event: Mapping[str, Any]) -> None:
        call, text = self._call_of(event), _final_arguments(event)
        if call is not None and not call.text and text:
            self._append(call, text)

    def _call_done(self, index: int, item: Mapping[str, Any]) -> None:
        call_id = _call_id(item)
        if (index, call_id) in self._done_calls and (call_id or index not in self._calls):
            return
        if index not in self._calls or _is_other(self._calls[index], item):
            self._close_thinking()
            self._call_added(index, item)
        call = self._calls[index]
        self._done_calls.add((index, call_id or call.sent_as))
        self._doubtful = self._doubtful or item.get("status") not in (None, "completed")
        self.produced, self.only_thinking = True, False
        if not call.text:
            self._append(call, _final_arguments(item))
        text = "".join(call.text)
        if item.get("status") == "incomplete" and (not text.strip() or parse_arguments(text) is None):
            call.cut = True  # the last event tells why
            return
        self._complete(index, call, text)

    def _complete(self, index: int, call: _Call, text: str) -> None:
        """Closes a call whose arguments have all arrived. What is not a JSON object must not reach the client's
        tool."""
        if call.cut:
            raise BadAnswer(f"the answer ended before the arguments of tool {call.name}")
        if parse_arguments(text) is None:
            raise BadAnswer(f"the upstream sent arguments of tool {call.name} that are not a JSON object")
        if call.buffered and self._policy.offsets is not None:
            text = repair_arguments(text, call.call_id, self._policy.offsets)
        if call.sent:
            self._send(call, call.filter.end())
        elif text.strip():
            whole = ArgumentStream(self._policy.optional(call.name))
            self._send(call, whole.feed(text) + whole.end())
        self._stream.close(call.key)
        del self._calls[index]

    def _finish_if_stalled(self, index: int, call: _Call, delta: str) -> None:
        """A model that emits blanks without end will not close its call: take what is complete and end the message."""
        call.blanks = call.blanks + len(delta) if delta.isspace() else len(delta) - len(delta.rstrip())
        if call.blanks < call.next_look:
            return
        call.next_look *= 2  # a text that is not complete is not looked at again for every blank
        arguments = stalled_arguments("".join(call.text))
        if arguments is not None:
            self._complete(index, call, arguments)
            self._end("tool_use", {})

    # -- hosted search

    def _search_done(self, index: int, item: Mapping[str, Any]) -> None:
        self._close_thinking()
        if self._searches.add(index, item):
            self.produced, self.only_thinking = True, False

    # -- the end

    def _terminal(self, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        usage = response.get("usage") if isinstance(response, Mapping) else None
        reason = incomplete_reason(event)
        stop = INCOMPLETE_STOPS.get(reason) if reason else None
        if reason and self._calls:
            call = next(iter(self._calls.values()))
            if stop == "max_tokens":
                raise CallCut(call.name, responses_usage(usage, searches=self._searches.count))
            raise BadAnswer(f"the answer ended ({reason}) inside the arguments of tool {call.name}")
        self.incomplete = reason is not None
        self._end(stop, usage)

    def _end(self, stop_reason: str | None, usage: Any) -> None:
        self._close_thinking()
        for index in list(self._texts):
            self._close_text(index)
        for index, call in list(self._calls.items()):
            self._complete(index, call, "".join(call.text))
        self._searches.fill()
        if stop_reason is None:
            stop_reason = "refusal" if self._refused else "tool_use" if self.saw_tool_use else "end_turn"
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


def _call_id(item: Mapping[str, Any]) -> str:
    return str(item.get("call_id") or item.get("id") or "")


def _is_other(call: _Call, item: Mapping[str, Any]) -> bool:
    """Whether an item is another call than the one under way in its place."""
    return isinstance(item.get("call_id"), str) and item["call_id"] not in ("", call.sent_as)


def _final_arguments(holder: Mapping[str, Any]) -> str:
    """The whole arguments of a call, as text: some upstreams send the object itself."""
    arguments = holder.get("arguments")
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dump_json(arguments)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("output_index")
    return index if isinstance(index, int) else 0
