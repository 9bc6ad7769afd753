"""Answers of the OpenAI-style routes that agents depend on, through the official SDK: texts for custom tools, reasoning
that the caller carries, refusals, and what is left of an answer that broke."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pydantic
import pytest
from events import closed
from harness import Live, whole_message, with_live
from openai_live import CHAT, P1, P2, RESPONSES, body_for, function
from samples import each, rows
from sdk import openai_client, validate

LUNA, GROK_ON_P4, MINIMAX = "opencode-go/gpt-5.6-luna", "opencode-go/grok-4.6", "minimax-m3"
Client = openai.AsyncOpenAI
ENCRYPTED: Any = {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high"}}


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


@pytest.fixture
async def client(live: Live) -> AsyncIterator[Client]:
    async with openai_client(live.url) as running:
        yield running


# -- custom tools

CUSTOM = {"type": "custom", "name": "run", "description": "Runs a script."}


@each(1)
@pytest.mark.parametrize("space", [None, "shell"])
@pytest.mark.parametrize("model", [LUNA, P2, MINIMAX, "grok-4.6"])
async def test_a_custom_tool_goes_round(client: Client, model: str, space: str | None) -> None:
    tool = {"type": "namespace", "name": space, "description": "d", "tools": [CUSTOM]} if space else CUSTOM
    name = f"{space}__run" if space else "run"
    items: list[Any] = [{"role": "user", "content": f"use {name}: ls -la"}]
    asked: Any = {"model": model, "tools": [tool]}
    kinds: list[str] = []
    async with client.responses.stream(input=items, **asked) as stream:
        async for event in stream:
            validate(event)
            kinds.append(event.type)
        response = await stream.get_final_response()
    call: Any = response.output[-1]
    assert (call.type, call.name, call.namespace, call.input) == ("custom_tool_call", "run", space, "ls -la")
    assert "response.custom_tool_call_input.delta" in kinds and "response.function_call_arguments.delta" not in kinds
    items += [*response.output, {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "total 0"}]
    answer = await client.responses.create(input=items, **asked)
    validate(answer)
    assert 'returned: "total 0"' in answer.output_text


# -- reasoning


@pytest.mark.parametrize("model", [LUNA, GROK_ON_P4])
@pytest.mark.parametrize("stream", [False, True])
async def test_encrypted_reasoning_goes_back_up(client: Client, live: Live, model: str, stream: bool) -> None:
    items: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    asked: Any = {"model": model, "tools": [function(RESPONSES)], **ENCRYPTED}
    if stream:
        async with client.responses.stream(input=items, **asked) as running:
            response: Any = await running.get_final_response()
    else:
        response = await client.responses.create(input=items, **asked)
    thought, call = response.output[0], response.output[-1]
    assert thought.type == "reasoning" and thought.encrypted_content
    items += [*response.output, {"type": "function_call_output", "call_id": call.call_id, "output": "total 0"}]
    validate(await client.responses.create(input=items, **asked))
    [sent] = [item for item in live.sandbox.p4.requests[-1].body["input"] if item["type"] == "reasoning"]
    assert thought.encrypted_content.endswith(sent["encrypted_content"])


@rows("model", [LUNA, GROK_ON_P4])
async def test_encrypted_reasoning_is_had_without_an_effort(live: Live, model: str) -> None:
    """Models think as hard as they like, then; their reasoning is to come back all the same."""
    answer = await live.post(body_for(RESPONSES, model=model, include=["reasoning.encrypted_content"]), RESPONSES)
    assert answer.status == 200
    assert live.sandbox.p4.requests[-1].body["include"] == ["reasoning.encrypted_content"]


async def test_reasoning_is_not_carried_by_who_does_not_ask(client: Client) -> None:
    response = await client.responses.create(model=LUNA, input="hello", reasoning={"effort": "high"})
    assert all(getattr(item, "encrypted_content", None) is None for item in response.output)


@pytest.mark.parametrize(("model", "told"), [(LUNA, True), (P2, True), (MINIMAX, False)])
async def test_reasoning_tokens_are_those_of_the_upstream(live: Live, model: str, told: bool) -> None:
    usage = (await live.post(body_for(CHAT, model=model, reasoning_effort="high"), CHAT)).json["usage"]
    assert ("completion_tokens_details" in usage) is told
    usage = (await live.post(body_for(RESPONSES, model=model, reasoning={"effort": "high"}), RESPONSES)).json["usage"]
    assert (usage["output_tokens_details"]["reasoning_tokens"] > 0) is told


# -- refusals

WORDS = "I can not help with that."
USAGE = {"usage": {"input_tokens": 3, "output_tokens": 5}}
REFUSED_ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
RESPONSES_REFUSAL: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**REFUSED_ITEM, "content": []}},
    *(
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": piece}
        for piece in (WORDS[:5], WORDS[5:])
    ),
    {"type": "response.refusal.done", "output_index": 0, "content_index": 0, "item_id": "m", "refusal": WORDS},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {**REFUSED_ITEM, "content": [{"type": "refusal", "refusal": WORDS}]},
    },
    {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", **USAGE}},
]
CHAT_REFUSAL = [
    {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    for delta, finish in (({"refusal": WORDS[:5]}, None), ({"refusal": WORDS[5:]}, None), ({}, "stop"))
]


class Answer(pydantic.BaseModel):
    """What is asked for."""

    text: str


def refuse(live: Live, model: str, times: int) -> None:
    sandbox = {P1: live.sandbox.p1, P2: live.sandbox.p2}.get(model, live.sandbox.p4)
    events = CHAT_REFUSAL if model == P2 else RESPONSES_REFUSAL
    sandbox.script.extend([{"events": events, "then": "end"}] * times)


@pytest.mark.parametrize("model", [LUNA, P1, P2])
async def test_a_refusal_keeps_its_form_on_chat(client: Client, live: Live, model: str) -> None:
    refuse(live, model, 3)
    asked: Any = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    whole = await client.chat.completions.create(**asked)
    validate(whole)
    [choice] = whole.choices
    assert (choice.finish_reason, choice.message.content, choice.message.refusal) == ("stop", None, WORDS)
    async with client.chat.completions.stream(**asked) as stream:
        message = (await stream.get_final_completion()).choices[0].message
    assert (message.refusal, message.content or None) == (WORDS, None)
    if model == P1:
        parsed = (await client.chat.completions.parse(response_format=Answer, **asked)).choices[0].message
        assert (parsed.refusal, parsed.parsed) == (WORDS, None)


@pytest.mark.parametrize("model", [LUNA, P2])
async def test_a_refusal_keeps_its_form_on_responses(client: Client, live: Live, model: str) -> None:
    refuse(live, model, 2)
    whole = await client.responses.create(model=model, input="hi")
    validate(whole)
    async with client.responses.stream(model=model, input="hi") as stream:
        streamed = await stream.get_final_response()
    for response in (whole, streamed):
        part = response.output[-1].content[0]  # type: ignore[union-attr, index]
        assert response.status == "completed" and part.to_dict() == {"type": "refusal", "refusal": WORDS}
        assert response.output_text == ""


@rows("model", [LUNA, P2])
async def test_a_refusal_is_a_text_and_a_reason_on_messages(live: Live, model: str) -> None:
    refuse(live, model, 1)
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    answer = (await live.post(body, "/v1/messages")).json
    assert (answer["content"], answer["stop_reason"]) == ([{"type": "text", "text": WORDS}], "refusal")


# -- what breaks off


@pytest.mark.parametrize("model", [LUNA, P2, MINIMAX])
async def test_a_thought_that_is_begun_anew_leaves_its_first_half_open(client: Client, live: Live, model: str) -> None:
    """The stream goes on with another thought, and the item has to be ended before that."""
    sandbox = live.sandbox.p2 if model == P2 else live.sandbox.p4
    sandbox.script.extend([{"fault": "cut_thinking"}])
    async with client.responses.stream(model=model, input="hello", reasoning={"effort": "high"}) as stream:
        response = await stream.get_final_response()
    validate(response)
    told = [(item.type, item.status) for item in response.output]  # type: ignore[union-attr]
    assert told == [("reasoning", "incomplete"), ("reasoning", "completed"), ("message", "completed")]


async def test_a_block_of_a_later_version_is_hidden(live: Live) -> None:
    start, *text, end, stop = whole_message(MINIMAX, "half")
    block = {"type": "content_block_start", "index": 1, "content_block": {"type": "of_tomorrow", "x": 1}}
    delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "delta_of_tomorrow", "x": 1}}
    events = [start, *text, block, delta, closed(1), end, stop]
    live.sandbox.p4.script.extend([{"events": events, "then": "end"}] * 2)
    assert (await live.post(body_for(CHAT, model=MINIMAX), CHAT)).json["choices"][0]["message"]["content"] == "half"
    [item] = (await live.post(body_for(RESPONSES, model=MINIMAX), RESPONSES)).json["output"]
    assert item["content"][0]["text"] == "half"


# -- what is asked of the upstream


@with_live(openai_routes=True)
async def test_a_strict_function_and_a_verbosity_reach_p4(live: Live) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tool = {"type": "function", "name": "f", "strict": True, "parameters": {**schema, "additionalProperties": False}}
    body = body_for(RESPONSES, model=LUNA, tools=[tool], text={"verbosity": "high"})
    assert (await live.post(body, RESPONSES)).status == 200
    sent = live.sandbox.p4.requests[-1].body
    assert sent["text"]["verbosity"] == "high" and sent["tools"][0]["strict"] is True
