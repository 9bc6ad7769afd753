"""Which rows a pane has."""

from __future__ import annotations

import dataclasses

import pytest

from proxy.observe.monitor.snapshot import CacheView, Notice, Snapshot
from proxy.observe.monitor.terminal.rows import rows_of
from proxy.observe.monitor.terminal.view import View

from .shown import NOW, request

_NOTICE = Notice(NOW, "warn", "0 % of the input came from the cache: the system text changed", "p1", "one")


@pytest.mark.parametrize(
    ("notice", "expected", "messages"),
    [
        (_NOTICE, 0.0, ["0% of the input from the cache: the system text changed"]),
        (_NOTICE, 0.9, ["0% of the input from the cache, 90% expected: the system text changed"]),
        (
            dataclasses.replace(_NOTICE, session="two"),
            0.0,
            ["0% of the input from the cache: the system text changed", _NOTICE.message],
        ),
    ],
    ids=["nothing was to be expected", "more was to be expected", "of another session"],
)
def test_a_cache_that_was_lost_is_one_event(notice: Notice, expected: float, messages: list[str]) -> None:
    lost = request("1", 0, session="one", cache=CacheView(0.0, expected, "the system text changed"))
    rows = rows_of("events", Snapshot(NOW, NOW, 0.0, recent=(lost,), notices=(notice,)), View())
    assert [row.message for row in rows] == messages
