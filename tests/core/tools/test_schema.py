"""Schemas on their way up, and answers on their way back."""

from __future__ import annotations

import copy
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import json_values, schemas
from proxy.core.tools.schema import (
    NotStrict,
    accepts_null,
    has_optional,
    restore_text,
    strict_schema,
    without_foreign_patterns,
    without_nulls,
)

property_names = st.sampled_from(["a", "b", "c", "pattern", "required"])


def object_of(child: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(property_names, child, max_size=4).flatmap(
        lambda properties: st.lists(st.sampled_from(sorted(properties) or ["x"]), unique=True).map(
            lambda required: {"type": "object", "properties": properties, "required": required}
        )
    )


#: Schemas of which an instance can be made.
plain_schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, {"enum": ["x", None]}]),
    lambda child: (
        object_of(child)
        | child.map(lambda items: {"type": "array", "items": items})
        | child.map(lambda branch: {"anyOf": [branch, {"type": "null"}]})
    ),
    max_leaves=8,
)


def instances(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a plain schema."""
    if "anyOf" in schema:
        return st.none() | instances(schema["anyOf"][0])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        required = set(schema["required"])
        fields = {name: instances(child) for name, child in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: value for name, value in fields.items() if name in required},
            optional={name: value for name, value in fields.items() if name not in required},
        )
    if kind == "array":
        return st.lists(instances(schema["items"]), max_size=3)
    return {"string": st.text(max_size=3), "integer": st.integers()}.get(str(kind), st.none() | st.text(max_size=3))


def filled(value: Any, schema: dict[str, Any]) -> Any:
    """The value as a strict upstream would write it: every property is there, null where nothing was."""
    if "anyOf" in schema:
        return None if value is None else filled(value, schema["anyOf"][0])
    if isinstance(value, dict):
        return {
            name: filled(value[name], child) if name in value else None for name, child in schema["properties"].items()
        }
    return [filled(member, schema["items"]) for member in value] if isinstance(value, list) else value


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """A small validator for what `strict_schema` makes of plain schemas."""
    if "anyOf" in schema:
        return any(fits(value, branch) for branch in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    names = {str: "string", int: "integer", type(None): "null", dict: "object", list: "array"}
    if names[type(value)] not in kinds:
        return False
    if isinstance(value, dict):
        properties = schema["properties"]
        assert schema["additionalProperties"] is False and sorted(schema["required"]) == sorted(properties)
        return value.keys() == properties.keys() and all(fits(value[name], properties[name]) for name in properties)
    return not isinstance(value, list) or all(fits(member, schema["items"]) for member in value)


def only_needed_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """What may come back: nothing less than the value, and nulls only where the schema itself allows them."""
    if "anyOf" in schema:
        return None if value is None else only_needed_nulls(value, schema["anyOf"][0])
    if isinstance(value, dict):
        return {
            name: only_needed_nulls(value[name], child) if name in value else None
            for name, child in schema["properties"].items()
            if name in value or accepts_null(child)
        }
    return [only_needed_nulls(member, schema["items"]) for member in value] if isinstance(value, list) else value


@given(plain_schemas.flatmap(lambda schema: st.tuples(st.just(schema), instances(schema))))
def test_a_strict_answer_comes_back_in_the_callers_form(pair: tuple[dict[str, Any], Any]) -> None:
    schema, value = pair
    answer = filled(value, schema)
    assert fits(answer, strict_schema(schema))
    restored = without_nulls(answer, schema)
    assert restored == only_needed_nulls(value, schema)
    assert without_nulls(restored, schema) == restored
    if not has_optional(schema):
        assert restored == answer


@given(schemas, json_values)
def test_any_schema_is_survived_and_left_as_it_was(schema: dict[str, Any], value: Any) -> None:
    before = copy.deepcopy(schema)
    accepts_null(schema)
    has_optional(schema)
    without_nulls(value, schema)
    without_foreign_patterns(schema)
    try:
        strict_schema(schema)
    except NotStrict:
        pass
    assert schema == before


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "additionalProperties": True},
        {"properties": {"a": {}}, "additionalProperties": {}},
        {"$ref": "https://x.example/schema"},
        {"properties": {"a": {"allOf": [{"type": "string"}]}}},
        {"items": {"oneOf": [{"type": "string"}]}},
        {"$defs": {"A": {"not": {}}}},
        {"anyOf": [{"if": {}}]},
    ],
)
def test_what_strict_mode_cannot_say_is_not_strict(schema: dict[str, Any]) -> None:
    with pytest.raises(NotStrict):
        strict_schema(schema)


def test_an_object_without_properties_is_closed() -> None:
    closed = {"properties": {}, "required": [], "additionalProperties": False}
    assert strict_schema({"type": "object"}) == {"type": "object", **closed}
    assert strict_schema({"type": ["object", "null"]}) == {"type": ["object", "null"], **closed}


def test_properties_named_like_keywords_are_properties() -> None:
    schema = {
        "type": "object",
        "properties": {"not": {"type": "string"}, "pattern": {"pattern": "("}},
        "required": ["not"],
    }
    assert without_foreign_patterns(schema)["properties"] == {"not": {"type": "string"}, "pattern": {}}
    assert strict_schema(schema)["required"] == ["not", "pattern"]


def test_literals_are_no_schemas() -> None:
    schema = {"default": {"pattern": "("}, "enum": [{"properties": {}}], "examples": [{"pattern": "("}]}
    assert without_foreign_patterns(schema) == schema
    assert strict_schema(schema) == schema


DEFINED = {
    "$defs": {
        "Part": {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/Part"}}},
        "odd/~name": {"properties": {"x": {"type": "string"}}},
    },
    "type": "object",
    "properties": {
        "part": {"$ref": "#/$defs/Part"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]},
        "odd": {"$ref": "#/$defs/odd~1~0name"},
        "list": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Part"}]}},
        "lost": {"$ref": "#/$defs/Nothing"},
    },
}


def test_nulls_behind_references_and_branches_are_taken_back() -> None:
    answer = {
        "part": {"n": 1, "next": {"n": None, "next": None}},
        "maybe": {"n": None, "next": None},
        "odd": {"x": None},
        "list": ["s", {"n": None, "next": None}, None],
        "lost": {"kept": None},
    }
    assert without_nulls(answer, DEFINED) == {
        "part": {"n": 1, "next": {}},
        "maybe": {},
        "odd": {},
        "list": ["s", {}, None],
        "lost": {"kept": None},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
)
def test_references_in_a_circle_end(schema: dict[str, Any]) -> None:
    assert json.loads(restore_text('{"a":null}', schema)) == {"a": None}


@pytest.mark.parametrize("text", ["", "not json", '{"a":', '{"a":NaN}', '{"a":1e999}', "[" * 100_000])
def test_text_that_is_not_json_is_passed_on(text: str) -> None:
    assert restore_text(text, {"properties": {"a": {"type": "string"}}}) == text


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, True),
        (False, False),
        ({}, True),
        ({"description": "x"}, True),
        ({"type": "null"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": "string"}, False),
        ({"enum": ["a", None]}, True),
        ({"enum": ["a"]}, False),
        ({"enum": 3}, False),
        ({"const": "a"}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "string"}]}, False),
        ({"anyOf": 5}, False),
        ({"oneOf": "null"}, False),
        ({"anyOf": [3, "null"]}, False),
        ({"properties": {}}, False),
        ({"$ref": "#/$defs/a"}, False),
    ],
)
def test_null_is_allowed_by_what_says_so(schema: Any, expected: bool) -> None:
    assert accepts_null(schema) is expected


@pytest.mark.parametrize(
    ("pattern", "kept"),
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
    assert ("pattern" in without_foreign_patterns({"pattern": pattern})) is kept
    if kept:
        re.purge()


def test_deep_schemas_take_no_time() -> None:
    schema: dict[str, Any] = {"type": "string", "pattern": "("}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema, "b": {"type": "string"}}, "required": ["a", "b"]}
    start = time.perf_counter()
    without_foreign_patterns(schema)
    strict_schema(schema)
    has_optional(schema)
    assert time.perf_counter() - start < 1
