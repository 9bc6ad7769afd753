"""JSON Schemas for a validator that wants a `type` everywhere and knows no references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.tools.function_schema import ANY_ITEMS, target
from proxy.core.tools.step_budget import Steps, TooManySteps

Schema = Any

#: Deeper schemas, and references that lead back to themselves, are passed on as they are.
MAX_DEPTH = 64
#: References that lead to references double with every step; past this many schemas they stay references.
MAX_WRITTEN = 5000
#: Members written altogether; past so many the whole schema is passed on as it is.
MAX_COPIED = 30_000

_DEFINITIONS = ("$defs", "definitions")
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", *_DEFINITIONS})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLES = frozenset(
    {
        "items",
        "additionalItems",
        "additionalProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contains",
        "contentSchema",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
    }
)
_CONTAINERS = _MAPS | _LISTS | _SINGLES
_SPEAKS_FOR_ITSELF = frozenset({"type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref"})

#: keyword -> the type it is about; the first that is present decides
_ABOUT = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("object", ("minProperties", "maxProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")),
)
_JSON_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def typed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which local references are written out and every schema below the root has a type. One that is too
    large for that is left as it is.

    >>> typed_schema({"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"minimum": 1}}})["properties"]
    {'a': {'enum': ['x'], 'type': 'string'}, 'b': {'minimum': 1, 'type': 'number'}}
    """
    try:
        return _Writer(schema).root()
    except TooManySteps:
        return dict(schema)


class _Writer:
    """Writes one schema out. `trail`: the references that led to where it is."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_WRITTEN
        self._steps = Steps(MAX_COPIED)

    def root(self) -> dict[str, Any]:
        definitions = {key: value for key, value in self._root.items() if key in _DEFINITIONS}
        bare = {key: value for key, value in self._root.items() if key not in definitions}
        result: dict[str, Any] = self._visit(bare, (), 0, top=True)
        if definitions and _mentions_reference(result):
            result |= self._children(definitions, (), 0)
        return result

    def _visit(self, schema: Schema, trail: tuple[str, ...], depth: int, *, top: bool = False) -> Schema:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return schema
        found = self._referred(schema.get("$ref"), trail)
        if found is not None:
            self._left -= 1
            self._steps.take(len(found) + len(schema))
            merged = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
            return self._visit(merged, (*trail, schema["$ref"]), depth + 1, top=top)
        if trail:
            self._left -= 1
        result = self._children(schema, trail, depth)
        if not top and result.keys().isdisjoint(_SPEAKS_FOR_ITSELF):
            result["type"] = _type_of(result)
        return result

    def _children(self, schema: Mapping[str, Any], trail: tuple[str, ...], depth: int) -> dict[str, Any]:
        self._steps.take(1 + len(schema))
        result = dict(schema)
        if schema.get("items") is ANY_ITEMS:  # it takes arrays without; with a type of its own this would say something
            del result["items"]
        for key in result.keys() & _CONTAINERS:
            value = schema[key]
            if key in _MAPS and isinstance(value, dict):
                result[key] = {name: self._visit(child, trail, depth + 1) for name, child in value.items()}
            elif key not in _MAPS and isinstance(value, list):
                result[key] = [self._visit(child, trail, depth + 1) for child in value]
            elif key in _SINGLES:
                result[key] = self._visit(value, trail, depth + 1)
        return result

    def _referred(self, reference: Any, trail: tuple[str, ...]) -> dict[str, Any] | None:
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in trail or self._left <= 0:
            return None
        self._steps.take(reference.count("/"))
        node = target(reference, self._root)
        return node if isinstance(node, dict) else None


def _type_of(schema: Mapping[str, Any]) -> str:
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    kinds = {_JSON_TYPES[type(value)] for value in values}
    if len(kinds) > 1:
        kinds.discard("null")
    if kinds:
        return kinds.pop() if len(kinds) == 1 else "number" if kinds == {"integer", "number"} else "string"
    return next((kind for kind, keywords in _ABOUT if not schema.keys().isdisjoint(keywords)), "string")


def _mentions_reference(node: Any) -> bool:
    if isinstance(node, dict):
        return isinstance(node.get("$ref"), str) or any(map(_mentions_reference, node.values()))
    return isinstance(node, list) and any(map(_mentions_reference, node))
