"""Schemas of functions. Whole tools stand in vectors/messages_to_responses/tool-schemas and messages_to_chat."""

from __future__ import annotations

import copy
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from samples import rows

from core.strategies import json_values, schemas
from proxy.core.tools.function_schema import MAX_CHOICE, function_schema, legal_schema, target
from proxy.core.tools.step_budget import MAX_EXTRA, Steps
from proxy.sandbox.wires.schema_checks import bad_pattern, function_fault, malformed

STRING = {"type": "string"}
PATH = {"type": "object", "properties": {"path": STRING}, "required": ["path"]}


@given(schemas | json_values)
def test_the_backend_takes_every_schema_that_was_mended(schema: Any) -> None:
    before = copy.deepcopy(schema)
    mended, _ = function_schema(schema)
    assert schema == before
    assert function_fault(mended) is None and malformed(mended) is None and bad_pattern(mended) is None
    again, choice = function_schema(mended)
    assert again is mended and not choice


@given(schemas)
def test_what_is_legal_stays_the_same_object(schema: Any) -> None:
    legal = legal_schema(schema)
    assert legal_schema(legal) is legal


@rows(
    "schema, expected",
    [
        (None, {"type": "object", "properties": {}}),
        ("string", {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": None, "properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": None}, {"type": "object", "properties": {}}),
        ({"$ref": "#/$defs/P", "$defs": {"P": PATH}}, {"$defs": {"P": PATH}, **PATH}),
        ({"$ref": "#/$defs/None"}, {"type": "object", "properties": {}}),
        ({"$ref": f"#/anyOf/{'9' * 5000}", "anyOf": []}, {"type": "object", "properties": {}}),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": PATH}}, {"$defs": {"a b": PATH}, **PATH}),
        (
            {"$ref": "#/$defs/P", "properties": {"b": STRING}, "required": ["b"], "$defs": {"P": PATH}},
            {
                "type": "object",
                "properties": {"path": STRING, "b": STRING},
                "required": ["path", "b"],
                "$defs": {"P": PATH},
            },
        ),
        ({"$ref": "#"}, {"type": "object", "properties": {}}),
    ],
)
def test_the_root_is_an_object_with_properties(schema: Any, expected: dict[str, Any]) -> None:
    assert function_schema(schema) == (expected, "")


@rows(
    "value, expected",
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"type": "array", "items": None}, {"type": "array", "items": {}}),
        ({"type": "array", "items": {"type": "array"}}, {"type": "array", "items": {"type": "array", "items": {}}}),
        ({"items": [STRING]}, {"prefixItems": [STRING], "items": {}}),
        ({"items": [STRING], "additionalItems": False}, {"prefixItems": [STRING], "items": False}),
        ({"items": []}, {"items": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"anyOf": [{"type": "array"}, None]}, {"anyOf": [{"type": "array", "items": {}}, {}]}),
        ({"anyOf": []}, {}),
        ({"type": "any"}, {}),
        ({"type": ["string", "any", "string"]}, {"type": ["string"]}),
        ({"required": True, **STRING}, STRING),
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"exclusiveMinimum": True, "minimum": 1}, {"minimum": 1}),
        ({"maxLength": -1, **STRING}, STRING),
        ({"maxLength": 3.0, "minLength": 0.5, **STRING}, {"maxLength": 3, **STRING}),
        ({"description": None, **STRING}, STRING),
        (
            {"dependencies": {"a": ["b"], "c": {"type": "array"}}},
            {"dependencies": {"c": {"type": "array", "items": {}}, "a": ["b"]}},
        ),
        ({"patternProperties": {"(": {}, "a": None}}, {"patternProperties": {"a": {}}}),
        (None, {}),
        (True, True),
    ],
)
def test_illegal_values_are_mended_at_any_depth(value: Any, expected: Any) -> None:
    for place in ({"type": "object", "properties": {"a": {"type": "array", "items": inner}}} for inner in (value,)):
        mended, _ = function_schema(place)
        assert mended["properties"]["a"]["items"] == expected
    mended, _ = function_schema({"type": "object", "properties": {"a": value}})
    assert mended["properties"]["a"] == expected


def test_literals_are_no_schemas() -> None:
    value = {
        "default": {"pattern": "("},
        "enum": [{"type": "array"}],
        "examples": [{"items": None}],
        "const": {"type": 1},
    }
    schema = {"type": "object", "properties": {"pattern": value, "type": STRING, "items": STRING}}
    assert function_schema(schema)[0] is schema


@rows(
    "pattern, kept",
    [
        ("^[a-z]+$", True),
        ("\\p{L}", False),
        ("(", False),
        ("[[a]", True),
        ("(?<name>x)", False),
        ("a{99999999999}", False),
    ],
)
def test_patterns_stay_as_far_as_python_knows_them(pattern: str, kept: bool) -> None:
    assert ("pattern" in legal_schema({"pattern": pattern})) is kept
    if kept:
        re.purge()


BY_ID = {
    "type": "object",
    "properties": {"kind": {"const": "id"}, "id": {"type": "integer"}},
    "required": ["kind", "id"],
}
BY_NAME = {"type": "object", "properties": {"kind": {"const": "name"}, "name": STRING}, "required": ["kind", "name"]}
KINDS = {"anyOf": [{"const": "id"}, {"const": "name"}]}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_choice_becomes_one_object_and_words(keyword: str) -> None:
    schema = {"description": "d", "properties": {"all": {"type": "boolean"}}, keyword: [BY_ID, BY_NAME]}
    folded, words = function_schema(schema)
    assert folded == {
        "type": "object",
        "description": "d",
        "properties": {"all": {"type": "boolean"}, "kind": KINDS, "id": {"type": "integer"}, "name": STRING},
        "required": ["kind"],
    }
    assert json.loads(words[words.index("{") :]) == {keyword: [BY_ID, BY_NAME]}


def test_all_of_several_is_required_as_each_says() -> None:
    folded, _ = function_schema({"type": "object", "allOf": [BY_ID, {"required": ["more"], "anyOf": [BY_NAME]}]})
    assert folded["required"] == ["kind", "id", "name"]
    assert list(folded["properties"]) == ["kind", "id", "name"]


def test_other_words_of_a_root_are_told() -> None:
    folded, words = function_schema({**PATH, "not": {"required": ["x"]}, "enum": [{"path": "a"}]})
    assert folded == PATH
    assert json.loads(words[words.index("{") :]) == {"enum": [{"path": "a"}], "not": {"required": ["x"]}}


def test_branches_may_be_references_and_be_referred_to() -> None:
    schema = {
        "$defs": {"a/b": PATH},
        "anyOf": [
            {"$ref": "#/$defs/a~1b"},
            {"properties": {"other": {"$ref": "#/anyOf/2/properties/list"}}},
            {"properties": {"list": {"type": "array", "items": {"$ref": "#/anyOf/2/properties/list"}}}},
        ],
    }
    folded, _ = function_schema(schema)
    assert list(folded["properties"]) == ["path", "other", "list"]
    reference = folded["properties"]["other"]["$ref"]
    assert target(reference, folded)["type"] == "array"
    assert target(target(reference, folded)["items"]["$ref"], folded)["type"] == "array"


@rows(
    "named",
    [{"anyOf": 5}, {"properties": 3}, {"required": [{}]}, {"pattern": "("}, {"properties": {"a": {"type": "array"}}}],
)
def test_what_a_reference_names_may_stand_anywhere(named: dict[str, Any]) -> None:
    reference = {"$ref": "#/components/a"}
    for schema in (reference, {"anyOf": [reference]}, {"anyOf": [{"$ref": f"#/anyOf/{'9' * 5000}"}, reference]}):
        mended, _ = function_schema({**schema, "components": {"a": named}})
        assert function_fault(mended) is None and malformed(mended) is None and bad_pattern(mended) is None


def test_a_choice_without_end_is_cut() -> None:
    def doubling(steps: int) -> dict[str, Any]:
        definitions = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(steps)}
        return {"$defs": {**definitions, f"d{steps}": PATH}, "$ref": "#/$defs/d0"}

    started = time.process_time()
    many = [{"properties": {f"p{place}": {"title": str(form)} for place in range(100)}} for form in range(200)]
    loops = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    for schema in (doubling(60), loops, {"oneOf": [BY_ID] * 10 * MAX_EXTRA}, {"oneOf": many}):
        folded, words = function_schema(schema)
        assert function_fault(folded) is None and len(words) < MAX_CHOICE + 100
    assert time.process_time() - started < 2


def test_patterns_beyond_the_steps_are_left_out() -> None:
    patterns = {f"p{n}": {"type": "string", "pattern": f"^[a-z]{{{n}}}$"} for n in range(1000)}
    steps = Steps()
    mended, _ = function_schema({"type": "object", "properties": patterns}, steps)
    kept = ["pattern" in child for child in mended["properties"].values()]
    assert steps.short and kept[:100] == [True] * 100 and not any(kept[250:])


def test_a_tool_without_steps_is_legal_all_the_same() -> None:
    steps = Steps(extra=0)
    choice = {"properties": {"a": {"type": "array", "pattern": "("}}, "anyOf": [BY_ID, {"$ref": "#/$defs/P"}]}
    mended, words = function_schema({**choice, "$defs": {"P": PATH}}, steps)
    assert function_fault(mended) is None and steps.short and "anyOf" in words
    assert mended["properties"] == {"a": {"type": "array", "items": {}}}


def test_deep_schemas_take_no_time() -> None:
    schema: dict[str, Any] = {"type": "string", "pattern": "("}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema, "b": {"type": "array"}}}
    start = time.process_time()
    function_schema(schema)
    assert time.process_time() - start < 1
