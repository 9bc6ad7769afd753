"""An overview as another proxy sends it: what is read of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples import rows

from proxy.observe.history.allowance_samples import Sample
from proxy.observe.history.overview import overview
from proxy.observe.history.overview_rows import ModelRow, UsageRow, WindowRow, overview_rows
from proxy.observe.history.schema import Names, connect, transaction
from proxy.observe.history.writer import write_samples

from .past import NOW, history, later

EDGES = [NOW - 3600, NOW, NOW + 3600]
USAGE = {"requests": 1}
WHOLE = {"version": 1, "edges": [0, 1.5], "whole": USAGE, "periods": [USAGE]}
WINDOW = {"account": "p1", "window": "5 hours"}


def test_what_is_made_here_is_read_as_it_comes_over_the_wire(tmp_path: Path) -> None:
    db = connect(history(tmp_path, [later(60), later(-60, outcome="failed", http=529)]))
    with transaction(db):
        write_samples(db, [Sample("p1", "5 hours", "", round(1000 * NOW), 40.0, None)], Names(db))
    made = overview(db, EDGES, NOW + 90)
    db.close()
    told = overview_rows(made)
    assert told == overview_rows(json.loads(json.dumps(made)))
    assert (told.edges, [one.requests for one in told.periods]) == (tuple(EDGES), [1, 1])
    assert told.whole == UsageRow(2, 1, 0, 2, 2, 2000, 240, 80, 0.75, told.whole.first_p50, told.whole.first_p95)
    assert told.whole.first_p50 and told.whole.tokens == 2240
    assert [(one.provider, one.model, one.tokens) for one in told.models] == [("p1", "gpt-5.5", (1120, 1120))]
    assert told.windows == (WindowRow("p1", "5 hours", ((NOW, 40.0),)),)


def test_what_is_missing_has_its_default_and_what_is_unknown_is_left_out() -> None:
    told = overview_rows(WHOLE | {"models": [{"tokens": [3], "later": 1}], "more": 1})
    assert told.models == (ModelRow("", "", (3,)),)
    assert (told.edges, told.windows, told.kept_since) == ((0.0, 1.5), (), None)


REFUSED: list[tuple[Any, str]] = [
    (None, "no history"),
    ({"version": 1}, "no history"),
    (WHOLE | {"version": 2}, "version 2 of the history"),
    (WHOLE | {"whole": {"requests": "many"}}, "expected int"),
    (WHOLE | {"whole": {"input": 2**63}}, "64 bits"),
    (WHOLE | {"whole": {"cached_share": 10**400}}, "64 bits"),
    (WHOLE | {"edges": [0.0, float("inf")]}, "64 bits"),
    (WHOLE | {"edges": [0.0, float("nan")]}, "expected a number"),
    (WHOLE | {"edges": [0, 1, 2]}, "do not fit their edges"),
    (WHOLE | {"edges": [0], "periods": []}, "do not fit their edges"),
    (WHOLE | {"models": [{"tokens": [1, 2]}]}, "of a model do not fit"),
    (WHOLE | {"windows": [WINDOW]}, "not whole"),
    *((WHOLE | {"windows": [WINDOW | {"samples": some}]}, "no curve") for some in ([], [[1]], [[2, 5.0], [1, 6.0]])),
]


@rows("value, message", REFUSED)
def test_what_is_no_overview_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        overview_rows(value)
