"""Events that are kept back until an answer is whole."""

from __future__ import annotations

from typing import Any

import pytest
from events import closed, delta, opened

from proxy.core.reducer import BadAnswer
from proxy.providers.upstream.attempts import HeldEvents

CITED: dict[str, Any] = {"type": "citations_delta", "citation": {"url": "u"}}


def kept(*batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    held = HeldEvents()
    for batch in batches:
        held.add(batch)
    return held.take()


def test_pieces_of_one_text_become_one() -> None:
    text = [opened(), delta("a"), delta("b"), {**delta(), "delta": CITED}, delta("c"), closed()]
    thinking = [delta("h", "thinking_delta", 1), delta("m", "thinking_delta", 1)]
    signed = [delta("s", "signature_delta", 1)] * 2
    assert kept([*text, opened("thinking", 1)], thinking, signed) == [
        *(opened(), delta("ab"), {**delta(), "delta": CITED}, delta("c"), closed(), opened("thinking", 1)),
        *(delta("hm", "thinking_delta", 1), *signed),
    ]
    assert kept([delta("a", index=0), delta("b", index=1)]) == [delta("a", index=0), delta("b", index=1)]
    assert kept([delta("{", "input_json_delta"), delta("}", "input_json_delta")]) == [delta("{}", "input_json_delta")]


def test_it_is_empty_before_and_after() -> None:
    held = HeldEvents()
    assert not held and held.take() == []
    held.add([delta("a")])
    assert held and held.take() == [delta("a")] and not held


def test_it_is_bounded() -> None:
    held = HeldEvents(max_chars=10)
    held.add([delta("x" * 10)])
    with pytest.raises(BadAnswer, match="passed 10 characters"):
        held.add([delta("x")])
    with pytest.raises(BadAnswer):
        HeldEvents(max_chars=10).add([{**delta(), "delta": {**CITED, "citation": {"url": "u" * 20}}}])
