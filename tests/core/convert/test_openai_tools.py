"""Tools and the choice among them, the same on both OpenAI-style routes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from samples import each, rows

from core.openai_bodies import SURFACES, function_tool, parse, refusal
from proxy.core.convert.openai_mode import UNSUPPORTED
from proxy.core.convert.openai_tools import MAX_TOOLS, flat_name
from proxy.core.ingress import WEB_SEARCH
from proxy.core.tools.calls import MAX_NAME

AUTO, NONE, ANY, TOOL = {"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "f"}
#: tool_choice -> the hub's, without parallel_tool_calls; absent says nothing
CHOICES: dict[Any, dict[str, Any] | None] = {None: None, "auto": AUTO, "none": NONE, "required": ANY, "f": TOOL}
ABSENT = object()


def choice_of(surface: str, choice: str | None) -> Any:
    """The name of a function stands for the form that chooses it."""
    if choice != "f":
        return choice
    return {"type": "function", "function": {"name": "f"}} if surface == "chat" else {"type": "function", "name": "f"}


@rows("parallel", [ABSENT, None, True, False])
@rows("choice", CHOICES)
@rows("surface", SURFACES)
def test_choice_and_parallel_calls(surface: str, choice: str | None, parallel: Any) -> None:
    members = {"tools": [function_tool(surface, "f")], "tool_choice": choice_of(surface, choice)}
    members |= {} if parallel is ABSENT else {"parallel_tool_calls": parallel}
    expected = CHOICES[choice]
    if isinstance(parallel, bool):
        expected = {**(expected or AUTO), "disable_parallel_tool_use": not parallel}
    assert parse(surface, **members).request.get("tool_choice") == expected


@rows("parallel", [None, True, False])
@rows("tools", [None, []])
@rows("surface", SURFACES)
def test_without_tools_there_is_nothing_to_choose(surface: str, tools: Any, parallel: bool | None) -> None:
    members = {"tools": tools, "parallel_tool_calls": parallel}
    for choice in (None, "auto", "none"):
        assert parse(surface, **members, tool_choice=choice) == parse(surface, **members) or surface == "responses"
        request = parse(surface, **members, tool_choice=choice).request
        assert "tool_choice" not in request and "tools" not in request
    for choice in ("required", "f"):
        assert refusal(surface, **members, tool_choice=choice_of(surface, choice)) == ("tool_choice", None)


@pytest.mark.parametrize("surface", SURFACES)
def test_choices_that_nobody_knows(surface: str) -> None:
    tools = [function_tool(surface, "f")]
    for kind in ("allowed_tools", "web_search", "custom", "file_search", None, 5):
        wanted = {"type": kind, "name": "f"}
        assert refusal(surface, tools=tools, tool_choice=wanted) == ("tool_choice.type", "unsupported_parameter")
    for word in ("any", "", "AUTO"):
        assert refusal(surface, tools=tools, tool_choice=word) == ("tool_choice", "unsupported_parameter")
    nameless = {"type": "function"}, {"type": "function", "name": 5, "function": {"name": ""}}
    other = {"type": "function", "name": "zzz", "function": {"name": "zzz"}}
    for choice in (5, True, [], *nameless, other, {"type": "function", "function": "f"}):
        assert refusal(surface, tools=tools, tool_choice=choice) == ("tool_choice", None)


@rows("strict", [None, False, True])
@rows("surface", SURFACES)
def test_strict_is_accepted_and_left_out(surface: str, strict: bool | None) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/x"}}, "x": [1]}
    tool = function_tool(surface, "f", description="d", parameters=schema, strict=strict)
    declared = {"name": "f", "input_schema": schema, "description": "d"}
    assert parse(surface, tools=[tool]).request["tools"] == [declared]


@rows("namespace, name", [("a.b", "c d"), ("a", "c/d:e"), ("ä", "日本"), ("a" * 60, "b.c" * 9)])
def test_names_of_functions_in_namespaces_fit_every_upstream(namespace: str, name: str) -> None:
    tool = {"type": "namespace", "name": namespace, "tools": [function_tool("responses", name)]}
    ingress = parse("responses", tools=[tool, function_tool("responses", "p.q")])
    flat, plain = (declared["name"] for declared in ingress.request["tools"])
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", flat) and plain == "p.q"
    assert ingress.namespaces == {flat: (namespace, name)}


#: member of a function -> values that it cannot have
BAD_MEMBERS = {
    "name": (None, "", 5),
    "parameters": ([], "x", 5),
    "description": ([], 5),
    "strict": ("true", 1, {}),
}


@rows("name", BAD_MEMBERS)
@rows("surface", SURFACES)
def test_a_bad_member_of_a_function_is_named(surface: str, name: str) -> None:
    path = "tools[1].function" if surface == "chat" else "tools[1]"
    for value in BAD_MEMBERS[name]:
        tool = function_tool(surface, **{"name": "g", name: value})
        assert refusal(surface, tools=[function_tool(surface, "f"), tool]) == (f"{path}.{name}", None)
    stranger = function_tool(surface, "g", cache_control={})
    refused = refusal(surface, tools=[function_tool(surface, "f"), stranger])
    assert refused == (f"{path}.cache_control", "unsupported_parameter")
    twice = [function_tool(surface, "f"), function_tool(surface, "f")]
    assert refusal(surface, tools=twice) == (f"{path}.name", None)


_HOSTED = """
    file_search code_interpreter computer computer_use_preview image_generation mcp local_shell shell apply_patch
    programmatic_tool_calling
"""


@pytest.mark.parametrize("surface", SURFACES)
def test_search_among_posts_is_refused_where_there_is_none(surface: str) -> None:
    assert refusal(surface, tools=[{"type": "x_search"}]) == ("tools[0].type", UNSUPPORTED)


@each(2)
@pytest.mark.parametrize("rules", ["p2", "p3"])
@pytest.mark.parametrize("kind", [*_HOSTED.split(), "", None, 5])
@pytest.mark.parametrize("surface", SURFACES)
def test_other_kinds_of_tools_are_refused(surface: str, kind: Any, rules: str) -> None:
    tools = [function_tool(surface, "f"), {"type": kind, "name": "x"}]
    assert refusal(surface, rules, tools=tools) == ("tools[1].type", "unsupported_parameter")


@rows("kind", ["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"])
@rows("surface", SURFACES)
def test_hosted_search_is_mapped_where_there_is_one(surface: str, kind: str) -> None:
    tools = [{"type": kind, "external_web_access": True, "search_context_size": "low"}, function_tool(surface, "f")]
    searching = {"type": "web_search_20250305", "name": "web_search"}
    declared = {"name": "f", "input_schema": {"type": "object"}}
    assert parse(surface, "p3", tools=tools).request["tools"] == [searching, declared]
    for rules in ("p2", "p5"):
        plain = [tools[0], function_tool(surface, "Read")]
        names = [tool["name"] for tool in parse(surface, rules, "s", tools=plain, stream=True).request["tools"]]
        assert names == ["Read"]
    taken = [tools[0], function_tool(surface, "web_search")]
    for rules in ("p2", "p3"):
        [only] = parse(surface, rules, tools=taken).request["tools"]
        assert only["input_schema"] == {"type": "object"}


DOMAINS = ["a.example"]


@rows(
    "members, expected",
    [
        ({"filters": {"allowed_domains": DOMAINS}}, {"allowed_domains": DOMAINS}),
        ({"allowed_domains": DOMAINS, "filters": {"allowed_domains": None}}, {"allowed_domains": DOMAINS}),
        *(
            ({"filters": {name: DOMAINS}}, {"blocked_domains": DOMAINS})
            for name in ("blocked_domains", "excluded_domains")
        ),
        (
            {"filters": {"allowed_domains": [], "blocked_domains": DOMAINS}},
            {"allowed_domains": [], "blocked_domains": DOMAINS},
        ),
        ({"user_location": {"city": "Oslo"}}, {"user_location": {"city": "Oslo"}}),
        *(({name: None}, {}) for name in ("filters", "user_location", "allowed_domains")),
        *((hint, {}) for hint in ({"search_context_size": "low"}, {"name": "x"}, {"filters": {}}, {"from_date": "x"})),
    ],
)
@rows("surface", SURFACES)
def test_what_narrows_a_search(surface: str, members: dict[str, Any], expected: dict[str, Any]) -> None:
    tools = [{"type": "web_search", **members}]
    assert parse(surface, "p3", tools=tools).request["tools"] == [{**WEB_SEARCH.tool, **expected}]
    assert "tools" not in parse(surface, tools=tools).request


@rows(
    "kind, members, param, code",
    [
        *(("web_search", {"filters": value}, "tools[0].filters", None) for value in ([], "x", 5, True)),
        *(("web_search", {"user_location": value}, "tools[0].user_location", None) for value in ([], "Oslo", 5)),
        *(
            ("web_search", {"filters": {"allowed_domains": value}}, "tools[0].filters.allowed_domains", None)
            for value in ("a.example", {}, [5], [None])
        ),
        ("web_search", {"filters": {"x": 1}}, "tools[0].filters.x", UNSUPPORTED),
        ("web_search", {"blocked_domains": [], "excluded_domains": []}, "tools[0].excluded_domains", UNSUPPORTED),
        ("web_search", {"allowed_domains": DOMAINS, "blocked_domains": DOMAINS}, "tools[0].filters", None),
        ("x_search", {"filters": {"allowed_domains": DOMAINS}}, "tools[0].filters.allowed_domains", UNSUPPORTED),
        *(
            ("x_search", {name: ["x"]}, f"tools[0].{name}", UNSUPPORTED)
            for name in ("allowed_x_handles", "excluded_x_handles", "from_date", "to_date")
        ),
    ],
)
@rows("surface", SURFACES)
def test_what_cannot_narrow_a_search(
    surface: str, kind: str, members: dict[str, Any], param: str, code: str | None
) -> None:
    assert refusal(surface, "p3", tools=[{"type": kind, **members}]) == (param, code)


@rows("kind, name", [("web_search", "web_search"), ("web_search_preview", "web_search"), ("x_search", "x_search")])
@rows("surface", SURFACES)
def test_a_hosted_tool_can_be_chosen_where_it_is(surface: str, kind: str, name: str) -> None:
    function, choice = function_tool(surface, "f"), {"type": kind}
    chosen = parse(surface, "p3", tools=[function, {"type": kind}], tool_choice=choice, parallel_tool_calls=False)
    assert chosen.request["tool_choice"] == {"type": "tool", "name": name, "disable_parallel_tool_use": True}
    for tools in ([function], [], [{"type": kind}, function_tool(surface, name)]):
        assert refusal(surface, "p3", tools=tools, tool_choice=choice) == ("tool_choice", None)
    assert refusal(surface, tools=[function], tool_choice=choice) == ("tool_choice.type", UNSUPPORTED)


def test_namespaces_exist_on_one_route_only() -> None:
    tools = [{"type": "namespace", "name": "n", "tools": []}]
    assert refusal("chat", tools=tools) == ("tools[0].type", "unsupported_parameter")
    assert parse("responses", tools=tools).namespaces == {}


@rows(
    "entry, param, code",
    [
        ({}, "tools[0].name", None),
        ({"name": "n"}, "tools[0].tools", None),
        ({"name": "n", "tools": [], "x": 1}, "tools[0].x", "unsupported_parameter"),
        ({"name": "n", "tools": [], "description": 5}, "tools[0].description", None),
        ({"name": "n", "tools": ["f"]}, "tools[0].tools[0]", None),
        ({"name": "n", "tools": [{"name": "f"}]}, "tools[0].tools[0].type", "unsupported_parameter"),
        ({"name": "n", "tools": [{"type": "function"}]}, "tools[0].tools[0].name", None),
    ],
)
def test_a_bad_namespace(entry: dict[str, Any], param: str, code: str | None) -> None:
    assert refusal("responses", tools=[{"type": "namespace", **entry}]) == (param, code)


def test_flat_names_are_short_unique_and_lead_back() -> None:
    """Also where another function has the name already, exactly or after shortening."""
    long = "n" * MAX_NAME
    groups = [{"type": "namespace", "name": name, "tools": [function_tool("responses", "g")]} for name in ("a", long)]
    plain = [function_tool("responses", name) for name in ("a__g", flat_name(long, "g"))]
    ingress = parse("responses", tools=[*groups, *plain])
    names = [tool["name"] for tool in ingress.request["tools"]]
    assert len(set(names)) == 4 and all(len(name) <= MAX_NAME for name in names)
    assert names[2:] == [tool["name"] for tool in plain]
    assert ingress.namespaces == {names[0]: ("a", "g"), names[1]: (long, "g")}


@pytest.mark.parametrize("surface", SURFACES)
def test_the_number_of_tools_is_bounded(surface: str) -> None:
    tools = [function_tool(surface, f"f{index}") for index in range(MAX_TOOLS)]
    assert len(parse(surface, tools=tools).request["tools"]) == MAX_TOOLS
    assert refusal(surface, tools=[*tools, {"type": "web_search"}]) == ("tools", None)
    if surface == "responses":
        group = {"type": "namespace", "name": "n", "tools": tools[:2]}
        assert refusal(surface, tools=[group, *tools[2:], function_tool(surface, "g")]) == ("tools", None)


@pytest.mark.parametrize("surface", SURFACES)
def test_tools_must_be_a_list_of_objects(surface: str) -> None:
    for value in ({}, "x", 5, True):
        assert refusal(surface, tools=value) == ("tools", None)
    assert refusal(surface, tools=["f"]) == ("tools[0]", None)
