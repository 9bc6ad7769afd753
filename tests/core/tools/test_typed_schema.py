"""Schemas for the validator that wants a type everywhere. Whole tools stand in vectors/messages_to_chat/schema-*."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import given, settings
from samples import examples, rows

from core.strategies import schemas
from proxy.core.tools.function_schema import STEP_CHARS, function_schema
from proxy.core.tools.step_budget import MAX_EXTRA
from proxy.core.tools.typed_schema import typed_schema
from proxy.sandbox.wires.schema_checks import malformed, untyped


def typed(child: Any, **root: Any) -> Any:
    return typed_schema({"type": "object", "properties": {"p": child}, **root})["properties"]["p"]


@rows(
    "schema, kind",
    [
        ({}, "string"),
        ({"description": "x"}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({"enum": ["a", None]}, "string"),
        ({"enum": [None]}, "null"),
        ({"enum": [1, 2]}, "integer"),
        ({"enum": [1, 2.5]}, "number"),
        ({"enum": [1, "a"]}, "string"),
        ({"enum": []}, "string"),
        ({"const": True}, "boolean"),
        ({"const": {}}, "object"),
        ({"required": []}, "object"),
        ({"maxProperties": 1}, "object"),
        ({"uniqueItems": True}, "array"),
        ({"pattern": "a"}, "string"),
        ({"exclusiveMinimum": 1}, "number"),
    ],
)
def test_a_missing_type_is_found(schema: dict[str, Any], kind: str) -> None:
    assert typed(schema) == {**schema, "type": kind}


@rows(
    "schema", [{"type": ["string", "null"]}, {"not": {"type": "string"}}, {"$ref": "http://e.x"}, {"$ref": "#"}, True]
)
def test_what_speaks_for_itself_stays(schema: Any) -> None:
    assert typed(schema) == schema


def test_a_root_without_type_stays() -> None:
    assert typed_schema({}) == {}


def test_references_are_found_by_escaped_and_numbered_steps() -> None:
    root = {"$defs": {"a/b~ c": {"anyOf": [{"type": "null"}, {"minLength": 1}]}}}
    assert typed({"$ref": "#/$defs/a~1b~0%20c/anyOf/1"}, **root) == {"minLength": 1, "type": "string"}
    for nowhere in ("#/$defs/x", "#/$defs/a~1b~0 c/anyOf/9", "#/$defs/a~1b~0 c/anyOf/x", "#/type/x"):
        assert typed({"$ref": nowhere}, **root) == {"$ref": nowhere}


def test_recursive_definitions_stay_and_are_typed() -> None:
    root = {"$defs": {"T": {"properties": {"v": {}, "next": {"$ref": "#/$defs/T"}}}}}
    result = typed_schema({"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}, **root})
    assert result["properties"]["t"]["properties"]["v"] == {"type": "string"}
    assert result["$defs"]["T"]["type"] == "object"


def test_definitions_that_double_are_not_written_out_for_ever() -> None:
    defs: dict[str, Any] = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}} for n in range(40)
    }
    start = time.process_time()
    result = typed_schema({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d40": {}}})
    assert time.process_time() - start < 2
    assert "$defs" in result and len(json.dumps(result)) < MAX_EXTRA * STEP_CHARS


def test_texts_that_are_written_again_count() -> None:
    places = {f"p{n}": {"$ref": "#/$defs/long"} for n in range(1000)}
    result = typed_schema({"properties": places, "$defs": {"long": {"enum": ["x" * 10_000]}}})
    assert len(json.dumps(result)) < MAX_EXTRA * STEP_CHARS + 100_000
    assert result["properties"]["p999"] == {"$ref": "#/$defs/long"} and result["$defs"]["long"]["type"] == "string"


def test_what_several_references_name_is_written_once() -> None:
    """A schema of twenty levels, each named by the next ten times in the same place: the work is that of one."""
    defs: dict[str, Any] = {f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(20)}
    places = {f"p{n}": {"$ref": f"#/$defs/d{n % 20}", "title": str(n)} for n in range(100)}
    result = typed_schema({"properties": places, "$defs": {**defs, "d20": {"enum": [1]}}})
    assert "$defs" not in result and result["properties"]["p19"] == {
        "properties": {"a": {"enum": [1], "type": "integer"}},
        "title": "19",
        "type": "object",
    }
    inner = result["properties"]["p0"]["properties"]["a"]["properties"]["a"]
    assert result["properties"]["p21"]["properties"]["a"] == inner


def test_what_leads_back_to_itself_is_not_taken_for_whole() -> None:
    defs = {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"properties": {"a": {"$ref": "#/$defs/a"}}}}
    result = typed_schema({"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/b"}}, "$defs": defs})
    for place, other in (("x", "b"), ("y", "a")):
        inner = result["properties"][place]["properties"][other]
        assert inner["properties"] == {
            "a" if other == "b" else "b": {"$ref": f"#/$defs/{'a' if other == 'b' else 'b'}"}
        }


def test_what_stands_beside_a_reference_takes_nothing_from_it() -> None:
    named = {"type": "object", "properties": {"v": {"type": "string"}}, "items": {"type": "string"}}
    for beside in ("object", "array"):
        place = {"$ref": "#/$defs/named", "type": beside}
        mended, _ = function_schema({"type": "object", "properties": {"p": place}, "$defs": {"named": named}})
        assert typed_schema(mended)["properties"]["p"] == {**named, "type": beside}


def test_a_reference_to_a_reference_to_a_reference_ends() -> None:
    defs = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5000)}
    assert "$defs" in typed_schema({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": defs})


def everywhere_typed(schema: Any) -> bool:
    """For properties and items of ordinary schemas."""
    if not isinstance(schema, dict):
        return True
    children = [*schema["properties"].values()] if isinstance(schema.get("properties"), dict) else []
    children += [schema["items"]] if "items" in schema else []
    speaks = {"type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref"}
    return all(
        not isinstance(child, dict) or (bool(child.keys() & speaks) and everywhere_typed(child)) for child in children
    )


@given(schemas)
def test_the_validator_takes_what_was_mended_and_typed(schema: dict[str, Any]) -> None:
    typed = typed_schema(function_schema(schema)[0])
    assert untyped(typed) is None and malformed(typed) is None


def test_an_array_of_anything_stays_one() -> None:
    def parameters(inner: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": inner}}

    assert typed_schema(function_schema(parameters({"type": "array"}))[0]) == parameters({"type": "array"})


@settings(max_examples=examples(300))
@given(schemas)
def test_any_schema_is_typed_and_unchanged_itself(schema: dict[str, Any]) -> None:
    before = json.dumps(schema)
    result = typed_schema(schema)
    assert json.dumps(schema) == before
    json.dumps(result)
    assert everywhere_typed(result)
