"""What the Messages route makes of members that newer clients send, whoever serves them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Live, ask, tool, with_live
from samples import each, rows
from wires import WIRES, Wire

FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
CODE = {"type": "code_execution_20250825", "name": "code_execution"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "m"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
EXTRA: dict[str, Any] = {
    "container": {"id": "c"},
    "mcp_servers": [{"type": "url", "url": "https://m.example", "name": "m"}],
}
UPLOADED = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
ADDED = {"type": "tool_addition", "tool": {"name": "Late", "description": "A tool", "input_schema": {"type": "object"}}}
IGNORED = "x-model-proxy-ignored"

every_wire = pytest.mark.parametrize("wire", [Wire("p1", "responses", "gpt-5.5"), *WIRES], ids=str)


@every_wire
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_tools_that_the_service_has_not_are_left_out_and_named(live: Live, wire: Wire, stream: bool) -> None:
    tools = [tool(), CODE, TOOLSET, {**tool("Later"), "defer_loading": True}, REGEX]
    answer = await live.post({**ask(model=wire.model, tools=tools, **EXTRA), "stream": stream})
    assert answer.status == 200, answer.raw
    left_out = "tools[1].type, tools[2].type, tools[4].type, container, mcp_servers"
    assert answer.headers[IGNORED] == left_out
    assert [note["ignored"] for note in live.notes.all("ignored")] == [left_out]
    count = await live.post(ask(model=wire.model, tools=[CODE]), "/v1/messages/count_tokens")
    assert count.status == 200 and count.json["input_tokens"] > 0


async def test_a_strict_tool_whose_schema_cannot_be_strict_is_named(live: Live) -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    tools = [{**tool(), "strict": True, "input_schema": closed}, {**tool("B"), "strict": True}, tool("C")]
    tools[1]["input_schema"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = await live.post(ask(model="opencode-go/gpt-5.6-luna", tools=tools))
    assert answer.status == 200 and answer.headers[IGNORED] == "tools[1].strict"
    assert [sent["strict"] for sent in live.sandbox.p4.requests[-1].body["tools"]] == [True, False, False]


@rows("model", ["gpt-5.5", "grok-4.6"])
@rows("forced", [False, True])
async def test_a_search_without_date_and_name_is_the_hosted_one(live: Live, model: str, forced: bool) -> None:
    """As the OpenAI-style routes write it."""
    choice = {"tool_choice": {"type": "tool", "name": "web_search"}} if forced else {}
    searched = ask("Perform a web search for the query: sandbox", model=model, tools=[{"type": "web_search"}], **choice)
    answer = await live.post(searched)
    assert answer.status == 200 and IGNORED not in answer.headers
    assert answer.json["usage"]["server_tool_use"]["web_search_requests"] == 1


@every_wire
async def test_what_the_service_has_is_no_word_worth(live: Live, wire: Wire) -> None:
    answer = await live.post(ask(model=wire.model, tools=[tool()]))
    assert answer.status == 200 and IGNORED not in answer.headers


@each(1)
@every_wire
@pytest.mark.parametrize(
    "members",
    [
        {"tools": [CODE]},
        {"tools": [tool(), CODE], "tool_choice": {"type": "tool", "name": "code_execution"}},
        {"tools": [CODE, REGEX], "tool_choice": {"type": "any"}},
        EXTRA,
    ],
    ids=["alone", "forced", "any", "members"],
)
async def test_a_request_that_makes_no_sense_without_is_refused(
    live: Live, wire: Wire, members: dict[str, Any]
) -> None:
    answer = await live.post(ask(model=wire.model, **members))
    assert answer.status == 400 and answer.headers["x-should-retry"] == "false"
    assert answer.error["type"] == "invalid_request_error" and answer.error["provider"] == wire.label
    assert f"{wire.label} has no such tool" in answer.error["message"]
    assert ("mcp_servers" if members is EXTRA else "code_execution_20250825") in answer.error["message"]
    assert IGNORED not in answer.headers


async def test_the_effort_of_a_turn_is_sent_as_effort_and_never_as_text(live: Live) -> None:
    turns = [
        {"role": "user", "content": "hello"},
        {"role": "system", "content": "S", "output_config": {"effort": "low"}},
    ]
    answer = await live.post(ask(turns, output_config={"effort": "high"}))
    assert answer.status == 200
    sent = live.sandbox.p1.requests[-1].body
    assert sent["reasoning"]["effort"] == "low" and "output_config" not in json.dumps(sent)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"fallbacks": [{"model": "claude-opus-4-8"}]}, "fallbacks"),
        ({"messages": [{"role": "user", "content": [UPLOADED]}]}, "messages[0].content[0]"),
    ],
)
async def test_what_would_silently_not_happen_is_refused_before_the_service_is_asked(
    live: Live, members: dict[str, Any], path: str
) -> None:
    answer = await live.post({**ask(), **members})
    assert answer.status == 400 and f"`{path}`" in answer.error["message"] and live.upstream == 0
    count = await live.post({**ask(), **members}, "/v1/messages/count_tokens")
    assert count.status == 200


@rows("model", ["grok-4.6", "glm-5.2"])
@rows("inside", [False, True])
async def test_an_uploaded_picture_is_a_note_where_none_is_shown(live: Live, model: str, inside: bool) -> None:
    """p3, and models without eyes."""
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [UPLOADED]}
    turns = [("user", "x"), ("assistant", [call]), ("user", [result if inside else {**result, "content": "y"}])]
    turns[-1][1].append({"type": "text", "text": "z"} if inside else UPLOADED)
    messages = [{"role": role, "content": content} for role, content in turns]
    answer = await live.post(ask(messages, model=model, tools=[tool()]))
    assert answer.status == 200, answer.raw
    upstream = live.sandbox.p3 if model == "grok-4.6" else live.sandbox.p4
    assert " omitted: " in str(upstream.requests[-1].body)


@with_live(p3_tool_image="inline")
async def test_a_setting_that_shows_pictures_notes_an_uploaded_one(live: Live) -> None:
    answer = await live.post(ask([{"role": "user", "content": [UPLOADED]}], model="grok-4.6"))
    assert answer.status == 200 and "[image omitted: file]" in str(live.sandbox.p3.requests[-1].body)


@rows("agent, word", [("claude-cli/2.1.330 (external, cli)", "policy_blocked"), ("x", "invalid_request_error")])
async def test_claude_code_is_told_by_a_word_of_its_own_that_probing_is_no_use(
    live: Live, agent: str, word: str
) -> None:
    answer = await live.post(ask(tools=[FETCH]), headers={"user-agent": agent})
    assert (answer.status, answer.error["type"]) == (400, word)
    unknown = await live.post(ask(model="no-such-model"), headers={"user-agent": agent})
    assert (unknown.status, unknown.error["type"]) == (400, "invalid_request_error")
    assert unknown.error["details"] == {"error_code": "model_not_found"}


HINTS: dict[str, Any] = {
    "speed": "standard",
    "inference_geo": "us",
    "service_tier": "auto",
    "diagnostics": {},
    "billing_policy": "x",
    "compaction": {"enabled": True},
    "prefill": "x",
    "thinking": {"type": "adaptive", "display": "updates"},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "compact_20260112"}]},
    "output_config": {"task_budget": {"type": "tokens", "total": 20_000}},
    "cache_control": {"type": "ephemeral"},
    "made_up": [1],
}


@every_wire
async def test_hints_are_accepted_and_nothing_is_claimed(live: Live, wire: Wire) -> None:
    turns = [
        {"role": "user", "content": "hello"},
        {"role": "system", "content": [ADDED], "thinking": {"type": "disabled"}},
    ]
    answer = await live.post(ask(turns, model=wire.model, tools=[tool()], **HINTS))
    assert answer.status == 200, answer.raw
    assert "Late" in json.dumps(wire.sent(live)) and "display" not in json.dumps(wire.sent(live))
    assert "context_management" not in answer.json and "applied_edits" not in json.dumps(answer.json)


async def test_threads_are_refused_on_a_count_too(live: Live) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
            answer = await live.post(ask(thread=thread), path, {"user-agent": "claude-cli/2.1.330"})
            assert answer.status == 400 and answer.error["details"]["error_code"] == "thread_unsupported_request"
            assert (
                answer.error["details"]["unsupported"] == ["thread"] and answer.error["type"] == "invalid_request_error"
            )


@every_wire
async def test_a_turn_that_only_sets_the_effort_says_nothing(live: Live, wire: Wire) -> None:
    """Claude Code sends one behind the newest message of the user when the effort was changed."""
    told = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "total 0"}
    turns = [
        *({"role": "user", "content": "use Bash: ls"}, told),
        *({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}, told),
    ]
    for end in (2, 5):
        answer = await live.post(ask(turns[:end], model=wire.model, tools=[tool()]))
        assert answer.status == 200, answer.raw
    assert "total 0" in answer.json["content"][-1]["text"]


@every_wire
async def test_what_metadata_says_of_a_user_goes_to_nobody(live: Live, wire: Wire) -> None:
    metadata = {"user_id": "somebody-9f", "email": "somebody-9f@home.example"}
    assert (await live.post(ask(model=wire.model, metadata=metadata))).status == 200
    assert "somebody-9f" not in json.dumps(wire.sent(live))
