"""Searches that the upstream makes itself, shown as pairs of blocks (the call and its links) or as a line of text: see
`AnswerRules.search`.

Some upstreams name the links only as citations of the text, but clients want them before it. So the place of the links
is held (see MessageStream), everything after it waits, and at the end all searches get them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.blocks import INPUT_DELTA, SERVER_TOOL_RESULT, SERVER_TOOL_USE, TEXT, TEXT_DELTA, X_SEARCH_RESULT
from proxy.core.convert.responses.places import FIRST_LOOSE
from proxy.core.messages import MAX_HELD_BYTES, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.sse import dump_json, load_json
from proxy.core.tools.calls import is_web_search
from proxy.core.tools.hosted import WEB_SEARCH
from proxy.core.tools.schema import output_format

WEB, X = WEB_SEARCH, "x_search"
#: Prefix of the upstream's own X tools: `x_keyword_search`, `x_user_search`, …
_X_TOOLS = "x_"
#: name of a search -> the word for it, and the type of its result
_KINDS = {WEB: ("web", SERVER_TOOL_RESULT), X: ("X", X_SEARCH_RESULT)}

#: Events that bring an item, and those that only a search causes.
_ITEM_EVENTS = frozenset({"response.output_item.added", "response.output_item.done"})
SEARCH_BEGAN = frozenset(
    f"response.{kind}.{step}" for kind in ("web_search_call", "x_search_call") for step in ("in_progress", "searching")
)

#: Longest input of all searches, in characters.
MAX_INPUT = 1024 * 1024
#: Maximum number of cited addresses that are listed, and of found ones if none is cited.
MAX_CITED, MAX_FOUND = 50, 10
#: Maximum number of found addresses that are looked for in the text.
MAX_SOUGHT = 100

Link = dict[str, str]


def search_of(item: Mapping[str, Any]) -> str | None:
    """The kind of search that an item is, else None. Calls of X tools look like those of a caller's custom tools, which
    these services do not have."""
    if item.get("type") == "web_search_call":
        return WEB
    name = item.get("name") or X
    is_x = item.get("type") == "custom_tool_call" and isinstance(name, str) and name.startswith(_X_TOOLS)
    return X if is_x else None


def reports_search(event: Mapping[str, Any]) -> bool:
    """Whether an event shows that the upstream searches.

    >>> reports_search({"type": "response.x_search_call.searching"}), reports_search({"type": "response.created"})
    (True, False)
    """
    kind, item = event.get("type"), event.get("item")
    if not isinstance(kind, str):
        return False
    if kind in _ITEM_EVENTS:
        return isinstance(item, Mapping) and search_of(item) is not None
    return kind in SEARCH_BEGAN


@dataclass(slots=True)
class _Search:
    """A finished search; `key` names the block that waits for its links, None once it has them."""

    name: str
    block_id: str
    key: object | None


class HostedSearches:
    """The searches of one answer."""

    def __init__(self, stream: MessageStream, policy: AnswerPolicy) -> None:
        self._stream = stream
        self._policy = policy
        self._form = _form(policy)
        self._done: dict[str, set[int]] = {}  # id of an item -> its places
        self._inputs: dict[int, list[str]] = {}  # inputs of X searches, by place
        self._input_size = 0
        self._searches: list[_Search] = []
        self._citations: dict[str, str] = {}  # url -> title
        self._found: dict[str, str] = {}
        self._lists = self._form == "text" and _declares_search(policy.request)
        self._text: list[str] = []  # kept only while its links matter
        self._text_size = 0

    def __len__(self) -> int:
        return len(self._searches)

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of searches of the web, and of X."""
        if not self._searches:
            return 0, 0
        x = sum(search.name == X for search in self._searches)
        return len(self._searches) - x, x

    @property
    def shows_at_once(self) -> bool:
        """Whether a search is shown as soon as it is done."""
        return self._form != "links"

    # -- searches

    def begin(self, place: int) -> None:
        """Handles the beginning of a call of an X tool."""
        self._inputs.setdefault(place, [])

    def add_input(self, place: int | None, delta: Any) -> None:
        """Adds a piece of an X call's input. Raises BadAnswer."""
        if place is None and self._policy.rules.exact:
            raise BadAnswer("the upstream sent the input of a call that it did not begin")
        pieces = self._inputs.get(place) if place is not None else None
        if pieces is not None and isinstance(delta, str):
            self._input_size += len(delta)
            if self._input_size > MAX_INPUT:
                raise BadAnswer(f"the input of a search passed {MAX_INPUT} bytes")
            pieces.append(delta)

    def whole_input(self, place: int | None, text: Any) -> None:
        """Takes the input in one piece if no delta brought any."""
        if place is not None and not self._inputs.get(place, True):
            self.add_input(place, text)

    def add(self, place: int, item: Mapping[str, Any], name: str) -> bool:
        """Adds a finished search. Returns False if it was already known."""
        known = item.get("id")
        if isinstance(known, str) and known:
            places = self._done.setdefault(known, set())
            again = place < FIRST_LOOSE and place in places
            if again or (places and not self.shows_at_once):
                return False
            places.add(place)
        number = place if place < FIRST_LOOSE else 0
        block_id = "srvtoolu_" + re.sub(r"[^A-Za-z0-9_]", "_", str(known or number))
        self._searches.append(_Search(name, self._policy.unique_id(block_id), None))
        if self._form == "text":
            self._show_line(self._query(place, item, name))
        else:
            self._show_blocks(self._query(place, item, name), item)
        for link in _sources(item)[: MAX_SOUGHT - len(self._found)] if self._lists else ():
            self._found[link["url"]] = link["title"]
        return True

    def _query(self, place: int, item: Mapping[str, Any], name: str) -> str:
        if name == X:
            return _x_query("".join(self._inputs.pop(place, [])) or item.get("input"))
        action = item.get("action")
        action = action if isinstance(action, Mapping) else {}
        return _exact_query(action, item) if self.shows_at_once else _query(action)

    def _show_line(self, query: str) -> None:
        search = self._searches[-1]
        label = f"{_KINDS[search.name][0]} search"
        words = ", ".join(line for line in map(str.strip, query.splitlines()) if line)
        key = ("search", len(self._searches))
        self._stream.open(key, TEXT.start())
        self._stream.delta(key, TEXT_DELTA.of(f"[{label}: {words}]\n" if words else f"[{label}]\n"))
        self._stream.close(key)

    def _show_blocks(self, query: str, item: Mapping[str, Any]) -> None:
        search, number = self._searches[-1], len(self._searches)
        call, search.key = ("search", number), ("links", number)
        self._stream.open(call, SERVER_TOOL_USE.start(id=search.block_id, name=search.name))
        self._stream.delta(call, INPUT_DELTA.of(dump_json({"query": query})))
        self._stream.close(call)
        self._stream.hold(search.key)
        links = _sources(item)
        if not links and self.shows_at_once and item.get("status") == "failed":
            self._fill(search, {"type": "web_search_tool_result_error", "error_code": "unavailable"})
        elif links or self.shows_at_once:
            self._give(search, links)

    # -- links

    def cite(self, annotation: Any) -> None:
        """Keeps an annotation of the answer's text if it is a citation."""
        if isinstance(annotation, Mapping) and annotation.get("type") == "url_citation":
            url, title = annotation.get("url"), annotation.get("title")
            if isinstance(url, str) and url:
                self._citations.setdefault(url, title if isinstance(title, str) and title else url)

    def read(self, text: str) -> None:
        """Keeps text of the answer, for the links that are written in it."""
        if self._lists or (self._searches and self._waits_for_links()):
            self._text_size += len(text)
            if self._text_size <= MAX_HELD_BYTES:
                self._text.append(text)

    def _waits_for_links(self) -> bool:
        return not self._citations and any(search.key is not None for search in self._searches)

    def fill(self) -> None:
        """Gives every waiting search its links, which releases what waited after it."""
        if not self._searches:
            return
        waiting = [search for search in self._searches if search.key is not None]
        if not waiting:
            return
        links = [{"title": title, "url": url} for url, title in self._citations.items()]
        links = links or links_in_text("".join(self._text))
        for search in waiting:
            self._give(search, links)

    def _give(self, search: _Search, links: list[Link]) -> None:
        """Fills a search with links. Two members of the Messages schema are unknown and stay empty."""
        members = {"encrypted_content": "", "page_age": None}
        self._fill(search, [{"type": "web_search_result", **link, **members} for link in links])

    def _fill(self, search: _Search, content: Any) -> None:
        result = _KINDS[search.name][1].start(tool_use_id=search.block_id, content=content)
        self._stream.fill(search.key, result)
        search.key = None

    def list_sources(self) -> None:
        """Adds a last text with the sources that the answer does not show itself, for clients that do not read
        citations; only if the caller declared a search tool."""
        if not self._lists or not (self._citations or self._found):
            return
        text = "".join(self._text)
        cited = list(self._citations.items())[:MAX_CITED]
        links = {url: title for url, title in cited if url not in text}
        if not cited and not any(url in text for url in self._found):
            links = dict(list(self._found.items())[:MAX_FOUND])
        listed = [(title, address) for url, title in links.items() if (address := _address(url))]
        if not listed:
            return
        lines = "".join(f"- [{_plain(title)}]({address})\n" for title, address in listed)
        self._stream.open("sources", TEXT.start())
        self._stream.delta("sources", TEXT_DELTA.of(f"Sources:\n{lines}"))
        self._stream.close("sources")


def _form(policy: AnswerPolicy) -> str:
    """The form of searches. An answer that must be JSON cannot have other text next to it."""
    form = policy.rules.search
    return "blocks" if form == "text" and output_format(policy.request) is not None else form


def _declares_search(request: Mapping[str, Any]) -> bool:
    tools = request.get("tools")
    return isinstance(tools, list) and any(map(is_web_search, tools))


def _plain(title: str) -> str:
    """The title as it can be used in a Markdown link."""
    return " ".join(title.replace("[", "(").replace("]", ")").split())


def _address(url: str) -> str:
    """The address as it can be used in a Markdown link; "" if it is not on the web.

    >>> _address("https://a.example/x_(y)"), _address("javascript:alert(1)"), _address("https://a.example/ x")
    ('https://a.example/x_%28y%29', '', '')
    """
    if not url.lower().startswith(("https://", "http://")) or not url.isprintable() or set(url) & set(" <>[]\\`"):
        return ""
    return url.replace("(", "%28").replace(")", "%29")


def _exact_query(action: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """The query of a search, with all of several queries; "" for opening a page."""
    queries = action.get("queries")
    lines = "\n".join(query for query in queries if isinstance(query, str)) if isinstance(queries, list) else ""
    for value in (action.get("query"), lines, item.get("query")):
        if isinstance(value, str) and value:
            return value
    return ""


def _x_query(text: Any) -> str:
    try:
        value = load_json(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return ""
    query = value.get("query") if isinstance(value, Mapping) else None
    return query if isinstance(query, str) else ""


def _sources(item: Mapping[str, Any]) -> list[Link]:
    """The addresses that a search found, each once, as far as the upstream names them."""
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, Mapping) else None
    links: dict[str, str] = {}
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, Mapping) and isinstance(url := source.get("url"), str):
            links.setdefault(url, str(source.get("title") or url))
    return [{"title": title, "url": url} for url, title in links.items()]


def _query(action: Mapping[str, Any]) -> str:
    """The query of a search, the url of an opened page, or the pattern looked for in a page."""
    queries = action.get("queries")
    first = queries[0] if isinstance(queries, list) and queries else None
    for value in (action.get("query"), first, action.get("url"), action.get("pattern")):
        if isinstance(value, str) and value:
            return value
    return ""


_MARKDOWN_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\((https?://[^\s)]{1,2000})\)")
_BARE_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]{1,2000}")
_URL_TAIL = ".,;:!?"


def links_in_text(text: str) -> list[Link]:
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
