"""Links to found pages in the text of an answer."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.search.citations import MAX_CITED_TEXT, MAX_LINKS, citations

A, LONGER = "https://a.example/x", "https://a.example/x/y"
FOUND = {A: "Page A", LONGER: "Longer"}


@rows(
    "text, expected",
    [
        (f"See {A}.", [A]),
        (f"See {A}", [A]),
        (f"({A})", [A]),
        (f"[the page]({A}) says", [f"[the page]({A})"]),
        (f"[the page](<{A}>) says", [f"[the page](<{A}>)"]),
        (f"{LONGER} and {A}", [LONGER, A]),
        (f"[a [b]]({A})", [f"[a [b]]({A})"]),
        (f"[[1]]({A}) [A [b] c]({A})", [f"[[1]]({A})", f"[A [b] c]({A})"]),
        (f"[a]({A} \"title\") [a](<{A}> 'title')", [f'[a]({A} "title")', f"[a](<{A}> 'title')"]),
        (f'[a]({A} "title) [a](<{A}) f({A})', [A, A, A]),
        (f"{A}(y) {A}*y {A}'s", []),
        (f"**{A}** *[a]({A})* [来源]({A})是", [A, f"[a]({A})", f"[来源]({A})"]),
        (f"![{A}]({A})", [f"[{A}]({A})"]),
        (f"{A}z {A}-b {A}?q=1 {A}.html", []),
        (f"{A}... {A}?", [A, A]),
        ("https://elsewhere.example", []),
        (f"é😀 {A}", [A]),
    ],
)
def test_a_citation_covers_exactly_the_link(text: str, expected: list[str]) -> None:
    found = citations(text, FOUND)
    assert [text[one["start_index"] : one["end_index"]] for one in found] == expected
    assert all(one["title"] == FOUND[one["url"]] for one in found)


def test_there_are_so_many_and_no_more() -> None:
    assert len(citations(f"{A} " * 1000, FOUND)) == MAX_LINKS


@rows("piece", ["https://", f"{A}z ", f"[[[[]](({A}", f"[{A}]({A}) ", "[[]" * 100 + f"]({A}z"])
def test_a_long_text_is_read_at_once(piece: str) -> None:
    """The text may come from a page that a model repeats, and 200 addresses may have one beginning."""
    found = {f"https://a.example/{number}": "" for number in range(200)} | FOUND
    began = time.process_time()
    citations(piece * (MAX_CITED_TEXT // len(piece)), found)
    assert time.process_time() - began < 0.5


@given(st.text(st.sampled_from("[]()<>ahttps:/.xex é")), st.integers(0, 5))
def test_places_lie_on_the_text(text: str, place: int) -> None:
    whole = text[:place] + A + text[place:]
    ends = 0
    for one in citations(whole, FOUND):
        assert ends <= one["start_index"] < one["end_index"] <= len(whole)
        assert A in whole[one["start_index"] : one["end_index"]]
        ends = one["end_index"]
