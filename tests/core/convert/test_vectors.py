"""The vectors on disk: whole translations, both directions. The case list is the folder."""

from __future__ import annotations

import json
import random

import pytest
from checks import check_message_stream

from core.vector_cases import (
    ANSWERS,
    REQUESTS,
    answer_cases,
    answer_result,
    events_of,
    lines,
    read,
    reply_of,
    request_cases,
    request_result,
    stale,
    translated,
)
from proxy.core.sse import encode_json


@pytest.mark.parametrize("case", request_cases())
def test_request(case: str) -> None:
    assert request_result(case) == read(REQUESTS / f"{case}.expected.json")


@pytest.mark.parametrize("case", request_cases())
def test_a_request_is_translated_again_to_the_same_bytes(case: str) -> None:
    """A retry translates again, and prompt caches live on equal bytes."""
    vector = read(REQUESTS / f"{case}.json")
    if "error" in request_result(case):
        return
    before = json.dumps(vector)
    assert json.dumps(translated(vector)) == json.dumps(translated(vector))
    assert json.dumps(vector) == before


@pytest.mark.parametrize("case", answer_cases())
def test_answer(case: str) -> None:
    result = answer_result(case)
    assert lines(result) == (ANSWERS / f"{case}.jsonl").read_text("utf-8")
    check_message_stream(events_of(result), cut="outcome" in (result or [{}])[-1])
    expected = ANSWERS / f"{case}.reply.json"
    reply = json.loads(encode_json(reply_of(result)))
    assert reply == (read(expected) if expected.exists() else None)


@pytest.mark.parametrize("case", answer_cases())
def test_answer_byte_by_byte(case: str) -> None:
    raw = (ANSWERS / f"{case}.sse").read_bytes()
    assert answer_result(case, (raw[at : at + 1] for at in range(len(raw)))) == answer_result(case)


@pytest.mark.parametrize("case", answer_cases())
def test_answer_in_random_pieces_and_with_other_line_ends(case: str) -> None:
    raw = (ANSWERS / f"{case}.sse").read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    expected = answer_result(case, [raw])
    chance = random.Random(case)
    for line_end in (b"\n", b"\r\n", b"\r"):
        text = raw.replace(b"\n", line_end)
        for _ in range(3):
            cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(1, 12)))
            pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            assert answer_result(case, pieces) == expected


def test_no_expected_file_is_left_over() -> None:
    assert stale() == []
