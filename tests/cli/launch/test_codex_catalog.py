"""The rows that Codex gets: its own as they are, and ours after one of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from samples import rows

from proxy.cli.launch.codex_catalog import Row, codex_catalog
from proxy.cli.launch.usable_models import UsableModel, usable_models
from proxy.config import Config
from proxy.core.models import ModelFacts
from proxy.providers.registry import PROVIDERS

LEVELS = [{"effort": "low", "description": "theirs"}, {"effort": "ultra", "description": "delegates"}]
LITE: Row = {
    "slug": "gpt-8-sol",
    "display_name": "GPT-8",
    "priority": 1,
    "use_responses_lite": True,
    "tool_mode": "code_mode_only",
    "multi_agent_version": "v2",
    "experimental_supported_tools": ["clock"],
    "supported_reasoning_levels": LEVELS,
    "default_reasoning_level": "ultra",
    "service_tiers": [{"id": "priority"}, {"id": "ultrafast"}],
    "context_window": 272_000,
    "max_context_window": 872_000,
    "input_modalities": ["text", "image"],
    "base_instructions": "You are GPT.",
    "model_messages": {"instructions_template": "You are GPT."},
    "future": {"needed": 1},
}
FULL: Row = {**LITE, "slug": "gpt-5.5", "priority": 7, "use_responses_lite": False, "tool_mode": None, "full": True}
INSTALLED = [LITE, FULL]
SOL = UsableModel("gpt-8-sol", "p1", "ChatGPT", ModelFacts(272_000))
KIMI = UsableModel(
    "kimi", "p2", "Kimi Code", ModelFacts(262_144, 32_000, efforts=("low", "max"), effort="max", sees=True)
)


def row_of(model: UsableModel, installed: list[Row] | None = None) -> dict[str, Any]:
    made = codex_catalog(INSTALLED if installed is None else installed, [model])["models"]
    [row] = [row for row in made if row["slug"] == model.name]
    return dict(row)


def test_rows_that_codex_knows_are_as_they_were_for_who_has_their_provider() -> None:
    assert codex_catalog(INSTALLED, [SOL])["models"] == INSTALLED
    assert [row["slug"] for row in codex_catalog(INSTALLED, [KIMI])["models"]] == ["kimi"]


def test_a_row_for_a_model_of_another_vendor() -> None:
    row = row_of(KIMI)
    assert row["future"] == {"needed": 1} and row["full"], "after the row that is nearest in kind"
    assert (row["use_responses_lite"], row["tool_mode"], row["apply_patch_tool_type"]) == (False, None, "freeform")
    assert (row["experimental_supported_tools"], row["supports_search_tool"]) == ([], False)
    assert (row["service_tiers"], row["multi_agent_version"], row["model_messages"]) == ([], None, None)
    assert "GPT" not in row["base_instructions"] and "kimi" in row["base_instructions"]
    assert row["supported_reasoning_levels"][0] == LEVELS[0], "in the words of the installed Codex"
    assert [one["effort"] for one in row["supported_reasoning_levels"]] == ["low", "max"]
    assert (row["default_reasoning_level"], row["display_name"], row["priority"]) == ("max", "kimi", 8)
    assert (row["description"], row["visibility"], row["upgrade"]) == ("Kimi Code (p2)", "list", None)


@rows(
    "facts, window",
    [
        (ModelFacts(262_144, 32_000), (262_144, 262_144, 230_144)),
        (ModelFacts(262_144, 16_000), (262_144, 262_144, None)),
        (ModelFacts(262_144, 262_144), (262_144, 262_144, None)),
        (ModelFacts(500_000, largest=900_000), (500_000, 900_000, None)),
        (ModelFacts(), (128_000, 128_000, None)),
    ],
)
def test_the_window_leaves_room_for_the_longest_answer(facts: ModelFacts, window: tuple[int, int, int | None]) -> None:
    row = row_of(replace(KIMI, facts=facts))
    assert (row["context_window"], row["max_context_window"], row["auto_compact_token_limit"]) == window


@rows(
    "facts, efforts, default",
    [
        (ModelFacts(), ["low", "medium", "high"], "medium"),
        (ModelFacts(efforts=("high", "max")), ["high", "max"], "high"),
        (ModelFacts(efforts=("low", "medium"), effort="max"), ["low", "medium"], "medium"),
        (ModelFacts(efforts=()), [], None),
        (ModelFacts(efforts=("low",), thinks="no"), [], None),
    ],
)
def test_the_efforts_that_the_picker_offers(facts: ModelFacts, efforts: list[str], default: str | None) -> None:
    row = row_of(replace(KIMI, facts=facts))
    assert [one["effort"] for one in row["supported_reasoning_levels"]] == efforts
    assert row["default_reasoning_level"] == default


@rows("sees, kinds", [(True, ["text", "image"]), (False, ["text"]), (None, ["text", "image"])])
def test_the_kinds_of_input(sees: bool | None, kinds: list[str]) -> None:
    assert row_of(replace(KIMI, facts=ModelFacts(sees=sees)))["input_modalities"] == kinds


@rows(
    "name, lite, alike",
    [("gpt-9-sol", True, "gpt-8-sol"), ("gpt-9-sol", False, "gpt-5.5"), ("gpt-8.1-sol", None, "gpt-8-sol")],
)
def test_a_model_of_their_vendor_that_codex_does_not_know(name: str, lite: bool | None, alike: str) -> None:
    facts = ModelFacts(400_000, lite=lite, tiers=("priority",), efforts=("low", "ultra"), effort="low", title="GPT-9")
    row = row_of(replace(SOL, name=name, facts=facts))
    pattern = LITE if alike == LITE["slug"] else FULL
    same = ("use_responses_lite", "tool_mode", "base_instructions", "model_messages", "input_modalities", "future")
    assert {member: row[member] for member in same} == {member: pattern[member] for member in same}
    assert (row["context_window"], row["service_tiers"]) == (400_000, [{"id": "priority"}])
    assert (row["display_name"], row["supported_reasoning_levels"]) == ("GPT-9", LEVELS)


def test_what_is_not_known_of_it_is_as_in_the_other_row() -> None:
    row = row_of(replace(SOL, name="gpt-8.1-sol", facts=ModelFacts()))
    assert row["context_window"] == 272_000
    assert row["service_tiers"] == LITE["service_tiers"] and row["input_modalities"] == ["text", "image"]


def test_what_is_said_of_one_model_alone_is_not_said_of_another() -> None:
    special = {**LITE, "model_specialty": "cyber", "additional_speed_tiers": ["fast"], "availability_nux": {"a": 1}}
    row = row_of(replace(SOL, name="gpt-8.1-sol", facts=ModelFacts()), [special])
    alone = ("model_specialty", "additional_speed_tiers", "availability_nux", "upgrade")
    assert [row[member] for member in alone] == [None, [], None, None]
    assert [one["effort"] for one in row["supported_reasoning_levels"]] == ["low", "medium", "high"], "no `ultra`"


@rows("lite, visibility", [(True, "hide"), (False, "list"), (None, "hide")])
def test_no_model_is_made_after_a_row_that_is_hidden_or_of_another_lane(lite: bool | None, visibility: str) -> None:
    row = row_of(replace(SOL, name="gpt-9", facts=ModelFacts(lite=lite)), [{**LITE, "visibility": visibility}])
    assert (row["use_responses_lite"], row["tool_mode"], row["multi_agent_version"]) == (False, None, None)


@rows("name", ["gpt-5.3-codex", "gpt-5.3-codex-spark", "gpt-5.4-mini", "gpt-5.4", "gpt-5.2"])
def test_models_of_the_full_lane_get_a_row_of_it_before_their_service_was_asked(name: str) -> None:
    found = {model.name: model for model in usable_models(PROVIDERS, Config(), {"p1"})}
    row = row_of(found[name], [*INSTALLED, {**LITE, "slug": f"{name}-pro"}])
    assert (row["use_responses_lite"], row["tool_mode"], row["full"]) == (False, None, True)


def test_rows_that_the_list_of_the_account_lacks_or_hides_are_hidden() -> None:
    hidden = replace(SOL, name="gpt-5.5", facts=ModelFacts(listed=False), offered=True)
    made = codex_catalog([*INSTALLED, {**LITE, "slug": "gpt-7"}], [replace(SOL, offered=True), hidden])["models"]
    shown = {row["slug"]: row.get("visibility") for row in made}
    assert shown == {"gpt-8-sol": None, "gpt-5.5": "hide", "gpt-7": "hide"}
    assert all("visibility" not in row for row in codex_catalog(INSTALLED, [SOL])["models"]), "no list is known"


def test_another_name_of_an_installed_model_has_its_row() -> None:
    opus = replace(SOL, name="opus", base="gpt-8-sol", shown=False)
    assert row_of(opus) == {**LITE, "slug": "opus", "visibility": "hide", "display_name": "opus", "priority": 8}


@rows(
    "members",
    [
        {"supported_reasoning_levels": 3, "service_tiers": ["fast"]},
        {"supported_reasoning_levels": ["low", 3], "service_tiers": 3},
        {"context_window": "272k", "priority": "first", "display_name": 3},
    ],
)
def test_rows_of_another_form_are_no_failure(members: Row) -> None:
    made = codex_catalog(
        [{**LITE, **members}], [replace(SOL, name="gpt-8.1-sol", facts=ModelFacts(tiers=("priority",)))]
    )
    assert [row["slug"] for row in made["models"]] == ["gpt-8-sol", "gpt-8.1-sol"]


def test_two_models_of_one_title_go_by_their_names() -> None:
    two = [replace(KIMI, name=name, facts=ModelFacts(title="Kimi")) for name in ("a", "b")]
    assert [row["display_name"] for row in codex_catalog(INSTALLED, two)["models"]] == ["a", "b"]


def test_without_rows_of_codex_there_are_plain_ones() -> None:
    made = codex_catalog([], [SOL, KIMI, replace(KIMI, name="k", shown=False)])["models"]
    assert [(row["slug"], row["visibility"]) for row in made] == [
        ("gpt-8-sol", "list"),
        ("kimi", "list"),
        ("k", "hide"),
    ]
    assert all(row["truncation_policy"] and row["base_instructions"] for row in made)
    json.dumps(made)
