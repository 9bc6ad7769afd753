"""The text format: numbers, labels, distributions, and the bound of everything."""

from __future__ import annotations

import pytest

from proxy.observe.metrics import registry
from proxy.observe.metrics.registry import COUNTER, GAUGE, HISTOGRAM, MAX_SERIES, SUMMARY, Metric, Registry

from .exposition import read

REQUESTS = Metric("r_total", COUNTER, "Requests\\ of\nall.", ("provider", "kind"))
PLAIN = Metric("p_total", COUNTER, "Plain.")
SOCKETS = Metric("sockets_open", GAUGE, "Sockets.", ("provider",))
WAIT = Metric("wait_seconds", HISTOGRAM, "Wait.", ("provider",), (0.1, 1.0))
SPAN = Metric("span_seconds", SUMMARY, "Spans.", ("span",))


@pytest.fixture
def made() -> Registry:
    return Registry((REQUESTS, PLAIN, SOCKETS, WAIT, SPAN))


def test_what_has_no_labels_is_there_from_the_beginning(made: Registry) -> None:
    assert made.text() == (
        "# HELP r_total Requests\\\\ of\\nall.\n# TYPE r_total counter\n"
        "# HELP p_total Plain.\n# TYPE p_total counter\np_total 0\n"
        "# HELP sockets_open Sockets.\n# TYPE sockets_open gauge\n"
        "# HELP wait_seconds Wait.\n# TYPE wait_seconds histogram\n"
        "# HELP span_seconds Spans.\n# TYPE span_seconds summary\n"
    )


def test_values_are_written_with_their_labels(made: Registry) -> None:
    made.add(REQUESTS, 1, "p1", 'a"b\\c\nd')
    made.add(REQUESTS, 2, "p1", 'a"b\\c\nd')
    made.replace(SOCKETS, {("p1",): 3, ("p2",): 0})
    for seconds in (0.05, 0.1, 0.5, 7):
        made.observe(WAIT, seconds, "p1")
    made.observe(SPAN, 0.25, "queue")
    found = read(made.text())
    assert found["r_total"].value("r_total", provider="p1", kind='a"b\\c\nd') == 3
    assert [found["sockets_open"].value("sockets_open", provider=label) for label in ("p1", "p2")] == [3, 0]
    assert [found["wait_seconds"].value("wait_seconds_bucket", le=bound) for bound in ("0.1", "1", "+Inf")] == [2, 3, 4]
    assert found["wait_seconds"].value("wait_seconds_sum") == pytest.approx(7.65)
    assert found["span_seconds"].value("span_seconds_sum", span="queue") == 0.25


def test_a_gauge_forgets_what_is_gone(made: Registry) -> None:
    made.replace(SOCKETS, {("p1",): 3})
    made.replace(SOCKETS, {("p2",): 1})
    assert 'sockets_open{provider="p2"} 1' in made.text() and "p1" not in made.text()


def test_there_is_a_bound_for_what_others_name(made: Registry) -> None:
    for number in range(3 * MAX_SERIES):
        made.add(REQUESTS, 1, "p1", str(number))
        made.observe(WAIT, 1, str(number))
        made.replace(SOCKETS, {(str(one),): 1 for one in range(number)})
    found = read(made.text())
    assert len(found["r_total"].samples["r_total"]) == MAX_SERIES + 1
    assert found["r_total"].value("r_total", provider=registry.OTHER) == 2 * MAX_SERIES
    assert len(found["wait_seconds"].samples["wait_seconds_sum"]) == MAX_SERIES + 1
    assert len(found["sockets_open"].samples["sockets_open"]) == MAX_SERIES


def test_labels_are_all_given(made: Registry) -> None:
    with pytest.raises(ValueError, match="provider"):
        made.add(REQUESTS, 1, "p1")
