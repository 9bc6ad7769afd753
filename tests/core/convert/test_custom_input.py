"""The text of a custom tool's call, read out of its arguments while they come."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import cut_places
from proxy.core.convert.custom_input import CustomInput


def read(pieces: list[str], *, cut: bool = False) -> tuple[list[str], str]:
    """What is told on the way, and the whole."""
    text = CustomInput()
    told = [text.feed(piece) for piece in pieces]
    whole, rest = text.end("".join(pieces), cut=cut)
    return [*filter(None, told), *filter(None, [rest])], whole


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(st.text(), st.booleans(), cut_places)
def test_any_text_in_any_pieces(text: str, ascii_only: bool, cuts: list[int]) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    told, whole = read(in_pieces(arguments, cuts))
    assert ("".join(told), whole) == (text, text)


@given(st.text(), st.booleans(), cut_places, st.integers(0, 60))
def test_a_cut_text_is_its_beginning(text: str, ascii_only: bool, cuts: list[int], size: int) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)[:size]
    told, whole = read(in_pieces(arguments, cuts), cut=True)
    assert "".join(told) == whole and text.startswith(whole)


@rows(
    "arguments, text",
    [
        ("", ""),
        ("{}", ""),
        ("null", ""),
        ('"plain"', "plain"),
        ('["a"]', '["a"]'),
        ('{"patch": "the only text"}', "the only text"),
        ('{"patch": "a", "workdir": "b"}', '{"patch":"a","workdir":"b"}'),
        ('{"why": "w", "input": "it"}', "it"),
        ('{"input": "it", "why": "w"}', "it"),
        ('{"input": {"a": 1}}', '{"a":1}'),
        ('{"input": "a", "input": "b"}', "a"),
        ('{"input": "half \\ud83d and more than that"}', "half \ud83d and more than that"),
        (" " * 1000 + '{"input": "far"}', "far"),
    ],
)
def test_what_other_arguments_mean(arguments: str, text: str) -> None:
    for pieces in ([arguments], list(arguments)):
        told, whole = read(pieces)
        assert ("".join(told), whole) == (text, text)


def test_it_is_told_as_it_comes() -> None:
    assert read(['{"input":"', "a", "b\\", 'n"', "}"]) == (["a", "b", "\n"], "ab\n")
