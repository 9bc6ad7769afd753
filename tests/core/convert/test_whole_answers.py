"""A whole answer says the same as the stream that was asked for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from samples import rows

from core.hub_events import folded
from core.strategies import json_values
from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.convert.messages_to_messages import MessagesToMessages
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.convert.whole_answers import chat_events, message_events, response_events
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.responses_events import responses_failure

CALL = {"name": "Bash", "arguments": '{"command":"ls"}'}
CHAT: dict[str, Any] = {
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "reasoning_content": "hm",
                "content": "fine",
                "tool_calls": [{"id": "a", "type": "function", "function": CALL}, {"id": "b", "function": CALL}],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5},
}
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "text", "text": "fine"},
    *({"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}} for call_id in "ab"),
]
MESSAGE = {"content": BLOCKS, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 5}}
RESPONSE: dict[str, Any] = {
    "status": "completed",
    "error": None,
    "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"text": "h"}, {"text": "m"}], "encrypted_content": "e"},
        {"type": "message", "content": [{"type": "output_text", "text": "fine"}]},
        *({"type": "function_call", "call_id": call_id, **CALL} for call_id in "ab"),
    ],
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
END: Event = {"type": "end"}


class _Chat(ChatToMessages):
    def feed(self, chunk: Any) -> list[Event]:
        return self.end(done=True) if chunk is END else super().feed(chunk)


def reduced(wire: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The message that it becomes."""
    return folded(given_out(wire, answer))


def given_out(wire: str, answer: dict[str, Any], *tools: str) -> list[Event]:
    """Its events."""
    declared = [{"name": name} for name in tools or ("Bash",)]
    stream, policy = MessageStream("msg_1", "m"), AnswerPolicy({"tools": declared}, signatures="p1")
    reducer: Any = {
        "chat": lambda: _Chat(stream, policy, mark="m"),
        "messages": lambda: MessagesToMessages(stream, policy),
        "responses": lambda: ResponsesToMessages(stream, policy),
    }[wire]()
    events = {"chat": chat_events, "messages": message_events, "responses": response_events}[wire](answer)
    return [event for one in (*(events or ()), END) for event in reducer.feed(one)]


@pytest.mark.parametrize(("wire", "answer"), [("chat", CHAT), ("messages", MESSAGE), ("responses", RESPONSE)])
def test_nothing_of_a_whole_answer_is_lost(wire: str, answer: dict[str, Any]) -> None:
    message = reduced(wire, answer)
    thought, *others = message["content"]
    assert others == BLOCKS[1:] and message["stop_reason"] == "tool_use"
    assert thought["thinking"] == ("h\n\nm" if wire == "responses" else "hm") and thought["signature"]
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (3, 5)


def test_an_end_that_is_none_is_told() -> None:
    cut = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert reduced("responses", cut)["stop_reason"] == "max_tokens"
    [*_, last] = response_events({"status": "failed", "output": [], "error": {"code": "server_error"}}) or []
    failure = responses_failure(last)
    assert failure is not None and failure.kind == "transient"
    limited = {"choices": [{**CHAT["choices"][0], "finish_reason": "length"}]}
    assert reduced("chat", limited)["stop_reason"] == "max_tokens"
    assert reduced("messages", {**MESSAGE, "stop_reason": "max_tokens"})["stop_reason"] == "max_tokens"


@given(json_values)
def test_any_object_is_survived(value: Any) -> None:
    for wire, member in (("chat", "choices"), ("messages", "content"), ("responses", "output")):
        for answer in ({member: value}, {member: [value]}, {member: [{"message": value, "type": "reasoning"}]}):
            with suppress(BadAnswer):
                given_out(wire, answer)


@rows("wire, answer", [("chat", CHAT), ("messages", MESSAGE), ("responses", RESPONSE)])
@rows(
    "tools, told",
    [
        (("functions__Bash",), "functions__Bash"),
        (("functions__Bash", "Bash"), "Bash"),
        (("a__Bash", "b__Bash"), "Bash"),
        (("mcp__" + "n" * 80 + "__Bash", "Read"), "mcp__" + "n" * 80 + "__Bash"),
        (("Read",), "Bash"),
    ],
)
def test_a_name_that_no_tool_has_is_that_of_the_one_it_can_mean(
    wire: str, answer: dict[str, Any], tools: tuple[str, ...], told: str
) -> None:
    message = folded(given_out(wire, answer, *tools))
    assert [block["name"] for block in message["content"] if block["type"] == "tool_use"] == [told, told]
