"""The official Python SDK in front of P2 and the three wires of P4."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from harness import Live, tool
from sdk import validate
from wires import WIRES, Wire

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
USER: Any = {"role": "user", "content": "hello"}
THINK: dict[str, Any] = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}


@every_wire
async def test_a_stream_ends_in_the_same_message(sdk: anthropic.AsyncAnthropic, wire: Wire) -> None:
    whole = await sdk.messages.create(model=wire.model, max_tokens=100, messages=[USER])
    validate(whole)
    async with sdk.messages.stream(model=wire.model, max_tokens=100, messages=[USER]) as stream:
        words = [text async for text in stream.text_stream]
        message = await stream.get_final_message()
    validate(message)
    assert len(words) > 5 and "".join(words) == whole.content[-1].text  # type: ignore[union-attr]
    assert message.model == whole.model == wire.model and message.id != whole.id
    assert message.usage.to_dict() == whole.usage.to_dict() and whole.usage.output_tokens > 0


@every_wire
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
async def test_thinking_and_tools_go_round(sdk: anthropic.AsyncAnthropic, wire: Wire, streamed: bool) -> None:
    asked: dict[str, Any] = {"model": wire.model, "max_tokens": 1000, "tools": [tool()], **THINK}
    messages: list[Any] = [{"role": "user", "content": "use Bash: ls -la"}]

    async def told() -> anthropic.types.Message:
        if not streamed:
            answer = await sdk.messages.create(messages=messages, **asked)
            assert isinstance(answer, anthropic.types.Message)
            return answer
        async with sdk.messages.stream(messages=messages, **asked) as stream:
            async for event in stream:
                validate(event)
            return await stream.get_final_message()

    message = await told()
    validate(message)
    call: Any = message.content[-1]
    assert (call.type, call.name, call.input) == ("tool_use", "Bash", {"command": "ls -la"})
    assert message.stop_reason == "tool_use"
    messages += [
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "total 0"}]},
    ]
    answer = await told()
    validate(answer)
    assert 'The tool Bash returned: "total 0"' in answer.content[-1].text  # type: ignore[union-attr]


@every_wire
async def test_tokens_are_counted(sdk: anthropic.AsyncAnthropic, wire: Wire) -> None:
    count = await sdk.messages.count_tokens(model=wire.model, messages=[USER], tools=[tool()])  # type: ignore[list-item]
    validate(count)
    assert count.input_tokens > 5


@every_wire
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("step", "error"),
    [
        ({"fault": "forbidden"}, anthropic.PermissionDeniedError),
        ({"fault": "usage_limit"}, anthropic.RateLimitError),
        ({"fault": "overloaded", "times": None}, anthropic.InternalServerError),
        ({"fault": "unauthorized", "times": None}, anthropic.AuthenticationError),
        ({"status": 400, "body": {"error": {"message": "no"}}}, anthropic.BadRequestError),
    ],
)
async def test_errors_become_the_classes_of_the_sdk(
    sdk: anthropic.AsyncAnthropic,
    live: Live,
    wire: Wire,
    step: Any,
    error: type[anthropic.APIStatusError],
    streamed: bool,
) -> None:
    wire.sandbox(live).script.extend([step])
    with pytest.raises(error) as raised:
        await sdk.messages.create(model=wire.model, max_tokens=100, messages=[USER], stream=streamed)
    assert raised.value.request_id == raised.value.body["request_id"]  # type: ignore[index]


@every_wire
async def test_an_error_inside_a_stream_is_raised(sdk: anthropic.AsyncAnthropic, live: Live, wire: Wire) -> None:
    wire.sandbox(live).script.extend([{"fault": "error_event", "after": "text"}])
    with pytest.raises(anthropic.APIStatusError):
        async with sdk.messages.stream(model=wire.model, max_tokens=100, messages=[USER]) as stream:
            await stream.get_final_message()
