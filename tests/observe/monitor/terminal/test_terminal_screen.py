"""Screens of the monitor: whatever the size, the snapshot and the keys."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import width_of
from proxy.observe.monitor.terminal.keys import Stage, pressed
from proxy.observe.monitor.terminal.screen import screen
from proxy.observe.monitor.terminal.view import View

from . import screen_cases
from .shown import NOW, SNAPSHOT, text_of

KEYS = (
    *("tab", "left", "right", "up", "down", "page_up", "page_down", "home", "end", "enter", "escape", "backspace"),
    *"1234kjs/ahbq?ny é世",
)
SIZES = st.tuples(st.integers(0, 230), st.integers(0, 70))


def values(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Anything of a type of the snapshot; numbers are those that JSON has."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return st.builds(hint, **{name: values(one) for name, one in typing.get_type_hints(hint).items()})
    if origin is types.UnionType:
        return st.none() | values(inner[0])
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=9), values(inner[1]), max_size=2)
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 2 * NOW)
    return st.text(max_size=40) if hint is str else st.integers()


def check(snapshot: Snapshot, keys: list[str], size: tuple[int, int], now: float = NOW) -> None:
    view = View(setup=("a line of the set-up\x1b[31m", "世" * 60))
    for key in keys:
        view, _ = pressed(view, key, Stage(snapshot, *size, now))
    lines = text_of(screen(snapshot, view, *size, now))
    width, height = size
    assert len(lines) == (height if width else 0)
    assert [width_of(line) for line in lines] == [width] * len(lines)
    assert all(line.isprintable() for line in lines)


@settings(max_examples=examples(100), deadline=None)
@given(keys=st.lists(st.sampled_from(KEYS), max_size=12), size=SIZES)
def test_any_size_and_any_keys_give_a_whole_screen(keys: list[str], size: tuple[int, int]) -> None:
    check(SNAPSHOT, keys, size)


@settings(max_examples=examples(40), deadline=None)
@given(snapshot=values(Snapshot), keys=st.lists(st.sampled_from(KEYS), max_size=6), size=SIZES)
def test_any_snapshot_gives_a_whole_screen(snapshot: Snapshot, keys: list[str], size: tuple[int, int]) -> None:
    check(snapshot, keys, size, snapshot.snapshot_at)


def test_the_demo_is_drawn_as_the_expected_screens() -> None:
    outputs = screen_cases.outputs()
    assert screen_cases.stale() == []
    assert {path.name: path.read_text("utf-8").splitlines() for path in outputs} == {
        path.name: text.splitlines() for path, text in outputs.items()
    }
