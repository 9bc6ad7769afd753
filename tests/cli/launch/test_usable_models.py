"""Which models a picker shows."""

from __future__ import annotations

from dataclasses import replace

from proxy.cli.launch.usable_models import UsableModel, usable_models
from proxy.config import Config
from proxy.core.models import ModelFacts
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


def test_a_client_with_tools_of_any_name_gets_no_provider_that_bridges_some() -> None:
    assert {model.label for model in usable_models(PROVIDERS, Config(), (), any_tools=True)} == {"p1", "p2", "p3", "p4"}


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
