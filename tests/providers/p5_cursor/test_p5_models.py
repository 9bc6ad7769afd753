"""What a requested name comes to, and what the service is asked for when it refuses an id."""

from __future__ import annotations

from typing import Any

import pytest
from core.strategies import json_values
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.models import ModelFacts, model_list
from proxy.core.routing import normalise_model, route
from proxy.errors import RequestError
from proxy.providers.p5_cursor.catalog import CATALOG, NAMES, PREFIXES, catalog_of
from proxy.providers.p5_cursor.models import ModelSelection, select, stronger
from proxy.providers.p5_cursor.snapshot import LATER, SNAPSHOT
from proxy.providers.registry import PROVIDERS

FAST = (("fast", "true"),)
SLOW = (("fast", "false"),)
AGENT, ASK, PLAN = 1, 2, 3

#: name, effort, metadata -> id, parameters, mode
ROWS: list[tuple[str, Any, Any, str, tuple[tuple[str, str], ...], int]] = [
    # those of the wire document
    ("cursor", None, None, "default", (), AGENT),
    ("cursor-ask", None, {"cursor_mode": "plan"}, "default", (), ASK),
    ("cursor:gpt-5.5-high-fast", None, None, "gpt-5.5-high-fast", (), AGENT),
    ("cursor:claude-sonnet-4-6-fast", None, {"cursor_mode": "plan"}, "claude-sonnet-4-6", FAST, PLAN),
    ("cursor:composer-2.5", None, None, "composer-2.5", SLOW, AGENT),
    ("composer-2.5-fast", None, None, "composer-2.5", FAST, AGENT),
    ("cursor:gpt-5.5", "max", None, "gpt-5.5-extra-high", (), AGENT),
    ("cursor:gpt-5.2", "max", None, "gpt-5.2-xhigh", (), AGENT),
    ("cursor:gpt-5.5-fast", "high", None, "gpt-5.5-high-fast", (), AGENT),
    ("cursor:gpt-5.5-low", "max", None, "gpt-5.5-low", (), AGENT),
    ("cursor:gpt-5.1-codex-max", "high", None, "gpt-5.1-codex-max", (), AGENT),
    ("cursor:gemini-3.1-pro", "high", None, "gemini-3.1-pro", (), AGENT),
    ("cursor-ask:claude-opus-4-8-thinking", "high", None, "claude-opus-4-8-thinking-high", (), ASK),
    ("cursor:auto", None, None, "default", (), AGENT),
    ("cursor-agent:gpt-5.5", None, {"cursor_mode": "ask"}, "gpt-5.5", (), AGENT),
    ("cursor:gpt-5.5[1M]", None, None, "gpt-5.5", (), AGENT),
    ("cursor-composer", "high", {"cursorMode": "AGENT_MODE_ASK"}, "composer-2.5", SLOW, ASK),
    ("cursor:x-fast-fast", None, None, "x-fast", FAST, AGENT),
    ("cursor:composer-2.5", "low", None, "composer-2.5", SLOW, AGENT),
    ("cursor:gpt-5.4-fast", "low", None, "gpt-5.4-low", FAST, AGENT),
    ("cursor:gpt-5.5", "xhigh", None, "gpt-5.5-extra-high", (), AGENT),
    # their neighbours
    ("cursor-agent", "high", {"cursor_mode": "plan"}, "default", (), PLAN),
    ("cursor-plan", None, {"cursor_mode": "ask"}, "default", (), PLAN),
    ("composer-2.5", None, None, "composer-2.5", SLOW, AGENT),
    ("cursor-composer-fast", None, {"cursor_mode": "ask"}, "composer-2.5", FAST, ASK),
    ("cursor-plan:gpt-5.5", None, {"cursor_mode": "ask"}, "gpt-5.5", (), PLAN),
    ("cursor-agent:composer-2.5", None, {"cursor_mode": "ask"}, "composer-2.5", SLOW, AGENT),
    ("cursor:composer-2.5-fast", None, None, "composer-2.5-fast", (), AGENT),
    ("cursor:auto-fast", None, None, "default", FAST, AGENT),
    ("cursor:auto", "high", None, "default", (), AGENT),
    ("cursor:default", None, None, "default", (), AGENT),
    ("cursor:gpt-5.5", "low", None, "gpt-5.5-low", (), AGENT),
    ("cursor:gpt-5.5", "medium", None, "gpt-5.5-medium", (), AGENT),
    ("cursor:gpt-5.1", "medium", None, "gpt-5.1", (), AGENT),
    ("cursor:gpt-5.2", "xhigh", None, "gpt-5.2-xhigh", (), AGENT),
    ("cursor:gpt-5.1", "max", None, "gpt-5.1-high", (), AGENT),
    ("cursor:claude-opus-4-7", "max", None, "claude-opus-4-7-max", (), AGENT),
    ("cursor:claude-opus-4-7-fast", "max", None, "claude-opus-4-7-max-fast", (), AGENT),
    ("cursor:gpt-5.5-none-fast", "max", None, "gpt-5.5-none-fast", (), AGENT),
    ("cursor:gpt-5.5", "none", None, "gpt-5.5", (), AGENT),
    ("cursor:gpt-5.5", "purple", None, "gpt-5.5", (), AGENT),
    ("cursor:gpt-5.5", 3, None, "gpt-5.5", (), AGENT),
    ("cursor:-fast", None, None, "-fast", (), AGENT),
    ("cursor:brand-new", "max", None, "brand-new", (), AGENT),
    ("cursor:a:b", None, None, "a:b", (), AGENT),
    ("  cursor-plan:gpt-5.5\t", None, None, "gpt-5.5", (), PLAN),
    (" cursor ", None, None, "default", (), AGENT),
    ("cursor: gpt-5.5", None, None, "gpt-5.5", (), AGENT),
    ("cursor:gpt-5.5 [1m] ", None, None, "gpt-5.5", (), AGENT),
    ("cursor", None, {"cursor_mode": "AGENT_MODE_PLAN"}, "default", (), PLAN),
    ("cursor", None, {"cursor_mode": "debug", "cursorMode": "ask"}, "default", (), ASK),
    ("cursor", None, {"cursor_mode": "plan", "cursorMode": "ask"}, "default", (), PLAN),
    ("cursor", None, {"cursor_mode": None, "cursorMode": 2}, "default", (), AGENT),
    ("cursor", None, {"cursor_mode": "PLAN"}, "default", (), AGENT),
    ("cursor", None, "plan", "default", (), AGENT),
]


def asked(effort: Any, metadata: Any) -> dict[str, Any]:
    return {"output_config": {"effort": effort}, "metadata": metadata}


@rows("name, effort, metadata, model, parameters, mode", ROWS)
def test_a_name_selects_a_model(
    name: str, effort: Any, metadata: Any, model: str, parameters: tuple[tuple[str, str], ...], mode: int
) -> None:
    found = route(normalise_model(name), [CATALOG], alias_provider="p1")
    assert found is not None and found.label == "p5"
    assert select(normalise_model(name), asked(effort, metadata), ()) == ModelSelection(model, parameters, mode)


@rows(
    "name",
    [
        *("cursor:", "Cursor", "CURSOR:gpt-5.5", "cursor: ", " cursor-ask:\n", "gpt-5.2", "auto", "", "cursor:[1m]"),
        *("cursor-debug:gpt-5.5", "composer-2.5-high", ":", "gpt-5.5 cursor:"),
    ],
)
def test_a_name_that_is_none_of_p5_is_refused_with_the_accepted_forms(name: str) -> None:
    assert route(normalise_model(name), [CATALOG], alias_provider="p1") is None
    with pytest.raises(RequestError, match=r"cursor-ask:<model-id>\.$") as caught:
        select(normalise_model(name), {}, ())
    assert caught.value.status == 400 and caught.value.param == "model" and caught.value.provider == "p5"


def test_an_endless_id_is_refused_with_its_beginning() -> None:
    with pytest.raises(RequestError, match="Accepted: ") as caught:
        select("cursor:" + "9" * 100_000, {}, ())
    assert len(caught.value.message) < 1000
    assert select("cursor:" + "9" * 100, {}, ()).model_id == "9" * 100


@rows("model", sorted(SNAPSHOT))
def test_bare_ids_of_the_service_are_nobody_elses_by_our_prefixes(model: str) -> None:
    others = [entry.catalog for entry in PROVIDERS if entry.label != "p5"]
    for prefix in PREFIXES:
        assert route(prefix + model, [*others, CATALOG], alias_provider="p1") == route(
            prefix + model, [CATALOG], alias_provider="p1"
        )
    if model not in NAMES:
        assert route(model, [CATALOG], alias_provider="p1") is None


def test_the_service_may_name_ids_that_the_snapshot_has_not() -> None:
    known = ("gpt-9", "gpt-9-high", "gpt-9-max-fast", "new-fast")
    assert select("cursor:gpt-9", asked("high", None), known).model_id == "gpt-9-high"
    assert select("cursor:gpt-9-fast", asked("max", None), known) == ModelSelection("gpt-9-max-fast", (), AGENT)
    assert select("cursor:gpt-9-fast", asked("high", None), known) == ModelSelection("gpt-9-high", FAST, AGENT)
    assert select("cursor:new-fast", {}, known) == ModelSelection("new-fast", (), AGENT)
    assert select("cursor:new-fast", {}, ()) == ModelSelection("new", FAST, AGENT)


@rows(
    "refused, other",
    [
        (ModelSelection("claude-opus-4-8", (), PLAN), ModelSelection("claude-opus-4-8-high", (), PLAN)),
        (ModelSelection("claude-4.6-sonnet", (), AGENT), ModelSelection("claude-4.6-sonnet-medium", (), AGENT)),
        (ModelSelection("claude-4.6-opus", (), ASK), ModelSelection("claude-4.6-opus-high", (), ASK)),
        (ModelSelection("gpt-5.5", (), AGENT), ModelSelection("gpt-5.5-high", (), AGENT)),
        (ModelSelection("gpt-5.5", FAST, AGENT), ModelSelection("gpt-5.5-high-fast", (), AGENT)),
        (ModelSelection("claude-opus-5", FAST, AGENT), ModelSelection("claude-opus-5-high", FAST, AGENT)),
        (ModelSelection("claude-opus-5", (), AGENT), ModelSelection("claude-opus-5-high", (), AGENT)),
        (ModelSelection("m", (), AGENT), ModelSelection("m-max", (), AGENT)),
        (ModelSelection("gpt-5.5-low", (), AGENT), None),
        (ModelSelection("gpt-5.1-codex-max", (), AGENT), None),
        (ModelSelection("default", (), AGENT), None),
        (ModelSelection("composer-2.5", SLOW, AGENT), None),
        (ModelSelection("nobody-knows", (), AGENT), None),
    ],
)
def test_a_bare_id_that_exists_only_with_an_effort_gets_one(
    refused: ModelSelection, other: ModelSelection | None
) -> None:
    assert stronger(refused, {"m-low", "m-max", "m-none"}) == other


def test_the_snapshot_has_129_ids_and_the_list_each_of_them_in_three_modes() -> None:
    assert len(SNAPSHOT) == len(set(SNAPSHOT)) == 129
    assert not LATER & set(SNAPSHOT)
    assert len(CATALOG.prefixed) == 3 * 129
    assert CATALOG.prefixed[0] == "cursor:auto" and CATALOG.prefixed[-1] == "cursor-ask:kimi-k2.5"
    assert catalog_of((), model_list([("x", ModelFacts())], 0.0)).prefixed == (
        "cursor:x",
        "cursor-plan:x",
        "cursor-ask:x",
    )
    assert set(CATALOG.models) == set(NAMES) and len(NAMES) == 8


@given(st.text(max_size=9), st.sampled_from([*PREFIXES, *NAMES, ""]), json_values, json_values)
def test_every_name_that_routes_here_selects_something(end: str, start: str, effort: Any, metadata: Any) -> None:
    name = normalise_model(start + end)
    if route(name, [CATALOG], alias_provider="p1") is not None:
        selection = select(name, asked(effort, metadata), ())
        assert selection.model_id and selection.mode in (AGENT, ASK, PLAN)
