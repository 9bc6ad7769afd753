"""Answers that are held once: how they are kept, bounded and checked."""

from __future__ import annotations

import base64
import itertools
import json
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import cut_places, json_values, pieces
from proxy.core.media.answers import (
    MAX_PARSED_BYTES,
    PIECE_BYTES,
    HeldAnswer,
    check_images,
    images_usage,
    shortened,
    transcript_of,
)
from proxy.core.reducer import BadAnswer
from proxy.core.tokens.usage import usage_of

PICTURE = base64.b64encode(bytes(range(256)) * 40).decode()


def held(body: bytes, cuts: list[int] | None = None, *, limit: int = 10**9, shortens: bool = True) -> HeldAnswer:
    answer = HeldAnswer(limit, shortens=shortens)
    ends = [0, *sorted(cut % (len(body) + 1) for cut in cuts or ()), len(body)]
    for start, end in itertools.pairwise(ends):
        answer.add(body[start:end])
    return answer


def test_small_chunks_are_joined() -> None:
    answer = HeldAnswer(10**9, shortens=True)
    chunks = (b'{"a":', b'"' + b"A" * PIECE_BYTES, b'"', *([b" "] * 5 * PIECE_BYTES), b"}")
    for chunk in chunks:
        answer.add(chunk)
    assert answer.end().keys() == {"a"}
    assert b"".join(answer.body) == b"".join(chunks) and len(list(answer.body)) == 2


@pytest.mark.parametrize("shortens", [True, False])
def test_the_bound_of_an_answer(shortens: bool) -> None:
    body = json.dumps({"text": "A" * 200_000}).encode()
    assert held(body, limit=len(body), shortens=shortens).end()
    for cuts in ([], [1, 2, 3], [100_000]):
        with pytest.raises(BadAnswer, match="passed"):
            held(body, cuts, limit=len(body) - 1, shortens=shortens)


@pytest.mark.slow
def test_what_is_parsed_is_bounded_as_well() -> None:
    body = json.dumps({"data": [{"b64_json": "A" * 50 * MAX_PARSED_BYTES}]}).encode()
    assert held(body, [*range(0, len(body), PIECE_BYTES)]).end()["data"]
    with pytest.raises(BadAnswer, match="without its pictures"):
        held(b'{"a":"' + b"!" * MAX_PARSED_BYTES + b'"}')


#: How a writer of JSON may spell base64.
SPELLINGS: list[Any] = [
    lambda text: text,
    lambda text: text.replace("/", "\\/"),
    lambda text: text.replace("+", "\\u002B").replace("/", "\\u002F"),
    lambda text: text.replace("+", "-").replace("/", "_"),
    lambda text: "\\r\\n".join(textwrap.wrap(text, 76)),
    lambda text: "\\n".join(textwrap.wrap(text, 64)),
    lambda text: text.replace("+", "\\u002b").replace("/", "\\u002f").replace("=", "\\u003d"),
]


@given(
    st.sampled_from(SPELLINGS),
    st.text(st.sampled_from('\\"/+u02Bbn é=\n\r-_'), max_size=12),
    st.lists(st.integers(min_value=0), max_size=6),
)
def test_a_cut_anywhere_changes_nothing(spelt: Any, note: str, cuts: list[int]) -> None:
    """However the answer is cut into pieces and whatever stands beside the picture, its shape and counts stay."""
    usage = {"input_tokens": 3, "output_tokens": 4}
    rest = json.dumps({"note": note, "created": 1, "usage": usage})
    body = f'{{"data":[{{"b64_json":"{spelt(PICTURE)}"}}],{rest[1:]}'.encode()
    answer = HeldAnswer(10**9, shortens=True)
    ends = [0, *sorted(cut % len(body) for cut in cuts), len(body)]
    for start, end in itertools.pairwise(ends):
        answer.add(body[start:end])
        answer._flush()  # each piece by itself, as when it is large
    found = answer.end()
    check_images(found)
    assert images_usage(found) == usage_of(3, 4) and b"".join(answer.body) == body
    assert len(found["data"][0]["b64_json"]) <= 128 * (len(ends) + 1)


GOOD = '{"created":1,"data":[{"b64_json":"aW1n"}]}'


@rows(
    "body, check",
    [
        (GOOD, check_images),
        (GOOD.replace("aW1n", "aW\\u002Fn"), check_images),
        (f' \n{GOOD[:-1]},"usage":"x"}}\n', check_images),
        ('{"created":1,"data":[{"b64_json":"aW1n","url":null},{"b64_json":"x"}]}', check_images),
        ('{"text":"a \\"b\\"\\nc"}', transcript_of),
        ('{"text":"\\u00e9","segments":[],"language":"fr"}', transcript_of),
    ],
)
def test_what_is_an_answer(body: str, check: Any) -> None:
    answer = held(body.encode())
    check(answer.end())
    assert b"".join(answer.body) == body.encode()


@rows(
    "body, check",
    [
        *(
            (GOOD.replace(part, other), check_images)
            for part, other in (('"created":1,', ""), ("1", "NaN"), ("b64", "x"))
        ),
        ('{"created":1,"data":[{"b64_json":"aW1n"},{}]}', check_images),
        *((f'{{"created":1,"data":{data}}}', check_images) for data in ('{"b64_json":"aW1n"}', '["aW1n"]', "[]")),
        *((body, check_images) for body in (f"{GOOD}x", f"[{GOOD}]", GOOD[:-6], "[" * 100_000, "null")),
        *((f'{{"text":{text}}}', transcript_of) for text in ('"  "', '"\\u2003"', "null")),
        *((body, transcript_of) for body in ("{}", '["x"]', '"x"')),
    ],
)
def test_what_is_no_answer(body: str, check: Any) -> None:
    with pytest.raises(BadAnswer):
        check(held(body.encode()).end())


@rows(
    "usage",
    [None, "x", {}, {"input_tokens": 1}, {"input_tokens": True, "output_tokens": 1}, {"input_tokens": -1}, [1]],
)
def test_counts_that_are_none(usage: Any) -> None:
    assert images_usage({"usage": usage}) is None


@pytest.mark.parametrize(("text", "said"), [(" a\n", " a\n"), ("\ud83d\ude00", "😀"), ("a \ud83d b", "a \ufffd b")])
def test_a_transcript_can_be_written(text: str, said: str) -> None:
    assert transcript_of({"text": text}) == said


LONG = "QUJD" * 100

#: text -> what is left of it
TEXTS = [
    ("", ""),
    ("A" * 128, "A" * 128),
    ("A" * 64 + "BBB" + "C" * 64, "A" * 64 + "C" * 64),
    ('{"b64_json":"' + "A" * 200 + '=="}', '{"b64_json":"' + "A" * 126 + '=="}'),
    ("a b " * 100, "a b " * 100),
    ('{"b64_json":"' + "-_AA" * 100 + '"}', '{"b64_json":"' + "-_AA" * 32 + '"}'),
    ("1," + " \n" * 200 + "2", "1," + " \n" * 64 + "2"),
    (r"AAA\/" * 100, "AAA/" * 16 + "AAA/" * 16),
    ("-" + "1" * 200 + ".5", "-" + "1" * 127 + ".5"),
]


@rows("text, left", TEXTS)
def test_the_ends_of_a_run_are_left(text: str, left: str) -> None:
    assert shortened(text.encode()) == left.encode()


def shape(value: Any) -> Any:
    """A value without what its texts and numbers say."""
    if isinstance(value, dict):
        return [(bool(name), shape(member)) for name, member in value.items()]
    if isinstance(value, list):
        return [shape(member) for member in value]
    return bool(value) if isinstance(value, str) else type(value) if isinstance(value, int | float) else value


long_texts = st.lists(st.sampled_from([LONG, "/" * 50, "é", '"', "\\", "\n", " ", "u00"]), max_size=12).map("".join)
members = st.dictionaries(st.sampled_from(["a", LONG + "a", LONG + "b"]), json_values | long_texts | st.integers())


@given(st.lists(members, max_size=3), cut_places, st.booleans(), st.booleans())
def test_what_is_left_is_json_of_the_same_shape(body: Any, cuts: list[int], ascii_only: bool, slashes: bool) -> None:
    text = json.dumps([list(member.items()) for member in body], ensure_ascii=ascii_only)
    if slashes:
        text = text.replace("/", r"\/")
    left = b"".join(shortened(chunk) for chunk in pieces(text.encode(), cuts))
    assert shape(json.loads(left)) == shape(json.loads(text))


def test_what_is_left_of_a_picture_is_little() -> None:
    body = json.dumps({"data": [{"b64_json": LONG * 10_000}]}).encode()
    left = b"".join(shortened(body[start : start + 65_536]) for start in range(0, len(body), 65_536))
    assert len(left) < len(body) / 400
