"""Names to providers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values
from proxy.core.routing import (
    ALIASES,
    AUTO_REVIEW_MARKER,
    Catalog,
    Route,
    catalog_text,
    is_auto_review,
    listing,
    nearest,
    normalise_model,
    proposal,
    route,
    without_claude,
)
from proxy.providers.p1_codex.catalog import ALIAS_TARGETS, CATALOG, MODELS
from proxy.providers.p3_grok.catalog import FAMILIES
from proxy.providers.p4_opencode.catalog import catalog_of as p4_catalog_of
from proxy.providers.registry import PROVIDERS

CATALOGS = (
    Catalog("p4", "opencode", ("opencode-go/grok-4.5", "grok-4.5", "kimi-k3"), prefixes=("opencode-go/",)),
    CATALOG,
    Catalog("p3", "grok", ("grok-4.5",), families=FAMILIES),
    Catalog("p2", "kimi", ("kimi-k2.6", "kimi-k3")),
    Catalog("p5", "cursor", ("cursor", "composer-2.5"), prefixes=("cursor:", "cursor-plan:", "cursor-ask:")),
)


def label(model: str, *, alias_provider: str = "p1", affinity: str | None = None) -> str | None:
    found = route(normalise_model(model), CATALOGS, alias_provider=alias_provider, affinity=affinity)
    return found.label if found else None


@rows(
    "model, expected",
    [
        ("gpt-5.6-luna[1m]", "p1"),
        ("gpt-5.6-luna[1M]", "p1"),
        ("gpt-5.6-luna[1m][1m]", None),
        ("gpt-5.6-luna [1m]", None),
        ("[1m]", None),
        ("", None),
        ("gpt-5.6-sol-fast", "p1"),
        ("gpt-5.6-sol-fast-fast", "p1"),
        ("gpt-7", "p1"),
        ("gpt-4o", "p1"),
        ("gpt-image-2", None),
        ("gpt-oss-120b", None),
        ("gpt-", None),
        ("codex-auto-review", "p1"),
        ("codex-mini-latest", "p1"),
        ("codex-", None),
        ("codex", None),
        ("gpt-daybreak-blue-latest", "p1"),
        (f"gpt-7{'9' * 81}", None),
        ("GPT-5.5", None),
        ("claude-opus-5", "p1"),
        ("claude-opus-9", "p1"),
        ("claude-opus-4-6", "p1"),
        ("claude-haiku-5-5", "p1"),
        ("claude-sonnet-5-5[1m]", "p1"),
        ("claude-fable-5-2", "p1"),
        ("claude-sonnet-latest", "p1"),
        ("claude-3-5-haiku-20241022", "p1"),
        ("claude-3-7-sonnet@20250219", "p1"),
        ("claude-sonnet-4@20250514", "p1"),
        (f"claude-opus-{'9' * 80}", "p1"),
        (f"claude-opus-{'9' * 81}", None),
        (f"claude-{'3' * 30}-opus", None),
        ("claude-foo-1", None),
        ("claude-opus-", None),
        ("claude-opusplan", None),
        ("claude-", None),
        ("Claude-Opus-9", None),
        ("claude-opus-9 ", None),
        ("anthropic/claude-opus-9", None),
        ("opus-fast", None),
        ("opencode-go/grok-4.5", "p4"),
        ("grok-4.5", "p3"),
        ("grok-99-fast[1m]", "p3"),
        (f"grok-{'9' * 81}", None),
        ("grok-4.6 ", None),
        ("grok-", None),
        ("Grok-4.5", None),
        ("xai/grok-4.5", None),
        ("kimi-k3", "p2"),
        ("cursor:gpt-5.5", "p5"),
        ("cursor-plan:x", "p5"),
        ("cursor:", None),
        ("cursor", "p5"),
        ("composer-2.5", "p5"),
        ("composer-2.5-x", None),
    ],
)
def test_a_name_goes_to_its_provider(model: str, expected: str | None) -> None:
    assert label(model) == expected


def test_blanks_around_a_name_mean_nothing_where_the_catalogue_says_so() -> None:
    own = Catalog("p5", "cursor", ("cursor",), prefixes=("cursor:",), blanks=True)
    for model in (" cursor", "cursor\t", "\ncursor:gpt-5.5 ", "cursor[1m]", " cursor [1m] "):
        assert route(normalise_model(model), [own], alias_provider="p1") == Route("p5", False), model
    for model in ("cursor: ", " cursor:[1m]", "cur sor", " ", "cursor[1m][1m]"):
        assert route(normalise_model(model), [own], alias_provider="p1") is None, model


def test_an_alias_follows_the_setting_and_before_that_the_session() -> None:
    assert label("opus", alias_provider="p2") == "p2"
    assert label("haiku", affinity="p2") == "p2"
    assert label("haiku", affinity="p1", alias_provider="p2") == "p1"
    assert label("haiku", alias_provider="p9") is None
    assert label("claude-haiku-9", alias_provider="p2") == label("claude-haiku-9", affinity="p2") == "p2"
    assert label("claude-haiku-9", alias_provider="p9") is None


def test_what_a_list_has_wins_over_forms_of_names_and_the_first_list_over_others() -> None:
    added = (("claude-opus-5", ""), ("gpt-7", ""), ("gpt-5.5", ""), ("haiku", ""))
    for model, expected in (
        ("claude-opus-5", "p4"),
        ("haiku", "p4"),
        ("gpt-7", "p4"),
        ("gpt-5.5", "p1"),
        ("gpt-8", "p1"),
    ):
        found = route(model, [p4_catalog_of(added), CATALOG], alias_provider="p1")
        assert found == Route(expected, False), model


@rows(
    "called, plain",
    [
        *(
            (f"claude-{model}", model)
            for model in ("gpt-5.5", "gpt-5.5-fast", "kimi-k3", "opencode-go/grok-4.5", "cursor:x")
        ),
        *((f"claude-{model}", model) for model in ("gpt-7-luna", "grok-99")),
        *(
            (model, model)
            for model in ("claude-opus-5", "claude-haiku", "claude-foo", "claude-", "gpt-5.5", "claude-claude-opus-5")
        ),
        ("claude-claude-gpt-5.5", "claude-claude-gpt-5.5"),
    ],
)
def test_a_name_for_the_picker_stands_for_the_model_behind_it(called: str, plain: str) -> None:
    assert without_claude(called, CATALOGS) == plain


def test_a_listed_name_that_begins_like_one_for_the_picker_is_itself() -> None:
    own = Catalog("p4", "opencode", ("claude-gpt-5.5", "gpt-5.5"))
    assert without_claude("claude-gpt-5.5", [own]) == "claude-gpt-5.5"


@rows(
    "model, expected",
    [
        *(("gpt-6.2-sol", "gpt-6.1-sol"), ("gpt-6.2-terra", "gpt-6.1-terra"), ("gpt-7-luna", "gpt-6-luna")),
        *(
            ("gpt-5.6", "gpt-5.5"),
            ("gpt-7", "gpt-5.5"),
            ("gpt-5.4-nano", "gpt-5.4"),
            ("gpt-5.1-codex-max", "gpt-5.3-codex"),
        ),
        *(("gpt-5.1-sol", "gpt-5.6-sol"), ("codex-mini-latest", "gpt-5.4-mini"), ("gpt-4o", "gpt-5.2")),
    ],
)
def test_a_new_model_is_like_the_nearest_known_one(model: str, expected: str) -> None:
    assert nearest(model, [model.id for model in MODELS.values() if model.listed]) == expected


@given(st.text(), st.lists(st.text(), min_size=1))
def test_any_name_is_like_some_known_one_and_a_known_one_like_itself(model: str, known: list[str]) -> None:
    assert nearest(model, known) in known


@rows(
    "entry, haiku, opus",
    [
        ("p1", "gpt-5.6-luna", "gpt-5.6-sol"),
        ("p2", "kimi-for-coding", "kimi-for-coding"),
        ("p3", "grok-4.5", "grok-4.6"),
        ("p4", "glm-5.3-flash", "kimi-k2.7-code"),
        ("p5", "cursor-composer", "cursor"),
    ],
)
def test_every_provider_has_a_model_behind_each_alias(entry: str, haiku: str, opus: str) -> None:
    catalog = next(one.catalog for one in PROVIDERS if one.label == entry)
    assert {catalog.main, catalog.small} <= set(catalog.models)
    assert {catalog.resolved(name) for name in ("haiku", "claude-haiku-5-5", "claude-3-5-haiku-20241022")} == {haiku}
    assert {catalog.resolved(name) for name in ("opus", "claude-opus-9", "claude-opus-5-20260101")} == {opus}
    assert {catalog.resolved(name) for name in catalog.models} == set(catalog.models)
    assert catalog.limits_of("haiku") == catalog.limits_of(haiku)


def test_a_version_that_a_catalogue_lists_is_no_alias() -> None:
    own = Catalog("p5", "cursor", ("claude-opus-4.6",))
    assert route("claude-opus-4.6", [*CATALOGS, own], alias_provider="p1") == Route("p5", False)


@rows(
    "model, proposed",
    [
        ("gpt-5.6-soll", "Did you mean gpt-5.6-sol"),
        ("GPT-5.5", "Did you mean gpt-5.5"),
        ("kimi-k3.0", "Did you mean kimi-k3"),
        ("claude-opas-5", "Did you mean claude-opus-5"),
        ("", ""),
        ("ü" * 200, ""),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_ones(model: str, proposed: str) -> None:
    text = proposal(model, CATALOGS, "p1")
    assert text.startswith(proposed) and bool(text) is bool(proposed)


def test_an_explicit_name_ignores_setting_and_session() -> None:
    assert label("gpt-5.5", alias_provider="p2", affinity="p2") == "p1"


def test_a_route_says_whether_the_name_was_an_alias() -> None:
    for model, alias in (("opus", True), ("claude-opus-9", True), ("gpt-5.5", False), ("cursor:x", False)):
        found = route(model, CATALOGS, alias_provider="p1")
        assert found is not None and found.alias is alias


def test_every_alias_has_a_model_behind_it() -> None:
    assert set(ALIAS_TARGETS) == ALIASES
    assert set(ALIAS_TARGETS.values()) <= set(MODELS)


@given(st.text())
def test_any_name_is_survived_and_names_are_stripped_once(model: str) -> None:
    label(model)
    assert normalise_model(model + "[1M]") == model


def test_the_listing_has_every_name_once_and_in_order() -> None:
    pairs = listing(CATALOGS, "p2")
    assert [provider for _, provider in pairs] == sorted(provider for _, provider in pairs)
    assert ("opus", "p2") in pairs and ("opus", "p1") not in pairs
    for provider in ("p1", "p2", "p3", "p4", "p5"):
        ids = [model for model, owner in pairs if owner == provider]
        assert ids == sorted(set(ids))
    text = catalog_text(CATALOGS, "p1")
    assert text.startswith("Supported: p1: claude-") and text.endswith("composer-2.5, cursor.")


def test_a_name_is_listed_once_with_the_provider_that_serves_it() -> None:
    both = [Catalog("p1", "codex", ("a", "b")), Catalog("p2", "kimi", ("b", "opus"))]
    pairs = listing(both, "p1")
    assert len({name for name, _ in pairs}) == len(pairs)
    for name, label in pairs:
        assert route(name, both, alias_provider="p1") == Route(label, name in ALIASES and name != "opus")


def test_names_with_a_prefix_are_listed_behind_the_others_and_told_by_their_form() -> None:
    own = Catalog("p5", "cursor", ("b", "a"), prefixes=("c:", "d:"), prefixed=("c:y", "c:x"))
    assert listing([own], "p1") == [("a", "p5"), ("b", "p5"), ("c:y", "p5"), ("c:x", "p5")]
    assert catalog_text([own], "p1") == "Supported: p5: a, b, c:<model-id>, d:<model-id>."
    assert proposal("c:xx", [own], "p1") == ""


REVIEW: dict[str, Any] = {
    "system": [{"type": "text", "text": "billing"}, {"type": "text", "text": AUTO_REVIEW_MARKER + " …"}]
}


@rows(
    "changes, expected",
    [
        ({}, True),
        ({"stream": False}, True),
        ({"stream": None}, True),
        ({"stream": True}, False),
        ({"tools": []}, True),
        ({"tools": {}}, True),
        ({"tools": [{"name": "Bash"}]}, False),
        ({"system": AUTO_REVIEW_MARKER}, False),
        ({"system": [{"type": "text", "text": " " + AUTO_REVIEW_MARKER}]}, False),
        ({"system": [3, None, {"text": 5}]}, False),
    ],
)
def test_the_safety_classifier_is_recognised(changes: dict[str, Any], expected: bool) -> None:
    assert is_auto_review({**REVIEW, **changes}) is expected


@given(json_values, json_values, json_values)
def test_recognising_it_survives_anything(system: Any, tools: Any, stream: Any) -> None:
    is_auto_review({"system": system, "tools": tools, "stream": stream})
