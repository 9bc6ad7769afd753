"""The small model over turns, on both lanes, and the order of the events in which it answers."""

import json
from typing import Any

import pytest
from p1_sandbox_client import BASH, READ, THINKING, Client, assistant, developer, full, lite, output, user
from samples import rows

from proxy.sandbox.model.prompts import Wish, real_prompt, title_of, wishes
from proxy.sandbox.model.schema_examples import arguments_for, example
from proxy.sandbox.wires.encrypted_content import check_encrypted


async def test_event_order_of_a_thought_and_a_text(client: Client) -> None:
    reply = await client.ask(full(user("hello there"), **THINKING))
    deltas = ("response.output_text.delta", "response.reasoning_summary_text.delta")
    order = [kind for place, kind in enumerate(reply.types) if not (kind in deltas and reply.types[place - 1] == kind)]
    part = [
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
    ]
    assert order == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        *part,
        *part,
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in reply.events] == list(range(len(reply.events)))
    assert reply.final["output"] == reply.items
    assert reply.text == reply.items[1]["content"][0]["text"]
    assert '"hello there"' in reply.text


HOSTED = {"type": "web_search"}


@rows(
    "body, steps",
    [
        (full(user("use Bash: ls"), tools=[BASH], **THINKING), []),
        (full(user("Perform a web search for the query: x"), tools=[HOSTED], **THINKING), []),
        (full(user("use patch: x"), tools=[{"type": "custom", "name": "patch"}]), []),
        (full(), [{"fault": "refusal"}]),
        (full(), [{"fault": "failed", "code": "server_error"}]),
        (full(), [{"fault": "incomplete"}]),
    ],
)
async def test_events_are_what_the_official_sdk_knows(client: Client, body: Any, steps: list[Any]) -> None:
    types = pytest.importorskip("openai.types.responses")
    pydantic = pytest.importorskip("pydantic")
    known = pydantic.TypeAdapter(types.ResponseStreamEvent)
    client.sandbox.p1.script.extend(steps)
    for event in (await client.ask(body)).events:
        if event.get("item", {}).get("status") != "in_progress":  # a search that has just begun has no action yet
            known.validate_python(event)


async def test_usage_and_headers(client: Client) -> None:
    body = full(user("x" * 4_000), prompt_cache_key="k", **THINKING)
    first, second = [await client.ask(body) for _ in range(2)]
    usage = second.final["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]
    assert first.final["usage"]["input_tokens_details"]["cached_tokens"] == 0
    assert 896 <= usage["input_tokens_details"]["cached_tokens"] <= usage["input_tokens"]
    for name in ("x-request-id", "x-codex-primary-used-percent", "x-codex-secondary-window-minutes", "openai-model"):
        assert second.headers[name]


async def test_the_sealed_thought_is_taken_back(client: Client) -> None:
    first = await client.ask(full(user("hello"), **THINKING))
    thought, said = first.items
    check_encrypted(thought["encrypted_content"], "acct-sandbox", thought["id"])
    sent = {name: thought[name] for name in ("type", "id", "summary", "encrypted_content")}
    reply = await client.ask(full(user("hello"), sent, assistant(said["content"][0]["text"]), user("and now?")))
    assert '"and now?"' in reply.text


@rows(
    "members, thinks, summary, sealed",
    [
        ({}, False, 0, False),
        ({"reasoning": {"effort": "none"}}, False, 0, False),
        ({"reasoning": {"context": "all_turns"}}, False, 0, False),
        ({"reasoning": {"effort": "low"}}, True, 0, False),
        (THINKING, True, 2, True),
    ],
)
async def test_when_it_thinks(client: Client, members: Any, thinks: bool, summary: int, sealed: bool) -> None:
    first = (await client.ask(full(**members))).items[0]
    assert (first["type"] == "reasoning") is thinks
    if thinks:
        assert len(first["summary"]) == summary
        assert ("encrypted_content" in first) is sealed


async def test_one_call_a_turn_on_the_lite_lane(client: Client) -> None:
    items = [user("use Bash: one\nuse Bash: two, and then use Read: /three")]
    made = []
    for _ in range(3):
        reply = await client.ask(lite(developer("S"), *items, tools=[BASH, READ]))
        made += reply.calls
        items += [*reply.items, output(reply.items[0]["call_id"])]
    assert made == [("Bash", {"command": "one"}), ("Bash", {"command": "two"}), ("Read", {"file_path": "/three"})]
    last = await client.ask(lite(*items, user("<system-reminder>use Bash: x</system-reminder>"), tools=[BASH, READ]))
    assert last.text.count("returned") == 3


async def test_arguments_as_json_and_tools_that_are_not_offered(client: Client) -> None:
    prompt = user('use Bash: {"command": "a and use Read: b", "timeout": 5} and use Grep: x')
    reply = await client.ask(full(prompt, tools=[BASH, READ]))
    assert reply.calls == [("Bash", {"command": "a and use Read: b", "timeout": 5})]
    assert (await client.ask(full(prompt))).calls == []
    assert (await client.ask(full(prompt, tools=[BASH], tool_choice="none"))).calls == []


SHAPES = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "integer", "minimum": 3},
        "b": {"type": "boolean"},
        "e": {"enum": ["red", "blue"]},
        "l": {"type": "array", "items": {"type": "number"}},
        "optional": {"type": "string"},
    },
    "required": ["s", "n", "b", "e", "l"],
}


@rows("choice", ["required", {"type": "function", "name": "shape"}])
async def test_a_forced_call_has_plausible_arguments(client: Client, choice: Any) -> None:
    tools = [{"type": "function", "name": "shape", "parameters": SHAPES}, BASH]
    reply = await client.ask(full(tools=tools, tool_choice=choice))
    assert reply.calls == [("shape", {"s": "example", "n": 3, "b": True, "e": "red", "l": [1]})]


async def test_a_freeform_tool_in_a_namespace(client: Client) -> None:
    inner = {"type": "custom", "name": "exec", "description": "runs"}
    tools = [{"type": "namespace", "name": "functions", "description": "", "tools": [inner]}]
    reply = await client.ask(lite(user("use exec: ls"), tools=tools))
    [item] = reply.items
    assert (item["type"], item["input"], item["name"]) == ("custom_tool_call", "ls", "exec")
    assert "response.custom_tool_call_input.done" in reply.types
    answer = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done"}
    assert 'exec returned: "done"' in (await client.ask(lite(user("use exec: ls"), item, answer, tools=tools))).text


def strict(**properties: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"text": {"format": {"type": "json_schema", "name": "r", "schema": schema, "strict": True}}}


async def test_structured_answers(client: Client) -> None:
    reply = await client.ask(full(user("please fix the login page of my shop now"), **strict(title={"type": "string"})))
    assert json.loads(reply.text) == {"title": "Please fix the login page of"}
    maybe = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    reply = await client.ask(full(**strict(n=maybe, m={"type": ["null", "boolean"]})))
    assert json.loads(reply.text) == {"n": 1, "m": True}
    reply = await client.ask(full(text={"format": {"type": "json_object"}}))
    assert "hello" in json.loads(reply.text)["answer"]


async def test_summary_and_monitor(client: Client) -> None:
    items = [user("first wish"), assistant("ok"), user("second wish")]
    order = user("CRITICAL: TEXT ONLY.\nYour task is to create a detailed summary of the conversation so far")
    text = (await client.ask(full(*items, order, tools=[BASH]))).text
    assert "first wish" in text and "second wish" in text
    phrase = "x\n\nYou are a security monitor for autonomous AI coding agents. Judge."
    assert (await client.ask(lite(developer(phrase), user("run")))).text == "<block>no</block>"
    newer = f"{phrase} Output <severity>N</severity> where N is 0-100."
    assert (await client.ask(lite(developer(newer), user("run")))).text == "<severity>0</severity>"


@rows("command, flagged", [("make test", False), ("rm -rf x", True), ("curl x | sh", True), ("git push", True)])
async def test_reviewer_of_calls(client: Client, command: str, flagged: bool) -> None:
    phrase = 'You are a security monitor for autonomous AI coding agents. Answer {"verdicts": […]}.'
    calls = [{"call": 7, "tool": "Bash", "input": {"command": command, "more": [1, {"x": "y"}]}}]
    reply = await client.ask(lite(developer(phrase), user(json.dumps({"calls": calls}))))
    [verdict] = json.loads(reply.text)["verdicts"]
    assert (verdict["call"], verdict["flagged"]) == (7, flagged)
    assert (await client.ask(lite(developer(phrase), user("no question")))).text == '{"verdicts": []}'


@rows("sources", [False, True])
async def test_hosted_search(client: Client, sources: bool) -> None:
    hosted = {"type": "web_search", "filters": {"allowed_domains": ["rust-lang.org"]}}
    include = ["web_search_call.action.sources"] if sources else []
    prompt = user("Perform a web search for the query: rust news")
    reply = await client.ask(full(prompt, tools=[hosted], include=include))
    search, said = reply.items
    assert search["type"] == "web_search_call"
    assert search["action"]["query"] == "rust news"
    assert ("sources" in search["action"]) is sources
    states = [kind.rpartition(".")[2] for kind in reply.types if "web_search_call." in kind]
    assert states == ["in_progress", "searching", "completed"]
    [event] = reply.of("response.output_text.annotation.added")
    citation = event["annotation"]
    assert citation["url"] == "https://rust-lang.org/rust-news"
    text = said["content"][0]["text"]
    assert text[citation["start_index"] : citation["end_index"]] == citation["title"]


async def test_pictures_and_reminders(client: Client) -> None:
    pictures = ["data:image/png;base64,aGk=", "data:image/jpeg;base64,aGk=", "https://e.example/x.png"]
    reply = await client.ask(full(user("<system-reminder>noise</system-reminder>what is this?", *pictures)))
    assert "3 images (1 image/jpeg, 1 image/png, 1 url)" in reply.text
    assert "noise" not in reply.text and '"what is this?"' in reply.text


async def test_a_compaction_trigger_gives_one_sealed_item(client: Client) -> None:
    reply = await client.ask(full(user("long story"), {"type": "compaction_trigger"}))
    [item] = reply.items
    assert item["type"] == "compaction"
    sent = {name: item[name] for name in ("type", "id", "encrypted_content")}
    assert (await client.ask(full(user("long story"), sent, user("go on")))).status == 200


async def test_the_same_question_gives_the_same_words(client: Client) -> None:
    replies = [await client.ask(full(user("hello"), **THINKING)) for _ in range(2)]
    assert replies[0].text == replies[1].text
    assert replies[0].final["id"] != replies[1].final["id"]


@rows(
    "prompt, found",
    [
        ("Use Bash: ls", [Wish("Bash", "ls")]),
        ("use mcp__a-b__c: 1", [Wish("mcp__a-b__c", "1")]),
        ("please use Bash: a\nthen\nuse Read: b", [Wish("Bash", "a"), Wish("Read", "b")]),
        ("use Bash: ls and then tell me", [Wish("Bash", "ls")]),
        ("use Bash: {oops", [Wish("Bash", "{oops")]),
        ("use Bash:", []),
        ("reuse Bash: x", []),
    ],
)
def test_wishes(prompt: str, found: list[Wish]) -> None:
    assert wishes(prompt) == found


def test_small_helpers() -> None:
    assert real_prompt("a<system-reminder>b</system-reminder>c<system-reminder>open") == "ac"
    assert title_of("!!") == "Untitled"
    assert arguments_for({"properties": {"o": {"type": "string"}}}, "x") == {"o": "x"}
    assert arguments_for({"properties": {}}, "x") == {}
    assert arguments_for(None, "x") == {}
    node = {"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}}}
    assert "n" in example({**node, "$ref": "#/$defs/n"})


async def test_says_what_it_is_told_to_say(client: Client) -> None:
    said = "two.py\n```\nprint(2)\n```\n"
    reply = await client.ask(
        full(user(f"Change it: say <<<\n{said}>>> and nothing else.\nUse the *file listing* format."))
    )
    assert reply.text == said
