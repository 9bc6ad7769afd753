"""Values for any message of a schema, out of its tables, for hypothesis. Each is in the form that reading gives."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from proxy.providers.p5_cursor.wire.schema import Field, Schema

#: Messages below this level are empty; the tables go in circles.
DEEPEST = 5


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    edges = [low, high, 0, 1, 127, 128, 16_383, 16_384]
    return st.sampled_from(edges) | st.integers(low, high)


TEXT = st.text(max_size=8)
FLOATS = st.floats(allow_nan=False)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "bytes": st.binary(max_size=8),
    "double": FLOATS,
    "enum": integers(-(2**31), 2**31 - 1) | st.integers(0, 7),
    "int32": integers(-(2**31), 2**31 - 1),
    "int64": integers(-(2**63), 2**63 - 1),
    "string": TEXT,
    "uint32": integers(0, 2**32 - 1),
    "uint64": integers(0, 2**64 - 1),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON_MESSAGES: dict[str, st.SearchStrategy[Any]] = {
    "Value": JSON,
    "Struct": st.dictionaries(TEXT, JSON, max_size=3),
    "ListValue": st.lists(JSON, max_size=3),
}


def value_of(schema: Schema, message: str) -> st.SearchStrategy[Any]:
    """Values that `decode` gives back as they are: no default where that means absence, one member of a oneof."""
    return JSON_MESSAGES[message] if message in JSON_MESSAGES else message_of(schema, message, 1)


@st.composite
def message_of(draw: st.DrawFn, schema: Schema, message: str, level: int) -> dict[str, Any]:
    fields = schema.fields(message)
    if not fields or level > DEEPEST:
        return {}
    chosen = draw(
        st.lists(
            st.sampled_from(fields),
            max_size=4,
            unique_by=(lambda field: "|" if field.oneof else field.name),
        )
    )
    return {field.name: draw(content_of(schema, field, level + 1)) for field in chosen}


def content_of(schema: Schema, field: Field, level: int) -> st.SearchStrategy[Any]:
    if field.is_map:
        key, value = schema.fields(field.type)
        return st.dictionaries(SCALARS[key.type], element_of(schema, value.type, level + 1), min_size=1, max_size=2)
    element = element_of(schema, field.type, level)
    if field.repeated:
        return st.lists(element, min_size=1, max_size=3)
    return element if field.explicit or not field.is_scalar else element.filter(bool)


def element_of(schema: Schema, kind: str, level: int) -> st.SearchStrategy[Any]:
    if kind in SCALARS:
        return SCALARS[kind]
    return JSON_MESSAGES[kind] if kind in JSON_MESSAGES else message_of(schema, kind, level)


def damaged(data: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """Each change puts a byte in, takes one out, or replaces one."""
    out = bytearray(data)
    for kind, place, byte in changes:
        at = place % (len(out) + 1)
        out[at : at + (kind > 0)] = b"" if kind == 1 else bytes((byte,))
    return bytes(out)


CHANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=6)
