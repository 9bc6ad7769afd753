"""Sizes of JSON values, and what is not done to learn them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core import sizes
from proxy.core.sizes import json_size, least_size
from proxy.core.sse import encode_json

ALL = 1_000_000
scalars = st.none() | st.booleans() | st.integers() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@given(values)
def test_a_value_is_at_least_as_large_as_told(value: Any) -> None:
    assert least_size(value, ALL) <= len(encode_json(value))


@given(st.lists(values, max_size=5), st.integers(0, 200))
def test_the_size_of_items_is_exact_up_to_the_limit(items: list[Any], limit: int) -> None:
    exact = len(encode_json(items))
    assert json_size(items, ALL) == exact
    found = json_size(items, limit)
    assert found == exact if exact <= limit else found > limit


def test_counting_ends_at_the_limit() -> None:
    """What is behind it is not even looked at, least of all written out."""
    assert least_size(["a" * 10, "b" * 100], 50) == 2 + 100
    assert least_size([0] * 100, 50) == 100


@pytest.mark.parametrize(("items", "written"), [(["a" * 101, 1], []), ([123456789] * 30, [123456789] * 8)])
def test_nothing_is_written_out_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch, items: list[Any], written: list[Any]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sizes, "encode_json", lambda value: seen.append(value) or encode_json(value))
    assert json_size(items, 100) > 100
    assert seen == written
