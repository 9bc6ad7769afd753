"""Joins the rounds of one answer: a model that calls the search, and is asked again with what was found.

The client sees one message. The model's texts and thoughts pass as they come, its calls of the search are hidden, and
each search shows as a call and a result of the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.core.blocks import (
    CITATIONS_DELTA,
    INPUT_DELTA,
    SERVER_TOOL_USE,
    TEXT,
    TEXT_DELTA,
    TOOL_USE,
)
from proxy.core.messages import MAX_REPLY_CHARS, Event, Fold, block_delta
from proxy.core.search.blocks import result_block
from proxy.core.search.citations import MAX_CITED_TEXT, citations
from proxy.core.search.hosted import SearchPlan, after_search, asked_query
from proxy.core.search.results import Outcome, SearchFailure, in_words, urls_of
from proxy.core.sse import dump_json
from proxy.core.tokens.usage import Usage, search_usage
from proxy.core.tools.calls import MAX_NAME

#: Stop reasons after which calls are carried out.
_CALLING = ("tool_use", "end_turn")
#: Digits that make the ids of an answer unique: with them an id of 46 characters is as long as services take.
_DIGITS = 15


@dataclass(frozen=True, slots=True)
class ModelSearch:
    """A call of the search by the model; `shown_id` is the client's id of it."""

    call_id: str
    shown_id: str
    query: str


class SearchRounds:
    """The message of one answer. For each round: `begin`, `feed` until `over`, then its `searches`.

    over      whether the round has ended
    searches  its calls of the search
    calls_client  whether the client must run other calls of the round
    call_id   the client's id of the first of those whose id is unique, "" without one
    shown     the blocks of all searches of the answer
    """

    def __init__(self, plan: SearchPlan, request: Mapping[str, Any], *, converted: bool, answer_id: str) -> None:
        """
        request    that of the plan, as it is sent
        converted  the client's API has citations, but no place for the results of a search: the ids of its calls are
                   made unique, so that its next request shows what belongs to it
        answer_id  hexadecimal digits that nobody can guess
        """
        self._plan = plan
        self._converted = converted
        self._answer_id = answer_id
        self._request = request
        self._rounds = 0
        self._started = False
        self._next = 0  # index of the next block of the message
        self._made = self._shown = 0
        self._usage: Usage = {}
        self._found: dict[str, str] = {}
        self.shown: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Begins a round."""
        self._rounds += 1
        self.over = self.calls_client = False
        self.searches: tuple[ModelSearch, ...] = ()
        self._fold = Fold(MAX_REPLY_CHARS)
        self._hidden: int | None = None
        self._places: dict[int, int] = {}  # index of the round's block -> of the message's
        self._text: tuple[int, list[str]] | None = None  # the open text, if its links are cited
        self._end: list[Event] = []
        self.call_id = ""

    @property
    def request(self) -> dict[str, Any]:
        """The request of this round; its list of messages belongs to the caller. The last one allows no calls, so that
        a model that only searches ends with words."""
        choice = {"tool_choice": {"type": "none"}} if self._rounds == self._plan.rounds else {}
        return {**self._request, **choice, "messages": [*self._request["messages"]]}

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """What the client sees of a batch. The end of the round is kept. Raises OverflowError."""
        self._fold.add(events)
        out: list[Event] = []
        for event in events:
            kind = event["type"]
            if kind.startswith("content_block_"):
                out += self._block(kind, event)
            elif kind == "message_start":
                out += [] if self._started else [event]
                self._started = True
            elif kind == "message_stop" or (kind == "message_delta" and event["delta"].get("stop_reason") is not None):
                self._end.append(event)
                if kind == "message_stop":
                    self._close()
            else:
                out.append(event)
        return out

    def _block(self, kind: str, event: Event) -> list[Event]:
        index = event["index"]
        if kind == "content_block_start":
            block = event["content_block"]
            if block["type"] == TOOL_USE.name and block["name"] == self._plan.name:
                self._hidden = index
                return []
            self._places[index], self._next = self._next, self._next + 1
            if self._converted and block["type"] == TOOL_USE.name:
                event = {**event, "content_block": {**block, "id": self._own_id(block["id"])}}
            self._text = (index, []) if self._converted and self._found and block["type"] == TEXT.name else None
        if index == self._hidden:
            return []
        placed = {**event, "index": self._places[index]}
        if self._text is None or self._text[0] != index:
            return [placed]
        return self._cited(kind, placed, self._text[1])

    def _own_id(self, call_id: str) -> str:
        """The client's id of a call of its own: unique, unless it would be longer than services take. The upstream gets
        its own id back, see `upstream_id`."""
        shown = f"{call_id}__u{int(self._answer_id, 16) % 10**_DIGITS:0{_DIGITS}}"
        if len(shown) > MAX_NAME:
            return call_id
        self.call_id = self.call_id or shown
        return shown

    def _cited(self, kind: str, event: Event, pieces: list[str]) -> list[Event]:
        """Handles an event of a text whose links are cited at its end."""
        if kind == "content_block_delta" and event["delta"]["type"] == TEXT_DELTA.name:
            pieces.append(event["delta"][TEXT_DELTA.carries])
        elif kind == "content_block_stop":
            self._text = None
            links = citations("".join(pieces)[:MAX_CITED_TEXT], self._found)
            return [*(block_delta(event["index"], CITATIONS_DELTA.of(link)) for link in links), event]
        return [event]

    def _close(self) -> None:
        """Takes the calls of the round, whose end has come."""
        self.over = True
        message = self._fold.message
        for name, value in (self._end[0].get("usage") or {}).items() if len(self._end) > 1 else ():
            self._usage[name] = _summed(self._usage.get(name), value)
        calls = [block for block in message["content"] if block["type"] == TOOL_USE.name]
        if message.get("stop_reason") in _CALLING:
            self.searches = tuple(self._search(block) for block in calls if block["name"] == self._plan.name)
            self.calls_client = len(self.searches) < len(calls)

    def _search(self, block: Mapping[str, Any]) -> ModelSearch:
        self._shown += 1
        arguments = block["input"]
        query = arguments.get("query") if isinstance(arguments, Mapping) else None
        shown_id = f"srvtoolu_{self._answer_id}_{self._shown}"
        return ModelSearch(block["id"], shown_id, asked_query(query) if isinstance(query, str) else "")

    # -- searches

    def show_call(self, search: ModelSearch) -> list[Event]:
        """The block of a search that begins."""
        members, query = {"id": search.shown_id, "name": "web_search"}, {"query": search.query}
        self.shown.append({"type": SERVER_TOOL_USE.name, **members, "input": query})
        return self._whole(SERVER_TOOL_USE.start(**members), INPUT_DELTA.of(dump_json(query)))

    def show_result(self, search: ModelSearch, outcome: Outcome) -> list[Event]:
        """The block of its result."""
        self._made += not isinstance(outcome, SearchFailure)
        self._found |= urls_of([outcome])
        block = result_block(search.shown_id, outcome, carried=True)
        self.shown.append(block)
        return self._whole(block)

    def _whole(self, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Event]:
        index, self._next = self._next, self._next + 1
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *(block_delta(index, delta) for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    def grow(self, outcomes: Mapping[str, Outcome]) -> None:
        """Adds the round to the conversation. `outcomes`: the client's id of a search -> what it found."""
        results = [
            {
                "type": "tool_result",
                "tool_use_id": search.call_id,
                "content": in_words(outcome := outcomes[search.shown_id]),
                **({"is_error": True} if isinstance(outcome, SearchFailure) else {}),
            }
            for search in self.searches
        ]
        turn = [{"role": "assistant", "content": self._fold.message["content"]}, {"role": "user", "content": results}]
        choice = after_search(self._request.get("tool_choice"))
        self._request = {**self._request, "messages": [*self._request["messages"], *turn]}
        if choice is not None:
            self._request["tool_choice"] = choice

    def end(self) -> list[Event]:
        """The end of the message, with the tokens and searches of all rounds."""
        delta, stop = self._end if len(self._end) > 1 else ({}, self._end[0])
        usage = {**self._usage}
        if self._made:
            usage["server_tool_use"] = search_usage(self._made)
        return [{**delta, "usage": usage}, stop] if delta else [stop]


def _summed(known: Any, value: Any) -> Any:
    """The sum of two counts, or of the counts in two objects; the later of any other values.

    >>> _summed({"thinking_tokens": 1}, {"thinking_tokens": 2}), _summed(None, 3)
    ({'thinking_tokens': 3}, 3)
    """
    if isinstance(value, Mapping):
        before = known if isinstance(known, Mapping) else {}
        return {**before, **{name: _summed(before.get(name), one) for name, one in value.items()}}
    if type(known) is int and type(value) is int:
        return known + value
    return value
