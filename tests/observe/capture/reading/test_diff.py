"""Where two prompts part: blocks in the order of a cache, the first that differs, and what comes behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from captured import responses_body
from harness import ask, tool
from samples import rows

from proxy.observe.capture.reading.blocks import blocks_of
from proxy.observe.capture.reading.diff import MAX_MATCHED, common_length, compare, counts

TURN = [
    {"role": "user", "content": "list the files"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a b"}]},
]
FIRST = ask([TURN[0]], system="Be brief.", tools=[tool(), tool("Read", "path")])
SECOND = ask(TURN, system="Be brief.", tools=[tool(), tool("Read", "path")])
RUN = {"conversation_state": {}, "mcp_tools": {"mcp_tools": [{"name": "Bash"}]}, "conversation_id": "c"}


def run(text: str, message_id: str) -> dict[str, Any]:
    """A run request of P5."""
    message = {"text": text, "message_id": message_id, "selected_context": {}, "mode": 1}
    return {"run_request": {**RUN, "action": {"user_message_action": {"user_message": message}}}}


def parts(body: dict[str, Any]) -> list[str]:
    return [f"{block.part} {block.place} {block.kind}" for block in blocks_of(body)]


CHAT = {
    "model": "kimi-k2.6",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "Bash"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a b"},
    ],
    "tools": [{"type": "function", "function": one} for one in SECOND["tools"]],
}
WIRES = {
    "messages": (
        SECOND,
        [
            "tools tools[0] Bash",
            "tools tools[1] Read",
            "system system system",
            "conversation messages[0].content user text",
        ],
        "conversation messages[1].content[0] assistant tool_use",
    ),
    "responses": (
        responses_body(SECOND),
        ["tools tools[0] Bash", "tools tools[1] Read", "system instructions system"],
        "conversation input[1] function_call",
    ),
    "chat": (CHAT, ["tools tools[0] Bash", "tools tools[1] Read"], "conversation messages[2] assistant"),
    "run": (
        run("<system>\nBe brief.\n</system>\n\n<user>\nhello\n\nthere\n</user>", "m1"),
        [
            "tools mcp_tools.mcp_tools[0] Bash",
            "system user_message.text[0] system",
            "conversation user_message.text[1] user",
        ],
        "settings conversation_id setting",
    ),
}


@rows("wire", WIRES)
def test_blocks_come_in_the_order_of_a_cache(wire: str) -> None:
    body, first, inside = WIRES[wire]
    found = parts(body)
    assert found[: len(first)] == first and inside in found
    order = [place.split()[0] for place in found]
    assert order == sorted(order, key=["tools", "system", "conversation", "settings"].index)


@pytest.mark.parametrize("translated", [lambda body: body, responses_body], ids=["messages", "responses"])
def test_a_conversation_that_goes_on_breaks_nothing(translated: Any) -> None:
    found = compare(translated(FIRST), translated(SECOND))
    assert found.first is None and found.same == found.older
    assert counts(found.changes) == {"changed": 0, "added": 2, "removed": 0} and found.settings == ()


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    """SECOND with another value in this place."""
    body: Any = json.loads(json.dumps(SECOND))
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return body  # type: ignore[no-any-return]


BASH = '{"name":"Bash","description":"'
DIFFERENCES = [
    # path, value -> common blocks, place, bytes of the block, the excerpt of the newer one
    (["tools", 0, "description"], "Bash does much.", 0, "tools[0].description", len(BASH + "Bash does "), "much."),
    (["tools", 1, "input_schema", "required"], [], 1, "tools[1].input_schema.required", None, '"required":[]'),
    (["system"], "Be very brief.", 2, "system", len('{"type":"text","text":"Be '), "very brief."),
    (["system"], "Bé brief.", 2, "system", len('{"type":"text","text":"B'), "é brief."),
    (["messages", 0, "content"], "list", 3, "messages[0].content", None, '"list"'),
    (
        ["messages", 1, "content", 0, "input", "command"],
        "ls -l",
        4,
        "messages[1].content[0].input.command",
        None,
        " -l",
    ),
    (["messages", 0, "role"], "assistant", 3, "messages[0].content", len('{"role":"'), "assistant"),
]


@rows("path, value, same, place, offset, excerpt", DIFFERENCES)
def test_the_first_difference(
    path: list[Any], value: Any, same: int, place: str, offset: int | None, excerpt: str
) -> None:
    found = compare(SECOND, changed(path, value))
    assert found.first is not None
    assert (found.same.blocks, found.first.place) == (same, place)
    assert offset is None or found.first.offset == offset
    assert excerpt in found.first.excerpts[1] and excerpt not in found.first.excerpts[0]
    assert counts(found.changes)["changed"] == 1


EQUAL = [
    # clients move the marker with every request, and write a text in either form
    (["messages", 0, "content"], [{"type": "text", "text": "list the files", "cache_control": {"type": "ephemeral"}}]),
    (["system"], [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]),
    (["tools", 1, "cache_control"], {"type": "ephemeral"}),
]


@pytest.mark.parametrize(("path", "value"), EQUAL)
def test_what_is_the_same_prompt_is_no_difference(path: list[Any], value: Any) -> None:
    found = compare(SECOND, changed(path, value))
    assert found.first is None and found.changes == () and found.same == found.newer


def test_thoughts_of_a_message_stand_in_front_of_its_content() -> None:
    said = {"role": "assistant", "content": "hi", "tool_calls": []}
    older, newer = ({"messages": [{**said, "reasoning_content": thought}]} for thought in ("a", "b"))
    found = compare(older, newer)
    assert found.first is not None and (found.same.blocks, found.first.place) == (0, "messages[0].reasoning_content")
    assert [block.value for block in blocks_of({"messages": [{**said, "reasoning": 1, "content": {"a": 1}}]})] == [
        {"role": "assistant", "reasoning": 1},
        {"role": "assistant", "content": {"a": 1}, "tool_calls": []},
    ]


def test_an_item_of_tools_is_compared_tool_by_tool() -> None:
    older, newer = (
        {
            "input": [
                {"type": "additional_tools", "role": "developer", "tools": [{"name": "Read"}, {"name": last}]},
                {"type": "message", "role": "user", "content": "hello"},
            ]
        }
        for last in ("Bash", "Edit")
    )
    assert parts(older) == [
        "system input[0].tools[0] developer Read",
        "system input[0].tools[1] developer Bash",
        "system input[0] developer additional_tools",
        "conversation input[1].content user text",
    ]
    found = compare(older, newer)
    assert found.first is not None and (found.same.blocks, found.first.place) == (1, "input[0].tools[1].name")


def test_a_marker_inside_the_result_of_a_tool_is_none() -> None:
    texts = [{"type": "text", "text": "a b"}, {"type": "text", "text": "a b", "cache_control": {"type": "ephemeral"}}]
    place = ["messages", 2, "content", 0, "content"]
    assert compare(*(changed(place, [text]) for text in texts)).first is None


def test_a_marker_inside_the_input_of_a_tool_is_content() -> None:
    found = compare(SECOND, changed(["messages", 1, "content", 0, "input"], {"command": "ls", "cache_control": 1}))
    assert found.first is not None


def test_the_order_of_members_is_a_difference() -> None:
    """Upstreams write schemas into the prompt as they come."""
    turned = {name: SECOND["tools"][0][name] for name in ("input_schema", "name", "description")}
    found = compare(SECOND, changed(["tools", 0], turned))
    assert found.first is not None and found.first.place == "tools[0]"


def test_a_part_that_is_over_parts_the_prompts() -> None:
    fewer = {**SECOND, "tools": SECOND["tools"][:1]}
    found = compare(SECOND, fewer)
    assert found.first is not None and (found.same.blocks, found.first.place) == (1, "system")
    assert [(change.kind, change.older and change.older.place) for change in found.changes] == [("removed", "tools[1]")]


def test_settings_are_no_part_of_the_prompt() -> None:
    found = compare(SECOND, {**SECOND, "model": "gpt-5.6-sol", "temperature": 1})
    assert found.first is None and found.same == found.newer
    told = [(change.kind, (change.newer or change.older).place) for change in found.settings]  # type: ignore[union-attr]
    assert told == [("changed", "model"), ("added", "temperature")]


def test_the_text_of_a_run_is_compared_turn_by_turn() -> None:
    first, more = "<user>\nhello\n</user>", "\n\n<assistant>\nhi\n</assistant>"
    found = compare(run(first, "m1"), run(first + more, "m2"))
    assert found.first is None and found.settings == ()
    assert [change.newer and change.newer.place for change in found.changes] == ["user_message.text[1]"]
    other = compare(run(first, "m1"), run(first.replace("hello", "help"), "m2")).first
    assert other is not None and (other.place, other.offset) == ("user_message.text[0]", 12)


def test_a_system_message_within_a_conversation_stays_there() -> None:
    roles = ["developer", "system", "user", "system"]
    body = {"messages": [{"role": role, "content": "x"} for role in roles]}
    assert [block.part for block in blocks_of(body)] == ["system", "system", "conversation", "conversation"]


def test_behind_the_difference_equal_blocks_are_found_again() -> None:
    body = changed(["messages"], [TURN[0], {"role": "user", "content": "wait"}, *TURN[1:]])
    found = compare(SECOND, body)
    assert [(change.kind, change.newer and change.newer.place) for change in found.changes] == [
        ("added", "messages[1].content")
    ]


def test_long_lists_are_not_matched_one_by_one() -> None:
    """The matching is quadratic: it would take minutes for two conversations of thousands of equal messages."""
    texts = [{"role": "user", "content": "same"} for _ in range(20 * MAX_MATCHED)]
    older, newer = (
        ask([{"role": "user", "content": "a"}, *texts, texts[0]]),
        ask([{"role": "user", "content": "b"}, *texts, {"role": "user", "content": "c"}]),
    )
    found = compare(older, newer)
    assert counts(found.changes)["changed"] == len(texts) + 2


@rows(
    "a, b, length",
    [("", "", 0), ("a", "", 0), ("abc", "abd", 2), ("ab", "abc", 2), ("abc", "abc", 3), ("x", "y", 0)],
)
def test_the_common_length_of_texts(a: str, b: str, length: int) -> None:
    assert common_length(a, b) == common_length(b, a) == length


@rows("body", [{}, {"messages": None}, {"messages": 1, "tools": "x"}, {"messages": [1, None, {}]}, {"run_request": {}}])
def test_any_body_has_blocks(body: dict[str, Any]) -> None:
    found = compare(body, SECOND)
    assert found.newer.blocks == 6 and compare(body, body).first is None
