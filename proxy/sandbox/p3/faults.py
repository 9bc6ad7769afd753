"""Faults that only this service's streams have: other frames, other forms of thoughts, calls, searches and
citations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, zip_longest
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.model.reply import Search
from proxy.sandbox.model.web_index import find_pages
from proxy.sandbox.p3.answer import GrokAnswer
from proxy.sandbox.play.actions import BARE, Action, Raw, silence
from proxy.sandbox.play.stream_faults import Fault, between, break_off, edited, insert, stream_bytes, without
from proxy.sandbox.wires.answer import Block, Event
from proxy.sandbox.wires.responses.answer import ARGUMENTS_DELTA, TEXT_DELTA
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS

_ANNOTATION = "response.output_text.annotation.added"


def tool_thought(answer: GrokAnswer) -> Block:
    item_id = answer.writer.ids.new("tco")
    return {"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": answer.writer.encrypt(item_id, "")}


def _searched(answer: GrokAnswer, count: int = 1, *, on_x: bool = False) -> list[Block]:
    """The answer's searches, with more put in front of its output until there are `count`."""
    pages = tuple(find_pages("sandbox"))
    missing = count - len(answer.searched)
    new = [answer.new_block(Search(f"sandbox {number}", pages, on_x)) for number in range(1, missing + 1)]
    answer.blocks = [*new, *answer.blocks]
    return answer.searched


def _action(answer: GrokAnswer, action: dict[str, Any] | None, **members: Any) -> list[Action]:
    """Gives the searches this action, or these members."""
    for search in _searched(answer):
        if action is not None:
            search["action"] = action
        search.update(members)
    return answer.stream()


def _parallel_searches(answer: GrokAnswer, count: int = 3, on_x: bool = False) -> list[Action]:
    """Searches that run at the same time, with an empty thought before each."""
    found = _searched(answer, count, on_x=on_x)
    pairs = [(tool_thought(answer), search) for search in found]
    answer.blocks = [*(one for pair in pairs for one in pair), *(one for one in answer.blocks if one not in found)]
    together = range(2 * len(found))
    turns = zip_longest(*(answer.events_of(place) for place in together))
    rest = (answer.events_of(place) for place in range(len(together), len(answer.blocks)))
    return [
        *answer.beginning(),
        *(event for turn in turns for event in turn if event is not None),
        *(event for events in rest for event in events),
        *answer.end(),
    ]


def _post_events(answer: GrokAnswer) -> list[Action]:
    """Events of a search of posts that the vendor's client does not know."""
    kinds = ("in_progress", "searching", "completed")
    _searched(answer, on_x=True)
    return insert(answer, "created", *({"type": f"response.x_search_call.{kind}", "item_id": "x"} for kind in kinds))


def _citations(answer: GrokAnswer, where: str = "early") -> list[Action]:
    """Citations before the first word ("early"), when the text is closed ("late"), or in the item alone ("item")."""
    cited = {
        "type": "url_citation",
        "url": "https://docs.example.org/a",
        "title": "1",
        "start_index": 0,
        "end_index": 4,
    }
    for part in (part for block in answer.blocks for part in block.get("content", ())):
        part["annotations"] = [cited]
    actions = answer.stream()
    notes = [one for one in actions if isinstance(one, dict) and one["type"] == _ANNOTATION]
    kept = without(actions, lambda event: event["type"] == _ANNOTATION)
    place = next((at for at, one in enumerate(kept) if _is(one, _PLACES.get(where, ""))), None)
    return kept if place is None else [*kept[:place], *notes, *kept[place:]]


#: Place of citations -> the event that they come before.
_PLACES = {"early": TEXT_DELTA, "late": "response.content_part.done"}


def _is(action: Action, kind: str) -> bool:
    return isinstance(action, dict) and action["type"] == kind


SEARCH_FAULTS: dict[str, Fault] = {
    "search": lambda answer, on_x=False: (_searched(answer, on_x=on_x), answer.stream())[1],
    "open_page": lambda answer, url="https://docs.example.org/a": _action(answer, {"type": "open_page", "url": url}),
    "queries": lambda answer: _action(answer, {"type": "search", "queries": ["one", "two"], "sources": []}),
    "search_failed": lambda answer: _action(answer, None, status="failed"),
    "parallel_searches": _parallel_searches,
    "x_search_events": _post_events,
    "citations": _citations,
}


_DONE = "response.output_item.done"
_ARGUMENTS_DONE = "response.function_call_arguments.done"

#: Frames without content: comments, frames without data, and with empty data.
_SILENT = (b": keepalive\n\n", b"id: 42\n\n", b"event: ping\n\n", b"retry: 5\n\n")
_BLANK = (b"data:\n\n", b"data\n\n")

Edit = Callable[[Event], object]


def _raw(answer: GrokAnswer, change: Callable[[bytes], bytes]) -> list[Action]:
    """The stream and its tail in one write, its bytes changed."""
    return [Raw(change(stream_bytes(answer)))]


def _data_only(answer: GrokAnswer) -> list[Action]:
    """Events without names."""
    actions = answer.stream()
    answer.finished(actions)  # numbers them
    return [Raw(BARE.encode([one for one in actions if isinstance(one, dict)]) + answer.tail)]


def _mixed_ends(data: bytes) -> bytes:
    """Lines with each of the three endings."""
    ends = cycle((b"\r\n", b"\n", b"\r"))
    return b"".join(line + next(ends) * 2 for line in data.split(b"\n\n") if line)


def _silent_frames(answer: GrokAnswer, blank: bool = False) -> list[Action]:
    """`blank`: some have data without a character, which the vendor's own client does not tolerate."""
    frames = (*_SILENT, *(_BLANK if blank else ()))
    return between(answer, lambda place: Raw(frames[place % len(frames)]))


def _held_open(answer: GrokAnswer, seconds: float | None = None, done: bool = True) -> list[Action]:
    """Keeps the connection open after the end; None: for ever."""
    tail: tuple[Action, ...] = (Raw(answer.tail),) if done else ()
    return [*answer.stream(), *tail, silence(seconds)]


def _minimal(answer: GrokAnswer) -> list[Action]:
    """Deltas of text, and an end that does not repeat them."""
    kept = [one for one in answer.stream() if isinstance(one, dict) and one["type"] == TEXT_DELTA]
    return [*kept, answer.terminal("completed", output=[])]


def _thoughts_as_text(answer: GrokAnswer) -> list[Action]:
    """Sends thoughts as `reasoning_text` instead of summaries."""

    def edit(event: Event) -> None:
        kind = event["type"]
        if kind.startswith("response.reasoning_summary_text"):
            event["type"] = kind.replace("reasoning_summary_text", "reasoning_text")
            event["content_index"] = event.pop("summary_index")
        elif event.get("item", {}).get("type") == "reasoning":
            event["item"] = _with_content(event["item"])

    answer.add_thought()
    kept = without(answer.stream(), lambda event: event["type"].startswith("response.reasoning_summary_part"))
    return edited(kept, edit)


def _with_content(item: Block) -> Block:
    parts = [{"type": "reasoning_text", "text": part["text"]} for part in item["summary"]]
    return {**item, "summary": [], "content": parts}


def _thoughts_only(answer: GrokAnswer) -> list[Action]:
    answer.clear(message=False)
    answer.add_thought()
    return answer.stream()


def _empty_thoughts(answer: GrokAnswer) -> list[Action]:
    """Puts a thought with only encrypted content before each item."""
    answer.blocks = [one for block in answer.blocks for one in (tool_thought(answer), block)]
    return answer.stream()


def _calls(answer: GrokAnswer, edit: Edit, *less: str) -> list[Action]:
    """The stream of an answer with a call, without its events of these types, and with the others edited."""
    answer.add_calls()
    return edited(without(answer.stream(), lambda event: event["type"] in less), edit)


def _named_by_call(answer: GrokAnswer) -> list[Action]:
    """Arguments name a `call_id` instead of an item."""
    answer.add_calls()
    ids = {call["id"]: call["call_id"] for call in answer.calls}

    def edit(event: Event) -> None:
        if event.get("item_id") in ids:
            event["call_id"] = ids[event.pop("item_id")]
            event.pop("output_index")

    return edited(answer.stream(), edit)


def _at_once(answer: GrokAnswer) -> list[Action]:
    """All arguments in one delta, and no repetition."""
    answer.add_calls()
    whole = {call["id"]: call["arguments"] for call in answer.calls}

    def edit(event: Event) -> None:
        if event["type"] == _ARGUMENTS_DONE:
            event["type"], event["delta"] = ARGUMENTS_DELTA, whole[event["item_id"]]
            event.pop("arguments")

    return _calls(answer, edit, ARGUMENTS_DELTA)


def _not_done(answer: GrokAnswer) -> list[Action]:
    """A call begins and gets all of its arguments, but is never reported as finished."""
    answer.add_calls()
    ids = {call["id"] for call in answer.calls}
    kept = without(
        answer.stream(),
        lambda event: event["type"] == _ARGUMENTS_DONE or (event["type"] == _DONE and event["item"]["id"] in ids),
    )
    return [*kept[:-1], answer.terminal("completed", output=[])]


def _mismatch(answer: GrokAnswer) -> list[Action]:
    """The repeated whole of the arguments differs from the pieces."""

    def edit(event: Event) -> None:
        if event["type"] == _ARGUMENTS_DONE:
            event["arguments"] = '{"command":"something else"}'

    return _calls(answer, edit)


def _late_text_done(answer: GrokAnswer) -> list[Action]:
    """The end of a text comes after a call has begun."""
    answer.add_calls()
    actions = answer.stream()
    late = [one for one in actions if isinstance(one, dict) and one["type"] == "response.output_text.done"]
    kept = without(actions, lambda event: event["type"] == "response.output_text.done")
    place = next(at for at, one in enumerate(kept, 1) if isinstance(one, dict) and one["type"] == ARGUMENTS_DELTA)
    return [*kept[:place], *late, *kept[place:]]


# -- control events and errors


def _doom_loop(answer: GrokAnswer, after: str = "thinking") -> list[Action]:
    """Reports that the model is caught in a loop, and goes on."""
    triggers = {"triggers": ["tail_repetition:4@thinking"]}
    return insert(answer, after, {"type": "response.doom_loop_check", "doom_loop_check": triggers})


def _untyped_error(
    answer: GrokAnswer, message: str = "boom", code: str = "internal", after: str = "nothing"
) -> list[Action]:
    """An error body as the data of a frame, which is not an event."""
    body = dump_json({"error": {"message": message, "code": code}})
    return break_off(answer, after, Raw(f"data: {body}\n\n".encode()))


def _failed_later(answer: GrokAnswer, code: str, after: str, **members: Any) -> list[Action]:
    """A failure that says when to come again, or which status it would have been."""
    event = {"type": "error", "code": code, "message": "Please slow down.", "param": None}
    return break_off(answer, after, {**event, **{name: value for name, value in members.items() if value is not None}})


GROK_FAULTS: dict[str, Fault] = {
    **RESPONSES_FAULTS,
    "data_only": _data_only,
    "mixed_ends": lambda answer: _raw(answer, _mixed_ends),
    "byte_order_mark": lambda answer: _raw(answer, lambda data: b"\xef\xbb\xbf" + data),
    "silent_frames": _silent_frames,
    # the last frame lacks its blank line
    "unfinished_end": lambda answer: _raw(answer, lambda data: data.removesuffix(answer.tail).rstrip(b"\n")),
    "no_done": lambda answer: _held_open(answer, 0.0, done=False),
    "held_open": _held_open,
    "done_instead": lambda answer: [*answer.stream()[:-1], Raw(b"data: [DONE]\n\n")],
    # raw frames are not numbered
    "no_numbers": lambda answer: [Raw(BARE.encode([one])) if isinstance(one, dict) else one for one in answer.stream()],
    "minimal": _minimal,
    # everything is in the last event
    "terminal_only": lambda answer: [answer.terminal("completed")],
    "thoughts_as_text": _thoughts_as_text,
    "thoughts_only": _thoughts_only,
    "empty_thoughts": _empty_thoughts,
    "named_by_call": _named_by_call,
    "arguments_at_once": _at_once,
    "call_not_done": _not_done,
    "arguments_mismatch": _mismatch,
    "late_text_done": _late_text_done,
    **SEARCH_FAULTS,
    "doom_loop": _doom_loop,
    "untyped_error": _untyped_error,
    "slow_down": lambda answer, after="nothing", code="rate_limit_exceeded", retry_after=2, status=None: _failed_later(
        answer, code, after, retry_after=retry_after, status=status
    ),
}
