"""What is held of a request while its answer is read: as much as is still needed."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Live, ask, parse_events, texts, tool, until
from samples import rows

from proxy.core.reducer import AnswerPolicy
from proxy.observe.capture.contract import NullCapture
from proxy.providers.contract import KEPT_MESSAGES, Call, Target, kept
from proxy.providers.upstream.adapter import RequestBody

#: One model of each wire that is asked whole: (model, provider)
WIRES = {
    "p1": ("gpt-5.5", "p1"),
    "p2": ("kimi-for-coding", "p2"),
    "p3": ("grok-4.6", "p3"),
    "p4 Messages": ("minimax-m3", "p4"),
}
TURNS = 20


def conversation() -> list[dict[str, Any]]:
    """A question, then calls with their results."""
    found: list[dict[str, Any]] = [{"role": "user", "content": "begin"}]
    for turn in range(TURNS):
        call = {"type": "tool_use", "id": f"call_{turn}", "name": "Bash", "input": {"command": f"ls {turn}"}}
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": f"result {turn}"}
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return [*found, {"role": "user", "content": "stream 30 words"}]


class Held:
    """The calls and bodies that let go, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        self.bodies: list[RequestBody] = []
        call_lets_go, body_lets_go = Call.let_go, RequestBody.let_go

        def call_let_go(call: Call) -> None:
            self.calls.append(call)
            call_lets_go(call)

        def body_let_go(body: RequestBody) -> None:
            self.bodies.append(body)
            body_lets_go(body)

        monkeypatch.setattr(Call, "let_go", call_let_go)
        monkeypatch.setattr(RequestBody, "let_go", body_let_go)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.mark.parametrize("name", WIRES)
async def test_a_stream_that_is_read_holds_little_of_its_request(live: Live, held: Held, name: str) -> None:
    model, provider = WIRES[name]
    live.sandbox[provider].options.word_delay_s = 0.02
    asked = ask(conversation(), model=model, stream=True, tools=[tool()])
    async with live.open(asked) as answer:
        await until(lambda: held.calls)
        assert held.calls[0].request["messages"] == [asked["messages"][0], *asked["messages"][-KEPT_MESSAGES:]]
        assert held.bodies[0].members == {} and held.bodies[0]._payload is None
        live.sandbox[provider].options.word_delay_s = 0.0
        assert texts(parse_events(await answer.content.read())).endswith(" word30")
    assert len(held.calls) == len(held.bodies) == 1


async def test_the_whole_conversation_is_sent(live: Live, held: Held) -> None:
    answer = await live.stream(ask(conversation(), model="kimi-for-coding", tools=[tool()]))
    assert len(texts(answer.events).split()) == 30 and held.calls
    assert len(live.sandbox.p2.requests[-1].body["messages"]) == 2 * TURNS + 2


@pytest.mark.parametrize("fault", ["cut_thinking", "overloaded"])
async def test_what_may_be_sent_again_is_held(live: Live, held: Held, fault: str) -> None:
    """Before a word was read, also behind a thought, an attempt may follow."""
    live.sandbox.p1.script.extend([{"provider": "p1", "fault": fault}])
    answer = await live.stream(ask(conversation(), thinking={"type": "adaptive"}))
    assert len(texts(answer.events).split()) == 30
    first, second = (len(one.body["input"]) for one in live.sandbox.p1.requests)
    assert first == second > 2 * TURNS


def call_of(messages: list[dict[str, Any]], **members: Any) -> Call:
    return Call({"messages": messages}, "m", Target("m"), "id", **members)


def test_a_capture_may_not_have_been_written_yet() -> None:
    call = call_of(conversation(), capture=NullCapture())
    call.let_go()
    assert len(call.request["messages"]) == 2 * TURNS + 2


@rows("count", range(KEPT_MESSAGES + 3))
def test_a_short_conversation_stays_whole(count: int) -> None:
    messages = conversation()[:count]
    call = call_of([*messages])
    whole = kept(call.request)
    call.let_go()
    assert call.request["messages"] == [*messages[:1], *messages[1:][-KEPT_MESSAGES:]]
    assert whole["messages"] == messages


def test_ids_of_calls_that_are_gone_are_not_given_again() -> None:
    request = {"messages": conversation()}
    policy = AnswerPolicy(request)
    policy.keep_ids()
    request["messages"].clear()
    assert policy.unique_id("call_3") != "call_3" and policy.unique_id("call_99") == "call_99"
