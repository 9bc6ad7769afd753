"""What the strict reader of the text format refuses, so that what it takes says something."""

from __future__ import annotations

import pytest
from samples import rows

from .exposition import read

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
