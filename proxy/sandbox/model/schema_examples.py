"""Values that fit a JSON schema, as a model without ideas would choose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A schema may refer to itself. Past this depth optional members are left out and lists stay empty.
MAX_DEPTH = 12

#: A text is filled up to its `minLength`, but not beyond this many characters.
MAX_FILL = 10_000

_BY_TYPE: dict[str, Any] = {"boolean": True, "null": None}


def example(schema: Any, known: Mapping[str, str] | None = None) -> Any:
    """A value for the schema. `known` gives the text for string properties of that name, at any level.

    >>> example({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    {'n': 1}
    """
    return _value(schema, schema if isinstance(schema, dict) else {}, known or {}, 0)


def arguments_for(schema: Any, text: str) -> dict[str, Any]:
    """Tool arguments that carry `text` in the first required string property (else in the first string property).

    The other required properties get examples, the optional ones are left out.
    """
    if not isinstance(schema, dict):
        return {}
    properties = schema.get("properties") or {}
    required = [name for name in schema.get("required") or () if name in properties]
    target = next((name for name in (*required, *properties) if _takes_text(properties[name])), None)
    arguments = {name: example(properties[name]) for name in required}
    if target is not None:
        arguments[target] = text
    return arguments


def _takes_text(schema: Any) -> bool:
    return isinstance(schema, dict) and "enum" not in schema and _type(schema) == "string"


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return str(next((one for one in kind if one != "null"), "null"))
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "string"


def _value(schema: Any, root: Mapping[str, Any], known: Mapping[str, str], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    inner = _indirect(schema, root)
    if inner is not None:
        return _value(inner, root, known, depth + 1)
    kind = _type(schema)
    if kind == "object":
        return _object(schema, root, known, depth)
    if kind == "array":
        count = min(int(schema.get("minItems", 1)), 8) if depth < MAX_DEPTH // 2 else 0
        return [_value(schema.get("items"), root, known, depth + 1) for _ in range(count)] if "items" in schema else []
    if kind in ("integer", "number"):
        return _number(schema)
    return _BY_TYPE[kind] if kind in _BY_TYPE else _text("example", schema)


def _indirect(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The schema to use instead of this one: a reference's target, or the first of several choices."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target: Any = root
        for step in filter(None, reference[1:].split("/")):
            target = target.get(step, {}) if isinstance(target, dict) else {}
        return target
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return schema[word][0]
    return None


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], known: Mapping[str, str], depth: int) -> Any:
    properties, wanted = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    wanted = wanted if isinstance(wanted, list) else []
    value = {}
    for name, inner in properties.items():
        if name in known and _takes_text(inner):
            value[name] = _text(known[name], inner)
        elif name in wanted:
            value[name] = _value(inner, root, known, depth + 1)
    return value


def _number(schema: Mapping[str, Any]) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and low > 1:
        return low  # type: ignore[no-any-return]
    if high is not None and high < 1:
        return high  # type: ignore[no-any-return]
    return 1


def _text(text: str, schema: Mapping[str, Any]) -> str:
    shortest = min(int(schema.get("minLength", 0)), MAX_FILL)
    return text.ljust(shortest, ".")[: int(schema.get("maxLength", max(len(text), shortest)))]
