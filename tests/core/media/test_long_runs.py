"""Base64 in answers, shortened."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import cut_places, json_values, pieces
from proxy.core.media.long_runs import shortened

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
