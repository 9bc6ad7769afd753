"""What clients are told, and what becomes of what the user has set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import rows

from proxy.cli.launch.client_environment import (
    Served,
    UnknownModel,
    asked_option,
    child_environment,
    claude_code,
    claude_code_child,
    codex_options,
    first_entry,
    openai,
    served_model,
    without_elsewhere,
)
from proxy.config import Config
from proxy.core.models import ModelFacts
from proxy.core.routing import Catalog
from proxy.providers.registry import PROVIDERS

URL = "http://127.0.0.1:18765"
CATALOG = Catalog("p9", "toy", ("big", "quick"), main="big", small="quick", facts={"big": ModelFacts(5000)})
SERVED = Served(URL, "", CATALOG, "big", alias=True)


def told(served: Served) -> dict[str, str]:
    return {one.name: one.value for one in claude_code(served)}


FAMILIES = {
    "ANTHROPIC_DEFAULT_FABLE_MODEL": "big",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "quick",
    "ANTHROPIC_DEFAULT_OPUS_MODEL": "big",
    "ANTHROPIC_DEFAULT_SONNET_MODEL": "big",
}
WINDOW = {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "5000", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "5000"}


@rows(
    "changes, differs",
    [
        ({}, WINDOW),
        ({"key": "k y"}, {**WINDOW, "ANTHROPIC_AUTH_TOKEN": "k y"}),
        ({"model": "quick"}, {"ANTHROPIC_MODEL": "quick"}),
        ({"model": "big[1m]"}, {**WINDOW, "ANTHROPIC_MODEL": "big[1m]"}),
        ({"alias": False}, {**WINDOW, **FAMILIES}),
    ],
)
def test_what_claude_code_is_told(changes: dict[str, Any], differs: dict[str, str]) -> None:
    base = {
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_AUTH_TOKEN": "unused",
        "ANTHROPIC_MODEL": "big",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    }
    assert told(replace(SERVED, **changes)) == {**base, **differs}


def test_settings_by_model_would_not_count_beside_the_variable() -> None:
    names = {one.name for one in claude_code_child(SERVED, compacts=False)}
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" in names and "CLAUDE_CODE_AUTO_COMPACT_WINDOW" not in names


def test_what_other_clients_are_told() -> None:
    assert {one.name: one.value for one in openai(replace(SERVED, key="k"))} == {
        "OPENAI_BASE_URL": f"{URL}/v1",
        "OPENAI_API_KEY": "k",
    }


def test_the_options_of_codex_are_values_of_toml() -> None:
    place = (
        'model_providers.model-proxy={name="model-proxy",base_url="http://127.0.0.1:18765/v1",'
        'wire_api="responses",env_key="MODEL_PROXY_KEY"}'
    )
    base = ["-c", place, "-c", 'model_provider="model-proxy"']
    assert codex_options(SERVED, model=True) == [*base, "-c", 'model="big"', "-c", "model_context_window=5000"]
    assert codex_options(replace(SERVED, model="quick"), model=False) == base
    catalog = ["-c", "model_catalog_json=…"]
    assert codex_options(SERVED, model=False, catalog=catalog[1]) == [*base, *catalog], "which has all windows"


#: what the user has set, what the client then has, what is said of it
OWN: list[tuple[dict[str, str], dict[str, str], list[str]]] = [
    ({}, {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_MODEL": "big"}, []),
    ({"ANTHROPIC_MODEL": "big", "ANTHROPIC_BASE_URL": URL}, {"ANTHROPIC_MODEL": "big"}, []),
    (
        {"ANTHROPIC_MODEL": "mine"},
        {"ANTHROPIC_MODEL": "mine"},
        ["ANTHROPIC_MODEL: your mine is kept, and not big"],
    ),
    ({"ANTHROPIC_MODEL": ""}, {"ANTHROPIC_MODEL": "big"}, []),
    (
        {"ANTHROPIC_BASE_URL": "https://elsewhere", "ANTHROPIC_AUTH_TOKEN": "hunter2"},
        {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_AUTH_TOKEN": "unused"},
        ["ANTHROPIC_BASE_URL: not used here", "ANTHROPIC_AUTH_TOKEN: not used here"],
    ),
    ({"OTHER": "kept"}, {"OTHER": "kept"}, []),
]


@rows("own, has, said", OWN)
def test_a_choice_of_the_user_is_kept_and_told(own: dict[str, str], has: dict[str, str], said: list[str]) -> None:
    before = dict(own)
    result, lines = child_environment(own, claude_code(SERVED), URL)
    assert result.items() >= has.items() and lines == said and own == before


@rows(
    "own, direct",
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy"}, None),
        ({"HTTP_PROXY": "http://proxy"}, "127.0.0.1"),
        ({"all_proxy": "http://proxy", "NO_PROXY": "a,b"}, "a,b,127.0.0.1"),
        ({"HTTP_PROXY": "http://proxy", "no_proxy": "127.0.0.1"}, None),
        ({"HTTP_PROXY": "http://proxy", "no_proxy": "*"}, None),
    ],
)
def test_an_outgoing_proxy_is_not_asked_for_this_machine(own: dict[str, str], direct: str | None) -> None:
    result, _ = child_environment(own, [], URL)
    assert result == {**own, **({} if direct is None else {"no_proxy": direct, "NO_PROXY": direct})}


def test_what_leads_elsewhere_is_taken_out_and_told_without_its_value() -> None:
    environment = {"ANTHROPIC_API_KEY": "hunter2", "CLAUDE_CODE_USE_BEDROCK": "1", "PATH": "/bin"}
    assert without_elsewhere(environment) == ["ANTHROPIC_API_KEY, CLAUDE_CODE_USE_BEDROCK: not used here"]
    assert environment == {"PATH": "/bin"} and without_elsewhere(environment) == []


@rows(
    "arguments, model",
    [
        ([], None),
        (["-p", "hi"], None),
        (["--model", "a"], "a"),
        (["--model=a", "-m", "b"], "b"),
        (["--", "--model", "a"], None),
        (["--model"], None),
        (["-m="], ""),
    ],
)
def test_the_model_among_the_arguments_of_a_client(arguments: list[str], model: str | None) -> None:
    assert asked_option(arguments, ("--model", "-m")) == model


#: who is signed in, who serves aliases, what the user names -> provider, model, window, whether aliases go there too
CHOICES: list[tuple[set[str], str, str | None, tuple[str, str, int | None, bool]]] = [
    ({"p1"}, "p1", None, ("p1", "gpt-5.6-sol", 272_000, True)),
    ({"p1", "p3"}, "p3", None, ("p3", "grok-4.6", 500_000, True)),
    ({"p2", "p4"}, "p1", None, ("p2", "kimi-for-coding", 262_144, False)),
    ({"p5"}, "p5", None, ("p5", "cursor", None, True)),
    ({"p1"}, "p1", "p2", ("p2", "kimi-for-coding", 262_144, False)),
    ({"p1"}, "p1", "grok", ("p3", "grok-4.6", 500_000, False)),
    ({"p1"}, "p1", "grok-4.5[1m]", ("p3", "grok-4.5[1m]", 500_000, False)),
    ({"p2"}, "p1", "opus", ("p2", "opus", 262_144, False)),
    ({"p1"}, "p1", "claude-haiku-4-5", ("p1", "claude-haiku-4-5", 272_000, True)),
]


@rows("usable, alias, model, chosen", CHOICES)
def test_the_model_is_of_somebody_who_is_signed_in(
    usable: set[str], alias: str, model: str | None, chosen: tuple[str, str, int | None, bool]
) -> None:
    config = Config(alias_provider=alias)
    served = served_model("http://x", config, PROVIDERS, first_entry(PROVIDERS, config, usable), model)
    assert (served.catalog.label, served.model, served.window, served.alias) == chosen


def test_a_name_that_nobody_serves_is_told_with_what_is_near() -> None:
    with pytest.raises(UnknownModel, match=r'no provider serves the model "gpt5.6-sol"\. Did you mean gpt-5\.6-sol'):
        served_model("http://x", Config(), PROVIDERS, PROVIDERS[0], "gpt5.6-sol")
