"""JSON in pieces is the JSON in one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core import long_json
from proxy.core.long_json import PIECE_CHARS, in_order, json_bytes, json_pieces, object_json
from proxy.core.sse import dump_json, dump_sorted_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


@given(values, st.integers(1, 30))
def test_no_byte_is_another(value: Any, size: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(long_json, "PIECE_CHARS", size)
        assert json_bytes(value) == dump_json(value).encode()
        assert b"".join(json_pieces(value, in_order)) == dump_sorted_json(value).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        {"input": [{"text": "ä\n" * PIECE_CHARS}]},
        {"messages": [[]] * (4 * PIECE_CHARS)},
        {str(number): "x" * 20 for number in range(PIECE_CHARS // 5)},
    ],
    ids=["a long text", "many values", "many members"],
)
def test_no_piece_is_large(value: Any) -> None:
    pieces = list(json_pieces(value))
    assert b"".join(pieces) == dump_json(value).encode()
    assert max(map(len, pieces)) < 4 * PIECE_CHARS


def test_half_a_character_is_an_error_where_it_is_sent_and_none_in_a_digest() -> None:
    for text in ("\ud83d", "\ud83d" * 2 * PIECE_CHARS):
        with pytest.raises(UnicodeEncodeError):
            json_bytes([text])
        assert b"".join(json_pieces([text], in_order))


@given(st.dictionaries(st.text(), values), st.booleans())
def test_an_object_that_is_written_by_member_and_item_is_the_same(value: dict[str, Any], large: bool) -> None:
    for _ in range(2):  # the second time from memory
        written = b"{" + object_json(value, {"a", *[*value][:2]}, large=large) + b"}"
        assert written == dump_json(value).encode()
