"""Tools whose definitions name each other twice: what is written out doubles with every one."""

from __future__ import annotations

from typing import Any


def chained_tools(count: int = 50, links: int = 25) -> list[dict[str, Any]]:
    """Fifty of 25 links are 95 kB."""
    definitions: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}}
        for n in range(links - 1)
    }
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, f"d{links - 1}": {"type": "string"}},
    }
    return [{"name": f"tool{n}", "description": "", "input_schema": schema} for n in range(count)]
