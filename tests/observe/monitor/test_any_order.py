"""The store under events in any order: it never raises, its totals are the sums of the highest counts, and nothing of
it grows beyond its bounds."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.observe.lifecycle import (
    Abandoned,
    Completed,
    Event,
    Failed,
    GenerationStarted,
    InputEstimated,
    ModelResolved,
    Progress,
    ProviderSelected,
    SessionFound,
    Started,
    UpstreamStarted,
    UsageUpdated,
)
from proxy.observe.monitor import state, tracked
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.monitor.snapshot import of_json
from proxy.observe.monitor.state import MonitorState

NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f"])
COUNTS = st.none() | st.integers(0, 50)
EVENTS = st.one_of(
    st.builds(Started, st.sampled_from(["messages", "generation"]), st.none() | NAMES, st.none() | NAMES),
    st.builds(SessionFound, NAMES),
    st.builds(InputEstimated, st.integers(0, 9)),
    st.builds(UsageUpdated, COUNTS, COUNTS, COUNTS),
    st.builds(Progress, st.integers(0, 9), st.integers(0, 3)),
    st.builds(Completed, st.sampled_from([200, 400])),
    st.builds(Failed, st.none() | st.just(500), st.text(max_size=5)),
    st.sampled_from([GenerationStarted(), UpstreamStarted(1), Abandoned("left"), ModelResolved("x", "y")]),
    st.just(ProviderSelected("p1", "x", None)),
)


@given(st.lists(st.tuples(NAMES, EVENTS, st.sampled_from([0.0, 0.5, 30.0])), max_size=80))
def test_totals_are_the_sums_of_the_highest_counts(told: list[tuple[str, Event, float]]) -> None:
    now = [0.0]
    store = MonitorState(clock=lambda: now[0], wall=lambda: now[0])
    for name, event, seconds in told:
        now[0] += seconds
        store.record(name, event)
    shown = store.snapshot()
    rows = (*shown.active, *shown.recent)
    for count in ("input_tokens", "output_tokens", "cached_tokens"):
        by_session = {row.id: getattr(row, count) for row in shown.sessions}
        expected = dict.fromkeys(by_session, 0)
        for request in rows:
            expected[request.session] += getattr(request, count) or 0
        assert by_session == expected
    for session in shown.sessions:
        own = [row for row in rows if row.session == session.id]
        assert (session.requests, session.active) == (len(own), sum(row.finished_at is None for row in own))
        assert session.failures == sum(row.bad for row in own)
        agents = session.agents or (session,)
        assert sum(agent.requests for agent in agents) == session.requests
        assert sum(agent.output_tokens for agent in agents) == session.output_tokens
    assert of_json(json.loads(SnapshotEncoder().encode(shown))) == shown
    assert store.snapshot() == shown


def test_memory_is_flat_over_thousands_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracked, "MAX_SESSIONS", 20)
    monkeypatch.setattr(state, "MAX_RECENT", 20)
    now = [0.0]
    store = MonitorState(clock=lambda: now[0], wall=lambda: now[0])

    def serve(first: int, count: int) -> None:
        for number in range(first, first + count):
            now[0] += 1.0
            name, agent = f"request {number}", f"agent {number}"
            store.record(name, Started("messages", f"session {number // 5}", agent, None, name))
            for event in (ProviderSelected("p1", name, None), UsageUpdated(5, 5), Progress(9, 1), Completed(200)):
                store.record(name, event)
            store.notice("info", name)

    serve(0, 500)
    tracemalloc.start()
    serve(500, 500)
    store.snapshot()
    before, _ = tracemalloc.get_traced_memory()
    serve(1_000, 2_000)
    store.snapshot()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
