"""The faults of searches that the service itself runs, and of their citations."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from proxy.sandbox.model.reply import Search
from proxy.sandbox.model.web_index import find_pages
from proxy.sandbox.p3.answer import GrokAnswer
from proxy.sandbox.play.actions import Action
from proxy.sandbox.play.stream_faults import Fault, insert, without
from proxy.sandbox.wires.answer import Block
from proxy.sandbox.wires.responses.answer import TEXT_DELTA

_ANNOTATION = "response.output_text.annotation.added"


def tool_thought(answer: GrokAnswer) -> Block:
    item_id = answer.writer.ids.new("tco")
    return {"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": answer.writer.encrypt(item_id, "")}


def _searched(answer: GrokAnswer, count: int = 1, *, on_x: bool = False) -> list[Block]:
    """The searches of the answer, put in front of its output until there are as many."""
    pages = tuple(find_pages("sandbox"))
    missing = count - len(answer.searched)
    new = [answer.new_block(Search(f"sandbox {number}", pages, on_x)) for number in range(1, missing + 1)]
    answer.blocks = [*new, *answer.blocks]
    return answer.searched


def _action(answer: GrokAnswer, action: dict[str, Any] | None, **members: Any) -> list[Action]:
    """The searches are of this action, or say this of themselves."""
    for search in _searched(answer):
        if action is not None:
            search["action"] = action
        search.update(members)
    return answer.stream()


def _parallel_searches(answer: GrokAnswer, count: int = 3, on_x: bool = False) -> list[Action]:
    """Searches that run at the same time, an empty thought in front of each."""
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
    """They come before the first word ("early"), when the text is closed ("late"), or in the item alone ("item")."""
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
    told = [one for one in actions if isinstance(one, dict) and one["type"] == _ANNOTATION]
    kept = without(actions, lambda event: event["type"] == _ANNOTATION)
    place = next((at for at, one in enumerate(kept) if _is(one, _PLACES.get(where, ""))), None)
    return kept if place is None else [*kept[:place], *told, *kept[place:]]


#: Where citations may come -> the event that they come before.
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
