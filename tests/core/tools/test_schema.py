"""Schemas on their way up, and answers on their way back."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.strategies import json_values, schemas
from proxy.core.tools.function_schema import legal_schema
from proxy.core.tools.schema import (
    NotStrict,
    accepts_null,
    format_in_words,
    has_optional,
    restore_text,
    strict_schema,
    without_nulls,
)
from proxy.sandbox.wires.schema_checks import malformed, strict_fault

property_names = st.sampled_from(["a", "b", "c", "pattern", "required"])


def object_of(child: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(property_names, child, max_size=4).flatmap(
        lambda properties: st.lists(st.sampled_from(sorted(properties) or ["x"]), unique=True).map(
            lambda required: {"type": "object", "properties": properties, "required": required}
        )
    )


OPTIONAL_X = {"type": ["string", "null"], "enum": ["x", None]}

#: Schemas of which an instance can be made.
plain_schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, OPTIONAL_X]),
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


#: The root of a strict schema is an object that has properties.
roots = object_of(plain_schemas).filter(lambda schema: bool(schema["properties"]))


@given(roots.flatmap(lambda schema: st.tuples(st.just(schema), instances(schema))))
def test_a_strict_answer_comes_back_in_the_callers_form(pair: tuple[dict[str, Any], Any]) -> None:
    schema, value = pair
    try:
        strict = strict_schema(schema)
    except NotStrict:  # an object without properties, somewhere inside
        return
    answer = filled(value, schema)
    assert fits(answer, strict)
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
    try:
        strict_schema(schema)
    except NotStrict:
        pass
    assert schema == before


@given(schemas)
def test_the_service_takes_what_is_called_strict(schema: dict[str, Any]) -> None:
    legal = legal_schema(schema)
    assert malformed(legal) is None
    try:
        strict = strict_schema(legal)
    except NotStrict:
        return
    assert strict_fault(strict) is None


#: Values that strict mode has no words for, or that it would change into something else.
NOT_STRICT = [
    {"type": "object"},
    {"type": ["object", "null"]},
    {"type": "object", "properties": {}},
    {"type": "object", "patternProperties": {}},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {}},
    {"properties": {"a": {"type": "string"}}},
    {"$ref": "https://x.example/schema"},
    {"$ref": "#/$defs/a", "minimum": 1},
    {"allOf": [{"type": "string"}]},
    {"oneOf": [{"type": "string"}]},
    {"anyOf": [{}]},
    {"not": {}, "type": "string"},
    {"type": "array"},
    {"type": "array", "items": {}},
    {"type": "array", "items": True},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
    {"type": "string", "format": "uri"},
    {"type": "string", "x-more": 1},
    {"enum": ["a"]},
    {"const": "a"},
    {"description": "anything"},
    {},
    True,
]


@rows("schema", NOT_STRICT)
def test_what_strict_mode_cannot_say_is_not_strict(schema: Any) -> None:
    with pytest.raises(NotStrict):
        strict_schema({"type": "object", "properties": {"a": schema}})


@rows(
    "root",
    [
        {},
        {"properties": {"a": {"type": "string"}}},
        {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string"},
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    ],
)
def test_a_strict_root_is_an_object(root: dict[str, Any]) -> None:
    with pytest.raises(NotStrict):
        strict_schema(root)


def test_what_says_nothing_about_answers_is_dropped() -> None:
    said = {"type": "string", "description": "d", "title": "t", "enum": ["a"]}
    more = {"default": "a", "examples": ["a"], "deprecated": True, "$comment": "c"}
    schema = {"type": "object", "properties": {"a": {**said, **more}, "b": {"$ref": "#", "title": "t"}}}
    strict = strict_schema({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert strict == {
        "type": "object",
        "properties": {"a": {"anyOf": [said, {"type": "null"}]}, "b": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_an_object_that_says_so_is_empty() -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    assert strict_schema(closed) == {**closed, "required": []}


def test_properties_named_like_keywords_are_properties() -> None:
    properties = {"not": {"type": "string"}, "pattern": {"type": "string"}, "default": {"type": "string"}}
    strict = strict_schema({"type": "object", "properties": properties, "required": list(properties)})
    assert strict["properties"] == properties


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


@rows("text", ["", "not json", '{"a":', '{"a":NaN}', '{"a":1e999}', "[" * 100_000])
def test_text_that_is_not_json_is_passed_on(text: str) -> None:
    assert restore_text(text, {"properties": {"a": {"type": "string"}}}) == text


@rows(
    "schema, expected",
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


def test_deep_schemas_take_no_time() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema, "b": {"type": "string"}}, "required": ["a", "b"]}
    start = time.process_time()
    strict_schema(schema)
    has_optional(schema)
    assert time.process_time() - start < 1


def test_references_that_double_take_no_time() -> None:
    definitions = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    definitions["d60"] = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"type": "string"}}, "$defs": definitions}
    start = time.process_time()
    assert without_nulls({"a": {"unknown": None}, "b": None}, schema) == {"a": {"unknown": None}}
    assert without_nulls({"a": {"x": None}, "b": "b"}, schema) == {"a": {}, "b": "b"}
    assert time.process_time() - start < 1


@rows(
    "members, words",
    [
        ({}, ""),
        ({"output_config": {"effort": "low"}}, ""),
        ({"output_config": {"format": {"type": "text"}}}, ""),
        ({"output_config": {"format": {"type": "json_schema"}}}, "a JSON object"),
        ({"output_config": {"format": {"type": "json_object"}}}, "a JSON object"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "array"}}}}, '{"type":"array"}'),
        ({"output_format": {"type": "json_schema", "schema": {"type": "array"}}}, '{"type":"array"}'),
    ],
)
def test_a_form_is_told_in_words(members: dict[str, Any], words: str) -> None:
    told = format_in_words(members)
    assert words in told and bool(told) is bool(words)
