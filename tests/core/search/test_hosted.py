"""The hosted search of a request: what is read of it, and what the model gets in its place."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from samples import rows

from core.strategies import json_objects, json_values
from proxy.core.invalid import InvalidRequest
from proxy.core.search.hosted import MAX_DOMAINS, MAX_USES, USES, search_plan

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.example"]}
BASH = {"name": "Bash", "input_schema": {"type": "object"}}
PREFIX = "Perform a web search for the query:"


def asked(text: Any, *tools: Any, **members: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "tools": list(tools), **members}


def test_the_model_gets_a_function_in_the_place_of_the_search() -> None:
    request = asked("hi", BASH, {**SEARCH, "cache_control": {"type": "ephemeral"}}, {"name": "x"})
    before = copy.deepcopy(request)
    plan = search_plan(request)
    assert plan is not None and request == before
    names = [tool["name"] for tool in plan.request["tools"]]
    assert names == ["Bash", "web_search", "x"] and plan.name == "web_search"
    function = plan.request["tools"][1]
    assert function["input_schema"]["required"] == ["query"] and function["cache_control"] == {"type": "ephemeral"}
    assert "type" not in function
    assert plan.query("q").allowed == ("a.example",) and plan.uses == 3


@rows(
    "text, tools, choice, expected",
    [
        (f"{PREFIX} rust ", [SEARCH], None, "rust"),
        ([{"type": "text", "text": f"{PREFIX} rust"}], [SEARCH], {"type": "auto"}, "rust"),
        (f"{PREFIX} rust", [SEARCH], {"type": "tool", "name": "web_search"}, "rust"),
        (f"{PREFIX} rust", [SEARCH, BASH], None, None),
        (f"{PREFIX} rust", [SEARCH], {"type": "none"}, None),
        (PREFIX, [SEARCH], None, None),
        ("rust", [SEARCH], {"type": "tool", "name": "web_search"}, None),
    ],
)
def test_a_request_that_only_searches_is_recognised(text: Any, tools: Any, choice: Any, expected: str | None) -> None:
    plan = search_plan(asked(text, *tools, **({"tool_choice": choice} if choice else {})))
    assert plan is not None and plan.only == expected


@rows("uses, expected", [(None, USES), (1, 1), (10**9, MAX_USES)])
def test_the_number_of_searches_is_bounded(uses: Any, expected: int) -> None:
    plan = search_plan(asked("hi", {**SEARCH, "max_uses": uses}))
    assert plan is not None and plan.uses == expected and plan.rounds <= MAX_USES + 2


@rows(
    "members",
    [
        *({"max_uses": uses} for uses in (0, -1, "3", 2.0, True)),
        *({"name": name} for name in ("a b", "x" * 65, 7, "é")),
        *(
            {name: ["a.example", domain]}
            for name in ("allowed_domains", "blocked_domains")
            for domain in ("evil.*", "*evil.example", "a.example/*/b/*/c", "http://[", "a..example", "a b.example")
        ),
        {"blocked_domains": [f"a{number}.example" for number in range(MAX_DOMAINS + 1)]},
    ],
)
def test_what_would_not_be_honoured_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        search_plan(asked("hi", {**SEARCH, **members}))
    assert next(iter(members)) in str(refused.value)


def test_domains_have_one_spelling() -> None:
    given = [" A.example", ".a.example", "//a.example", "a.example.", "ａ.example", "https://www.a.example/", "", 7]
    plan = search_plan(asked("hi", {**SEARCH, "allowed_domains": given, "blocked_domains": ["bücher.example/x/*"]}))
    assert plan is not None
    assert plan.query("q").filters == {
        "allowed_domains": ["a.example"],
        "blocked_domains": ["xn--bcher-kva.example/x"],
    }


def test_further_searches_stay_for_the_route_to_leave_out() -> None:
    plan = search_plan(asked("hi", SEARCH, BASH, {**SEARCH, "type": "web_search_20260209"}))
    assert plan is not None
    assert [tool.get("type") for tool in plan.request["tools"]] == [None, None, "web_search_20260209"]


def test_requests_without_a_search_have_no_plan() -> None:
    for tools in ([], [BASH], [{"name": "web_search", "input_schema": {}}], [SEARCH, {**BASH, "name": "web_search"}]):
        assert search_plan(asked("hi", *tools)) is None
    assert search_plan({"messages": []}) is None and search_plan({"tools": "x"}) is None


@given(json_objects, json_values)
def test_any_tool_is_read(tool: dict[str, Any], content: Any) -> None:
    request = {
        "messages": [{"role": "assistant", "content": content}],
        "tools": [{**tool, "type": "web_search_20250305"}],
    }
    before = copy.deepcopy(request)
    with contextlib.suppress(InvalidRequest):
        search_plan(request)
    assert request == before
