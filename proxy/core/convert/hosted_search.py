"""Searches that the upstream makes itself, as the pairs of blocks that clients read: the call and its links.

Links are known only from the text that cites them, and clients want them before it. So the place of the links is held
(see MessageStream), everything behind waits, and at the end all searches get the citations of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.blocks import INPUT_DELTA, SERVER_TOOL_RESULT, SERVER_TOOL_USE
from proxy.core.messages import MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.sse import dump_json
from proxy.core.tools.calls import unique_id


@dataclass(slots=True)
class _Search:
    """A finished search; `key` names the block that waits for its links, None once it has them."""

    block_id: str
    key: object | None


class HostedSearches:
    """The searches of one answer."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._done: set[str] = set()
        self._searches: list[_Search] = []
        self._citations: dict[str, str] = {}  # url -> title
        self._text: list[str] = []  # kept only while a search has no citation

    @property
    def count(self) -> int:
        return len(self._searches)

    def add(self, index: int, item: Mapping[str, Any]) -> bool:
        """A finished `web_search_call` item; False when it was known already."""
        known = item.get("id")
        if isinstance(known, str) and known:
            if known in self._done:
                return False
            self._done.add(known)
        block_id = "srvtoolu_" + re.sub(r"[^A-Za-z0-9_]", "_", str(known or index))
        block_id = unique_id(block_id, self._policy.used_ids)
        action = item.get("action")
        action = action if isinstance(action, Mapping) else {}
        number = len(self._searches)
        call, result = ("search", number), ("links", number)
        self._stream.open(call, SERVER_TOOL_USE.start(id=block_id, name="web_search"))
        self._stream.delta(call, INPUT_DELTA.of(dump_json({"query": _query(action)})))
        self._stream.close(call)
        self._stream.hold(result)
        self._searches.append(_Search(block_id, result))
        links = _sources(action.get("sources"))
        if links:
            self._give(self._searches[-1], links)
        return True

    def cite(self, annotation: Any) -> None:
        """An annotation of the answer's text."""
        if isinstance(annotation, Mapping) and annotation.get("type") == "url_citation":
            url, title = annotation.get("url"), annotation.get("title")
            if isinstance(url, str) and url:
                self._citations.setdefault(url, title if isinstance(title, str) and title else url)

    def read(self, text: str) -> None:
        """Text of the answer: where nothing is cited, the links written in it have to do."""
        if self._searches and not self._citations and any(search.key is not None for search in self._searches):
            self._text.append(text)

    def fill(self) -> None:
        """Gives every search that waits its links, and lets out what waited behind it."""
        waiting = [search for search in self._searches if search.key is not None]
        if not waiting:
            return
        links = [{"title": title, "url": url} for url, title in self._citations.items()]
        links = links or links_in_text("".join(self._text))
        for search in waiting:
            self._give(search, links)

    def _give(self, search: _Search, links: list[dict[str, str]]) -> None:
        """The Messages schema wants two members of a link that nobody knows."""
        content = [{"type": "web_search_result", **link, "encrypted_content": "", "page_age": None} for link in links]
        self._stream.fill(search.key, SERVER_TOOL_RESULT.start(tool_use_id=search.block_id, content=content))
        search.key = None


def _sources(sources: Any) -> list[dict[str, str]]:
    return [
        {"title": str(source.get("title") or source["url"]), "url": source["url"]}
        for source in (sources if isinstance(sources, list) else ())
        if isinstance(source, Mapping) and isinstance(source.get("url"), str)
    ]


def _query(action: Mapping[str, Any]) -> str:
    """What was looked for: a search has a query, opening a page has a url, finding in it a pattern."""
    queries = action.get("queries")
    first = queries[0] if isinstance(queries, list) and queries else None
    for value in (action.get("query"), first, action.get("url"), action.get("pattern")):
        if isinstance(value, str) and value:
            return value
    return ""


_MARKDOWN_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\((https?://[^\s)]{1,2000})\)")
_BARE_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]{1,2000}")
_URL_TAIL = ".,;:!?"


def links_in_text(text: str) -> list[dict[str, str]]:
    """Links written in an answer: Markdown links first, then bare addresses, each address once.

    >>> links_in_text("See [Rust](https://r.example). Also https://b.example/x, too.")
    [{'title': 'Rust', 'url': 'https://r.example'}, {'title': 'b.example', 'url': 'https://b.example/x'}]
    """
    found: dict[str, str] = {}
    for title, url in _MARKDOWN_LINK.findall(text):
        found.setdefault(url.rstrip(_URL_TAIL), re.split(r" [-–] ", title.strip(" *`-"))[0].strip(" *`"))
    for url in _BARE_URL.findall(text):
        url = url.rstrip(_URL_TAIL)
        found.setdefault(url, url.split("/")[2] if url.count("/") >= 2 else url)
    return [{"title": title or url, "url": url} for url, title in found.items()]
