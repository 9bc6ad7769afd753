"""Snapshots as JSON, and what is read of it again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from samples import rows

from proxy.observe.monitor.demo import Demo
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.monitor.snapshot import Snapshot, of_json


def demo_at(*moments: float) -> list[Snapshot]:
    """Of one demo, one after another."""
    now = [0.0]
    demo = Demo(clock=lambda: now[0], wall=lambda: 1_800_000_000.0)
    told = []
    for moment in moments:
        now[0] = moment
        told.append(demo.snapshot())
    return told


def test_a_snapshot_comes_back_whole_also_with_rows_that_were_encoded_before() -> None:
    encoder = SnapshotEncoder()
    first, second, third = demo_at(0.0, 7.0, 1500.0)
    assert {id(row) for row in first.recent} & {id(row) for row in second.recent}
    for told in (first, second, third):
        assert of_json(json.loads(encoder.encode(told))) == told


def test_texts_that_are_no_utf_8_do_not_break_it() -> None:
    (told,) = demo_at(0.0)
    broken = replace(told, url="\ud800")
    assert json.loads(SnapshotEncoder().encode(broken))["snapshot"]["url"] == "?"


WHOLE = {"started_at": 1, "snapshot_at": 2.0, "uptime": 1.0}

REFUSED: list[tuple[object, str]] = [
    ([], "no snapshot"),
    ({"version": 1}, "no snapshot"),
    ({"version": 2, "snapshot": WHOLE}, "reports version 2"),
    ({"version": 1, "snapshot": {}}, "not whole"),
    ({"version": 1, "snapshot": WHOLE | {"sessions": [{"last_seen": 1.0}]}}, "not whole"),
    ({"version": 1, "snapshot": WHOLE | {"uptime": "long"}}, "expected float"),
    ({"version": 1, "snapshot": WHOLE | {"uptime": None}}, "not whole"),
    ({"version": 1, "snapshot": WHOLE | {"sessions": {}}}, "expected a list"),
    ({"version": 1, "snapshot": WHOLE | {"series": 3}}, "expected a Series"),
]


@rows("value, message", REFUSED)
def test_what_is_no_snapshot_is_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of_json(value)


def test_what_is_missing_has_its_default_and_what_is_unknown_is_left_out() -> None:
    rows = {"sessions": [{"id": None, "last_seen": 5, "provider": None, "cache": None, "later": 1}], "url": None}
    told = of_json({"version": 1, "snapshot": WHOLE | rows, "more": 1})
    assert (told.url, told.sessions[0].id, told.sessions[0].last_seen, told.recent) == ("", None, 5.0, ())
