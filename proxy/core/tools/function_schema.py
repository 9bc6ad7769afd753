"""Mends the schema of a function so that every upstream accepts it.

Clients send what the Messages API accepts: no schema at all, objects without `properties`, arrays without `items`,
members of older drafts. Other backends refuse the whole request for one such tool, and with it every turn of a session.
A mended schema has the same meaning. If the root is a choice of forms, which cannot be kept, a sentence describes it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from proxy.core.sse import dump_json, dump_sorted_json, load_json
from proxy.core.tools.step_budget import Steps, TooManySteps

Schema = Any

#: Deeper schemas are passed on unchanged below this level; a real one has about ten.
MAX_DEPTH = 64
#: Longest description of a choice, in characters.
MAX_CHOICE = 4000
#: Longest pattern that is compiled as a check, in characters.
MAX_PATTERN = 1000
#: Steps for a pattern, and for each character that is not ASCII: it may mean a large class.
PATTERN_STEPS = 40
#: Steps for a branch of a root that is a choice.
BRANCH_STEPS = 8
#: Characters of a text that one step compares or writes again.
STEP_CHARS = 16

_SCALARS = ("string", "number", "integer", "boolean", "null")
_TYPES = frozenset({*_SCALARS, "object", "array"})
_CHOICES = ("anyOf", "oneOf", "allOf")
#: Keywords that a root must not have.
_NOT_AT_ROOT = (*_CHOICES, "enum", "not")
#: The `items` and `properties` that are added to arrays and objects without them, since most upstreams want some.
ANY_ITEMS: dict[str, Any] = {}
NO_PROPERTIES: dict[str, Any] = {}
#: The flag of a pattern that ignores case.
_ANY_CASE = re.compile(r"\(\?[a-zA-Z]*i")
#: Replaces a value that cannot be mended.
_GONE = object()


def function_schema(schema: Schema, steps: Steps | None = None) -> tuple[dict[str, Any], str]:
    """The schema with an object with `properties` as its root; and a sentence about the root's other rules, mostly "".

    Returns `schema` itself if nothing is wrong with it. If `steps` do not allow more, patterns and references of the
    root are left out, and only the sentence describes branches.

    >>> function_schema({"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}]})[0]
    {'type': 'object', 'properties': {'a': {'type': 'string'}}, 'required': ['a']}
    """
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}, ""
    steps = Steps() if steps is None else steps
    try:
        return _mended(schema, steps)
    except TooManySteps:
        steps.short = True
        return _as_given(schema)


def _as_given(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """A schema that is too large to be mended, with only its root in the form that `function_schema` returns."""
    choice = {key: schema[key] for key in _NOT_AT_ROOT if key in schema}
    root = {**{key: value for key, value in schema.items() if key not in choice}, "type": "object"}
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    required = root.get("required", ())
    if not (isinstance(required, list) and all(isinstance(name, str) for name in required)):
        root.pop("required", None)
    return root, _in_words(choice) if choice else ""


def _mended(schema: dict[str, Any], steps: Steps) -> tuple[dict[str, Any], str]:
    mended = _legal(schema, steps, 0)
    if "$ref" in mended:
        mended = _referred(mended, mended, {}, steps)
    choice = {key: mended[key] for key in _NOT_AT_ROOT if key in mended}
    if choice:
        mended = _RootChoice(mended, steps).root()
    if mended.get("type") != "object":
        mended = {"type": "object", **{key: value for key, value in mended.items() if key != "type"}}
    if "properties" not in mended:
        mended = {**mended, "properties": {}}
    return mended, _in_words(choice) if choice else ""


def _in_words(choice: Mapping[str, Any]) -> str:
    text = dump_json(choice)
    text = text if len(text) <= MAX_CHOICE else f"{text[:MAX_CHOICE]}…"
    return f"The input must also fit this JSON Schema: {text}"


# -- keywords: rule(value, steps, depth) -> the value, `value` itself if it is legal, or _GONE

_Rule = Callable[[Any, Steps, int], Any]


def legal_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with legal keywords only; `schema` itself if it has no others, or is too large to be checked."""
    try:
        return _legal(schema, Steps(), 0)
    except TooManySteps:
        return schema


def _legal(schema: dict[str, Any], steps: Steps, depth: int) -> dict[str, Any]:
    steps.take(1 + len(schema))
    if depth > MAX_DEPTH:
        return schema
    changes: dict[str, Any] | None = None
    for key, value in schema.items():
        plain = _PLAIN.get(key)
        if plain is not None:
            mended = value if type(value) is plain else _GONE
        elif key in _RULES:
            mended = _RULES[key](value, steps, depth + 1)
        else:
            continue
        if mended is not value:
            changes = changes or {}
            changes[key] = mended
    if changes is None and schema.get("type") in _SCALARS and "items" not in schema:
        return schema  # nearly always: this runs for every property of every tool, every turn
    return _completed({**schema, **changes} if changes else schema)


def _completed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without _GONE values, and with what arrays and objects need."""
    result = schema
    if any(value is _GONE for value in schema.values()):
        result = {key: value for key, value in schema.items() if value is not _GONE}
    if isinstance(result.get("items"), list):
        result = _with_prefix_items(result)
    kind = result.get("type")
    if kind == "array" or (isinstance(kind, list) and "array" in kind):
        return result if "items" in result else {**result, "items": ANY_ITEMS}
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        return result if "properties" in result else {**result, "properties": NO_PROPERTIES}
    return result


def without_additions(schema: Schema) -> Schema:
    """A mended schema without ANY_ITEMS and NO_PROPERTIES, for an upstream that does not need them."""
    if isinstance(schema, list):
        return [without_additions(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_additions(value)
        for key, value in schema.items()
        if value is not ANY_ITEMS and value is not NO_PROPERTIES
    }


def _with_prefix_items(schema: dict[str, Any]) -> dict[str, Any]:
    """A tuple in the form of draft 2020-12, the only one that backends know."""
    rest = schema.get("additionalItems", ANY_ITEMS)
    result = {key: value for key, value in schema.items() if key not in ("items", "additionalItems")}
    return {**result, "prefixItems": schema["items"], "items": rest} if schema["items"] else {**result, "items": rest}


def _single(value: Any, steps: Steps, depth: int) -> Any:
    if isinstance(value, dict):
        return _legal(value, steps, depth)
    return value if isinstance(value, bool) else _GONE


def _inner(value: Any, steps: Steps, depth: int) -> Any:
    """A schema in a map or a list; {} if it is not legal, since its place must stay."""
    mended = _single(value, steps, depth)
    return {} if mended is _GONE else mended


def _list(value: Any, steps: Steps, depth: int) -> Any:
    if not isinstance(value, list) or not value:
        return _GONE
    mended = [_inner(member, steps, depth) for member in value]
    return value if all(new is old for new, old in zip(mended, value, strict=True)) else mended


def _items(value: Any, steps: Steps, depth: int) -> Any:
    return (_list(value, steps, depth) if value else value) if isinstance(value, list) else _single(value, steps, depth)


def _map(value: Any, steps: Steps, depth: int) -> Any:
    if not isinstance(value, dict):
        return _GONE
    changes: dict[str, Any] = {}
    for name, member in value.items():
        if (mended := _inner(member, steps, depth)) is not member:
            changes[name] = mended
    return {**value, **changes} if changes else value


def _dependencies(value: Any, steps: Steps, depth: int) -> Any:
    """`dependencies`, which may hold lists of names as well as schemas."""
    if not isinstance(value, dict):
        return _GONE
    named = {name: member for name, member in value.items() if isinstance(member, list)}
    mended = _map({name: member for name, member in value.items() if name not in named}, steps, depth)
    return {**mended, **named}


def _keyed(value: Any, steps: Steps, depth: int) -> Any:
    """`patternProperties` without keys that the upstream cannot compile."""
    if isinstance(value, dict):
        broken = {key for key in value if not _is_sound(key, steps)}
        if broken:
            value = {key: member for key, member in value.items() if key not in broken}
    return _map(value, steps, depth)


def _pattern(value: Any, steps: Steps, _depth: int) -> Any:
    """A pattern that compiles. The backend compiles every pattern with Python's `re` and refuses the whole request if
    one fails. Claude Code's own Artifact tool has a Unicode property escape, which `re` does not know."""
    return value if isinstance(value, str) and _is_sound(value, steps) else _GONE


def _is_sound(pattern: str, steps: Steps) -> bool:
    """Whether a pattern compiles. Long ones, and those that ignore case, are left for the backend to judge, since
    compiling them takes long (a class of all letters in any case: 20 ms)."""
    if len(pattern) > MAX_PATTERN or _ANY_CASE.search(pattern):
        return True
    foreign = len(pattern.encode("utf-8", "replace")) - len(pattern)
    return steps.allows(PATTERN_STEPS * (1 + foreign) + len(pattern) // 4) and _compiles(pattern)


@lru_cache(maxsize=1024)
def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _type(value: Any, steps: Steps, _depth: int) -> Any:
    if isinstance(value, list):
        steps.take(len(value))
        known = list(dict.fromkeys(kind for kind in value if isinstance(kind, str) and kind in _TYPES))
        return value if known == value and known else known or _GONE
    return value if isinstance(value, str) and value in _TYPES else _GONE


def _names(value: Any, steps: Steps, _depth: int) -> Any:
    if not isinstance(value, list):
        return _GONE
    steps.take(len(value))
    names = list(dict.fromkeys(name for name in value if isinstance(name, str)))
    return value if names == value else names


def _count(value: Any, _steps: Steps, _depth: int) -> Any:
    """A whole number as an int; some programs write 1.0, which not every validator accepts."""
    if not _is_number(value) or value < 0 or value % 1:
        return _GONE
    return value if isinstance(value, int) else int(value)


def _of(accepts: Callable[[Any], bool]) -> _Rule:
    return lambda value, _steps, _depth: value if accepts(value) else _GONE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: keyword -> the only requirement, the type of its value.
_PLAIN: dict[str, type] = {
    **dict.fromkeys(("$ref", "title", "description", "format"), str),
    **dict.fromkeys(("uniqueItems", "deprecated"), bool),
    **dict.fromkeys(("enum", "examples"), list),
}

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas"), _map),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _list),
    **dict.fromkeys(("additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"), _single),
    **dict.fromkeys(("contains", "propertyNames", "not", "if", "then", "else", "contentSchema"), _single),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _of(_is_number)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    "multipleOf": _of(lambda value: _is_number(value) and value > 0),
    "patternProperties": _keyed,
    "dependencies": _dependencies,
    "items": _items,
    "pattern": _pattern,
    "required": _names,
    "type": _type,
}


# -- the root


def _referred(
    schema: dict[str, Any],
    root: Mapping[str, Any],
    known: dict[str, dict[str, Any]],
    steps: Steps,
    trail: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The schema with its `$ref` expanded; without the `$ref` if that leads nowhere.

    known  reference -> its target, which may be outside of known places for schemas (`#/components/schemas/Name`)
    """
    reference = schema.get("$ref")
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    if not isinstance(reference, str) or reference in trail or len(trail) > MAX_DEPTH:
        return rest
    if reference not in known:
        if not steps.allows(1 + reference.count("/")):
            return rest
        found, before = target(reference, root), steps.left
        known[reference] = _legal(found, steps, 0) if isinstance(found, dict) else {}
        steps.allows(before - steps.left)
    if not steps.allows(_width(known[reference]) + _width(rest)):
        return rest
    merged = _both(known[reference], rest)
    return _referred(merged, root, known, steps, (*trail, reference)) if "$ref" in merged else merged


def _width(schema: Mapping[str, Any]) -> int:
    """Number of members that are written when a schema is merged into another one."""
    return len(schema) + len(schema.get("properties", ())) + len(schema.get("required", ()))


def _both(found: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """The target of a reference merged with the keywords next to the reference."""
    merged = {**found, **rest}
    if "properties" in found and "properties" in rest:
        merged["properties"] = found["properties"] | rest["properties"]
    if "required" in found and "required" in rest:
        merged["required"] = list(dict.fromkeys(found["required"] + rest["required"]))
    return merged


def target(reference: str, root: Schema) -> Schema:
    """The target of a local reference such as `#/$defs/Name`, or None."""
    for step in reference.removeprefix("#").split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if _PLACE.fullmatch(name) and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, Mapping) else None
    return root


#: A place in a list.
_PLACE = re.compile("[0-9]{1,9}")
#: A reference into a branch of the root, by which some generators repeat a form.
_INTO_BRANCH = re.compile(r'"\$ref":"#/(anyOf|oneOf|allOf)/([0-9]{1,9})(?![0-9])')


class _RootChoice:
    """Folds a root that is a choice into one object with the properties of all branches. What every branch requires, or
    the root itself, stays required."""

    def __init__(self, root: dict[str, Any], steps: Steps) -> None:
        self._root = root
        self._steps = steps
        self._forms: dict[str, list[Schema]] = {}  # property -> its different schemas
        self._seen: set[tuple[str, int | str]] = set()  # property, and a schema of it by identity or by text
        self._known: dict[str, dict[str, Any]] = {}  # reference -> its target

    def root(self) -> dict[str, Any]:
        required = self._fold(self._root, 0)
        rest = {key: value for key, value in self._root.items() if key not in _NOT_AT_ROOT}
        rest["properties"] = {
            name: forms[0] if len(forms) == 1 else {"anyOf": forms} for name, forms in self._forms.items()
        }
        if required:
            rest["required"] = [name for name in self._forms if name in required]
        return self._with_branches(rest)

    def _fold(self, schema: Mapping[str, Any], depth: int) -> set[str]:
        """Collects the properties of a schema and its branches; returns the names that are always required."""
        properties, required = schema.get("properties", {}), schema.get("required")
        for name, form in properties.items():
            forms = self._forms.setdefault(name, [])
            if self._is_new(name, id(form)) and self._is_new(name, self._text(form, depth)):
                forms.append(form)
        needed = set(required) if isinstance(required, list) else set()
        for key in _CHOICES:
            found = [self._branch(branch, depth) for branch in schema.get(key, ())]
            if found:
                needed |= set.union(*found) if key == "allOf" else set.intersection(*found)
        return needed

    def _text(self, form: Schema, depth: int) -> str:
        text = dump_sorted_json(form)
        if depth:
            self._steps.allows(len(text) // STEP_CHARS)
        return text

    def _is_new(self, name: str, form: int | str) -> bool:
        known = len(self._seen)
        self._seen.add((name, form))
        return len(self._seen) > known

    def _branch(self, branch: Schema, depth: int) -> set[str]:
        if not isinstance(branch, dict) or depth >= MAX_DEPTH or not self._steps.allows(BRANCH_STEPS):
            return set()
        if "$ref" in branch:
            branch = _referred(branch, self._root, self._known, self._steps)
        return self._fold(branch, depth + 1) if self._steps.allows(len(branch.get("properties", ()))) else set()

    def _with_branches(self, folded: dict[str, Any]) -> dict[str, Any]:
        """The folded schema, with copies of the branches that references lead into."""
        text = dump_json(folded)
        used = set(_INTO_BRANCH.findall(text))
        if not used:
            return folded
        kept = {f"{key}{number}": self._root[key][int(number)] for key, number in used if self._has(key, number)}
        text = dump_json({**folded, "$defs": {**folded.get("$defs", {}), **kept}})
        result: dict[str, Any] = load_json(_INTO_BRANCH.sub(r'"$ref":"#/$defs/\1\2', text))
        return result

    def _has(self, key: str, number: str) -> bool:
        return int(number) < len(self._root.get(key, ()))
