"""Converts schemas of answers to strict form, and takes the nulls that this causes out of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from proxy.core.sse import dump_json, load_json
from proxy.core.tools.function_schema import target
from proxy.core.tools.step_budget import Steps, TooManySteps

# Keywords that hold schemas. All else (default, enum, const, examples, a property that happens to be called "pattern")
# is data and not changed.
DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", *DEFINITIONS)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLES = (
    *("items", "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"),
    *("contains", "propertyNames", "not", "if", "then", "else", "contentSchema"),
)
CONTAINERS = frozenset(_MAPS + _LISTS + _SINGLES)

#: Keywords that strict mode knows; it refuses a schema with any other.
_STRICT = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref"),
        *("$defs", "definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "minLength", "maxLength"),
    }
)
#: Keywords that can be dropped, since they do not decide which answers fit.
_ANNOTATIONS = frozenset({"default", "examples", "$schema", "$comment", "deprecated", "readOnly", "writeOnly"})
_STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

#: Deeper schemas are passed on unchanged below this level; a real one has about ten.
MAX_DEPTH = 64
#: Maximum number of members of an answer, and branches tried for them. An answer of a megabyte has some ten thousand.
MAX_RESTORED = 100_000

Schema = Any

#: Names of schemas that upstreams accept.
FORMAT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def output_format(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The structured-output format asked for: `output_config.format`, or the older `output_format`."""
    config = request.get("output_config")
    for found in (config.get("format") if isinstance(config, Mapping) else None, request.get("output_format")):
        if isinstance(found, Mapping) and isinstance(found.get("type"), str):
            return found
    return None


#: The instruction for a system prompt, if the upstream cannot enforce a schema.
_IN_WORDS = "Answer with JSON that fits this schema, and with nothing else: no code fence and no words around it.\n"


def format_in_words(request: Mapping[str, Any]) -> str:
    """The instruction for a prompt to answer in the format asked for; "" if none is."""
    wanted = json_format(request)
    if wanted is None:
        return ""
    if wanted["type"] == "json_schema" and isinstance(wanted.get("schema"), dict):
        return _IN_WORDS + dump_json(wanted["schema"])
    return "Answer with a JSON object and nothing else."


def answer_schema(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of the answer, None if there is none."""
    schema = (json_format(request) or {}).get("schema")
    return schema if isinstance(schema, dict) else None


def json_format(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON format asked for, None if there is none."""
    if "output_config" not in request and "output_format" not in request:
        return None
    wanted = output_format(request)
    return wanted if wanted is not None and wanted["type"].startswith("json") else None


def map_children(schema: Mapping[str, Any], visit: Callable[[Schema], Schema]) -> dict[str, Any]:
    """A copy with `visit` applied to every schema directly below."""
    result = dict(schema)
    for key in schema.keys() & CONTAINERS:
        value = schema[key]
        if isinstance(value, dict):
            if key in _MAPS:
                result[key] = {name: visit(child) for name, child in value.items()}
            elif key in _SINGLES:
                result[key] = visit(value)
        elif isinstance(value, list) and key in _LISTS:
            result[key] = [visit(child) for child in value]
    return result


def accepts_null(schema: Schema) -> bool:
    """Whether a schema allows null by its `type`, `enum`, `const` or a branch of `anyOf`/`oneOf`."""
    if not isinstance(schema, dict):
        return schema is not False
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    if kind is None and not schema.keys() & {"anyOf", "oneOf", "allOf", "enum", "const", "$ref", "properties"}:
        return True
    if schema.get("const", True) is None or (isinstance(schema.get("enum"), list) and None in schema["enum"]):
        return True
    return any(accepts_null(branch) for key in ("anyOf", "oneOf") for branch in _branches(schema, key))


def _branches(schema: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    branches = schema.get(key)
    return [branch for branch in branches if isinstance(branch, dict)] if isinstance(branches, list) else []


def _required(schema: Mapping[str, Any]) -> set[str]:
    required = schema.get("required")
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


class NotStrict(Exception):
    """The schema cannot be expressed in strict mode."""


def strict_schema(schema: Schema) -> Schema:
    """The strict form of a schema: objects are closed, every property is required, optional ones may be null.

    Raises NotStrict for what strict mode refuses: free-form maps, conditions, values without type, foreign references,
    a root that is no object, and schemas that are too large or too deep.
    """
    try:
        return _strict(schema, 0, Steps())
    except TooManySteps:
        raise NotStrict from None


def _strict(schema: Schema, depth: int, steps: Steps) -> Schema:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        raise NotStrict
    steps.take(1 + len(schema))
    bare = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    if "$ref" in bare and depth:
        return _strict_reference(bare)
    _check_strict(bare, depth)
    result = map_children(bare, lambda child: _strict(child, depth + 1, steps))
    if "properties" in result or _is_a("object", bare):
        properties = result.get("properties")
        closed = bare.get("additionalProperties") is False
        if not isinstance(properties, dict) or not (properties or closed):
            raise NotStrict  # closed, it could only be empty
        optional = properties.keys() - _required(bare)
        result["properties"] = {
            name: {"anyOf": [child, {"type": "null"}]} if name in optional and not accepts_null(child) else child
            for name, child in properties.items()
        }
        result["required"] = list(properties)
        result["additionalProperties"] = False
    return result


def _strict_reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A reference in strict form: without other keywords."""
    reference = schema["$ref"]
    if schema.keys() - {"$ref", "title", "description"} or not isinstance(reference, str) or reference[:1] != "#":
        raise NotStrict
    return {"$ref": reference}


def _check_strict(schema: Mapping[str, Any], depth: int) -> None:
    kind, items = schema.get("type"), schema.get("items")
    if (
        schema.keys() - _STRICT
        or (kind != "object" if not depth else kind is None and "anyOf" not in schema)
        or ("anyOf" in schema and not depth)
        or schema.get("additionalProperties", False) not in (False, None)
        or (_is_a("array", schema) and not isinstance(items, dict))
        or schema.get("format", "date") not in _STRICT_FORMATS
    ):
        raise NotStrict


def _is_a(kind: str, schema: Mapping[str, Any]) -> bool:
    named = schema.get("type")
    return named == kind or (isinstance(named, list) and kind in named)


def has_optional(schema: Schema) -> bool:
    """Whether `strict_schema` makes a property nullable that was not, so that answers need `without_nulls`; True too if
    the schema is too large to check."""
    try:
        return _has_optional(schema, 0, Steps())
    except TooManySteps:
        return True


def _has_optional(schema: Schema, depth: int, steps: Steps) -> bool:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return False
    steps.take(1 + len(schema))
    found = False

    def look(child: Schema) -> Schema:
        nonlocal found
        found = found or _has_optional(child, depth + 1, steps)
        return child

    map_children(schema, look)
    properties = schema.get("properties")
    if found or not isinstance(properties, dict):
        return found
    return not all(accepts_null(properties[name]) for name in properties.keys() - _required(schema))


def strict_as_asked(schema: Schema) -> Schema | None:
    """The strict form of a schema whose author wants strict mode; None if that refuses it, or would change its meaning
    by making the model fill what is optional.

    >>> strict_as_asked({"type": "object", "properties": {"a": {"type": "string"}}}) is None
    True
    """
    try:
        return None if has_optional(schema) else strict_schema(schema)
    except NotStrict:
        return None


def without_nulls(value: Any, schema: Schema) -> Any:
    """A copy without members that are null only because an optional property had to be filled.

    Follows `properties`, `items`, local references and the fitting branch of `anyOf`. What the schema does not describe
    is kept, and all of it if following takes too many steps.
    """
    try:
        return _NullsTaken(schema).out_of(value, schema)
    except TooManySteps:
        return value


class _NullsTaken:
    """Takes the nulls out of one answer. Caches facts of its schema, since an answer may have thousands of objects."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._steps = Steps(MAX_RESTORED)
        self._optional: dict[int, set[str]] = {}
        self._named: dict[str, Schema] = {}

    def out_of(self, value: Any, schema: Schema) -> Any:
        if not isinstance(value, dict | list):
            return value
        self._steps.take(1 + len(value))
        schema = self._described(value, schema, set())
        if isinstance(value, list) and isinstance(schema, dict):
            return [self.out_of(member, schema.get("items", True)) for member in value]
        if not isinstance(value, dict) or not isinstance(schema, dict):
            return value
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return value
        optional = self._optional_of(schema, properties)
        return {
            name: self.out_of(member, properties.get(name, True))
            for name, member in value.items()
            if member is not None or name not in optional
        }

    def _optional_of(self, schema: Mapping[str, Any], properties: Mapping[str, Any]) -> set[str]:
        """The properties that may be left out and do not allow null."""
        known = self._optional.get(id(schema))
        if known is None:
            names = properties.keys() - _required(schema)
            known = self._optional[id(schema)] = {name for name in names if not accepts_null(properties[name])}
        return known

    def _described(self, value: Any, schema: Schema, seen: set[str]) -> Schema:
        """The schema of `value`: the target of references, and the branch of `anyOf` that has its members.

        seen  references that were followed for this value; none fits better the second time
        """
        while isinstance(schema, dict) and "properties" not in schema and "items" not in schema:
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return self._branch(value, schema, seen)
            if reference in seen:
                return None
            self._steps.take()
            seen.add(reference)
            if reference not in self._named:
                self._steps.take(reference.count("/"))
                self._named[reference] = target(reference, self._root)
            schema = self._named[reference]
        return schema

    def _branch(self, value: Any, schema: Mapping[str, Any], seen: set[str]) -> Schema:
        branches = schema.get("anyOf")
        for branch in branches if isinstance(branches, list) else ():
            self._steps.take(1 + len(value) // 8)
            if isinstance(branch, dict) and _fits(value, found := self._described(value, branch, seen)):
                return found
        return schema


def _fits(value: Any, schema: Schema) -> bool:
    if not isinstance(schema, dict):
        return False
    if isinstance(value, list):
        return "items" in schema
    properties = schema.get("properties")
    return isinstance(properties, dict) and value.keys() <= properties.keys()


def restore_text(text: str, schema: Schema) -> str:
    """Applies `without_nulls` to JSON text; returns text that is not JSON unchanged."""
    try:
        return dump_json(without_nulls(load_json(text), schema))
    except (ValueError, RecursionError):
        return text
