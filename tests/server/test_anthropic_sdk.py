"""The official Python SDK in front of the proxy: what it gets must have every member its types promise."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from harness import Live, tool
from sdk import validate

from proxy.sandbox.wires.responses.failures import FAILURES

USER: Any = {"role": "user", "content": "hello"}


async def test_a_message_has_every_member(sdk: anthropic.AsyncAnthropic) -> None:
    message = await sdk.messages.create(model="claude-opus-5", max_tokens=100, messages=[USER])
    validate(message)
    assert message.model == "claude-opus-5" and message.stop_reason == "end_turn"
    assert message.content[0].type == "text" and "hello" in message.content[0].text
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
    assert message._request_id


async def test_ids_are_unique(sdk: anthropic.AsyncAnthropic) -> None:
    ids = {(await sdk.messages.create(model="gpt-5.5", max_tokens=100, messages=[USER])).id for _ in range(3)}
    assert len(ids) == 3 and all(found.startswith("msg_") for found in ids)


async def test_a_stream_ends_in_the_same_message(sdk: anthropic.AsyncAnthropic) -> None:
    whole = await sdk.messages.create(model="gpt-5.5", max_tokens=100, messages=[USER])
    async with sdk.messages.stream(model="gpt-5.5", max_tokens=100, messages=[USER]) as stream:
        words = [text async for text in stream.text_stream]
        message = await stream.get_final_message()
    validate(message)
    assert len(words) > 5 and "".join(words) == whole.content[0].text  # type: ignore[union-attr]
    assert message.content[0].text == whole.content[0].text  # type: ignore[union-attr]
    assert message.usage.to_dict() == whole.usage.to_dict()


@pytest.mark.parametrize("model", ["gpt-5.5", "claude-sonnet-5"])
async def test_thinking_and_tools_go_round(sdk: anthropic.AsyncAnthropic, live: Live, model: str) -> None:
    """Two turns: the model thinks and calls a tool, then sees what came of it and its own thoughts again."""
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 1000,
        "tools": [tool()],
        "output_config": {"effort": "high"},
        "thinking": {"type": "adaptive"},
    }
    messages: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]
    async with sdk.messages.stream(messages=messages, **asked) as stream:
        message = await stream.get_final_message()
    validate(message)
    assert [block.type for block in message.content] == ["thinking", "tool_use"]
    assert message.stop_reason == "tool_use"
    call: Any = message.content[1]
    assert (call.name, call.input) == ("Bash", {"command": "ls -la"})
    messages += [
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "total 0"}]},
    ]
    answer = await sdk.messages.create(messages=messages, **asked)
    validate(answer)
    assert 'The tool Bash returned: "total 0"' in answer.content[-1].text  # type: ignore[union-attr]
    sent = [item["type"] for item in live.sandbox.p1.requests[-1].body["input"]]
    assert sent[-4:] == ["message", "reasoning", "function_call", "function_call_output"]


async def test_a_hosted_search_and_a_forced_one_have_every_member(sdk: anthropic.AsyncAnthropic) -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    prompt: Any = {"role": "user", "content": "Perform a web search for the query: rust async book"}
    choices: list[Any] = [{"type": "auto"}, {"type": "tool", "name": "web_search"}]
    for choice in choices:
        async with sdk.messages.stream(
            model="gpt-5.5", max_tokens=100, messages=[prompt], tools=[search], tool_choice=choice
        ) as stream:
            streamed = await stream.get_final_message()
        whole = await sdk.messages.create(
            model="gpt-5.5", max_tokens=100, messages=[prompt], tools=[search], tool_choice=choice
        )
        for message in (streamed, whole):
            validate(message)
            assert [block.type for block in message.content] == ["server_tool_use", "web_search_tool_result", "text"]
            assert message.content[0].input == {"query": "rust async book"}  # type: ignore[union-attr]
            assert message.usage.server_tool_use is not None
            assert message.usage.server_tool_use.web_search_requests == 1


async def test_tokens_are_counted(sdk: anthropic.AsyncAnthropic) -> None:
    count = await sdk.messages.count_tokens(model="gpt-5.5", messages=[USER], tools=[tool()])  # type: ignore[list-item]
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


@pytest.mark.parametrize(
    ("step", "error", "kind"),
    [
        ({"fault": "forbidden"}, anthropic.PermissionDeniedError, "permission_error"),
        ({"fault": "context_http"}, anthropic.APIStatusError, "request_too_large"),
        ({"fault": "usage_limit"}, anthropic.RateLimitError, "rate_limit_error"),
        ({"fault": "overloaded", "times": None}, anthropic.InternalServerError, "overloaded_error"),
        ({"fault": "unauthorized", "times": None}, anthropic.AuthenticationError, "authentication_error"),
        ({"status": 400, "body": {"error": {"message": "no"}}}, anthropic.BadRequestError, "invalid_request_error"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_errors_become_the_classes_of_the_sdk(
    sdk: anthropic.AsyncAnthropic, live: Live, step: Any, error: type[anthropic.APIStatusError], kind: str, stream: bool
) -> None:
    live.sandbox.p1.script.extend([step])
    with pytest.raises(error) as raised:
        await sdk.messages.create(model="gpt-5.5", max_tokens=100, messages=[USER], stream=stream)
    assert raised.value.body["error"]["type"] == kind  # type: ignore[index]
    assert raised.value.request_id == raised.value.body["request_id"]  # type: ignore[index]


async def test_an_unknown_model_and_an_unknown_path_are_errors_of_the_sdk(sdk: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="Supported:"):
        await sdk.messages.create(model="nobody", max_tokens=100, messages=[USER])
    with pytest.raises(anthropic.NotFoundError):
        await sdk.models.retrieve("gpt-5.5")


async def test_an_error_inside_a_stream_is_raised(sdk: anthropic.AsyncAnthropic, live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "failed", "after": "text", "code": "overloaded_error"}])
    with pytest.raises(anthropic.APIStatusError, match=FAILURES["overloaded_error"]["message"]):  # type: ignore[index]
        async with sdk.messages.stream(model="gpt-5.5", max_tokens=100, messages=[USER]) as stream:
            await stream.get_final_message()


async def test_the_sdk_does_not_repeat_what_no_retry_cures(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "usage_limit", "times": None}])
    async with anthropic.AsyncAnthropic(api_key="unused", base_url=live.url, max_retries=2) as sdk:
        with pytest.raises(anthropic.RateLimitError, match="available again in 1 h 0 min"):
            await sdk.messages.create(model="gpt-5.5", max_tokens=100, messages=[USER])
    assert live.upstream == 1
