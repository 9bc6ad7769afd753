"""Which models a picker shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import rows

from proxy.cli.launch.client_environment import UnknownModel, served_model
from proxy.cli.launch.usable_models import MAX_NAMES, UsableModel, usable_models, with_chosen
from proxy.config import Config
from proxy.core.models import ModelFacts, ModelList
from proxy.core.routing import Catalog
from proxy.providers.registry import PROVIDERS

KNOWN = ModelFacts(5000)


def shown(found: list[UsableModel]) -> list[str]:
    return [model.name for model in found if model.shown]


def test_models_of_providers_that_are_signed_in_alone() -> None:
    found = usable_models(PROVIDERS, Config(), {"p2", "p3"})
    assert {model.label for model in found} == {"p2", "p3"}
    assert [model.about for model in found if model.name == "kimi-k3"] == ["Kimi Code (p2)"]


def test_without_a_known_account_those_of_all() -> None:
    assert {model.label for model in usable_models(PROVIDERS, Config(), ())} == {"p1", "p2", "p3", "p4", "p5"}


def test_a_client_with_tools_of_any_name_gets_no_provider_that_refuses_them() -> None:
    strict, lenient = Config(), Config(openai_mode="lenient")
    labels = [
        {model.label for model in usable_models(PROVIDERS, config, (), any_tools=True)} for config in (strict, lenient)
    ]
    assert labels == [{"p1", "p2", "p3", "p4"}, {"p1", "p2", "p3", "p4", "p5"}]


def test_each_model_has_one_row_and_each_name_is_known() -> None:
    found = usable_models(PROVIDERS, Config(), ())
    names = [model.name for model in found]
    assert len(names) == len(set(names)) and {"k3", "kimi-k3", "glm-5.3", "gpt-5.5"} <= set(names)
    assert {"kimi-k3", "opencode-go/glm-5.3"} <= set(shown(found)) and not {"k3", "glm-5.3"} & set(shown(found))
    assert "gpt-5.5-fast" not in names, "a tier is no model"


def test_what_no_account_has_and_what_the_service_hides() -> None:
    facts = {"a": KNOWN, "b": KNOWN, "hidden": replace(KNOWN, listed=False)}
    catalog = Catalog("p2", "toy", ("a", "b", "hidden"), main="a", small="a", facts=facts, lacking=frozenset("b"))
    entry = replace(PROVIDERS[1], catalog=catalog, adding=None)
    assert [(model.name, model.shown) for model in usable_models([entry], Config(), ())] == [
        ("a", True),
        ("hidden", False),
    ]


def test_a_list_of_a_thousand_ids_is_bounded() -> None:
    offered = ModelList({f"x-{number}": KNOWN for number in range(1000)})
    entries = [PROVIDERS[1].offering(offered, PROVIDERS)]
    found = usable_models(entries, Config(), ())
    assert len(found) == MAX_NAMES and all(model.offered for model in found)


@rows(
    "typed, base, window",
    [
        ("kimi-k3", None, 1_048_576),
        ("opus", "gpt-5.6-sol", 272_000),
        ("gpt-5.5[1m]", "gpt-5.5", 272_000),
        ("claude-kimi-k2.6", "kimi-k2.6", 262_144),
        ("cursor", "cursor", None),
        ("gpt-9", "gpt-9", None),
    ],
)
def test_the_chosen_model_has_a_row(typed: str, base: str | None, window: int | None) -> None:
    served = served_model("http://a", Config(claude_names=True), PROVIDERS, PROVIDERS[0], typed)
    models = usable_models(PROVIDERS, Config(), (), any_tools=True)
    found = with_chosen(models, served)
    added = found[len(models) :]
    assert [(model.name, model.base, model.shown) for model in added] == ([(typed, base, False)] if base else [])
    assert served.window == window == next(model.facts.context for model in found if model.name == typed)


def test_a_name_for_claude_code_that_the_proxy_would_refuse() -> None:
    with pytest.raises(UnknownModel, match=r"claude-kimi-k2\.6"):
        served_model("http://a", Config(), PROVIDERS, PROVIDERS[0], "claude-kimi-k2.6")


def test_a_new_model_of_p4_sees_as_the_one_that_it_resembles() -> None:
    entry = PROVIDERS[3].offering(ModelList({"minimax-m4": ModelFacts(), "glm-5.4": ModelFacts()}), PROVIDERS)
    facts = {model.name: model.facts for model in usable_models([entry], Config(), ()) if model.shown}
    assert (facts["opencode-go/minimax-m4"].sees, facts["opencode-go/minimax-m4"].context) == (True, 1_000_000)
    assert facts["opencode-go/glm-5.4"].sees is False
