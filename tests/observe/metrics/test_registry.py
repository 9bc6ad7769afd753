"""The text format: numbers, labels, distributions, and the bound of everything."""

from __future__ import annotations

import pytest
from samples import rows

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


GOOD = "# HELP a_total Of a.\n# TYPE a_total counter\n"
HISTOGRAM = '# HELP h_seconds H.\n# TYPE h_seconds histogram\nh_seconds_bucket{le="1"} 2\n'

WRONG = [
    ("no line end", GOOD + "a_total 1"),
    ("an empty line", GOOD + "a_total 1\n\n"),
    ("a counter with another name", "# HELP a A.\n# TYPE a counter\na 1\n"),
    ("a gauge with a counter's name", GOOD.replace("counter", "gauge") + "a_total 1\n"),
    ("no help", "# HELP a_total \n# TYPE a_total counter\na_total 1\n"),
    ("twice", GOOD + "a_total 1\na_total 2\n"),
    ("a family twice", GOOD + "a_total 1\n" + GOOD),
    ("a foreign sample", GOOD + "b_total 1\n"),
    ("below zero", GOOD + "a_total -1\n"),
    ("labels that differ", GOOD + 'a_total{x="1"} 1\na_total{y="1"} 1\n'),
    ("a label twice", GOOD + 'a_total{x="1",x="2"} 1\n'),
    ("a line end in a label", GOOD + 'a_total{x="1\n2"} 1\n'),
    ("a quote in a label", GOOD + 'a_total{x="1"2"} 1\n'),
    ("no number", GOOD + "a_total one\n"),
    ("no base unit", "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n"),
    ("no last bucket", HISTOGRAM + "h_seconds_sum 1\nh_seconds_count 2\n"),
    ("less above", HISTOGRAM + 'h_seconds_bucket{le="+Inf"} 1\nh_seconds_sum 1\nh_seconds_count 1\n'),
    ("another count", HISTOGRAM + 'h_seconds_bucket{le="+Inf"} 3\nh_seconds_sum 1\nh_seconds_count 2\n'),
]


@rows("text", [row[1] for row in WRONG])
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        read(text)


def test_what_is_right_is_read() -> None:
    text = HISTOGRAM + 'h_seconds_bucket{le="+Inf"} 3\nh_seconds_sum 1.5\nh_seconds_count 3\n'
    family = read(text + GOOD + 'a_total{x="a\\"b\\\\c\\nd"} 1e+20\n')
    assert family["h_seconds"].value("h_seconds_bucket", le="1") == 2
    assert family["a_total"].value("a_total", x='a"b\\c\nd') == 1e20
