"""JSON Schemas for a validator that wants a `type` everywhere and knows no references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Any

#: Deeper schemas, and references that lead back to themselves, are passed on as they are.
MAX_DEPTH = 32

_MAPS = ("properties", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")
_SPEAKS_FOR_ITSELF = frozenset({"type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref"})

#: keyword -> the type it is about; the first that is present decides
_ABOUT = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("object", ("minProperties", "maxProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
)
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def typed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which local references are written out and every schema below the root has a type.

    >>> typed_schema({"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"minimum": 1}}})["properties"]
    {'a': {'enum': ['x'], 'type': 'string'}, 'b': {'minimum': 1, 'type': 'number'}}
    """
    result: dict[str, Any] = _children(dict(schema), schema, (), 0)
    if not _mentions_reference(result):
        result.pop("$defs", None)
        result.pop("definitions", None)
    return result


def _visit(schema: Schema, root: Mapping[str, Any], trail: tuple[str, ...], depth: int) -> Schema:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and reference not in trail:
        target = _target(root, reference)
        if isinstance(target, dict):
            merged = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
            return _visit(merged, root, (*trail, reference), depth + 1)
    result = _children(dict(schema), root, trail, depth)
    if not result.keys() & _SPEAKS_FOR_ITSELF:
        result["type"] = _type_of(result)
    return result


def _children(schema: dict[str, Any], root: Mapping[str, Any], trail: tuple[str, ...], depth: int) -> dict[str, Any]:
    for key in schema.keys() & {*_MAPS, *_LISTS, *_SINGLES}:
        value = schema[key]
        if key in _MAPS and isinstance(value, dict):
            schema[key] = {name: _visit(child, root, trail, depth + 1) for name, child in value.items()}
        elif key in _LISTS and isinstance(value, list):
            schema[key] = [_visit(child, root, trail, depth + 1) for child in value]
        elif key in _SINGLES:
            schema[key] = _visit(value, root, trail, depth + 1)
    return schema


def _target(root: Mapping[str, Any], reference: str) -> Schema:
    node: Any = root
    for part in reference[2:].split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node


def _type_of(schema: Mapping[str, Any]) -> str:
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    kinds = {_JSON_TYPES.get(type(value), "string") for value in values if value is not None}
    if kinds:
        return kinds.pop() if len(kinds) == 1 else "number" if kinds == {"integer", "number"} else "string"
    return next((kind for kind, keywords in _ABOUT if schema.keys() & set(keywords)), "string")


def _mentions_reference(node: Any) -> bool:
    if isinstance(node, dict):
        return any(
            (key == "$ref" and isinstance(value, str))
            or (key not in ("$defs", "definitions") and _mentions_reference(value))
            for key, value in node.items()
        )
    return isinstance(node, list) and any(_mentions_reference(child) for child in node)
