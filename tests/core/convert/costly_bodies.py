"""Bodies of callers whose translation could cost more than their size: each row makes one of a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Made = Callable[[int], dict[str, Any]]

MARK = {"type": "ephemeral"}


def said(role: str, content: Any = "x") -> dict[str, Any]:
    return {"role": role, "content": content}


def asked(messages: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 5, "messages": messages, **members}


def text(words: str = "x", **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **members}


def use(call_id: str = "a", name: str = "T") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"offset": 1}}


def result(call_id: str = "a", content: Any = "r", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **members}


def tool(name: Any, **members: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **members}


def _turns(first: dict[str, Any], second: dict[str, Any]) -> Made:
    return lambda n: asked([first, second] * (n // 2))


PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
SEARCHED = [
    {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "a", "content": [{"url": "http://x", "title": "x"}]},
]

HISTORIES: dict[str, Made] = {
    "neighbouring users": lambda n: asked([said("user")] * n),
    "neighbouring users with marks": lambda n: asked([said("user", [text(cache_control=MARK)])] * n),
    "neighbouring assistants": lambda n: asked([said("user"), *[said("assistant")] * n]),
    "users and systems": _turns(said("user"), said("system")),
    "assistants and systems": _turns(said("system"), said("assistant")),
    "assistants and marked systems": _turns(said("system", [text(cache_control=MARK)]), said("assistant")),
    "assistants and nothing": _turns(said("user", []), said("assistant")),
    "systems": lambda n: asked([*[said("system")] * n, said("user")]),
    "calls without results": lambda n: asked([said("assistant", [use()])] * n),
    "calls with one id": lambda n: asked([said("assistant", [use()] * n), said("user", [result()] * n)]),
    "calls with our suffix": lambda n: asked(
        [said("assistant", [use(f"a__u{k}") for k in range(n)]), said("user", [result(f"a__u{k}") for k in range(n)])]
    ),
    "turns with one id": _turns(said("assistant", [use()]), said("user", [result()])),
    "interrupted turns": _turns(said("assistant", [use()]), said("user")),
    "reads": _turns(said("assistant", [use(name="Read")]), said("user", [result()])),
    "results without calls": lambda n: asked([said("user", [result()] * n)]),
    "empty results with marks": lambda n: asked([said("user", [result(content=[], cache_control=MARK)] * n)]),
    "marks on nothing": lambda n: asked([said("user", [text(), text("", cache_control=MARK)] * (n // 2))]),
    "a system of marks": lambda n: asked(
        [said("user")], system=[text("x" if k % 2 else "", cache_control=MARK) for k in range(n)]
    ),
    "tools": lambda n: asked([said("user")], tools=[tool(f"t{k}") for k in range(n)]),
    "marks on no tools": lambda n: asked(
        [said("user")], tools=[tool(f"t{k}" if k % 2 else 5, cache_control=MARK) for k in range(n)]
    ),
    "pictures in a result": lambda n: asked([said("assistant", [use()]), said("user", [result(content=[PNG] * n)])]),
    "searches": lambda n: asked([said("assistant", SEARCHED * (n // 2)), said("user")]),
    "unknown blocks": lambda n: asked([said("user", [text(), *({"type": f"k{k}"} for k in range(n))])]),
    "stop sequences": lambda n: asked([said("user")], stop_sequences=[f"s{k}" for k in range(n)]),
}


def _object(properties: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **members}


def _named(place: int) -> dict[str, Any]:
    return {"$ref": f"#/$defs/d{place}"}


def _doubling(step: Callable[[dict[str, Any]], Any]) -> Made:
    """Definitions of which each refers twice to the next."""

    def made(_n: int) -> dict[str, Any]:
        definitions = {f"d{k}": step(_named(k + 1)) for k in range(40)}
        return _object({"a": _named(0)}, **{"$defs": {**definitions, "d40": {"type": "string"}}})

    return made


def _deep(step: Callable[[dict[str, Any]], dict[str, Any]]) -> Made:
    def made(_n: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(55):
            schema = step(schema)
        return _object({"a": schema})

    return made


SCHEMAS: dict[str, Made] = {
    "doubling anyOf": _doubling(lambda to: {"anyOf": [to, to]}),
    "doubling oneOf": _doubling(lambda to: {"oneOf": [to, to]}),
    "doubling allOf": _doubling(lambda to: {"allOf": [to, to]}),
    "doubling properties": _doubling(lambda to: _object({"a": to, "b": to})),
    "doubling at the root": lambda n: {**_doubling(lambda to: {"anyOf": [to, to]})(n), "anyOf": [_named(0)]},
    "deep anyOf": _deep(lambda inner: {"anyOf": [inner]}),
    "deep objects": _deep(lambda inner: _object({"a": inner, "b": {"type": "array"}})),
    "a circle": lambda n: _object({f"a{k}": {"$ref": "#"} for k in range(n)}),
    "wide": lambda n: _object({f"a{k}": {"type": "string"} for k in range(n)}),
    "wide and required": lambda n: _object(
        {f"a{k}": {"type": "string"} for k in range(n)}, required=[f"a{k}" for k in range(n)]
    ),
    "wide and null": lambda n: _object({f"a{k}": {"type": ["string", "null"]} for k in range(n)}),
    "long enum": lambda n: _object({"a": {"enum": [f"e{k}" for k in range(n)]}}),
    "many references to a wide one": lambda n: _object(
        {f"a{k}": _named(0) for k in range(n)},
        **{"$defs": {"d0": {"type": "object", **{f"x{k}": 1 for k in range(n)}}}},
    ),
    "a root of branches": lambda n: {"anyOf": [_object({"a": {"const": k}}) for k in range(n)]},
    "a root of branches by name": lambda n: {
        "anyOf": [_named(k) for k in range(n)],
        "$defs": {f"d{k}": _object({"a": {"const": k}}) for k in range(n)},
    },
    "a chain at the root": lambda n: {
        **_named(0),
        "properties": {f"q{k}": {} for k in range(n)},
        "$defs": {f"d{k}": {**_named(k + 1), "properties": {f"p{k}": {}}} for k in range(n)},
    },
    "long references": lambda n: _object({f"a{k}": {"$ref": "#" + "/properties/a0" * (n // 20)} for k in range(20)}),
    "patterns": lambda n: _object({f"a{k}": {"type": "string", "pattern": f"^[a-z]+{n}.{k}$"} for k in range(n)}),
    "a long pattern": lambda n: _object({"a": {"type": "string", "pattern": "(a|b)" * n}}),
    "large classes": lambda n: _object(
        {f"a{k}": {"type": "string", "pattern": f"{k}" + "[\u0100-\uffff\x00b]" * 20} for k in range(n // 20)}
    ),
    "classes in any case": lambda n: _object(
        {f"a{k}": {"type": "string", "pattern": f"(?i){k}" + "[\u0100-\uffff]" * 20} for k in range(n // 20)}
    ),
}
