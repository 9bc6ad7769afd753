"""The settings of Claude Code's picker."""

from __future__ import annotations

from typing import Any

from samples import rows

from proxy.cli.launch.claude_picker import MAX_ROWS, MAX_WINDOWS, picker_settings
from proxy.cli.launch.usable_models import UsableModel
from proxy.core.models import ModelFacts


def model(name: str, context: int | None, *, shown: bool = True, title: str = "") -> UsableModel:
    return UsableModel(name, "p2", "Kimi Code", ModelFacts(context, title=title), shown)


MODELS = [model("a", 272_000, title="A"), model("b", 1_000_000), model("c", None), model("d", 272_000, shown=False)]
WINDOWS = {
    "a": {"autoCompactWindow": 272_000},
    "b": {"autoCompactWindow": 1_000_000},
    "d": {"autoCompactWindow": 272_000},
}


def test_each_model_has_a_row_and_its_window() -> None:
    assert picker_settings(MODELS, 272_000) == {
        "modelPicker": {
            "options": [
                {"model": "a", "label": "A", "description": "Kimi Code (p2)"},
                {"model": "b", "label": "b", "description": "Kimi Code (p2)", "behavesAs": "claude-opus-5-5"},
                {"model": "c", "label": "c", "description": "Kimi Code (p2)"},
            ]
        },
        "modelSettings": WINDOWS,
        "autoCompactWindow": 272_000,
    }


@rows(
    "theirs, members",
    [
        ({"modelPicker": {"options": []}}, {"modelSettings": WINDOWS, "autoCompactWindow": 272_000}),
        ({"modelPicker": {}, "autoCompactWindow": 150_000}, {}),
        (
            {"modelPicker": {}, "modelSettings": {"b": {"autoCompactWindow": 500_000}, "a": {"effortLevel": "low"}}},
            {"modelSettings": {**WINDOWS, "b": {"autoCompactWindow": 500_000}}, "autoCompactWindow": 272_000},
        ),
        (
            {"modelPicker": {}, "modelSettings": {"b": {"autoCompactWindow": "auto"}, "c": 3}},
            {"modelSettings": {**WINDOWS, "b": {"autoCompactWindow": "auto"}}, "autoCompactWindow": 272_000},
        ),
        ({"modelPicker": {}, "modelSettings": 3}, {"modelSettings": WINDOWS, "autoCompactWindow": 272_000}),
    ],
)
def test_what_the_user_has_chosen_stays(theirs: dict[str, Any], members: dict[str, Any]) -> None:
    assert picker_settings(MODELS, 272_000, theirs) == members


@rows("window, shown", [(5000, ["small"]), (272_000, [])])
def test_windows_that_the_client_would_refuse_are_left_out(window: int, shown: list[str]) -> None:
    """A row for a small model that is no first one would be compacted at a million tokens."""
    found = picker_settings([model("small", 5000)], window)
    assert found["modelSettings"] == {} and ("autoCompactWindow" in found) == (window == 272_000)
    assert [row["model"] for row in found["modelPicker"]["options"]] == shown


def test_the_settings_have_a_bound() -> None:
    many = [model(f"{number}", 10**6) for number in range(1000)]
    theirs = {"modelSettings": {f"n{number}": {"autoCompactWindow": 10**6} for number in range(1000)}}
    settings = picker_settings(many, 272_000, theirs)
    assert len(settings["modelPicker"]["options"]) == MAX_ROWS
    assert len(settings["modelSettings"]) == 2 * MAX_WINDOWS
