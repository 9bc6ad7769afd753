"""Reduces Responses events to Messages events, for every Responses upstream.

The reducer does not know its transport and never gets a failure: the transport checks
`responses_events.responses_failure` first and decides what to do. It guarantees that the order of blocks is legal (see
MessageStream), and that a tool call is closed only when its arguments are complete JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from proxy.core.convert.responses.calls import FunctionCalls
from proxy.core.convert.responses.places import At, Places, SaidTexts
from proxy.core.convert.responses.reasoning import ReasoningItems, thought_parts
from proxy.core.convert.responses.searches import SEARCH_BEGAN, HostedSearches, search_of
from proxy.core.convert.responses.texts import TextBlocks
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import EOF, AnswerPolicy, BadAnswer, CutAnswer
from proxy.core.responses_events import UNREADABLE, incomplete_reason, incomplete_stop, reported_usage, responses_usage


class ResponsesToMessages:
    """The reducer. `feed` takes one upstream event and returns the Messages events it causes.

    finished  whether the message is over
    produced  whether the model has said anything at all: before that an end is an empty answer
    """

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._rules = policy.rules
        self._converted = policy.converted
        self._places = Places()
        self._reasoning = ReasoningItems(stream, policy)
        self._texts = TextBlocks(stream, policy)
        self._calls = FunctionCalls(stream, policy)
        self._searches = HostedSearches(stream, policy)
        self._open_items: set[int] = set()
        self._refused = False
        self._unreadable = False  # an event could not be read
        self._chars = 0  # of all texts
        self.produced = False
        self.finished = False
        self.incomplete = False
        self.usage: dict[str, Any] = {}

    # -- entry points

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """Returns the Messages events that an upstream event, or EOF, causes. Raises BadAnswer."""
        if event is EOF:
            return self.cut()
        kind = event.get("type")
        handler = self._HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None and not self.finished:
            handler(self, event)
        return self._stream.take()

    def cut(self) -> list[Event]:
        """Handles the end of a stream before its last event. That is harmless after finished calls if nothing else is
        unfinished, since the client acts next anyway. Raises CutAnswer otherwise."""
        if not self.finished:
            under_way = self._open_items or self._calls.are_open or self._texts.are_open or self._reasoning.is_open
            if under_way or self._calls.doubtful or not self._calls.any_done:
                raise CutAnswer("the upstream cut the answer: it ended before its last event")
            self._end("tool_use", {"input_tokens": self._stream.input_tokens})
        return self._stream.take()

    def interrupt(self) -> list[Event]:
        """The last events before an error: closes open text and thinking, and releases held text and links."""
        self._reasoning.interrupt()
        try:
            self._texts.close_all()
        except BadAnswer:
            pass  # after a block that never ended, so the client would not see it
        self._searches.fill()
        self._stream.interrupt()
        return self._stream.take()

    # -- control

    def _control(self, _event: Mapping[str, Any]) -> None:
        # No ping inside a block: the writer measures silence, and old clients do not count pings.
        if not self._stream.in_block:
            self._stream.ping()

    def _missed(self, _event: Mapping[str, Any]) -> None:
        self._unreadable = True

    def _begin(self, event: Mapping[str, Any]) -> None:
        self._unreadable = False  # what came before is no part of the answer
        self._control(event)

    # -- items

    def _item_added(self, event: Mapping[str, Any]) -> None:
        item = _item(event)
        if item is None:
            return
        kind, place = item.get("type"), self._places.begin(event, item)
        self._open_items.add(place)
        if kind == "reasoning":
            self._reasoning.begin(place, item)
        elif kind == "message":
            self._reasoning.close()
            self._texts.begin(place)
        elif kind == "function_call":
            self._other_block()
            self._calls.add(place, item)
        elif search_of(item):
            self._searches.begin(place)
            self._search_began(event)

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item = _item(event)
        if item is not None:
            self._done(self._places.end(event, item), item, "item")

    def _done(self, place: int, item: Mapping[str, Any], copy: str) -> None:
        """Handles the end of an item. `copy`: see `Said.repeated`."""
        kind = item.get("type")
        self._open_items.discard(place)
        said = self._said(_kind(item))
        parts = thought_parts(item) if kind == "reasoning" else _texts_of(item)
        if said is not None:
            place = said.place_of_item(place, parts, copy)
        if kind == "reasoning":
            self.produced = self._reasoning.done(place, item) or self.produced
        elif kind == "message":
            self._message_done(place, item)
        elif kind == "function_call":
            self._call_done(place, item)
        else:
            self._search_done(place, item)
        if said is not None:
            said.place_of_item(place, parts, copy)  # marks what was shown from here as repeated by this kind of event

    def _other_block(self) -> None:
        """Prepares for a block that is neither a text nor a thought."""
        self._reasoning.close()
        self._texts.settle()

    # -- reasoning

    def _thought_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        if isinstance(delta, str) and delta:
            self.produced = True
            if self._reasoning.add_summary(self._places.or_current(event, "reasoning"), delta):
                self._texts.settle()

    def _thought_part(self, event: Mapping[str, Any]) -> None:
        self._reasoning.add_part(self._places.or_current(event, "reasoning"))

    def _thought_done(self, event: Mapping[str, Any]) -> None:
        """Handles the end of a thought, or of a part of it, with its whole text."""
        place = named = self._places.or_current(event, "reasoning")
        text = event.get("text")
        number = next((event[name] for name in _PART_NUMBERS if type(event.get(name)) is int), None)
        if isinstance(text, str) and text:
            said = self._reasoning.said
            place, number = said.repeated((place, number), text, "done") or (place, number)
            if self._reasoning.whole(place, [text], number):
                self.produced = True
                said.repeated((place, number), text, "done")
        self._reasoning.part_is_over(place)
        if place != named or not self._reasoning.is_open_at(place):
            self._places.leave_bare(named)

    # -- text

    def _text_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        self._reasoning.close()
        if isinstance(delta, str) and delta:
            self._add_text(self._text_at(event), delta)

    def _refusal_delta(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        self._reasoning.close()
        if isinstance(delta, str) and delta:
            self._refuse(self._text_at(event), delta)

    def _text_at(self, event: Mapping[str, Any]) -> At:
        return self._texts.at(self._places.or_current(event, "message"), event.get("content_index"))

    def _add_text(self, at: At, text: str) -> None:
        self._chars += len(text)
        self._texts.add(at, text)
        self._searches.read(text)
        self.produced = True

    def _refuse(self, at: At, text: str) -> None:
        self._chars += len(text)
        self._texts.refuse(at, text)
        self._refused = self.produced = True

    def _text_done(self, event: Mapping[str, Any]) -> None:
        self._whole_text(event, event)

    def _part_done(self, event: Mapping[str, Any]) -> None:
        part = event.get("part")
        if isinstance(part, Mapping) and _text_of(part) is not None:
            self._whole_text(event, part)

    def _whole_text(self, event: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        """Handles the end of a part of a message: shows its text if no piece of it came, and its citations."""
        named, text = self._text_at(event), part.get("text") if part is event else _text_of(part)
        at, said, copy = named, self._texts.said, "done" if part is event else "part"
        text = text if isinstance(text, str) else ""
        if text:
            at = said.repeated(at, text, copy) or at
        is_news = said.is_news(at, text)
        self._show_part(at, part, text if is_news else None)
        if is_news:
            said.repeated(at, text, copy)
        self._texts.part_is_over(at)
        self._places.leave_bare(named[0])
        self._places.leave_bare(at[0])

    def _show_part(self, at: At, part: Mapping[str, Any], text: Any) -> None:
        """Shows the new text of a part of a message, and its citations."""
        if isinstance(text, str) and text:
            self._reasoning.close()
            (self._refuse if part.get("type") == "refusal" else self._add_text)(at, text)
        for annotation in _mappings(part.get("annotations")):
            self._cite(annotation, at)

    def _annotation(self, event: Mapping[str, Any]) -> None:
        place = self._places.of(event)
        self._cite(event.get("annotation"), self._texts.at(-1 if place is None else place, event.get("content_index")))

    def _cite(self, annotation: Any, at: At) -> None:
        self._searches.cite(annotation)
        self._texts.cite(annotation, at)

    def _cite_all(self, item: Mapping[str, Any], place: int) -> None:
        for number, part in enumerate(_mappings(item.get("content"))):
            for annotation in _mappings(part.get("annotations")):
                self._cite(annotation, self._texts.at(place, number))

    def _message_done(self, place: int, item: Mapping[str, Any]) -> None:
        """Handles the end of a message, whose item repeats its content: a text without deltas is taken from it."""
        parts = [(self._texts.at(place, number), part) for number, part in enumerate(_mappings(item.get("content")))]
        news = [self._texts.said.is_news(at, _text_of(part) or "") for at, part in parts]
        for (at, part), is_news in zip(parts, news, strict=True):
            self._show_part(at, part, _text_of(part) if is_news else None)
        self._texts.end(place)

    # -- function calls

    def _arguments_delta(self, event: Mapping[str, Any]) -> None:
        place, delta = self._places.of(event), event.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        call = self._calls.open_at(place)
        if call is None or place is None:
            self._calls.add_stray(place, delta)
            return
        self.produced = True
        if self._calls.add_arguments(place, call, delta):
            self._end("tool_use", {})

    def _arguments_done(self, event: Mapping[str, Any]) -> None:
        self._calls.whole_arguments(self._places.of(event), event)

    def _call_done(self, place: int, item: Mapping[str, Any]) -> None:
        if self._calls.is_repeated(place, item):
            return
        if self._calls.begins(place, item):
            self._other_block()
            self._calls.begin_late(place, item)
        self.produced = True
        self._calls.done(place, item)

    # -- hosted search

    def _search_began(self, _event: Mapping[str, Any]) -> None:
        """Marks the answer as seen where searches are shown at once: a search costs, so the request is not repeated."""
        if self._searches.shows_at_once:
            self.produced = True
            self._stream.commit()

    def _search_input(self, event: Mapping[str, Any]) -> None:
        self._searches.add_input(self._places.of(event), event.get("delta"))

    def _search_input_done(self, event: Mapping[str, Any]) -> None:
        self._searches.whole_input(self._places.of(event), event.get("input"))

    def _search_done(self, place: int, item: Mapping[str, Any]) -> None:
        name = search_of(item)
        if name is None:
            return
        self._other_block()
        if self._searches.add(place, item, name):
            self.produced = True

    # -- the end

    def _terminal(self, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        response = response if isinstance(response, Mapping) else {}
        reason = incomplete_reason(event)
        self.incomplete = reason is not None
        self._texts.end_all()
        self._repeated(response.get("output"))
        if self._unreadable and not self._is_repeated_whole(response.get("output")):
            raise CutAnswer("an event of the upstream is not JSON, and its last event does not repeat the answer")
        stop = incomplete_stop(reason, self._rules)
        call = self._calls.under_way
        if stop == "max_tokens":
            self._calls.end_cut()
        elif reason and call is not None:
            raise BadAnswer(f"the answer ended ({reason}) inside the arguments of tool {call.name}")
        self._end(stop, response.get("usage"))

    def _repeated(self, output: Any) -> None:
        """Takes what is missing from the last event, which repeats the whole answer. An item without a known place came
        before, unless the event has more items of its kind than came."""
        items = _mappings(output)
        kinds = Counter(map(_kind, items))
        for index, item in enumerate(items):
            kind = _kind(item)
            come = self._said(kind)
            place = self._places.in_output(index, item)
            place = index if place is None and come is not None and come.was_in(index) else place
            shown = self._calls.begun if kind == "function_call" else len(self._searches if come is None else come)
            if self.incomplete and (item.get("status") != "completed" or self._calls.open_at(place) is not None):
                item = {**item, "status": "incomplete"}  # also a call whose own end never came
            if place is not None and not self._places.has_ended(place):
                self._done(self._places.end({"output_index": place}, item), item, "output")
            elif place is None and shown < kinds[kind]:
                self._done(self._places.only_in_output(item), item, "output")
            else:
                self._cite_all(item, -1 if place is None else place)

    def _is_repeated_whole(self, output: Any) -> bool:
        """Whether the last event has the whole answer, and all its texts were shown."""
        items = _mappings(output)
        texts = (text for item in items for text in _texts_of(item))
        return bool(items) and sum(map(len, texts)) == self._chars

    def _said(self, kind: str) -> SaidTexts | None:
        """The texts said in items of a kind; None for a kind without text."""
        return {"message": self._texts.said, "reasoning": self._reasoning.said}.get(kind)

    def _end(self, stop_reason: str | None, usage: Any) -> None:
        if self.incomplete:
            self._reasoning.interrupt()
        else:
            self._reasoning.close()
        self._texts.close_all()
        if not self.incomplete:
            self._calls.complete()
        self._searches.fill()
        if stop_reason is None:
            stop_reason = "tool_use" if self._calls.begun else "end_turn"
            stop_reason = "refusal" if self._refused and not self._converted else stop_reason
        if stop_reason == "end_turn":
            self._searches.list_sources()
        self.usage = self._usage(usage)
        self.produced = self.produced and self._stream.begun > 0  # a search that only began is no answer
        self.finished = True
        self._stream.finish(stop_reason, self.usage)

    def _usage(self, usage: Any) -> dict[str, Any]:
        web, x = self._searches.counts
        if self._rules.reported_usage:
            return reported_usage(usage, web=web, x=x)
        return responses_usage(usage, searches=web + x)

    _HANDLERS = {  # noqa: RUF012 - a table, never changed
        str(UNREADABLE["type"]): _missed,
        "response.created": _begin,
        "response.in_progress": _control,
        "keepalive": _control,
        "codex.rate_limits": _control,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.output_text.delta": _text_delta,
        "response.output_text.done": _text_done,
        "response.output_text.annotation.added": _annotation,
        "response.content_part.done": _part_done,
        "response.refusal.delta": _refusal_delta,
        "response.reasoning_summary_part.added": _thought_part,
        "response.reasoning_summary_text.delta": _thought_delta,
        "response.reasoning_summary_text.done": _thought_done,
        "response.reasoning_text.delta": _thought_delta,
        "response.reasoning_text.done": _thought_done,
        "response.function_call_arguments.delta": _arguments_delta,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.delta": _search_input,
        "response.custom_tool_call_input.done": _search_input_done,
        **dict.fromkeys(SEARCH_BEGAN, _search_began),
        "response.completed": _terminal,
        "response.done": _terminal,
        "response.incomplete": _terminal,
    }


#: Members that number the parts of a thought.
_PART_NUMBERS = ("summary_index", "content_index")
#: type of a part of a message -> the member with its text
_PART_TEXTS = {"output_text": "text", "refusal": "refusal"}


def _text_of(part: Mapping[str, Any]) -> str | None:
    """The text of a part of a message; None if it has none."""
    kind = part.get("type")
    text = part.get(_PART_TEXTS[kind]) if isinstance(kind, str) and kind in _PART_TEXTS else None
    return text if isinstance(text, str) else None


def _texts_of(item: Mapping[str, Any]) -> list[str]:
    """The texts of a message's parts."""
    return list(filter(None, map(_text_of, _mappings(item.get("content")))))


def _kind(item: Mapping[str, Any]) -> str:
    return "search" if search_of(item) else str(item.get("type"))


def _item(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    item = event.get("item")
    return item if isinstance(item, Mapping) else None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [member for member in value if isinstance(member, Mapping)] if value and isinstance(value, list) else []
