"""What clients ask for and upstreams take in other forms: every wire, before simulators that refuse the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from core.schema_chains import chained_tools
from core.vector_cases import VECTORS, read
from harness import Live, ask, configured, with_live
from openai_live import BOTH, CHAT, ask_both, function
from samples import each, rows
from wires import BODY_WIRES, PICTURE, TOOLS, WIRES, Wire, message_of

from proxy.core.content import NO_PICTURE
from proxy.core.tools.calls import short_name
from proxy.core.tools.hosted import SEARCHING_MODEL
from proxy.providers.p1_codex.catalog import MODELS

P1_WIRES = (Wire("p1", "responses", "gpt-5.5"), Wire("p1", "lite", "gpt-5.6-sol"))
every_wire = rows("wire", (*P1_WIRES, *WIRES))
every_body = rows("wire", (*P1_WIRES, *BODY_WIRES))
LONG = "mcp__server__" + "n" * 80
LONG_TOOL = {"name": LONG, "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}


def tools_of(vector: str) -> list[Any]:
    tools: list[Any] = read(VECTORS / "messages_to_responses" / f"{vector}.json")["request"]["tools"]
    return tools


async def told(live: Live, wire: Wire, messages: Any = "hello", **members: Any) -> dict[str, Any]:
    answer = await live.post(ask(messages, model=wire.model, **members))
    assert answer.status == 200, answer.raw
    return message_of(answer)


@every_wire
@rows("vector", ["tool-schemas", "anthropic-tools"])
async def test_every_upstream_takes_the_tools_that_the_messages_api_takes(live: Live, wire: Wire, vector: str) -> None:
    await told(live, wire, tools=tools_of(vector))
    assert wire.sandbox(live).total_requests == 1


@every_body
async def test_tools_that_would_double_without_end_are_sent_as_they_are_and_named(live: Live, wire: Wire) -> None:
    tools = chained_tools()
    branches = [{"properties": {f"b{n}": {"type": "string", "pattern": f"^{n}$"}}} for n in range(1000)]
    tools.append({"name": "branches", "input_schema": {"anyOf": branches}})
    await told(live, wire, tools=tools)
    assert len(json.dumps(wire.sent(live))) < 2 * len(json.dumps(tools))
    [note] = [fields for *_, msg, fields in live.notes.records if msg.endswith("_tools_simplified")]
    typed = wire.name == "p2-chat" or "kimi" in wire.model
    assert note["tools"][0] == ("tool0" if typed else "branches") and note["count"] == (51 if typed else 1)


@every_body
async def test_a_tool_with_a_long_name_goes_round(live: Live, wire: Wire) -> None:
    first = await told(live, wire, f"use {short_name(LONG)}: ls", tools=[LONG_TOOL])
    [call] = [block for block in first["content"] if block["type"] == "tool_use"]
    assert call["name"] == LONG
    sent = json.dumps(wire.sent(live)["tools"] if wire.kind != "lite" else wire.sent(live)["input"][0])
    assert short_name(LONG) in sent and LONG not in sent
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "done"}
    history = [("user", "use it"), ("assistant", first["content"]), ("user", [result])]
    await told(live, wire, [{"role": role, "content": content} for role, content in history], tools=[LONG_TOOL])
    assert f'"{short_name(LONG)}"' in json.dumps(wire.sent(live))


@every_body
async def test_a_loaded_tool_is_named(live: Live, wire: Wire) -> None:
    search = {"name": "ToolSearch", "input_schema": {"type": "object", "properties": {}}}
    call = {"type": "tool_use", "id": "c", "name": "ToolSearch", "input": {}}
    names = [{"type": "tool_reference", "tool_name": name} for name in ("WebFetch", LONG)]
    result = {"type": "tool_result", "tool_use_id": "c", "content": names}
    history = [("user", "load"), ("assistant", [call]), ("user", [result])]
    tools = [search, {**LONG_TOOL, "defer_loading": True}]
    await told(live, wire, [{"role": role, "content": content} for role, content in history], tools=tools)
    sent = json.dumps(wire.sent(live))
    assert "[tool reference: WebFetch]" in sent and f"[tool reference: {short_name(LONG)}]" in sent


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


@every_body
async def test_a_schema_for_the_answer_is_kept_or_told(live: Live, wire: Wire) -> None:
    form = {"format": {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}}}
    await told(live, wire, output_config=form, system="Be brief.")
    body = wire.sent(live)
    notes = [msg for *_, msg, _ in live.notes.records if msg.endswith("_format_in_prompt")]
    if wire.kind in ("chat", "messages"):
        assert '{\\"type\\":\\"object\\"' in json.dumps(body) and "format" not in body.get("output_config", {})
        assert len(notes) == 1
    else:
        assert body["text"]["format"]["strict"] is True and not notes


@rows("wire", [wire for wire in BODY_WIRES if wire.kind != "responses"])
async def test_hosted_search_alone_names_a_model_that_searches(live: Live, wire: Wire) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}
    live.config = configured(live.config, search="off")
    refused = await live.post(ask(model=wire.model, tools=[search]))
    assert refused.status == 400 and SEARCHING_MODEL in refused.error["message"] and SEARCHING_MODEL in MODELS
    refused = await live.post(ask(model=wire.model, tools=[fetch]))
    assert refused.status == 400 and f"{wire.label} has no such tool" in refused.error["message"]


@with_live(openai_routes=True)
@rows("path", ["/v1/chat/completions", "/v1/responses"])
@rows("wire", [wire for wire in WIRES if wire.name in ("p2-chat", "p4-responses")])
async def test_a_cache_key_of_the_caller_stands_for_a_session(live: Live, wire: Wire, path: str) -> None:
    body = {"model": wire.model, "prompt_cache_key": "mine"}
    body |= {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"input": "hi"}
    for headers, key in (({}, "mine"), ({"session_id": "s"}, "s")):
        assert (await live.post(body, path, headers)).status == 200
        assert wire.sent(live)["prompt_cache_key"] == key


@rows("wire", [wire for wire in WIRES if wire.kind == "responses"])
async def test_nothing_stands_for_instructions_that_nobody_gave(live: Live, wire: Wire) -> None:
    await told(live, wire)
    assert "instructions" not in wire.sent(live)
    await told(live, wire, system="Be brief.")
    assert wire.sent(live)["instructions"] == "Be brief."


@every_wire
async def test_a_session_of_any_length_is_served(live: Live, wire: Wire) -> None:
    answer = await live.post(ask(model=wire.model), headers={"x-claude-code-session-id": "s" * 300})
    assert answer.status == 200, answer.raw


def give(live: Live, wire: Wire, arguments: str) -> None:
    """Has the model call Bash with these arguments."""
    if wire.kind != "responses":
        wire.sandbox(live).script.replace([{"fault": "bad_arguments", "arguments": arguments}])
        return
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Bash", "arguments": arguments}
    events = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [item]}},
    ]
    wire.sandbox(live).script.replace([{"events": events, "then": "end"}])


@each(1)
@with_live(openai_routes=True, openai_mode="lenient")
@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("arguments", ["[1]", '"text"', "null", "7"])
@every_wire
async def test_a_call_without_an_object_is_taken_back(live: Live, wire: Wire, arguments: str, path: str) -> None:
    """p3 and p5 hand out objects alone: they get the history of another model."""
    giver = WIRES[0] if wire.label in ("p3", "p5") or wire.kind == "lite" else wire
    give(live, giver, arguments)
    asked: dict[str, Any] = {"tools": [function(path)]}
    given = await ask_both(live, path, "use Bash: ls", model=giver.model, **asked)
    assert given.status == 200, given.raw
    if path == CHAT:
        message = given.json["choices"][0]["message"]
        call_id, said = message["tool_calls"][0]["id"], message["tool_calls"][0]["function"]["arguments"]
        history = [message, {"role": "tool", "tool_call_id": call_id, "content": "no object"}]
    else:
        call_id, said = given.json["output"][-1]["call_id"], given.json["output"][-1]["arguments"]
        result = {"type": "function_call_output", "call_id": call_id, "output": "no object"}
        history = [*given.json["output"], result]
    assert said in (arguments, "{}" if arguments == "null" else arguments)  # null says that there are none
    member, question = "messages" if path == CHAT else "input", {"role": "user", "content": "use Bash: ls"}
    body = {"model": wire.model, member: [question, *history], "stream": wire.traits.run, **asked}
    taken = await live.post(body, path, {"session_id": "s"})
    assert taken.status == 200, taken.raw


@with_live(openai_routes=True, openai_mode="lenient", p3_tool_image="inline")
@every_wire
async def test_a_picture_is_what_it_is_and_not_what_it_is_called(live: Live, wire: Wire) -> None:
    """One that is none leaves words, in a tool result as well: else no later turn would be answered."""
    broken = {"type": "base64", "media_type": "image/png", "data": "bm8gcGljdHVyZSBhdCBhbGw="}
    wrong = {"type": "base64", "media_type": "image/jpeg", "data": PICTURE}
    call = {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "a.png"}}
    shown = [{"type": "image", "source": source} for source in (broken, wrong)]
    result = [{"type": "tool_result", "tool_use_id": "c", "content": shown}]
    history = [("user", "look"), ("assistant", [call]), ("user", result), ("assistant", "ok"), ("user", shown)]
    await told(live, wire, [{"role": role, "content": content} for role, content in history], tools=TOOLS)
    sent = str(wire.sent(live))
    assert broken["data"] not in sent and NO_PICTURE in sent and "image/jpeg" not in sent
    (note,) = live.notes.all("pictures_changed")
    assert (note["corrected"], note["leftOut"]) == (2, 2)
    if wire.label != "p1":  # whose own service judges what is passed through
        parts = [{"type": "input_image", "image_url": f"data:image/png;base64,{broken['data']}"}]
        body = {"model": wire.model, "input": [{"role": "user", "content": parts}]}
        assert (await live.post(body, "/v1/responses")).status == 200
        assert NO_PICTURE in str(wire.sent(live)) and len(live.notes.all("pictures_changed")) == 2
    url = {"url": f"data:image/png;base64,{broken['data']}"}
    body = {"model": wire.model, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]}
    assert (await live.post(body, CHAT)).status == 200 and NO_PICTURE in str(wire.sent(live))
