"""Tool calls out of the events of an answer."""

from __future__ import annotations

from typing import Any

from events import closed, delta, opened
from samples import rows

from proxy.core.auto_mode.calls import CallCollector
from proxy.core.auto_mode.question import MAX_CALL
from proxy.core.auto_mode.verdicts import ToolUse


def collected(*events: dict[str, Any]) -> list[ToolUse]:
    collector = CallCollector()
    for event in events:
        collector.see([event])
    return collector.finished()


def pieces(*texts: str, index: int = 0) -> list[dict[str, Any]]:
    return [delta(text, "input_json_delta", index) for text in texts]


@rows(
    "events, arguments, size",
    [
        ([opened("tool_use"), *pieces('{"command"', ': "ls"}'), closed()], {"command": "ls"}, 17),
        ([opened("tool_use"), closed()], {}, 0),
        ([opened("tool_use", input={"a": "b"}), closed()], {"a": "b"}, 2),
        ([opened("tool_use"), *pieces("[1]"), closed()], {"_raw": "[1]"}, 3),
        ([opened("tool_use"), *pieces("{"), closed()], {"_raw": "{"}, 1),
        ([opened("tool_use"), *pieces('{"a": "', "x" * MAX_CALL, '"}'), closed()], {}, MAX_CALL + 9),
    ],
)
def test_a_call_is_what_its_deltas_say(events: list[dict[str, Any]], arguments: dict[str, Any], size: int) -> None:
    assert collected(*events) == [ToolUse("t", "Bash", arguments, size)]


def test_other_blocks_are_none_and_a_cut_call_is_not_whole() -> None:
    text = [opened(), delta("use it"), closed()]
    search = [{**opened("web_search_tool_result", 1)}, closed(1)]
    server = [
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        },
        closed(2),
    ]
    cut = [opened("tool_use", 3), *pieces('{"comm', index=3)]
    assert collected(*text, *search, *server, *cut) == [ToolUse("t", "Bash", {}, 6, whole=False)]
