"""An MCP server over stdio whose tools have the schemas that upstreams refuse; run as a program of its own.

Each tool answers with its name and its arguments. Schemas without `type: object`, and those of older drafts, are not
here: Claude Code itself leaves such tools out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_STRING = {"type": "string"}
_BY_ID = {"properties": {"id": {"type": "integer"}}, "required": ["id"]}
_BY_NAME = {"properties": {"name": _STRING}, "required": ["name"]}

#: name -> what stands in its schema beside `type: object`
SCHEMAS: dict[str, dict[str, Any]] = {
    "bare": {},
    "array": {"properties": {"a": {"type": "array"}}},
    "arrays_inside": {"properties": {"a": {"type": "array", "items": {"type": "array"}}, "o": {"type": "object"}}},
    "any_of": {"anyOf": [_BY_ID, _BY_NAME]},
    "one_of": {"oneOf": [_BY_ID, {"$ref": "#/$defs/Named"}], "$defs": {"Named": _BY_NAME}},
    "all_of": {"allOf": [_BY_ID, _BY_NAME]},
    "negated": {"properties": {"a": _STRING}, "not": {"required": ["a", "b"]}},
    "with_a_name_of_more_than_sixty_four_characters_behind_its_server": {"properties": {"a": _STRING}},
}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        about = {"name": "odd", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        tools = [
            {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object", **schema}}
            for name, schema in SCHEMAS.items()
        ]
        return {"tools": tools}
    if method == "tools/call":
        text = f"{params['name']} was called with {json.dumps(params.get('arguments', {}))}"
        return {"content": [{"type": "text", "text": text}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = _answer(request["method"], request.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
