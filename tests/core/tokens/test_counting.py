"""Counting tokens, with the shipped vocabulary."""

from __future__ import annotations

import pytest
from samples import rows

from core.vector_cases import real_length
from proxy.core.tokens.counting import MAX_PIECE, count_responses, encrypted_tokens, pieces, rough_length


@rows(
    "text, expected",
    [
        ("a" * 4096, 512),
        ("汉字测试上下文压缩" * 384, 2688),
        ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 112, 2240),
        ("function f(a){return a===0?1:a*f(a-1)};" * 96, 1632),
        ("gpt-5.5", 6),
        ("gpt-5.6-sol", 7),
        ("gpt-5.6-luna", 8),
        ("gpt-5.6-terra", 8),
        ("<|endoftext|>", 7),
        ("", 0),
    ],
)
def test_known_counts(text: str, expected: int) -> None:
    assert real_length()(text) == expected


@pytest.mark.parametrize("text", [" " * 1_100_000, "\t" * 1_100_000, "\ud800x"])
def test_texts_that_break_an_encoder_are_counted(text: str) -> None:
    assert real_length()(text) > 0


@rows("size, expected", [(4000, 588), (5, 0), (0, 0), (867, 0), (868, 1)])
def test_encrypted_reasoning(size: int, expected: int) -> None:
    assert encrypted_tokens("x" * size) == expected


def test_pieces_are_the_text() -> None:
    text = "é" * (2 * MAX_PIECE + 1)
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text))) == MAX_PIECE
    assert list(pieces("")) == []


def test_the_rough_estimate_is_never_negative_or_zero_for_text() -> None:
    assert rough_length("") == 0
    assert rough_length("a") == 1
    assert rough_length("汉" * 100) == 86
    assert rough_length("\ud800") == 1


def test_every_kind_of_item_has_its_price() -> None:
    def price(*items: dict[str, object], **body: object) -> int:
        return count_responses({"model": "", "input": list(items), **body}, len)

    text, image = {"type": "input_text", "text": "four"}, {"type": "input_image", "image_url": "data:…"}
    assert price() == 1
    assert price({"type": "message", "content": [text, image]}) == 4 + 4 + 2000
    assert price({"type": "function_call", "name": "ab", "arguments": "{}"}) == 4 + 4
    assert price({"type": "function_call_output", "output": "four"}) == 4 + 4
    assert price({"type": "function_call_output", "output": [text, image]}) == 4 + 4 + 2000
    assert price({"type": "reasoning", "encrypted_content": "x" * 4000}) == 588 + 4
    assert price({"type": "additional_tools", "tools": [{"b": 1, "a": 2}]}) == len('{"a":2,"b":1}') + 4
    assert price({"type": "compaction_trigger"}) == 4
    assert price(tools=[{"type": "web_search"}]) == 14
    assert price(tools=[{"type": "function", "name": "ab", "description": "cd", "parameters": {}}]) == 2 + 2 + 2 + 4
    assert price(instructions="four") == 4
