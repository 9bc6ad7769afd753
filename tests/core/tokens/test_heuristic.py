"""The count for upstreams without a known vocabulary."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import requests
from proxy.core.tokens import heuristic
from proxy.core.tokens.heuristic import heuristic_count, heuristic_tokens

#: A request whose count is known.
SYSTEM = [{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "Be brief."}]
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "hello world"}, {"type": "image", "source": {}}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls -la"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "a b"}]},
]
TOOLS = [{"name": "Bash", "description": "Run a command.", "input_schema": {"type": "object"}}]


def test_the_document_example() -> None:
    request: dict[str, Any] = {"system": SYSTEM, "messages": MESSAGES, "tools": TOOLS}
    assert heuristic_count(request) == 2044
    assert heuristic_count({"messages": MESSAGES}) == 2044 - 3 - 14
    assert heuristic_count({"messages": MESSAGES[1:2]}) == 11 + 4
    assert heuristic_count({"tools": TOOLS}) == 1 + 4 + 9


@rows(
    "text, expected",
    [
        ("", 0),
        (" \n", 1),
        ("foo_bar-baz, qux!", 4),
        ('{"q":"rust"}', 9),
        ("x" * 20, 1),
        ("x" * 24, 1),
        ("x" * 25, 2),
        ("x" * 6_000, 1495),
        ("x" * 6_000 + " é", 1496),
        ("é" + "x" * 6_000, 1496),
        ("x" * 100 + " y " + "x" * 100, 41),
        ("0123456789 " * 100, 100),
        ("ab+/" * 250, 750),
        ("abcdefghij+" * 100, 270),
        ("。" + "abcdefghij+" * 100 + "é", 271),
        ("日本語のテキスト", 8),
        ("日本語、テキスト。", 9),
        ("naïve word", 2),
        ("für Übung", 2),
        ("a\u3000b", 2),
        ("名前_x y", 3),
        ("—", 1),
        ("a\x1cb", 3),
        ("é\x1cb", 3),
        ("😀", 1),
    ],
)
def test_words(text: str, expected: int) -> None:
    assert heuristic_tokens(text) == expected


def slowly(text: str) -> int:
    """The formula, run by run and character by character."""
    total = 0
    for run in re.split("[ \t\n\v\f\r]", text):
        own, inside = 0, False
        for char in run:
            part = char.isalnum() or char in "-_"
            own += not (part and inside)
            inside = part
        total += max(own, math.ceil((len(run) - 20) / 4))
    return max(1, total) if text else 0


@given(st.text(st.characters(max_codepoint=127)) | st.text("ab-_ \n.\x1c") | st.text("ab. ", min_size=60))
def test_ascii_is_counted_by_the_formula(text: str) -> None:
    assert heuristic_tokens(text) == slowly(text)
    assert heuristic_tokens(text + " é") == slowly(text) * bool(text.strip(" \t\n\v\f\r")) + 1


@given(requests)
def test_any_request_is_counted(request: dict[str, Any]) -> None:
    assert heuristic_count(request) >= 0


@pytest.mark.parametrize(
    "request_",
    [
        {"messages": [{"role": "x", "content": None}], "tools": "x", "system": 3},
        {"messages": [{"role": "x", "content": [3, {"type": []}, {"type": "text", "text": 3}]}], "tools": [3]},
    ],
)
def test_what_is_no_text_counts_nothing(request_: dict[str, Any]) -> None:
    assert heuristic_count(request_) == 4


@rows("text", ["word, " * 300_000, "x" * 2_000_000, "x" * 2_000_000 + "é", "日本語 テキスト" * 100_000])
def test_a_large_text_takes_no_time(text: str) -> None:
    start = time.process_time()
    heuristic_tokens(text)
    assert time.process_time() - start < 1


@given(st.lists(st.text(alphabet="abc-_.,äö日本\x1c\t9", max_size=30)), st.sampled_from(" \n"))
def test_a_long_text_that_is_cut_counts_the_same(words: list[str], blank: str) -> None:
    text = blank.join(words)
    whole = heuristic_tokens(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(heuristic, "MAX_PIECE", 80)
        assert heuristic_tokens(text) == whole
