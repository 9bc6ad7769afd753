"""Rewrites JSON Schemas for a validator that wants a `type` everywhere and knows no references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.sizes import least_size
from proxy.core.tools.function_schema import ANY_ITEMS, NO_PROPERTIES, STEP_CHARS, target
from proxy.core.tools.schema import CONTAINERS, DEFINITIONS, map_children
from proxy.core.tools.step_budget import Steps, TooManySteps

Schema = Any

#: Deeper schemas, and references that lead back to themselves, are passed on unchanged.
MAX_DEPTH = 64
#: Factor for the cost of a schema that must be written anew in each place, because references lead back to themselves.
ONCE_MORE = 4
#: Most characters of one member that count when it is written again.
MAX_COUNTED = 64 * 1024

_NEEDS_NO_TYPE = frozenset({"type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref"})

#: (type, keywords that imply it); the first keyword that is present decides.
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


def typed_schema(schema: Mapping[str, Any], steps: Steps | None = None) -> dict[str, Any]:
    """A copy in which local references are expanded and every schema below the root has a type. References that `steps`
    do not allow to expand stay, and a schema that is too large is not changed.

    >>> typed_schema({"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"minimum": 1}}})["properties"]
    {'a': {'enum': ['x'], 'type': 'string'}, 'b': {'minimum': 1, 'type': 'number'}}
    """
    steps = Steps() if steps is None else steps
    try:
        return _Writer(schema, steps).root()
    except TooManySteps:
        steps.short = True
        return dict(schema)


@dataclass(frozen=True, slots=True)
class _Written:
    """The target of a reference, with its own references expanded.

    size    steps for each place where it is written
    height  levels of schemas below it
    """

    schema: dict[str, Any]
    size: int
    height: int


class _Writer:
    """Expands one schema. The target of several references is written once, as one object in all places.

    trail    the references that led to the current place
    size     steps for what was written so far
    deepest  greatest depth so far
    cut      whether something was left out because of the trail, so that the result cannot be used elsewhere
    refers   whether a reference stays
    """

    def __init__(self, root: Mapping[str, Any], steps: Steps) -> None:
        self._root = root
        self._steps = steps
        self._known: dict[str, _Written] = {}
        self._size = self._deepest = 0
        self._cut = self._refers = False

    def root(self) -> dict[str, Any]:
        definitions = {key: value for key, value in self._root.items() if key in DEFINITIONS}
        bare = {key: value for key, value in self._root.items() if key not in definitions}
        result = self._resolved(bare, (), 0)
        if definitions and self._refers:
            result = {**result, **self._children(definitions, (), 0)}
        return result

    def _visit(self, schema: Schema, trail: tuple[str, ...], depth: int) -> Schema:
        if not isinstance(schema, dict):
            return schema
        self._deepest = max(self._deepest, depth)
        if depth > MAX_DEPTH:
            self._cut = self._refers = True
            return schema
        result = self._resolved(schema, trail, depth)
        return {**result, "type": _type_of(result)} if result.keys().isdisjoint(_NEEDS_NO_TYPE) else result

    def _resolved(self, schema: Mapping[str, Any], trail: tuple[str, ...], depth: int) -> dict[str, Any]:
        found = self._referred(schema["$ref"], trail, depth) if "$ref" in schema else None
        if found is None:
            return self._children(schema, trail, depth)
        others = {key: value for key, value in schema.items() if key != "$ref" and value is not NO_PROPERTIES}
        return {**found, **self._children(others, trail, depth)} if others else found

    def _children(self, schema: Mapping[str, Any], trail: tuple[str, ...], depth: int) -> dict[str, Any]:
        self._refers = self._refers or isinstance(schema.get("$ref"), str)
        if trail:
            self._size += _written_again(schema)
        else:
            self._steps.take(1 + len(schema))
        # An upstream that takes arrays without `items` would read something in a type of theirs.
        own = {key: value for key, value in schema.items() if value is not ANY_ITEMS or key != "items"}
        return map_children(own, lambda child: self._visit(child, trail, depth + 1))

    def _referred(self, reference: Any, trail: tuple[str, ...], depth: int) -> dict[str, Any] | None:
        """The target of a reference, to replace it; None if the reference stays."""
        if not isinstance(reference, str) or not reference.startswith("#/") or self._steps.short:
            return None
        if reference in trail or depth > MAX_DEPTH:
            self._cut = True
            return None
        known = self._known.get(reference)
        if known is not None and depth + known.height <= MAX_DEPTH:
            self._deepest = max(self._deepest, depth + known.height)
            self._size += known.size
            return known.schema if self._steps.allows(known.size) else None
        if not self._steps.allows(1 + reference.count("/")):
            return None
        node = target(reference, self._root)
        return self._written(reference, node, trail, depth) if isinstance(node, dict) else None

    def _written(
        self, reference: str, node: dict[str, Any], trail: tuple[str, ...], depth: int
    ) -> dict[str, Any] | None:
        """A target, expanded. The steps of references in it are part of its own; None if they are too many."""
        size, deepest, cut, extra = self._size, self._deepest, self._cut, self._steps.extra
        self._deepest, self._cut = depth, False
        made = self._resolved(node, (*trail, reference), depth + 1)
        written = _Written(made, self._size - size, self._deepest - depth)
        whole = not self._cut
        self._deepest, self._cut = max(deepest, self._deepest), cut or self._cut
        self._steps.extra = extra
        if not self._steps.allows(written.size * (1 if whole else ONCE_MORE)):
            return None
        if whole:
            self._known[reference] = written
        return made


def _written_again(schema: Mapping[str, Any]) -> int:
    """Steps for the members of a schema, without those of schemas below: its texts are sent once more."""
    texts = sum(least_size(value, MAX_COUNTED) for key, value in schema.items() if key not in CONTAINERS)
    return 1 + len(schema) + texts // STEP_CHARS


def _type_of(schema: Mapping[str, Any]) -> str:
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    kinds = {_JSON_TYPES[type(value)] for value in values}
    if len(kinds) > 1:
        kinds.discard("null")
    if kinds:
        return kinds.pop() if len(kinds) == 1 else "number" if kinds == {"integer", "number"} else "string"
    return next((kind for kind, keywords in _ABOUT if not schema.keys().isdisjoint(keywords)), "string")
