"""The official Python SDK in front of every wire: what it gets must have every member its types promise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from harness import Live, tool
from pydantic import BaseModel
from samples import each
from sdk import STEPS, tls, validate
from wires import BODY_WIRES, WIRES, Wire

from proxy.sandbox.wires.responses.answer import FAILURES

P1 = Wire("p1", "responses", "gpt-5.5")
ALL = (P1, *WIRES)
ALIASES = [replace(P1, model=model) for model in ("claude-opus-5", "claude-sonnet-5")]
every_wire = pytest.mark.parametrize("wire", [*ALL, *ALIASES], ids=lambda wire: f"{wire}-{wire.model}")
#: Where the client's tools are run while the answer waits, it must be a stream.
tool_turns = pytest.mark.parametrize(
    ("wire", "stream"),
    [(wire, stream) for wire in (*ALL, *ALIASES) for stream in (True, False) if stream or not wire.traits.run],
    ids=lambda value: f"{value}-{value.model}" if isinstance(value, Wire) else "stream" if value else "whole",
)
each_reader = each(1, lambda wire, stream: [(wire.kind, stream), wire.name])
by_kind = each(1, lambda wire: [wire.kind, wire in ALIASES])
streamed = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
USER: Any = {"role": "user", "content": "hello"}
THINK: dict[str, Any] = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}


@pytest.fixture
async def sdk(live: Live) -> AsyncIterator[anthropic.AsyncAnthropic]:
    session = {"x-claude-code-session-id": "session-1"}
    http = anthropic.DefaultAsyncHttpxClient(verify=tls())
    async with anthropic.AsyncAnthropic(
        api_key="unused", base_url=live.url, max_retries=0, default_headers=session, http_client=http
    ) as client:
        yield client


async def told(sdk: anthropic.AsyncAnthropic, stream: bool, messages: list[Any] | None = None, **asked: Any) -> Any:
    """The message of an answer, streamed or whole, whose members are checked."""
    asked = {"max_tokens": 1000, "messages": messages or [USER], **asked}
    if stream:
        async with sdk.messages.stream(**asked) as events:
            async for event in events:
                validate(event)
            message = await events.get_final_message()
    else:
        message = await sdk.messages.create(**asked)
    validate(message)
    return message


@by_kind
@every_wire
async def test_a_stream_ends_in_the_same_message(sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire) -> None:
    for upstream in live.sandbox.upstreams.values():
        upstream.options.word_delay_s = 0.002
    whole = await told(sdk, False, model=wire.model)
    async with sdk.messages.stream(model=wire.model, max_tokens=1000, messages=[USER]) as stream:
        words = [text async for text in stream.text_stream]
    message = await told(sdk, True, model=wire.model)
    assert len(words) > 5 and "".join(words) == whole.content[-1].text == message.content[-1].text
    assert whole.content[-1].type == "text" and "hello" in whole.content[-1].text and whole._request_id
    assert message.model == whole.model == wire.model and message.stop_reason == whole.stop_reason == "end_turn"
    assert message.usage.to_dict() == whole.usage.to_dict()
    assert whole.usage.input_tokens > 0 and whole.usage.output_tokens > 0
    ids = {message.id, whole.id, (await told(sdk, False, model=wire.model)).id}
    assert len(ids) == 3 and all(found.startswith("msg_") for found in ids)


@each_reader
@tool_turns
async def test_thinking_and_tools_go_round(sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire, stream: bool) -> None:
    """Two turns: the model thinks and calls a tool, then sees what came of it and its own thoughts again."""
    asked: dict[str, Any] = {"model": wire.model, "tools": [tool()], **THINK}
    messages: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    message = await told(sdk, stream, messages, **asked)
    assert list(dict.fromkeys(block.type for block in message.content)) == ["thinking", "tool_use"]
    call = message.content[-1]
    assert (call.name, call.input, message.stop_reason) == ("Bash", {"command": "ls -la"}, "tool_use")
    messages += [
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "total 0"}]},
    ]
    answer = await told(sdk, stream, messages, **asked)
    assert 'The tool Bash returned: "total 0"' in answer.content[-1].text
    if wire.label == "p1":
        sent = [item["type"] for item in wire.sent(live)["input"]]
        assert sent[-4:] == ["message", "reasoning", "function_call", "function_call_output"]


@streamed
@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "tool", "name": "web_search"}], ids=["auto", "forced"])
async def test_a_hosted_search_and_a_forced_one_have_every_member(
    sdk: anthropic.AsyncAnthropic, choice: dict[str, str], stream: bool
) -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    prompt = {"role": "user", "content": "Perform a web search for the query: rust async book"}
    message = await told(sdk, stream, [prompt], model="gpt-5.5", tools=[search], tool_choice=choice)
    assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
    assert message.content[0].input == {"query": "rust async book"}
    assert message.usage.server_tool_use.web_search_requests == 1


class Event(BaseModel):
    name: str
    day: str


@each(1, lambda wire: [wire.label, wire.kind, wire in ALIASES])
@every_wire
async def test_answers_are_parsed_whether_the_upstream_takes_a_schema_or_reads_it_in_the_prompt(
    sdk: anthropic.AsyncAnthropic, wire: Wire
) -> None:
    asked: dict[str, Any] = {"model": wire.model, "max_tokens": 1000, "messages": [USER], "output_format": Event}
    for message in (await sdk.messages.parse(**asked), await sdk.beta.messages.parse(**asked)):
        assert isinstance(message.parsed_output, Event)


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (10_000, "medium"), (30_000, "high")])
async def test_a_budget_for_thinking_gives_thoughts_and_their_tokens(
    sdk: anthropic.AsyncAnthropic, live: Live, budget: int, effort: str
) -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": budget + 1000}
    message = await told(sdk, True, model=P1.model, **asked)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.usage.output_tokens_details.thinking_tokens > 0
    assert P1.sent(live)["reasoning"] == {"effort": effort, "summary": "auto"}


@every_wire
async def test_tokens_are_counted(sdk: anthropic.AsyncAnthropic, wire: Wire) -> None:
    count = await sdk.messages.count_tokens(model=wire.model, messages=[USER], tools=[tool()])  # type: ignore[list-item]
    validate(count)
    assert count.input_tokens > 10


async def test_the_list_of_models_pages_by_itself(sdk: anthropic.AsyncAnthropic) -> None:
    first = await sdk.models.list()
    every = [model async for model in first]
    paged = [model.id async for model in sdk.models.list(limit=5)]
    assert paged == [model.id for model in every] and len(set(paged)) == len(paged)
    for model in every:
        assert model.created_at.year == 1970 and model.type == "model" and model.display_name
    back = [model.id async for model in sdk.models.list(limit=5, before_id=paged[12])]
    assert sorted(back) == paged[:12]


KINDS = {
    "PermissionDeniedError": "permission_error",
    "RateLimitError": "rate_limit_error",
    "InternalServerError": "overloaded_error",
    "AuthenticationError": "authentication_error",
    "BadRequestError": "invalid_request_error",
    "APIStatusError": "request_too_large",
}


@each(1)
@pytest.mark.parametrize("wire", (P1, *BODY_WIRES), ids=str)
@streamed
@pytest.mark.parametrize("name", KINDS)
async def test_errors_become_the_classes_of_the_sdk(
    sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire, name: str, stream: bool
) -> None:
    wire.sandbox(live).script.extend([STEPS.get(name, {"fault": "context_http"})])
    with pytest.raises(getattr(anthropic, name)) as raised:
        await sdk.messages.create(model=wire.model, max_tokens=100, messages=[USER], stream=stream)
    assert raised.value.body["error"]["type"] == KINDS[name]
    assert raised.value.request_id == raised.value.body["request_id"]


@by_kind
@pytest.mark.parametrize("wire", ALL, ids=str)
async def test_an_error_inside_a_stream_is_raised(sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire) -> None:
    fault = {"fault": "end_error" if wire.traits.run else "error_event"}
    if wire is P1:
        fault = {"fault": "failed", "code": "overloaded_error"}
    words = FAILURES["overloaded_error"]["message"] if wire is P1 else None
    wire.sandbox(live).script.extend([{**fault, "after": "text"}])
    with pytest.raises(anthropic.APIStatusError, match=words):
        await told(sdk, True, model=wire.model)


async def test_the_sdk_does_not_repeat_what_no_retry_cures(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "usage_limit", "times": None}])
    http = anthropic.DefaultAsyncHttpxClient(verify=tls())
    async with anthropic.AsyncAnthropic(api_key="unused", base_url=live.url, max_retries=2, http_client=http) as sdk:
        with pytest.raises(anthropic.RateLimitError, match=r"5 hours window used up until .*, in 1 h 0 min"):
            await told(sdk, False, model="gpt-5.5")
    assert live.upstream == 1


@each_reader
@tool_turns
async def test_the_tool_runner_goes_on_without_threads(
    sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire, stream: bool
) -> None:
    """It asks for a message thread; refused in the words it knows, it sends the whole history of every turn."""

    @anthropic.beta_async_tool
    async def Bash(command: str) -> str:  # noqa: N802 - the tool that the simulated model knows
        """Runs a command.

        Args:
            command: the command
        """
        return f"ran {command}"

    begin: Any = {"role": "user", "content": "use Bash: ls -la"}
    asked: dict[str, Any] = {"model": wire.model, "max_tokens": 1000, "tools": [Bash], "messages": [begin]}
    if stream:
        replies = [await turn.get_final_message() async for turn in sdk.beta.messages.tool_runner(stream=True, **asked)]
    else:
        replies = [turn async for turn in sdk.beta.messages.tool_runner(**asked)]
    assert [reply.stop_reason for reply in replies] == ["tool_use", "end_turn"]
    assert 'The tool Bash returned: "ran ls -la"' in replies[-1].content[-1].text
