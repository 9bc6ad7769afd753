"""What backends demand of JSON schemas: legal patterns, the rules of strict mode, a type for every property."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

#: Where a schema holds further schemas. Everything else (`default`, `enum`, `const`, `examples`) is a literal.
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLES = (
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_schema(one) for one in value.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_schema(one) for one in value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) or (_is_names(value) and bool(value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_Shape = tuple[Callable[[Any], bool], str]

#: Keyword -> what its value must be.
_SHAPES: dict[str, _Shape] = {
    **dict.fromkeys(_MAPS, (_is_map, "an object of schemas")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), (_is_list, "a list of schemas")),
    **dict.fromkeys(_SINGLES[1:], (_is_schema, "a schema")),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), (_is_count, "a count")),
    **dict.fromkeys(("minimum", "maximum"), (_is_number, "a number")),
    **dict.fromkeys(("$ref", "pattern"), (lambda value: isinstance(value, str), "a string")),
    "items": (lambda value: _is_schema(value) or _is_list(value), "a schema"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "required": (_is_names, "a list of names"),
    "type": (_is_type, "the name of a type"),
}

#: Keywords that strict mode does not know.
_NOT_STRICT = (
    "patternProperties",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "propertyNames",
)


def walk(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every schema object in `schema`, itself first, with the path of keywords that leads to it."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for word in _MAPS:
        inner = schema.get(word)
        if isinstance(inner, dict):
            for name, one in inner.items():
                yield from walk(one, (*path, word, name))
    for word in _LISTS:
        inner = schema.get(word)
        if isinstance(inner, list):
            for index, one in enumerate(inner):
                yield from walk(one, (*path, word, str(index)))
    for word in _SINGLES:
        yield from walk(schema.get(word), (*path, word))


def malformed(schema: Any) -> str | None:
    """What makes it no JSON schema at all; None when nothing does."""
    for path, one in walk(schema):
        for word, (fits, words) in _SHAPES.items():
            if word in one and not fits(one[word]):
                return f"In context={path!r}, '{word}' is not {words}."
    return None


def bad_pattern(schema: Any) -> str | None:
    """The first regular expression that Python's `re` refuses, as the backend compiles them all."""
    for _, one in walk(schema):
        patterns = [one["pattern"]] if isinstance(one.get("pattern"), str) else []
        if isinstance(one.get("patternProperties"), dict):
            patterns += one["patternProperties"]
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error:
                return str(pattern)
    return None


def strict_fault(schema: Any) -> str | None:
    """What keeps the schema from being strict, in the words of the service; None when nothing does."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'."
    for path, one in walk(schema):
        fault = _object_fault(one)
        if fault is not None:
            return f"In context={path!r}, {fault}"
    return None


def _object_fault(schema: dict[str, Any]) -> str | None:
    for word in _NOT_STRICT:
        if word in schema:
            return f"'{word}' is not permitted."
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        return f"reference '{reference}' must be local."
    kinds = schema.get("type")
    is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds) or "properties" in schema
    if not is_object:
        return None
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    required = schema.get("required") or []
    missing = [name for name in schema.get("properties") or {} if name not in required]
    if missing:
        return (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    return None


#: Any of these excuses a schema from having a type.
_TYPED_BY = ("type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref")

#: Keywords whose schemas stand where a value is described and hence need a type.
_DESCRIBES = ("properties", "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf")


def untyped(schema: Any) -> str | None:
    """The path (`properties.mode`) of the first schema of a value that names no type; the root needs none."""
    for path, one in walk(schema):
        if path and _describes_value(path) and not any(word in one for word in _TYPED_BY):
            return ".".join(path)
    return None


def _describes_value(path: tuple[str, ...]) -> bool:
    """Whether all keywords on the way are of those that describe values."""
    rest = list(path)
    while rest:
        word = rest.pop(0)
        if word not in _DESCRIBES:
            return False
        numbered = bool(rest) and rest[0].isdigit()
        if word == "properties" or (word in _LISTS and numbered):
            rest.pop(0)
    return True
