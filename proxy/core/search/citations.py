"""Finds the links to found pages in the text of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Longest text that is read, and most links that are found in it.
MAX_CITED_TEXT, MAX_LINKS = 1024 * 1024, 100

_BEGIN = re.compile(r"https?://", re.IGNORECASE)
#: What would continue an address.
_MORE = re.compile(r"[\w/%#&=+~@-]|[.,:;?!]+[\w/%#&=+~@-]")
#: The text of a Markdown link, up to its address.
_LINK_TEXT = re.compile(r"\[[^\[\]\n]{1,300}\]\(<?\Z")
_MAX_LINK_TEXT = 310


def citations(text: str, found: Mapping[str, str]) -> list[dict[str, Any]]:
    """A citation for each link to a found page, with the place of the whole link, in characters.

    >>> [one] = citations("See [A](https://a.example/x).", {"https://a.example/x": "A page"})
    >>> one["start_index"], one["end_index"], one["cited_text"]
    (4, 28, '[A](https://a.example/x)')
    """
    longest_first = sorted(found, key=len, reverse=True)
    links: list[tuple[int, int, str]] = []
    for match in _BEGIN.finditer(text, 0, MAX_CITED_TEXT):
        start = match.start()
        url = next((url for url in longest_first if text.startswith(url, start)), None)
        if url is None or _MORE.match(text, start + len(url)):
            continue
        start, end = _link_around(text, start, start + len(url))
        if links and start < links[-1][1]:  # the address was the text of this link
            links.pop()
        elif len(links) >= MAX_LINKS:
            break
        links.append((start, end, url))
    return [_citation(text, start, end, url, found[url]) for start, end, url in links]


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
    before = max(0, start - _MAX_LINK_TEXT)
    opened = _LINK_TEXT.search(text[before:start])
    if opened is None:
        return start, end
    tail = ">)" if opened[0].endswith("<") else ")"
    return (before + opened.start(), end + len(tail)) if text.startswith(tail, end) else (start, end)
