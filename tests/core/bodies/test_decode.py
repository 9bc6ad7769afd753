"""A large body read in pieces is what it is when it is read at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.bodies import decode, in_pieces
from proxy.core.bodies.decode import MAX_VALUES, check_values, decode_body, decode_large_body
from proxy.core.invalid import InvalidRequest

texts = st.text(st.sampled_from('ab"\\/\n\u00e4\u2603\U0001f600\ud83d\ude00\x00,[]{}:u'), max_size=30)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=30,
)
bodies = st.dictionaries(texts, anything, max_size=5)


def outcome(decoded: Any, raw: bytes) -> Any:
    try:
        return repr(decoded(raw))
    except InvalidRequest as error:
        return error.message, error.code


@pytest.fixture
def small_pieces() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(in_pieces, "TRIES", (2, 9))
        patched.setattr(in_pieces, "STRING_PIECE", 5)
        patched.setattr(decode, "PIECE", 5)
        yield


@pytest.mark.usefixtures("small_pieces")
@given(bodies, st.booleans(), st.sampled_from([None, 1]), st.data())
def test_pieces_give_what_one_call_gives(body: Any, escaped: bool, indent: int | None, data: Any) -> None:
    raw = json.dumps(body, ensure_ascii=escaped, indent=indent).encode("utf-8", "surrogatepass")
    assert outcome(decode_large_body, raw) == outcome(decode_body, raw)
    place = data.draw(st.integers(0, len(raw)))
    other = data.draw(st.sampled_from([b"", b'"', b"]", b"}", b",", b"\\", b"\xff", b" ", b"x", b"\\ud800", b"-"]))
    broken = raw[:place] + other + raw[place + 1 :]
    assert outcome(decode_large_body, broken) == outcome(decode_body, broken)


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b" \n", b"[1]", b'{"a":1}x', b'{"a":1,}', b'{"a":[1,]}', b'{"a"', b'{"a":"' + b"x" * 90),
        *(b'{"a":1} \n x', b'{"a":' + b"1" * 50 + b".5e+3}", b'{"a":[' + b"  " * 30 + b"1234567890,1e-5]}"),
    ],
)
@pytest.mark.usefixtures("small_pieces")
def test_errors_are_the_same(raw: bytes) -> None:
    assert outcome(decode_large_body, raw) == outcome(decode_body, raw)


def test_deep_nesting_costs_no_more_than_the_text() -> None:
    inner = b"[" * 120 + b'"x",' * 20_000 + b'"x"' + b"]" * 120
    assert outcome(decode_large_body, b'{"a":' + inner + b"}") == outcome(decode_body, b'{"a":' + inner + b"}")
    with pytest.raises(InvalidRequest, match="nested"):
        decode_large_body(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}")


@given(st.lists(texts, max_size=40), st.integers(1, 7))
def test_what_stands_in_strings_is_no_value(said: list[str], piece: int) -> None:
    raw = json.dumps({"a": said}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decode, "PIECE", piece)
        patched.setattr(decode, "MAX_VALUES", len(said) + 1 + (not said))
        check_values(raw)
        patched.setattr(decode, "MAX_VALUES", max(0, len(said)))
        with pytest.raises(InvalidRequest, match="more than"):
            check_values(raw)


def test_a_long_text_full_of_commas_is_one_value() -> None:
    assert decode_body(b'{"a":"' + b",[{" * MAX_VALUES + b'"}')
