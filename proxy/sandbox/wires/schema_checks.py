"""Checks of JSON schemas: legal patterns, the rules of strict mode, a type for every property."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from proxy.sandbox.wires.field_checks import is_number

#: Keywords with further schemas. Everything else (`default`, `enum`, `const`, `examples`) is a literal.
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLES = (
    *("items", "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "contains"),
    *("propertyNames", "not", "if", "then", "else"),
)
_HOLDERS = frozenset((*_MAPS, *_LISTS, *_SINGLES))


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_count(value: Any) -> bool:
    return is_number(value) and isinstance(value, int) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")


def _is_type(value: Any) -> bool:
    return all(one in _TYPES for one in value) and bool(value) if isinstance(value, list) else value in _TYPES


_Shape = tuple[Callable[[Any], object], str]

#: Keyword -> test of its value, and the words for it.
_SHAPES: dict[str, _Shape] = {
    **dict.fromkeys(_MAPS, (_is_map, "an object of schemas")),
    **dict.fromkeys(_LISTS[:-1], (_is_list, "a list of schemas")),
    **dict.fromkeys(_SINGLES, (_is_schema, "a schema")),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), (_is_count, "a count")),
    **dict.fromkeys(("minimum", "maximum"), (is_number, "a number")),
    **dict.fromkeys(("$ref", "pattern"), (lambda value: isinstance(value, str), "a string")),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "required": (_is_names, "a list of names"),
    "type": (_is_type, "the name of a type"),
}

#: Keywords that a function's schema must not have at the top.
_NOT_AT_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")

#: Keywords that strict mode lacks.
_NOT_STRICT = (
    *("patternProperties", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas", "propertyNames"),
    *("default", "examples", "prefixItems", "uniqueItems", "minProperties", "maxProperties", "contains"),
)
_STRICT_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")

#: Any of these excuses a schema from having a type.
_TYPED_BY = ("type", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref")

#: Keywords whose schemas describe a value and hence need a type.
_DESCRIBES = ("properties", "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf")


def walk(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every schema object in `schema`, itself first, with the path of keywords that leads to it."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    if schema.keys().isdisjoint(_HOLDERS):
        return
    for words, kind in ((_MAPS, dict), (_LISTS, list)):
        for word in words:
            inner = schema.get(word)
            if isinstance(inner, kind):
                for name, one in inner.items() if isinstance(inner, dict) else enumerate(inner):
                    yield from walk(one, (*path, word, str(name)))
    for word in _SINGLES:
        if isinstance(schema.get(word), dict):
            yield from walk(schema[word], (*path, word))


def malformed(schema: Any) -> str | None:
    """Why this is not a JSON schema at all; None when it is."""
    for path, one in walk(schema):
        bad = [word for word in one if word in _SHAPES and not _SHAPES[word][0](one[word])]
        if bad:
            first = min(bad, key=list(_SHAPES).index)
            return f"In context={path!r}, '{first}' is not {_SHAPES[first][1]}."
    return None


def bad_pattern(schema: Any) -> str | None:
    """The first regular expression that Python's `re` refuses, since the backend compiles them all."""
    for _, one in walk(schema):
        patterns = one.get("patternProperties")
        for pattern in [one.get("pattern"), *(patterns if isinstance(patterns, dict) else ())]:
            try:
                re.compile(pattern) if isinstance(pattern, str) else None
            except re.error:
                return str(pattern)
    return None


def function_fault(schema: dict[str, Any]) -> str | None:
    """Why this is not a schema for a function, strict or not, in the service's words; None when it is."""
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if any(word in schema for word in _NOT_AT_TOP):
        words = "/".join(f"'{word}'" for word in _NOT_AT_TOP)
        return f"schema must have type 'object' and not have {words} at the top level."
    if "properties" not in schema:
        return "In context=(), object schema missing properties."
    for path, one in walk(schema):
        if "array" in _kinds(one) and "items" not in one:
            return f"In context={path!r}, array schema missing items."
    return None


def _kinds(schema: dict[str, Any]) -> list[Any]:
    kinds = schema.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


def strict_fault(schema: Any) -> str | None:
    """Why the schema is not strict, in the service's words; None when it is."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'."
    if "anyOf" in schema:
        return "root schema must not have 'anyOf'."
    for path, one in walk(schema):
        fault = _value_fault(one) or _object_fault(one)
        if fault is not None:
            return f"In context={path!r}, {fault}"
    return None


def _value_fault(schema: dict[str, Any]) -> str | None:
    for word in _NOT_STRICT:
        if word in schema:
            return f"'{word}' is not permitted."
    reference = schema.get("$ref")
    if isinstance(reference, str):
        others = sorted(schema.keys() - {"$ref"})
        if not reference.startswith("#"):
            return f"reference '{reference}' must be local."
        return f"$ref cannot have keywords {set(others)}." if others else None
    if "type" not in schema and "anyOf" not in schema:
        return "schema must have a 'type' key."
    if "array" in _kinds(schema) and not isinstance(schema.get("items"), dict):
        return "array schema missing items."
    form = schema.get("format", "date")
    return None if form in _STRICT_FORMATS else f"'{form}' is not a valid format."


def _object_fault(schema: dict[str, Any]) -> str | None:
    if "object" not in _kinds(schema) and "properties" not in schema:
        return None
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    missing = [name for name in schema.get("properties") or {} if name not in (schema.get("required") or [])]
    if missing:
        return (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    return None


def untyped(schema: Any) -> str | None:
    """The path (`properties.mode`) of the first schema of a value without a type; `` for the root."""
    for path, one in walk(schema):
        if _describes_value(path) and not any(word in one for word in _TYPED_BY):
            return ".".join(path)
    return None


def _describes_value(path: tuple[str, ...]) -> bool:
    """Whether all keywords of the path describe values."""
    rest = list(path)
    while rest:
        word = rest.pop(0)
        if word not in _DESCRIBES:
            return False
        numbered = bool(rest) and rest[0].isdigit()
        if word == "properties" or (word in _LISTS and numbered):
            rest.pop(0)
    return True
