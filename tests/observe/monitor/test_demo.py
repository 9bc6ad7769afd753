"""The simulated traffic: the same clock shows the same, and every column shows something."""

from __future__ import annotations

import dataclasses

from samples import rows

from proxy.observe.monitor.demo import Demo
from proxy.observe.monitor.snapshot import Snapshot


class Played:
    """A demo at a moment that a test says, in seconds since it began."""

    def __init__(self) -> None:
        self.now = 77.0
        self.demo = Demo(clock=lambda: self.now, wall=lambda: 1_800_000_000.0)

    def at(self, seconds: float) -> Snapshot:
        self.now = 77.0 + seconds
        return self.demo.snapshot()


@rows("seconds", [0.0, 0.3, 4.9, 31.0])
def test_the_same_clock_shows_the_same_however_often_one_looked(seconds: float) -> None:
    often = Played()
    for look in range(int(seconds * 7)):
        often.at(look / 7)
    assert often.at(seconds) == Played().at(seconds)


def test_it_begins_after_an_hour_with_all_that_there_is_to_see() -> None:
    told = Played().at(0)
    assert (told.uptime, told.url, told.started_at) == (3720.0, "mock://tui-demo", 1_799_996_280.0)
    baseline = told.active[:5]
    assert [row.status for row in baseline] == ["streaming", "streaming", "upstream", "selected", "started"]
    assert baseline[0].throughput.tokens == 0 < baseline[0].throughput.bytes
    assert {row.provider for row in told.sessions} == {"p1", "p2", "p3", "p4", "p5"}
    assert {row.project is None for row in told.sessions} == {True, False}
    assert {row.http for row in told.recent} >= {200, 201, 204, 400, 429, 500, 502, 529, None}
    assert {row.endpoint for row in told.recent} >= {
        "messages",
        "count_tokens",
        "responses",
        "chat_completions",
        "images",
    }
    assert [(agent.id, agent.parent) for agent in told.sessions[0].agents[1:]] == [
        ("a41f0c2e", None),
        ("b7d93e10", "a41f0c2e"),
    ]
    assert len(told.series.tokens) - told.series.tokens.count(0) > 300 and sum(told.series.failures) > 5
    assert told.notices and {row.provider for row in told.allowances} == {"p1", "p2", "p3", "p4", "p5"}
    for name in (field.name for field in dataclasses.fields(told.recent[0])):
        assert any(getattr(row, name) for row in told.recent), name


def test_a_request_runs_through_all_states_and_every_fourth_fails() -> None:
    played = Played()
    seen = [[row.status for row in played.at(tick / 4).active if row.id == "demo-0"] for tick in range(22)]
    expected = [*["started"] * 3, *["selected"] * 3, *["upstream"] * 4, *["streaming"] * 10]
    assert seen[:20] == [[status] for status in expected] and seen[20:] == [[], []]
    ended = {row.id: row.http for row in played.at(48).recent}
    assert [ended[f"demo-{number}"] for number in range(8)] == [200, 200, 200, 503] * 2
