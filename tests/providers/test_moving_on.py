"""A conversation that goes from provider to provider: nothing is lost that the next one can take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Live, ask, with_live
from samples import rows
from wires import TOOLS, TRAITS, message_of

from proxy.sandbox import Sandbox

#: p1, p3, p5, p2, and p1 again.
CHAIN = ("gpt-5.5", "grok-4.6", "cursor:gpt-5.5", "kimi-for-coding", "gpt-5.5")
UPSTREAMS = {"gpt-5.5": "p1", "grok-4.6": "p3", "kimi-for-coding": "p2", "cursor:gpt-5.5": "p5"}
SESSION = {"x-claude-code-session-id": "session-1"}
HARD: dict[str, Any] = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}

Messages = list[dict[str, Any]]


def sent_to(sandbox: Sandbox, model: str) -> str:
    """The last body that reached the provider of this model."""
    return json.dumps(getattr(sandbox, UPSTREAMS[model]).requests[-1].body, ensure_ascii=False)


async def turn(live: Live, model: str, history: Messages, **members: Any) -> dict[str, Any]:
    body = ask(history, model=model, stream=True, **{"tools": TOOLS, **HARD, **members})
    answer = await live.post(body, headers=SESSION)
    assert answer.status == 200, answer.raw
    return message_of(answer)


async def tool_round(live: Live, model: str, history: Messages, word: str) -> None:
    """A prompt, a call, its result and what the model says of it; all of it goes into the history."""
    history.append({"role": "user", "content": f"use Bash: echo {word}"})
    called = await turn(live, model, history)
    [call] = [block for block in called["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"printed {word}"}
    history += [{"role": "assistant", "content": called["content"]}, {"role": "user", "content": [result]}]
    spoken = await turn(live, model, history)
    assert f'returned: "printed {word}"' in spoken["content"][-1]["text"]
    history.append({"role": "assistant", "content": spoken["content"]})


@pytest.mark.parametrize("live_options", [{}, {"p3_encrypted_reasoning": True}], ids=["plain", "encrypted"])
async def test_every_provider_gets_what_the_others_left(live: Live) -> None:
    history: Messages = []
    for number, model in enumerate(CHAIN):
        await tool_round(live, model, history, f"word-{number}")
        body = sent_to(live.sandbox, model)
        told = number if TRAITS[UPSTREAMS[model]].run else number + 1  # a run hears of its own result on the way
        for earlier in range(told):
            assert f"echo word-{earlier}" in body and f"printed word-{earlier}" in body, (model, earlier)
            assert f'returned: \\"printed word-{earlier}' in body or earlier == number
    spoken = [one for one in live.sandbox.p2.requests[-1].body["messages"] if one["role"] == "assistant"]
    assert all(one["reasoning_content"] for one in spoken if one.get("tool_calls"))
    assert any("echo word-1" in one.get("reasoning_content", "") for one in spoken)  # which p3 thought
    kinds = [item["type"] for item in live.sandbox.p1.requests[-1].body["input"]]
    assert kinds.count("reasoning") >= 2  # its own thoughts of the first turn are known again
    assert live.sleeps == []  # nothing was refused and tried otherwise


@with_live(p3_encrypted_reasoning=True)
async def test_p3_knows_its_own_thoughts_again_and_no_others(live: Live) -> None:
    history: Messages = []
    for number, model in enumerate(("grok-4.6", "gpt-5.5", "grok-4.6")):
        await tool_round(live, model, history, f"word-{number}")
    items = live.sandbox.p3.requests[-1].body["input"]
    thoughts = [item for item in items if item["type"] == "reasoning"]
    assert thoughts and all(thought["encrypted_content"] and "status" not in thought for thought in thoughts)
    [first] = {index for index, item in enumerate(items) if item["type"] == "function_call" and "word-1" in str(item)}
    assert items[first - 1]["type"] != "reasoning"  # what p1 thought of its call stays behind


@pytest.mark.parametrize("live_options", [{}, {"p3_search_blocks": "native"}], ids=["text", "native"])
@rows("model", ["gpt-5.5", "kimi-for-coding", "minimax-m3", "opencode-go/gpt-5.6-luna", "grok-4.5"])
async def test_a_search_of_p3_comes_back_to_anybody(live: Live, model: str) -> None:
    history: Messages = [{"role": "user", "content": "Perform a web search for the query: tea"}]
    found = await turn(live, "grok-4.6", history, tools=[SEARCH])
    history += [{"role": "assistant", "content": found["content"]}, {"role": "user", "content": "thanks"}]
    told = await turn(live, model, history)
    assert 'You asked: "thanks"' in told["content"][-1]["text"]
