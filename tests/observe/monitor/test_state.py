"""The store of what goes on: what every event does to it, and that nothing of it grows."""

from __future__ import annotations

import pytest
from samples import rows

from proxy.observe.lifecycle import (
    Abandoned,
    CacheChecked,
    Captured,
    CompactionStarted,
    Completed,
    Event,
    Failed,
    GenerationStarted,
    InputEstimated,
    Judged,
    ModelResolved,
    Progress,
    ProjectResolved,
    ProviderSelected,
    Sequenced,
    SessionFound,
    Started,
    Timed,
    UpstreamAnswered,
    UpstreamStarted,
    UsageUpdated,
)
from proxy.observe.monitor import state, tracked
from proxy.observe.monitor.snapshot import CacheView, RequestRow, SessionRow, Throughput
from proxy.observe.monitor.state import MonitorState


class Store(MonitorState):
    """At a moment that a test says."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(clock=lambda: self.now, wall=lambda: 1_800_000_000 + self.now)

    def tell(self, request_id: str, *events: Event) -> Store:
        for event in events:
            self.record(request_id, event)
        return self

    def later(self, seconds: float) -> Store:
        self.now += seconds
        return self

    def request(self, request_id: str = "a") -> RequestRow:
        told = self.snapshot()
        return next(row for row in (*told.active, *told.recent) if row.id == request_id)

    def session(self, name: str | None = "s") -> SessionRow:
        return next(row for row in self.snapshot().sessions if row.id == name)


STARTED = Started("messages", "s")
SELECTED = ProviderSelected("p1", "opus", "high")

#: events behind `Started`, what the row of the request has then
EFFECTS: list[tuple[tuple[Event, ...], dict[str, object]]] = [
    ((), {"status": "started", "endpoint": "messages", "session": "s", "http": None, "finished_at": None}),
    ((ProjectResolved("example"),), {"project": "example"}),
    ((Sequenced(3),), {"number": 3}),
    ((SELECTED,), {"status": "selected", "provider": "p1", "requested": "opus", "effort": "high"}),
    ((SELECTED, ModelResolved("opus", "gpt-5.6-sol")), {"requested": "opus", "resolved": "gpt-5.6-sol"}),
    ((CompactionStarted(),), {"status": "compacting"}),
    ((UpstreamStarted(1), UpstreamStarted(2)), {"status": "upstream", "attempts": 2}),
    ((Progress(10, 1), Progress(5, 2)), {"status": "streaming", "throughput": Throughput(0, 0.0, 15, 3)}),
    ((InputEstimated(120),), {"input_tokens": 120}),
    ((InputEstimated(120), UsageUpdated(100, 10)), {"input_tokens": 100}),
    ((InputEstimated(120), Completed(200)), {"input_tokens": None}),
    ((UsageUpdated(100, 10, 40), UsageUpdated(90, None)), {"input_tokens": 100, "output_tokens": 10}),
    ((UsageUpdated(100, 10, 40), UsageUpdated(90, 20, 30)), {"output_tokens": 20, "cached_tokens": 40}),
    ((Timed({"queue": 1.5}),), {"timings": {"queue": 1.5}}),
    ((CacheChecked(0.9, 0.5, "tools changed"),), {"cache": CacheView(0.5, 0.9, "tools changed")}),
    (
        (Judged("m", {"allow": 2}, 1, 1, 1), Judged("m", {"allow": 1, "deny": 1}, 1, 1, 1)),
        {"judge": {"allow": 3, "deny": 1}},
    ),
    ((UpstreamAnswered("req_9"), Captured("/traffic/x")), {"upstream_id": "req_9", "capture": "/traffic/x"}),
    ((Completed(200),), {"status": "completed", "http": 200, "bad": False}),
    ((Failed(502, "upstream\nsays \x1b[31mno"),), {"status": "failed", "http": 502, "error": "upstream says ?[31mno"}),
    ((Progress(1, 1), Failed(200, "broke")), {"status": "failed", "http": 200, "error": "broke", "bad": True}),
    ((Abandoned("the client left"),), {"status": "abandoned", "http": None, "error": "the client left", "bad": True}),
    ((Completed(200), Abandoned("the client left")), {"status": "completed", "http": 200, "error": ""}),
    ((Completed(200), Failed(None, "broke")), {"status": "failed", "http": 200, "error": "broke"}),
    ((Failed(400, "no"), Completed(200)), {"status": "failed", "http": 400}),
    ((Completed(200), UpstreamStarted(1), SELECTED, CompactionStarted()), {"status": "completed"}),
    ((STARTED, STARTED), {"status": "started"}),
]


@rows("events, expected", EFFECTS)
def test_an_event_changes_the_row_of_its_request(events: tuple[Event, ...], expected: dict[str, object]) -> None:
    row = Store().tell("a", Started("messages", "s"), *events).request()
    assert {name: getattr(row, name) for name in expected} == expected


#: what happens behind `Started`, with seconds in between; tokens, seconds
RATES: list[tuple[str, tuple[Event | float, ...], Throughput]] = [
    ("messages", (UsageUpdated(9, 20), GenerationStarted(), 8.0, UsageUpdated(None, 420)), Throughput(400, 8.0)),
    ("messages", (Progress(1024, 1), 2.0, Progress(1024, 1)), Throughput(0, 2.0, 2048, 2)),
    ("messages", (GenerationStarted(), 0.01, UsageUpdated(1, 45)), Throughput(45, 0.0)),
    ("messages", (Progress(1024, 1),), Throughput(0, 0.0, 1024, 1)),
    ("messages", (Progress(8, 1), 5.0, GenerationStarted(), 2.0, Progress(8, 1)), Throughput(0, 2.0, 16, 2)),
    ("messages", (GenerationStarted(), 1.0, Completed(200), 3.0, Progress(5, 1)), Throughput(0, 0.0, 5, 1)),
    ("messages", (GenerationStarted(), 4.0, Completed(200), 3.0, UsageUpdated(1, 8)), Throughput(8, 4.0)),
    ("messages", (GenerationStarted(), 1.0, GenerationStarted(), 1.0, Progress(1, 1)), Throughput(0, 2.0, 1, 1)),
    ("generation", (Progress(1, 1), 1.0, Progress(9, 1), UsageUpdated(9, 6559)), Throughput()),
    ("transcriptions", (Progress(1, 1), 1.0, Progress(9, 1)), Throughput()),
]


@rows("endpoint, events, expected", RATES)
def test_throughput(endpoint: str, events: tuple[Event | float, ...], expected: Throughput) -> None:
    store = Store().tell("a", Started(endpoint, "s"))
    for event in events:
        if isinstance(event, float):
            store.later(event)
        else:
            store.tell("a", event)
    assert store.request().throughput == expected
    rated = expected.tokens and expected.seconds
    assert store.session().throughput == (expected if rated else Throughput())
    assert store.tell("a", Completed(200)).session().throughput == (expected if rated else Throughput())


def test_totals_survive_stale_counts_and_requests_that_are_not_shown_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_RECENT", 1)
    store = Store().tell("a", STARTED, UsageUpdated(100, 10), UsageUpdated(90, 8), Completed(200))
    assert (store.session().input_tokens, store.session().output_tokens) == (100, 10)
    store.tell("b", Started("messages", None), Completed(200))
    assert [row.id for row in store.snapshot().recent] == ["b"]
    assert (store.session().input_tokens, store.session().output_tokens) == (100, 10)
    assert (store.session().requests, store.session().active) == (1, 0)


def test_what_comes_after_the_end_counts_but_changes_no_latency() -> None:
    store = Store().tell("a", STARTED).later(2).tell("a", Completed(200)).later(5)
    assert store.request().output_tokens is None
    store.tell("a", UsageUpdated(7, 9), Progress(100, 2))
    row = store.request()
    assert (row.elapsed, row.output_tokens, row.throughput.bytes) == (2, 9, 100)
    assert store.session().output_tokens == 9


def test_a_service_without_a_choice_of_models_is_named() -> None:
    store = Store().tell("a", Started("transcriptions", None), ProviderSelected("p1", "", None))
    assert (store.request().requested, store.session(None).requested) == ("transcribe", "transcribe")


def test_a_failure_of_an_unknown_request_is_shown() -> None:
    store = Store().tell("x", UsageUpdated(1, 1), Completed(200), Abandoned("gone"), Progress(1, 1), Failed(400, "no"))
    assert [(row.id, row.status, row.http) for row in store.snapshot().recent] == [("x", "failed", 400)]
    assert (store.session(None).requests, store.session(None).failures) == (1, 1)


def test_a_request_is_active_until_its_body_is_sent() -> None:
    store = Store().tell("a", STARTED).later(1).tell("b", Started("responses", None)).later(1)
    told = store.snapshot()
    assert [(row.id, row.elapsed) for row in told.active] == [("a", 2), ("b", 1)]
    assert told.recent == ()
    assert [(row.id, row.active) for row in told.sessions] == [(None, 1), ("s", 1)]  # as "no-session"
    store.tell("b", Completed(200)).tell("a", Completed(200))
    assert [row.id for row in store.snapshot().recent] == ["a", "b"]
    assert store.request().finished_at == 1_800_001_002


def test_a_session_that_is_found_in_the_body_gets_its_request() -> None:
    events = (SessionFound("s"), UsageUpdated(5, 5), SessionFound("t"))
    store = Store().tell("a", Started("messages", None), UsageUpdated(3, 1), SELECTED, *events)
    assert [row.id for row in store.snapshot().sessions] == ["s"]
    row = store.session()
    assert (row.requests, row.active, row.input_tokens, row.output_tokens, row.provider) == (1, 1, 5, 5, "p1")
    assert store.request().session == "s"


def test_the_newest_active_request_says_how_a_session_is() -> None:
    store = Store().tell("a", STARTED, Progress(1, 1)).tell("b", STARTED, SELECTED).tell("c", STARTED, Completed(200))
    assert (store.session().status, store.session().active) == ("selected", 2)
    assert store.tell("b", Failed(500, "no")).session().status == "streaming"
    row = store.tell("a", Completed(200)).session()
    assert (row.status, row.requests, row.failures, row.provider, row.requested) == ("completed", 3, 1, "p1", "opus")


def test_agents_stand_under_their_session() -> None:
    store = Store().tell("b", Started("messages", "s", "x", "w"), UsageUpdated(9, 4)).tell("a", STARTED)
    store.tell("c", Started("messages", "s", "w")).tell("d", Started("messages", "s", "x"), Completed(200))
    row = store.session()
    assert [(agent.id, agent.parent, agent.requests, agent.active) for agent in row.agents] == [
        (None, None, 1, 1),
        ("x", "w", 2, 1),
        ("w", None, 1, 1),
    ]
    assert (row.requests, row.output_tokens, row.agents[1].output_tokens) == (4, 4, 4)


def test_the_trend_of_a_session_and_the_hour_of_all() -> None:
    store = Store().tell("a", STARTED, UsageUpdated(1, 10)).later(10).tell("a", UsageUpdated(1, 15)).later(20)
    store.tell("a", Failed(500, "no"))
    assert store.session().history == (10, 5, 0, 0)
    series = store.snapshot().series
    assert (series.tokens[-4:], series.requests[-1], series.failures[-1], len(series.tokens)) == (
        (10, 5, 0, 0),
        1,
        1,
        360,
    )
    assert series.end == 1_800_001_040
    assert store.later(590).session().history == (0,) * 0
    assert sum(store.later(3600).snapshot().series.tokens) == 0


def test_the_oldest_idle_sessions_and_agents_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracked, "MAX_SESSIONS", 2)
    monkeypatch.setattr(tracked, "MAX_AGENTS", 2)
    store = Store().tell("a", Started("messages", "1"))
    for name in "234":
        store.later(1).tell(name, Started("messages", name), Completed(200))
    assert [row.id for row in store.snapshot().sessions] == ["1", "4"]
    for name in "xyz":
        store.later(1).tell(f"agent {name}", Started("messages", "1", name), Completed(200))
    row = store.session("1")
    assert [agent.id for agent in row.agents] == [None, "z"]
    assert row.requests == 4


def test_who_listens_is_told_of_every_request_once() -> None:
    store, told = Store(), []

    def fails(_row: RequestRow) -> None:
        raise ValueError("a prompt")

    store.finished(fails)
    store.finished(lambda row: told.append((row.id, row.status)))
    store.tell("a", STARTED, Completed(200), Failed(200, "late")).tell("b", Failed(400, "no"))
    assert told == [("a", "completed"), ("b", "failed")]
    assert [notice.message for notice in store.snapshot().notices] == [
        "a listener of finished requests failed: ValueError"
    ] * 2


def test_projects_are_wanted_while_somebody_looks() -> None:
    store = Store()
    assert not store.wants_project
    with store.watch(), store.watch():
        assert store.wants_project
    assert not store.wants_project
    store.snapshot()
    assert store.later(59).wants_project and not store.later(2).wants_project


def test_notices_are_bounded_lines() -> None:
    store = Store()
    for number in range(60):
        store.notice("warn", f"{number}\n{'x' * 900}", provider="p1")
    told = store.snapshot().notices
    assert len(told) == 50 and told[0].message.startswith("59 xxx") and len(told[0].message) == 500


def test_a_failure_after_its_end_is_no_kind_of_an_abandoned_request() -> None:
    monitor = MonitorState()
    for event in (Started("messages", None), Abandoned("the client left"), Failed(502, "late", "upstream")):
        monitor.record("1", event)
    (row,) = monitor.snapshot().recent
    assert (row.status, row.error, row.kind) == ("abandoned", "the client left", "")


def test_a_session_keeps_a_project_that_was_found_for_a_minute() -> None:
    store = Store().tell("a", STARTED).tell("b", STARTED).tell("c", Started("messages", None))
    assert store.known_project("a") is None and store.known_project("nobody") is None
    assert store.tell("a", ProjectResolved("shop")).known_project("b") == "shop"
    assert store.later(59).known_project("b") == "shop" and store.later(2).known_project("b") is None
    assert store.tell("c", ProjectResolved("shop")).known_project("c") is None  # without a session
