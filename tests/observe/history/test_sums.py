"""Sums are those of the rows, and times are as exact as they are said to be."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from observe.history.past import NOW, REQUEST, history, later, rows
from proxy.observe.history.past_request import PastRequest
from proxy.observe.history.schema import Names, connect, transaction
from proxy.observe.history.sums import add_up, ms_of, percentile, step_of
from proxy.observe.history.usage import BY, Usage, read_usage, whole
from proxy.observe.history.writer import write_requests

DAY_S = 86_400.0

_REQUESTS = st.builds(
    later,
    st.floats(0, 3 * 900),
    account=st.sampled_from(["p1", "p1/work", None]),
    served=st.sampled_from(["a", "b"]),
    project=st.sampled_from(["x", None]),
    input=st.one_of(st.none(), st.integers(0, 10**9)),
    cached=st.one_of(st.none(), st.integers(0, 10**9)),
    output=st.integers(0, 10**6),
    first_ms=st.one_of(st.none(), st.integers(0, 10**7)),
    total_ms=st.integers(0, 10**7),
    outcome=st.sampled_from(["completed", "failed", "abandoned"]),
)


@settings(max_examples=examples(200), deadline=None)
@given(batches=st.lists(st.lists(_REQUESTS, max_size=6), max_size=4))
def test_sums_of_many_writes_are_those_of_the_rows(
    batches: list[list[PastRequest]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("sums") / "history.db"
    db = connect(path)
    for batch in batches:
        with transaction(db):
            write_requests(db, batch, Names(db))
    every = [one for batch in batches for one in batch]
    for name, group in BY.items():
        found = read_usage(db, group.dimension, [NOW, NOW + 900, NOW + 4 * 900], group.key)
        total = whole(list(found.values()))
        answered = [one for one in every if one.outcome == "completed"]
        assert total.requests == len(every), name
        assert total.failed + total.abandoned == len(every) - len(answered)
        assert total.input == sum(one.input or 0 for one in every)
        assert total.cacheable == sum(one.input or 0 for one in every if one.cached is not None)
        assert total.total == Counter(step_of(one.total_ms) for one in answered)
        assert total.first == Counter(step_of(one.first_ms) for one in answered if one.first_ms is not None)
    db.close()


@pytest.mark.parametrize("ms", [5, 6, 10, 99, 1000, 54_321, 1_700_000])
def test_a_time_is_exact_to_three_per_cent(ms: int) -> None:
    assert ms_of(step_of(ms)) == pytest.approx(ms, rel=0.03)


def test_percentiles_are_those_of_the_sorted_times() -> None:
    times = [round(300 * 1.02**number) for number in range(200)]
    steps = Counter(map(step_of, times))
    for share in (0.05, 0.5, 0.95, 1.0):
        exact = times[math.ceil(share * len(times)) - 1]
        assert percentile(steps, share) == pytest.approx(exact, rel=0.03), share


def test_every_step_survives_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    db = connect(path)
    for step in range(1, 256):  # one write each: they are joined in the file
        with transaction(db):
            write_requests(db, [later(0, total_ms=round(ms_of(step)), first_ms=round(ms_of(256 - step)))], Names(db))
    (usage,) = read_usage(db, "account", [NOW, NOW + 900], lambda *_place: "all").values()
    assert len(usage.total) == len(usage.first) > 240 and usage.requests == 255
    assert sum(usage.total.values()) == sum(usage.first.values()) == 255
    db.close()


def test_a_request_that_only_counts_tokens_is_no_request_of_a_model() -> None:
    assert add_up([REQUEST._replace(endpoint="count_tokens")]) == {}


def test_periods_are_those_of_the_edges(tmp_path: Path) -> None:
    requests = [later(offset) for offset in (-1, 0, 899, 900, DAY_S - 1, DAY_S, 2 * DAY_S)]
    edges = [NOW, NOW + 900, NOW + DAY_S, NOW + DAY_S, NOW + 2 * DAY_S]
    path = history(tmp_path, requests)
    db = connect(path)
    group = BY["day"]
    found = read_usage(db, group.dimension, edges, group.key)
    assert {key: usage.requests for key, usage in found.items()} == {("0",): 2, ("1",): 2, ("3",): 1}
    uneven = read_usage(db, "account", [NOW + 1, NOW + 901], lambda at, *_place: at)
    assert [usage.requests for usage in uneven.values()] == [1]  # a quarter belongs to the period that it begins in
    db.close()


def test_the_cached_share_is_of_the_input_whose_share_is_known(tmp_path: Path) -> None:
    requests = [later(0, input=100, cached=80), later(1, input=900, cached=None)]
    with_path = history(tmp_path, requests)
    assert rows(with_path, "SELECT input, cacheable, cached FROM sums WHERE dimension = 0") == [(1000, 100, 80)]
    assert Usage(cacheable=100, cached=80).cached_share == 0.8 and Usage().cached_share is None
