"""Several proxies in one monitor."""

from __future__ import annotations

from dataclasses import replace

from proxy.observe.monitor.demo import Demo
from proxy.observe.monitor.snapshot import (
    AgentRow,
    AllowanceRow,
    CacheView,
    Series,
    SessionRow,
    Snapshot,
    Throughput,
)
from proxy.observe.monitor.together import together

DEMO = Demo(clock=lambda: 1_800_000_000.0).snapshot()
EMPTY = Snapshot(2_000.0, 2_500.0, 500.0, url="http://b")


def test_a_single_proxy_stays_as_it_is() -> None:
    assert together([DEMO]) == DEMO and DEMO.sessions and DEMO.recent and DEMO.notices and DEMO.allowances


def test_proxies_that_share_the_requests_show_all_of_them_in_order() -> None:
    """Every second row is of the other."""
    names = ("sessions", "active", "recent", "notices")
    first, second = (replace(DEMO, **{name: getattr(DEMO, name)[part::2] for name in names}) for part in (0, 1))
    both = together([first, second])
    for name in names:
        assert getattr(both, name) == getattr(DEMO, name), name
    assert both.series.tokens == tuple(2 * count for count in DEMO.series.tokens)


def test_a_session_that_moved_is_one_row() -> None:
    """What was counted is the sum; what the last request says is of the proxy that served it."""
    earlier = SessionRow(
        "s", 10.0, requests=3, failures=1, status="completed", input_tokens=5, history=(1, 2, 3), project="site"
    )
    later = SessionRow(
        *("s", 20.0, 1, 2, 0, "p1"),
        status="streaming",
        input_tokens=7,
        throughput=Throughput(4, 2.0),
        history=(10,),
        cache=CacheView(0.5),
    )
    (row,) = together([replace(EMPTY, sessions=(later,)), replace(EMPTY, sessions=(earlier,))]).sessions
    assert row == replace(later, requests=5, failures=1, input_tokens=12, history=(1, 2, 13))


def test_sub_agents_of_a_session_that_moved_are_added_up() -> None:
    """The other proxy knows the main conversation alone, which is no row of its own there."""
    agents = (AgentRow(None, 5.0, requests=2), AgentRow("a", 6.0, requests=1, parent=None))
    known, alone = SessionRow("s", 6.0, requests=3, agents=agents), SessionRow("s", 9.0, requests=4, status="failed")
    (row,) = together([replace(EMPTY, sessions=(known,)), replace(EMPTY, sessions=(alone,))]).sessions
    assert row.requests == 7
    assert row.agents == (AgentRow(None, 9.0, requests=6, status="failed"), agents[1])


def test_of_an_allowance_the_newest_report_counts() -> None:
    old, new = AllowanceRow("p1", "Weekly", 40.0, 100.0), AllowanceRow("p1", "Weekly", 45.0, 200.0)
    other = AllowanceRow("p1", "5 hours", 3.0, 50.0)
    first, second = replace(EMPTY, allowances=(old, other)), replace(EMPTY, allowances=(new,))
    assert together([first, second]).allowances == together([second, first]).allowances == (new, other)


def test_the_whole_of_them_runs_since_the_first_began() -> None:
    old = Snapshot(1_000.0, 2_500.0, 1_500.0, url="http://a", series=Series(end=2_505.0), sandbox=True)
    both = together([EMPTY, old])
    assert (both.started_at, both.uptime, both.url, both.sandbox) == (1_000.0, 1_500.0, "http://b, http://a", True)
    assert both.series == Series(end=2_505.0)
