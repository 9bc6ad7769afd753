"""Finds the links to found pages in the text of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Longest text that is read, most addresses in it that may be links, and most links.
MAX_CITED_TEXT, MAX_SEEN, MAX_LINKS = 1024 * 1024, 2_000, 100

_BEGIN = re.compile(r"https?://", re.IGNORECASE)
#: What would continue an address.
_PART = r"[\w/%#&=+~@(-]"
_MORE = re.compile(rf"{_PART}|[.,:;?!*$']+{_PART}")
#: The text of a Markdown link, up to its address. It may have brackets.
_LINK_TEXT = re.compile(r"\[(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,300}\]\(<?\Z")
_MAX_LINK_TEXT = 310
#: The rest of a Markdown link after its address: it may have a title.
_LINK_END = re.compile(r""">?(?:[ \t]+(?:"[^"\n]{0,300}"|'[^'\n]{0,300}'))?\)""")


def citations(text: str, found: Mapping[str, str]) -> list[dict[str, Any]]:
    """A citation for each link to a found page, with the place of the whole link, in characters.

    >>> [one] = citations("See [A](https://a.example/x).", {"https://a.example/x": "A page"})
    >>> one["start_index"], one["end_index"], one["cited_text"]
    (4, 28, '[A](https://a.example/x)')
    """
    links: list[tuple[int, int, str]] = []
    for start, url in _addresses(text, found):
        start, end = _link_around(text, start, start + len(url))
        if links and start < links[-1][1]:  # the address was the text of this link
            links.pop()
        elif len(links) >= MAX_LINKS:
            break
        links.append((start, end, url))
    return [_citation(text, start, end, url, found[url]) for start, end, url in links]


def _addresses(text: str, found: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The places of found addresses, each of them whole."""
    shortest = min(map(len, found), default=0)
    heads: dict[str, list[str]] = {}  # a text has many addresses that were not found
    for url in sorted(found, key=len, reverse=True):
        heads.setdefault(url[:shortest], []).append(url)
    seen = 0
    for match in _BEGIN.finditer(text, 0, MAX_CITED_TEXT):
        start = match.start()
        longest_first = heads.get(text[start : start + shortest])
        if longest_first is None:
            continue
        seen += 1
        if seen > MAX_SEEN:
            return
        found_url = next((url for url in longest_first if text.startswith(url, start)), None)
        if found_url is not None and not _MORE.match(text, start + len(found_url)):
            yield start, found_url


def _citation(text: str, start: int, end: int, url: str, title: str) -> dict[str, Any]:
    return {
        "type": "web_search_result_location",
        "url": url,
        "title": title,
        "cited_text": text[start:end],
        "start_index": start,
        "end_index": end,
    }


def _link_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The place of the Markdown link around an address, or of the address alone."""
    opened = None
    if text[max(0, start - 1) : start] in ("(", "<"):
        before = max(0, start - _MAX_LINK_TEXT)
        opened = _LINK_TEXT.search(text[before:start])
    closed = _LINK_END.match(text, end) if opened is not None else None
    if opened is None or closed is None or opened[0].endswith("<") != closed[0].startswith(">"):
        return start, end
    return before + opened.start(), closed.end()
