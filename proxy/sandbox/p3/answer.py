"""The answer in this service's form: searches with sources, links in the text, usage of several inner turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.model.reply import Say, Search
from proxy.sandbox.p3.catalog import encrypt_for
from proxy.sandbox.play.actions import Action, Pause
from proxy.sandbox.wires.answer import Block, Event
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.items import Writer, item_events

DONE = b"data: [DONE]\n\n"

#: Costs of a token and a search, in the service's own unit.
_TICKS_PER_TOKEN = 20_000
_SEARCHES = ("web_search_call", "custom_tool_call")


class GrokWriter(Writer):
    """The items of one answer."""

    def encrypt(self, item_id: str, nonce: str) -> str:
        return encrypt_for(self.account_id, item_id, nonce)

    def search(self, part: Search) -> Block:
        """A `web_search_call`, always with an action; a search of posts is shown as a call of the service's own
        tool."""
        if part.on_x:
            return self._post_search(part)
        shown = "web_search_call.action.sources" in self.include
        sources = [{"type": "url", "url": page.url, "title": page.title} for page in part.pages if shown]
        action = {"type": "search", "query": part.query, "sources": sources}
        return {"id": self.ids.new("ws"), "type": "web_search_call", "status": "completed", "action": action}

    def _post_search(self, part: Search) -> Block:
        return {
            "id": self.ids.new("ctc"),
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": self.ids.new("xs_call"),
            "name": "x_keyword_search",
            "input": dump_json({"query": part.query, "limit": 10, "mode": "Latest"}),
        }

    def say(self, part: Say) -> Block:
        """Text in which each named page is linked, and cited with the place of that link."""
        if "no_inline_citations" in self.include:
            return self.message(part.text, [self._citation(page.url, number, 0, 0) for number, page in _numbered(part)])
        text, annotations = part.text, []
        for number, page in _numbered(part):
            start = text.index(page.title) + len(page.title)
            link = f"[[{number}]]({page.url})"
            text = text[:start] + link + text[start:]
            annotations.append(self._citation(page.url, number, start, start + len(link)))
        return self.message(text, annotations)

    def _citation(self, url: str, number: int, start: int, end: int) -> dict[str, Any]:
        place = {"start_index": start, "end_index": end} if end else {}
        return {"type": "url_citation", "url": url, "title": str(number), **place}


def _numbered(part: Say) -> zip[tuple[int, Any]]:
    return zip(count(1), part.pages, strict=False)


@dataclass(kw_only=True)
class GrokAnswer(ResponsesAnswer):
    """An answer that keeps the connection open for `linger_s` after its end."""

    linger_s: float = 0.0

    def events_of(self, place: int) -> list[Event]:
        return item_events(self.blocks[place], place, early_action=True)

    def strange_event(self, number: int) -> Event:
        kinds = ("response.x_search_call.searching", "rate_limits.updated", "response.queued")
        return {"type": kinds[number % 3], "delta": "?", "output_index": 7}

    def finished(self, actions: Iterable[Action]) -> list[Action]:
        actions = list(actions)
        good = bool(actions) and self.is_terminal(actions[-1])
        done = super().finished(actions)
        return [*done, Pause(self.linger_s)] if good and self.linger_s else done

    @property
    def searched(self) -> list[Block]:
        """The searches among the blocks."""
        return [block for block in self.blocks if block["type"] in _SEARCHES]

    @property
    def usage(self) -> dict[str, Any]:
        """Each search is a turn of its own that reads the prompt again; `context_details` covers the last one alone."""
        usage = super().usage
        del usage["input_tokens_details"]["cache_write_tokens"]
        searches = len(self.searched)
        if searches:
            last = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}
            usage["input_tokens"] *= searches + 1
            usage["context_details"] = last
            usage["num_sources_used"] = sum(len(self._annotations(block)) for block in self.blocks)
            usage["num_server_side_tools_used"] = searches
            usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
        return {**usage, "cost_in_usd_ticks": usage["total_tokens"] * _TICKS_PER_TOKEN}

    def _annotations(self, block: Block) -> list[Any]:
        return [one for part in block.get("content", ()) for one in part.get("annotations", ())]
