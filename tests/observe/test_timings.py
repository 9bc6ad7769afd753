"""The spans of a request's time, with a clock of the test's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from samples import rows

from proxy.observe.lifecycle import SPANS
from proxy.observe.timings import Timings

#: A step of a request: milliseconds that pass, then what is marked.
Step = tuple[float, Callable[[Timings], None]]

ADMITTED: Step = (2, Timings.admitted)
ASKED: Step = (3, Timings.signing_in)
READY: Step = (0, Timings.signed_in)
SENT: Step = (1, lambda timings: timings.sent(1))
AGAIN: Step = (2000, lambda timings: timings.sent(2))
CONNECTING: Step = (0, Timings.connecting)
CONNECTED: Step = (30, Timings.connected)
ANSWERED: Step = (400, lambda timings: timings.answered("req_up"))
SAID: Step = (50, Timings.generating)
CUT: Step = (7, Timings.broken_off)

ROWS: list[tuple[str, list[Step], dict[str, float]]] = [
    ("refused before its body came", [CUT], {"queue": 7}),
    ("refused while it was read", [ADMITTED, CUT], {"queue": 2, "translate": 7}),
    (
        "over a new connection",
        [ADMITTED, ASKED, READY, SENT, CONNECTING, CONNECTED, ANSWERED, SAID],
        {"queue": 2, "translate": 4, "connect": 30, "first_byte": 400, "first_token": 50},
    ),
    (
        "over an open one",
        [ADMITTED, ASKED, READY, SENT, ANSWERED, SAID, SAID],
        {"queue": 2, "translate": 4, "first_byte": 400, "first_token": 50},
    ),
    (
        "with a new token",
        [ADMITTED, ASKED, (250, Timings.signed_in), SENT, ANSWERED, SAID],
        {"queue": 2, "translate": 4, "sign_in": 250, "first_byte": 400, "first_token": 50},
    ),
    (
        "the second attempt counts",
        [ADMITTED, SENT, CONNECTING, CONNECTED, ANSWERED, AGAIN, ANSWERED, SAID],
        {"queue": 2, "translate": 1, "retry": 2430, "first_byte": 400, "first_token": 50},
    ),
    (
        "thoughts were taken back",
        [ADMITTED, SENT, ANSWERED, SAID, AGAIN, ANSWERED, SAID],
        {"queue": 2, "translate": 1, "retry": 2450, "first_byte": 400, "first_token": 50},
    ),
    (
        "another model is asked instead",
        [ADMITTED, SENT, ANSWERED, SAID, (8, Timings.began_anew), ASKED, READY, SENT, ANSWERED, SAID],
        {"queue": 2, "translate": 5, "retry": 458, "first_byte": 400, "first_token": 50},
    ),
    (
        "no socket could be opened, so it went over HTTP",
        [ADMITTED, SENT, CONNECTING, CONNECTED, (0, lambda timings: timings.sent(1)), ANSWERED],
        {"queue": 2, "translate": 1, "connect": 30, "first_byte": 400},
    ),
    ("no connection", [ADMITTED, SENT, CONNECTING, CUT], {"queue": 2, "translate": 1, "connect": 7}),
    ("no answer", [ADMITTED, SENT, CUT], {"queue": 2, "translate": 1, "first_byte": 7}),
    ("cut before it began", [SENT, ANSWERED, CUT], {"translate": 1, "first_byte": 400}),
    ("cut in the middle", [SENT, ANSWERED, SAID, CUT], {"translate": 1, "first_byte": 400, "first_token": 50}),
]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@rows("steps, spans", [row[1:] for row in ROWS])
def test_spans_follow_one_another(steps: list[Step], spans: dict[str, float]) -> None:
    clock = Clock()
    timings = Timings(clock)
    for ms, mark in steps:
        clock.now += ms / 1000
        mark(timings)
    assert timings.spans == pytest.approx(spans)
    assert list(timings.spans) == [span for span in SPANS if span in spans]
    if "first_token" not in spans and not (steps[-1] is CUT and "first_byte" in spans and ANSWERED in steps):
        assert sum(spans.values()) == pytest.approx(timings.total)


def test_the_header_names_what_is_known() -> None:
    clock = Clock()
    timings = Timings(clock)
    clock.now += 0.00123
    timings.admitted()
    timings.sent(1)
    clock.now += 1.5
    timings.answered()
    assert timings.header() == "queue;dur=1.2, translate;dur=0.0, first-byte;dur=1500.0, total;dur=1501.2"


def test_the_upstreams_id_is_told_when_it_is_another() -> None:
    told: list[str] = []
    timings = Timings(Clock())
    timings.tell = told.append
    for upstream_id in ("a", "a", None, "", "b"):
        timings.answered(upstream_id)
    assert told == ["a", "b"] and timings.upstream_id == "b"
