"""The official openai SDK as a client of both routes, on every wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pydantic
import pytest
from harness import Live
from openai_live import CHAT, P1, P2, P3, RESPONSES, function
from samples import each
from sdk import STEPS, openai_client, validate
from wires import BODY_WIRES, WIRES, Wire, by_reader

MODELS = [*(wire.model for wire in WIRES), P1, "gpt-5.6-sol"]
RUNS = [wire.model for wire in WIRES if wire.traits.run]  # tools of theirs need a stream and a session
every_model = pytest.mark.parametrize("model", MODELS)
every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
every_body = pytest.mark.parametrize("wire", BODY_WIRES, ids=str)
#: For a sample: how the answer of a model is read, and each of p1's.
by_kind = each(1, lambda model: [KINDS.get(model, model)])
KINDS = {wire.model: wire.kind for wire in WIRES}
USER: list[Any] = [{"role": "user", "content": "hello"}]
Client = openai.AsyncOpenAI


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


@pytest.fixture
async def client(live: Live) -> AsyncIterator[Client]:
    async with openai_client(live.url) as running:
        yield running


@by_kind
@every_model
async def test_chat(client: Client, model: str) -> None:
    asked: Any = {"model": model, "messages": USER}
    whole = await client.chat.completions.create(**asked)
    validate(whole)
    text = whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "stop" and whole.model == model and whole._request_id
    pieces, usage = [], None
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    async for chunk in await client.chat.completions.create(**options, **asked):
        validate(chunk)
        usage = chunk.usage or usage
        pieces += [choice.delta.content or "" for choice in chunk.choices]
    assert "".join(pieces) == text and usage is not None and usage.total_tokens > usage.completion_tokens > 0
    async with client.chat.completions.stream(**asked) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == text


@by_kind
@every_model
async def test_responses(client: Client, model: str) -> None:
    whole = await client.responses.create(model=model, input="hello")
    validate(whole)
    assert whole.status == "completed" and whole.output_text and whole.model == model
    async for event in await client.responses.create(model=model, input="hello", stream=True):
        validate(event)
    async with client.responses.stream(model=model, input="hello") as stream:
        async for helped in stream:
            assert helped.type
        final = await stream.get_final_response()
    assert final.output_text == whole.output_text and final.usage is not None


@each(1, by_reader)
@every_body
async def test_tools_go_round_on_chat(client: Client, wire: Wire) -> None:
    messages: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    asked: Any = {"model": wire.model, "tools": [function(CHAT)], "reasoning_effort": "high"}
    async with client.chat.completions.stream(messages=messages, **asked) as stream:
        message = (await stream.get_final_completion()).choices[0].message
    (call,) = message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("Bash", '{"command":"ls -la"}')
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "total 0"}]
    answer = await client.chat.completions.create(messages=messages, **asked)
    validate(answer)
    assert 'The tool Bash returned: "total 0"' in (answer.choices[0].message.content or "")


@by_kind
@pytest.mark.parametrize("model", [model for model in MODELS if model not in RUNS])
async def test_tools_go_round_on_responses(client: Client, model: str) -> None:
    items: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    asked: Any = {"model": model, "tools": [function(RESPONSES)], "reasoning": {"effort": "high"}}
    asked["include"] = ["reasoning.encrypted_content"]
    async with client.responses.stream(input=items, **asked) as stream:
        response = await stream.get_final_response()
    call = response.output[-1]
    assert call.type == "function_call" and (call.name, call.arguments) == ("Bash", '{"command":"ls -la"}')
    items += response.output
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "total 0"})
    answer = await client.responses.create(input=items, **asked)
    validate(answer)
    assert 'The tool Bash returned: "total 0"' in answer.output_text


@by_kind
@every_model
async def test_a_conversation_goes_on_with_the_answer_as_it_came(client: Client, model: str) -> None:
    """Message objects of the SDK hold more than role and content, also null members, and are sent back whole."""
    messages = [*USER]
    asked: Any = {"model": model, "messages": messages, "reasoning_effort": "high"}
    whole = await client.chat.completions.create(**asked)
    messages += [whole.choices[0].message, {"role": "user", "content": "and on"}]
    async with client.chat.completions.stream(**asked) as stream:
        message: Any = (await stream.get_final_completion()).choices[0].message
    assert "and on" in message.content
    messages += [message.model_dump(), {"role": "user", "content": "once more"}]
    assert "once more" in ((await client.chat.completions.create(**asked)).choices[0].message.content or "")


SEARCHES = {"web_search": "Perform a web search for the query: sandbox", "x_search": "search X for: sandbox"}


# the SDK has no type for a tool that searches posts
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_search_shows_where_it_looked_and_what_is_cited(client: Client, live: Live, kind: str) -> None:
    """The same on both routes, streamed or not; and the conversation goes on with all of it."""
    asked: Any = {"model": P3, "tools": [{"type": kind}], "parallel_tool_calls": True}
    items: list[Any] = [{"role": "user", "content": SEARCHES[kind]}]
    async with client.responses.stream(input=items, **asked) as stream:
        async for event in stream:
            assert event.type
        response = await stream.get_final_response()
    whole = await client.responses.create(input=items, **asked)
    search, message = [item for item in whole.output if item.type != "reasoning"]
    assert search.type == "web_search_call" and search.action.type == "search" and search.action.query == "sandbox"
    found = [source.url for source in search.action.sources or []]
    assert message.type == "message" and message.content[0].type == "output_text"
    cited = [note for note in message.content[0].annotations if note.type == "url_citation"]
    assert cited and (kind == "x_search" or {note.url for note in cited} <= set(found))
    assert all(0 <= note.start_index < note.end_index <= len(whole.output_text) for note in cited)
    assert [item.type for item in whole.output] == [item.type for item in response.output]
    final = response.output[-1].content[0]
    assert (final.text, final.annotations) == (message.content[0].text, message.content[0].annotations)
    assert (await client.responses.create(input=[*items, *whole.output, *USER], **asked)).status == "completed"
    assert not {"web_search_call", "reasoning"} & {item["type"] for item in live.sandbox.p3.requests[-1].body["input"]}

    completion = await client.chat.completions.create(messages=items, **asked)
    validate(completion)
    told = completion.choices[0].message
    assert told.content == whole.output_text and told.annotations
    assert [note.url_citation.to_dict() for note in told.annotations] == [
        {name: value for name, value in note.to_dict().items() if name != "type"} for note in cited
    ]
    async with client.chat.completions.stream(messages=items, **asked) as chunks:
        last = (await chunks.get_final_completion()).choices[0].message
    assert last.content == told.content and len(last.annotations or []) == len(told.annotations)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # nor for this choice
async def test_a_search_is_narrowed_and_chosen(client: Client, live: Live) -> None:
    asked: Any = {
        "tools": [{"type": "web_search", "filters": {"allowed_domains": ["docs.example.org"]}}, function(RESPONSES)],
        "tool_choice": {"type": "web_search"},
        "reasoning": {"effort": "none"},
    }
    response = await client.responses.create(model=P3, input=SEARCHES["web_search"], **asked)
    sent = live.sandbox.p3.requests[-1].body
    assert sent["tools"] == [{"type": "web_search", "filters": {"allowed_domains": ["docs.example.org"]}}]
    assert (sent["tool_choice"], sent["reasoning"]) == ("required", {"effort": "none"})
    told = response.to_dict()
    assert [told[name] for name in ("tools", "tool_choice")] == [asked["tools"], asked["tool_choice"]]
    assert response.usage is not None and response.usage.output_tokens_details is not None


class Step(pydantic.BaseModel):
    """What is asked for."""

    explanation: str
    output: str | None = None


# the SDK's own words about the parsed message that it sends back
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("model", [P1, "gpt-5.6-sol"])
async def test_an_answer_is_parsed_into_a_model(client: Client, live: Live, model: str) -> None:
    asked: Any = {"model": model, "messages": USER, "response_format": Step}
    for _ in range(2):
        message: Any = (await client.chat.completions.parse(**asked)).choices[0].message
        assert isinstance(message.parsed, Step)
        asked["messages"] = [*USER, message, *USER]
    form = live.sandbox.p1.requests[-1].body["text"]["format"]
    assert form["strict"] is True and form["name"] == "Step" and "output" in form["schema"]["required"]
    response = await client.responses.parse(model=model, input="hello", text_format=Step)
    assert isinstance(response.output_parsed, Step)
    async with client.chat.completions.stream(**asked) as stream:
        assert isinstance((await stream.get_final_completion()).choices[0].message.parsed, Step)


class Bash(pydantic.BaseModel):
    """Runs a command."""

    command: str


@each(1, by_reader)
@every_body
async def test_a_call_is_parsed_into_a_model(client: Client, wire: Wire) -> None:
    prompt, tools = "use Bash: ls -la", [openai.pydantic_function_tool(Bash)]
    asked: Any = {"model": wire.model, "messages": [{"role": "user", "content": prompt}], "tools": tools}
    message = (await client.chat.completions.parse(**asked)).choices[0].message
    assert [call.function.parsed_arguments for call in message.tool_calls or []] == [Bash(command="ls -la")]
    flat: Any = [{"type": "function", **tools[0]["function"]}]
    response = await client.responses.parse(model=wire.model, input=prompt, tools=flat)
    assert [item.arguments for item in response.output if item.type == "function_call"] == ['{"command":"ls -la"}']


@pytest.mark.parametrize("model", [P2, P3])
async def test_what_cannot_be_parsed_elsewhere_is_refused_by_name(client: Client, model: str) -> None:
    for param, call in (
        ("response_format", client.chat.completions.parse(model=model, messages=USER, response_format=Step)),
        ("text", client.responses.parse(model=model, input="x", text_format=Step)),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            await call
        assert (refused.value.param, refused.value.code) == (param, "unsupported_parameter")


@each(1)
@pytest.mark.parametrize("name", STEPS)
@every_body
async def test_errors_become_the_classes_of_the_sdk(client: Client, live: Live, wire: Wire, name: str) -> None:
    wire.sandbox(live).script.extend([STEPS[name], STEPS[name]])
    with pytest.raises(getattr(openai, name)) as raised:
        await client.chat.completions.create(model=wire.model, messages=USER, stream=True)
    assert raised.value.request_id and raised.value.type
    with pytest.raises(getattr(openai, name)):
        await client.responses.create(model=wire.model, input="x")


@each(1, by_reader)
@every_wire
async def test_an_error_inside_a_stream_is_raised(client: Client, live: Live, wire: Wire) -> None:
    fault = "end_error" if wire.traits.run else "error_event"
    wire.sandbox(live).script.extend([{"fault": fault, "after": "text", "times": 2}])
    with pytest.raises(openai.APIError):
        async for _chunk in await client.chat.completions.create(model=wire.model, messages=USER, stream=True):
            pass
    failed = [event async for event in await client.responses.create(model=wire.model, input="x", stream=True)][-1]
    assert failed.type == "response.failed" and failed.response.error and failed.response.error.code == "server_error"
