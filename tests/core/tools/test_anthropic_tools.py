"""Tools known by their type, beside the types of the `anthropic` package."""

from __future__ import annotations

import typing
from typing import Any

from anthropic.types import beta
from anthropic.types.beta import BetaToolUnionParam
from samples import rows

from proxy.core.tools.anthropic_tools import described
from proxy.core.tools.calls import function_of, offered_tools
from proxy.core.tools.function_schema import function_schema
from proxy.core.tools.step_budget import Steps


def known_types() -> list[str]:
    """The types of tools that a client runs and that have a name: not those of servers, nor sets of tools."""
    found = []
    for declared in typing.get_args(BetaToolUnionParam):
        members = typing.get_type_hints(declared)
        kinds = typing.get_args(members["type"])
        served = ("web_", "code_execution_", "tool_search_", "advisor_")
        if "name" in members and kinds and isinstance(kinds[0], str) and not kinds[0].startswith(served):
            found.append(kinds[0])
    return [kind for kind in found if kind != "custom"]


@rows("kind", known_types())
def test_every_tool_of_the_sdk_says_what_it_takes(kind: str) -> None:
    [tool] = offered_tools({"tools": [{"type": kind, "name": "n", "cache_control": {}, "strict": True}]})
    assert tool["name"] == "n" and tool["description"] and len(tool["input_schema"]["properties"]) > 1
    assert tool.keys() == {"name", "description", "input_schema", "cache_control"}
    assert function_schema(tool["input_schema"]) == (tool["input_schema"], "")
    assert function_of(tool, Steps())["parameters"] is tool["input_schema"]


def properties(kind: str, **members: Any) -> dict[str, Any]:
    found: dict[str, Any] = described({"type": kind, "name": "n", **members})["input_schema"]["properties"]
    return found


def test_every_version_has_its_own_commands() -> None:
    old, new = properties("text_editor_20250124"), properties("text_editor_20250728")
    assert old["command"]["enum"] == ["view", "create", "str_replace", "insert", "undo_edit"]
    assert "insert_text" not in old
    assert new["command"]["enum"] == ["view", "create", "str_replace", "insert"] and "insert_text" in new
    first, later = properties("computer_20241022"), properties("computer_20251124", enable_zoom=True)
    assert "scroll" not in first["action"]["enum"] and {"scroll", "zoom"} < set(later["action"]["enum"])
    assert "region" in later and "region" not in properties("computer_20251124")


def test_memory_takes_what_the_sdk_reads() -> None:
    commands = [
        getattr(beta, f"BetaMemoryTool20250818{name}Command")
        for name in ("View", "Create", "StrReplace", "Insert", "Delete", "Rename")
    ]
    wanted = {field for command in commands for field in command.model_fields}
    told = properties("memory_20250818")
    assert wanted == told.keys()
    assert [typing.get_args(command.model_fields["command"].annotation)[0] for command in commands] == told["command"][
        "enum"
    ]


def test_what_a_tool_says_of_itself_is_told() -> None:
    screen = described({"type": "computer_20250124", "name": "c", "display_width_px": 800, "display_height_px": 600})
    assert "800 x 600" in screen["description"]
    editor = described({"type": "text_editor_20250728", "name": "e", "max_characters": 500})
    assert "500" in editor["description"]


@rows(
    "tool",
    [
        {"type": "bash_20250124", "name": "b", "input_schema": {"type": "object"}},
        {"type": "custom", "name": "b"},
        {"type": "bashful_1", "name": "b"},
        {"type": 3, "name": "b"},
        {"name": "bash"},
    ],
)
def test_other_tools_stay(tool: dict[str, Any]) -> None:
    assert described(tool) is tool
