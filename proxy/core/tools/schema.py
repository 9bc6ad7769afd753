"""JSON Schemas on their way to an upstream: what has to be removed, added and, in answers, taken back."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from proxy.core.sse import dump_json, load_json

# Where schemas live inside a schema. Everything else (default, enum, const, examples, a property that happens to be
# called "pattern") is data and is left alone.
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
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
    "contentSchema",
)
_CONTAINERS = frozenset(_MAPS + _LISTS + _SINGLES)

#: What strict mode has no words for.
_NOT_STRICT = frozenset(
    {
        "patternProperties",
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
    }
)

#: Deeper schemas are passed on unchanged below this level; a real one has about ten.
MAX_DEPTH = 64

Schema = Any


@lru_cache(maxsize=1024)
def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _map_children(schema: Mapping[str, Any], visit: Callable[[Schema], Schema]) -> dict[str, Any]:
    """A copy with `visit` applied to every schema directly below; the same object where nothing changed."""
    result = dict(schema)
    for key in schema.keys() & _CONTAINERS:
        value = schema[key]
        if isinstance(value, dict):
            if key in _MAPS:
                result[key] = {name: visit(child) for name, child in value.items()}
            elif key in _SINGLES:
                result[key] = visit(value)
        elif isinstance(value, list) and key in _LISTS:
            result[key] = [visit(child) for child in value]
    return result


def without_foreign_patterns(schema: Schema) -> Schema:
    """The schema without regular expressions that the upstream cannot compile.

    The backend compiles every `pattern` with Python's `re` and refuses the whole request when one fails. Claude Code's
    own Artifact tool carries a Unicode property escape, which `re` does not know.
    """
    return _with_known_patterns(schema, 0) if _mentions_patterns(schema) else schema


def _mentions_patterns(schema: Schema) -> bool:
    """Whether there is anything to look at: most schemas have no pattern, and all of them come again every turn."""
    nodes = [schema]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            if "pattern" in node or "patternProperties" in node:
                return True
            nodes += [child for child in node.values() if isinstance(child, dict | list)]
        elif isinstance(node, list):
            nodes += [child for child in node if isinstance(child, dict | list)]
    return False


def _with_known_patterns(schema: Schema, depth: int) -> Schema:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema
    result = _map_children(schema, lambda child: _with_known_patterns(child, depth + 1))
    pattern = result.get("pattern")
    if isinstance(pattern, str) and not _compiles(pattern):
        del result["pattern"]
    keyed = result.get("patternProperties")
    if isinstance(keyed, dict):
        result["patternProperties"] = {key: value for key, value in keyed.items() if _compiles(key)}
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
    if None in schema.get("enum", ()) if isinstance(schema.get("enum"), list) else False:
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


def strict_schema(schema: Schema, depth: int = 0) -> Schema:
    """The strict form of a schema: objects are closed, every property is required, optional ones may be null.

    Raises NotStrict for what strict mode has no words for: free-form maps, conditions, foreign references.
    """
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if depth > MAX_DEPTH or schema.keys() & _NOT_STRICT or (isinstance(reference, str) and reference[:1] != "#"):
        raise NotStrict
    result = _map_children(schema, lambda child: strict_schema(child, depth + 1))
    properties = result.get("properties")
    if isinstance(properties, dict):
        if schema.get("additionalProperties", False) not in (False, None):
            raise NotStrict
        optional = properties.keys() - _required(schema)
        result["properties"] = {
            name: {"anyOf": [child, {"type": "null"}]} if name in optional and not accepts_null(child) else child
            for name, child in properties.items()
        }
        result["required"] = list(properties)
        result["additionalProperties"] = False
    elif _is_object(schema):
        if schema.get("additionalProperties", False) not in (False, None):
            raise NotStrict
        result |= {"properties": {}, "required": [], "additionalProperties": False}
    return result


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def has_optional(schema: Schema, depth: int = 0) -> bool:
    """Whether `strict_schema` made some property nullable that was not, so that answers need `without_nulls`."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return False
    found = False

    def look(child: Schema) -> Schema:
        nonlocal found
        found = found or has_optional(child, depth + 1)
        return child

    _map_children(schema, look)
    properties = schema.get("properties")
    if not found and isinstance(properties, dict):
        found = any(name not in _required(schema) and not accepts_null(child) for name, child in properties.items())
    return found


def without_nulls(value: Any, schema: Schema, root: Schema = None) -> Any:
    """A copy without members that are null only because an optional property had to be filled.

    Follows `properties`, `items`, local references and the fitting branch of `anyOf`; what the schema does not describe
    stays. `root` is the schema that references point into, by default `schema` itself.
    """
    root = schema if root is None else root
    schema = _described(value, schema, root) if isinstance(value, dict | list) else None
    if isinstance(value, list) and isinstance(schema, dict):
        return [without_nulls(member, schema.get("items", True), root) for member in value]
    if not isinstance(value, dict) or not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return value
    properties, required = schema["properties"], _required(schema)
    return {
        name: without_nulls(member, properties.get(name, True), root)
        for name, member in value.items()
        if not (member is None and name in properties and name not in required and not accepts_null(properties[name]))
    }


def _described(value: Any, schema: Schema, root: Schema) -> Schema:
    """The schema that speaks about `value`: behind references, and in the branch of `anyOf` that knows its members."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, dict) or "properties" in schema or "items" in schema:
            return schema
        if isinstance(schema.get("$ref"), str):
            schema = _target(schema["$ref"], root)
            continue
        branches = [_described(value, branch, root) for branch in _branches(schema, "anyOf")]
        return next((branch for branch in branches if _fits(value, branch)), schema)
    return None


def _target(reference: str, root: Schema) -> Schema:
    """What a local reference like `#/$defs/Name` points to, or None."""
    for step in reference.removeprefix("#").split("/")[1:]:
        root = root.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(root, dict) else None
    return root


def _fits(value: Any, schema: Schema) -> bool:
    if not isinstance(schema, dict):
        return False
    if isinstance(value, list):
        return "items" in schema
    properties = schema.get("properties")
    return isinstance(properties, dict) and value.keys() <= properties.keys()


def restore_text(text: str, schema: Schema) -> str:
    """`without_nulls` over JSON text; text that is not JSON is returned as it is."""
    try:
        return dump_json(without_nulls(load_json(text), schema))
    except (ValueError, RecursionError):
        return text
