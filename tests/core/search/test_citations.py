"""Links to found pages in the text of an answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.search.citations import MAX_LINKS, citations

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
        (f"[a [b]]({A})", [A]),
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


@given(st.text(st.sampled_from("[]()<>ahttps:/.xex é")), st.integers(0, 5))
def test_places_lie_on_the_text(text: str, place: int) -> None:
    whole = text[:place] + A + text[place:]
    ends = 0
    for one in citations(whole, FOUND):
        assert ends <= one["start_index"] < one["end_index"] <= len(whole)
        assert A in whole[one["start_index"] : one["end_index"]]
        ends = one["end_index"]
