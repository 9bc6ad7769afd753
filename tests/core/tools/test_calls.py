"""Names, ids and argument texts."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import cut_places, json_values, pieces
from proxy.core.tools.calls import (
    MAX_NAME,
    ArgumentStream,
    MisspelledNames,
    arguments_text,
    call_ids,
    is_web_search,
    long_names,
    offered_tools,
    optional_properties,
    parse_arguments,
    short_name,
    unique_id,
    upstream_id,
)

DROPPABLE = frozenset({"timeout", "a", 'q"'})
member_names = st.sampled_from(["timeout", "command", "a", 'q"', "é", "back\\slash", ""])
objects = st.dictionaries(member_names, st.none() | json_values, max_size=5)
spacing = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])


def streamed(text_pieces: list[str], droppable: frozenset[str] = DROPPABLE) -> str:
    stream = ArgumentStream(droppable)
    return "".join([stream.feed(piece) for piece in text_pieces]) + stream.end()


def without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if not (member is None and name in DROPPABLE)}


@given(objects, spacing, st.booleans(), cut_places)
def test_nulls_that_mean_nothing_are_dropped_whatever_the_pieces(
    value: dict[str, Any], separators: tuple[str, str], ascii_only: bool, cuts: list[int]
) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=ascii_only)
    assert json.loads(streamed(pieces(text, cuts))) == without_nulls(value)
    assert json.loads(streamed(list(text))) == without_nulls(value)


@given(objects, spacing)
def test_nothing_else_changes(value: dict[str, Any], separators: tuple[str, str]) -> None:
    text = json.dumps(value, separators=separators)
    assert streamed(list(text), frozenset()) == text
    assert streamed(list(text), frozenset({"other"})) == text
    if without_nulls(value) == value:
        assert streamed([text]) == text


@given(st.text(alphabet='{}[]",:\\ \nntul1a', max_size=40), cut_places)
def test_text_that_is_not_json_comes_out_the_same_for_any_pieces(text: str, cuts: list[int]) -> None:
    whole = streamed([text])
    assert streamed(pieces(text, cuts)) == whole
    if "null" not in text:
        assert whole == text


@rows(
    "text, expected",
    [
        ('{"timeout":null}', "{}"),
        ('{"timeout":null,"command":"ls"}', '{"command":"ls"}'),
        ('{"command":"ls","timeout":null}', '{"command":"ls"}'),
        ('{"timeout":null,"a":null,"command":"ls"}', '{"command":"ls"}'),
        ('{"command":{"timeout":null}}', '{"command":{"timeout":null}}'),
        ('{"command":null}', '{"command":null}'),
        ('{"timeout":nullx}', '{"timeout":nullx}'),
        ('["timeout",null]', '["timeout",null]'),
        ("", ""),
    ],
)
def test_only_top_level_nulls_of_optional_parameters_go(text: str, expected: str) -> None:
    assert streamed(list(text)) == streamed([text]) == expected


def test_text_flows_while_it_comes() -> None:
    stream = ArgumentStream(frozenset({"timeout"}))
    assert stream.feed('{"command":"ls -') == '{"command":"ls -'
    assert stream.feed("la") == "la"
    assert stream.feed('","time') == '"'


def test_a_stuck_model_does_not_cost_time() -> None:
    """Blanks without end, one by one, where a member is expected."""
    stream = ArgumentStream(DROPPABLE)
    stream.feed('{"command":1,')
    start = time.process_time()
    for _ in range(20_000):
        stream.feed(" ")
    assert time.process_time() - start < 2


def test_an_endless_key_is_passed_on() -> None:
    stream = ArgumentStream(DROPPABLE)
    assert stream.feed('{"' + "k" * 5000) == '{"' + "k" * 5000
    assert stream.feed('":null}') == '":null}'


# -- ids and names

call_names = st.text(max_size=80) | st.sampled_from(["call_0", "call_0__u2", "", "x" * 64, "x" * 65])


@given(st.lists(call_names, max_size=12))
def test_ids_are_unique_and_go_back(ids: list[str]) -> None:
    used: set[str] = set()
    counts: dict[str, int] = {}
    given_out = [unique_id(call_id, used, counts) for call_id in ids]
    assert len(set(given_out)) == len(ids) == len(used)
    assert all(given_out)
    for sent, ours in zip(ids, given_out, strict=True):
        assert len(upstream_id(ours)) <= MAX_NAME
        if sent and "__u" not in sent:
            assert upstream_id(ours) == upstream_id(sent)
            if len(sent) <= MAX_NAME:
                assert upstream_id(ours) == sent


@given(st.text(max_size=200))
def test_names_are_short_and_come_back(name: str) -> None:
    short = short_name(name)
    assert len(short) <= MAX_NAME
    assert short == short_name(name)
    back = long_names({"tools": [{"name": name}]})
    assert back.get(short, short) == name


@rows(
    "said, meant",
    [
        ("exec", "functions__exec"),
        ("functions.exec", "functions__exec"),
        ("functions/exec", "functions__exec"),
        ("functions.functions__exec", "functions__exec"),
        ("functions.Read", "Read"),
        ("mcp.files.read", "mcp__files__read"),
        ("files__read", "mcp__files__read"),
        ("mcp__github__Read", None),
        ("functions.mcp__github__Read", None),
        ("functions.mcp__books__read", "mcp__books__read"),
        ("read", None),
        ("Exec", None),
        ("", None),
        ("__", None),
        ("xec", None),
        (".".join("a" * 5000), None),
    ],
)
def test_a_misspelled_name_is_known_where_one_tool_is_meant(said: str, meant: str | None) -> None:
    names = MisspelledNames(["functions__exec", "Read", "mcp__files__read", "mcp__books__read", "__".join("a" * 5000)])
    assert names.meant(said) == meant


def test_long_names_with_the_same_beginning_stay_apart() -> None:
    assert short_name("x" * 100 + "a") != short_name("x" * 100 + "b")


def test_ids_of_a_history_are_collected_from_calls_only() -> None:
    history = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": 3}, "x"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "id": "c"}]},
        {"role": "user", "content": "text"},
        "nonsense",
    ]
    assert call_ids(history) == {"a"}


# -- tools


def test_tools_that_cannot_be_called_are_not_offered() -> None:
    tools: list[Any] = [{"name": "DeferredToolPlaceholder"}, {"name": 3}, {}, "x", None]
    kept = [{"name": "Bash"}, {"name": "b", "type": "custom"}, {"name": "s", "type": "web_search_20260318"}]
    assert offered_tools({"tools": tools + kept}) == kept
    assert offered_tools({"tools": {}}) == offered_tools({}) == []


@rows(
    "tool, expected",
    [
        ({"type": "web_search_20250305"}, True),
        ({"type": "web_search_29990101"}, True),
        ({"type": "web_search"}, False),
        ({"type": ["web_search_20250305"]}, False),
        ({"name": "web_search"}, False),
        (None, False),
    ],
)
def test_hosted_search_is_known_by_its_type(tool: Any, expected: bool) -> None:
    assert is_web_search(tool) is expected


def test_optional_properties_are_those_that_may_go() -> None:
    schema = {
        "properties": {
            "needed": {"type": "string"},
            "optional": {"type": "string"},
            "nullable": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "anything": {},
            "nothing": {"const": None},
        },
        "required": ["needed", 3],
    }
    assert optional_properties({"input_schema": schema}) == {"optional"}
    assert optional_properties({"input_schema": []}) == optional_properties({}) == frozenset()
    assert optional_properties({"input_schema": {"oneOf": [schema, {"properties": {"other": {"type": "array"}}}]}}) == {
        *("needed", "optional", "other")
    }


# -- arguments


@given(json_values)
def test_arguments_have_a_fixed_order(value: Any) -> None:
    text = arguments_text(value)
    if value is None:
        assert text == "{}"
        return
    assert json.loads(text) == value
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@rows(
    "text, expected",
    [
        ("", {}),
        (" \n", {}),
        ('{"a":1}', {"a": 1}),
        (' {"a":1} ', {"a": 1}),
        ("[]", None),
        ("null", {}),
        ('"x"', None),
        ('{"a":1', None),
        ('{"a":NaN}', None),
        ('{"a":1e999}', None),
        ("[" * 100_000, None),
    ],
)
def test_only_an_object_is_arguments(text: str, expected: Any) -> None:
    assert parse_arguments(text) == expected
