"""Model turns on the three wires of P4, the cost behind each answer, and the faults that these wires add."""

from typing import Any

import pytest
from p2_sandbox_client import BASH as CHAT_BASH
from p2_sandbox_client import IMAGE, answer, replay, user
from p4_sandbox_client import BASH, BODIES, P4Client, go_chat, go_messages, go_responses
from raw_client import Reply
from samples import rows

from proxy.sandbox import Sandbox, ScriptError

PING = b'event: ping\ndata: {"type":"ping","cost":"0"}\n\n'
TERMINALS = {"chat": b"data: [DONE]\n\n", "messages": b'data: {"type":"message_stop"}\n\n', "responses": b"}\n\n"}


def is_cost(wire: str, event: dict[str, Any]) -> bool:
    if wire == "chat":
        return event.get("cost") == "0" and event["choices"] == [] and bool(event["id"])
    return event == {"type": "ping", "cost": "0"}


@pytest.mark.parametrize("wire", BODIES)
@pytest.mark.parametrize("how", ["option", "fault"])
async def test_the_cost_comes_behind_the_end(go: P4Client, wire: str, how: str) -> None:
    body = BODIES[wire]()
    for place, fault in (("together", "cost_together"), ("later", "cost_later"), ("none", "no_cost")):
        if how == "option":
            go.sandbox.p4.options.cost_comes = place
        else:
            go.sandbox.p4.script.extend([{"fault": fault}])
        chunks = []
        async with go.post(body) as response:
            async for data, end in response.content.iter_chunks():
                assert end
                chunks.append(data)
        reply = Reply(200, {}, b"".join(chunks))
        last = chunks[-1]
        if place == "none":
            assert b'"cost"' not in reply.data and last.endswith(TERMINALS[wire])
            continue
        assert b'"cost":"0"' in last
        shared = b"[DONE]" in last or b"message_stop" in last or b"response.completed" in last
        assert shared is (place == "together")
        *_, cost = (await go.ask(body)).events
        assert is_cost(wire, cost)


async def test_messages_events(go: P4Client) -> None:
    reply = await go.ask(go_messages(user("hello there"), thinking={"type": "adaptive"}))
    order = [kind for place, kind in enumerate(reply.types) if not place or kind != reply.types[place - 1]]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert order == ["message_start", "ping", *block, *block, "message_delta", "message_stop", "ping"]
    thought, said = reply.blocks
    assert thought["signature"].startswith("gAAAAA") and "**Planning" in thought["thinking"]
    assert '"hello there"' in said["text"]
    start = reply.events[0]["message"]
    assert (start["model"], start["content"], start["stop_reason"]) == ("minimax-m3", [], None)
    [delta] = reply.of("message_delta")
    assert delta["delta"]["stop_reason"] == "end_turn" and delta["usage"]["output_tokens"] > 0


@rows(
    "members, thinks",
    [
        ({}, False),
        ({"reasoning_effort": "high"}, True),
        ({"model": "hy3", "reasoning_effort": "high"}, False),
        ({"model": "kimi-k2.6"}, True),
        ({"model": "deepseek-v4-pro"}, True),
    ],
)
async def test_when_chat_thinks(go: P4Client, members: Any, thinks: bool) -> None:
    assert bool((await go.ask(go_chat(**members))).thought) is thinks


async def test_when_messages_think(go: P4Client) -> None:
    for thinking in ({"type": "disabled"}, {"type": "enabled", "budget_tokens": 1}):
        reply = await go.ask(go_messages(thinking=thinking, output_config={"effort": "high"}))
        assert bool(reply.thought) is (thinking["type"] == "enabled")


async def test_chat_turns_with_pictures_beside_the_results(go: P4Client) -> None:
    prompt = user("use Bash: ls")
    first = await go.ask(go_chat(prompt, tools=[CHAT_BASH]))
    assert first.calls == [("Bash", {"command": "ls"})] and first.ids[0].startswith("call_")
    turn = [prompt, replay(first, content=""), answer(first.ids[0], "seen"), user([IMAGE])]
    said = (await go.ask(go_chat(*turn, tools=[CHAT_BASH]))).text
    assert said == 'The tool Bash returned: "seen".\nBeside that I see 1 image (1 image/png).'
    assert (await go.ask(go_chat(*turn))).events[-2]["usage"]["total_tokens"] > 0


async def test_the_cache_follows_the_session(go: P4Client) -> None:
    for make, found in ((go_chat, "prompt_tokens_details"), (go_messages, "cache_read_input_tokens")):
        body = make(user("x" * 4_000))
        sizes = []
        for session in ("a", "a", "b"):
            events = (await go.ask(body, {"x-opencode-session": session + found})).events
            usage = next(event["usage"] for event in reversed(events) if event.get("usage"))
            cached = usage[found]
            sizes.append(cached["cached_tokens"] if isinstance(cached, dict) else cached)
        assert sizes[0] == sizes[2] == 0 < sizes[1]


async def test_responses_turns(go: P4Client) -> None:
    tool = {"type": "function", "name": "Bash", "parameters": BASH["input_schema"], "strict": False}
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "use Bash: ls"}]}
    thinking = {"reasoning": {"effort": "xhigh", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    reply = await go.ask(go_responses(prompt, tools=[tool], **thinking))
    thought, called = reply.of("response.completed")[0]["response"]["output"]
    assert (called["name"], called["arguments"]) == ("Bash", '{"command":"ls"}')
    numbers = [event["sequence_number"] for event in reply.events if "sequence_number" in event]
    assert numbers == list(range(len(numbers)))
    sent = {name: thought[name] for name in ("type", "id", "summary", "encrypted_content")}
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "done"}
    said = (await go.ask(go_responses(prompt, sent, called, output, tools=[tool], **thinking))).text
    assert 'Bash returned: "done"' in said


async def played(go: P4Client, wire: str, fault: str, stream: bool = True, **params: Any) -> Reply:
    offered = [CHAT_BASH] if wire == "chat" else [BASH]
    body = BODIES[wire](user("use Bash: ls"), tools=offered, stream=stream) if wire != "responses" else go_responses()
    go.sandbox.p4.script.replace([{"fault": fault, "match": {"wire": wire}, **params}])
    reply = await go.ask(body)
    assert go.sandbox.p4.script.left == 0, "the step was used"
    return reply


async def test_blocks_of_messages(go: P4Client) -> None:
    assert (await played(go, "messages", "no_arguments")).blocks[0]["input"] == {}
    assert (await played(go, "messages", "bad_arguments")).blocks[0]["input"] == [1]
    cut = await played(go, "messages", "truncated_arguments")
    assert "".join(delta["partial_json"] for delta in cut.block_deltas) == '{"comman'
    assert cut.of("message_delta")[0]["delta"]["stop_reason"] == "max_tokens"
    whole = await played(go, "messages", "whole_arguments")
    assert whole.block_deltas == [] and whole.blocks[0]["input"] == {"command": "ls"}
    assert "future_block" in {block["type"] for block in (await played(go, "messages", "strange_block")).blocks}
    stopped = await played(go, "messages", "incomplete", after="call", reason="refusal")
    assert stopped.types[-4:] == ["content_block_stop", "message_delta", "message_stop", "ping"]


@rows("where, found", [("start", (True, False)), ("delta", (False, True)), ("missing", (False, False))])
async def test_where_the_usage_of_messages_stands(go: P4Client, where: str, found: tuple[bool, bool]) -> None:
    reply = await played(go, "messages", "usage", where=where)
    assert ("usage" in reply.events[0]["message"], "usage" in reply.of("message_delta")[0]) == found


async def test_tails_survive_line_ends_and_small_writes(go: P4Client) -> None:
    for wire in BODIES:
        for fault in ("tiny_writes", "crlf"):
            reply = await played(go, wire, fault)
            assert is_cost(wire, reply.events[-1])


async def test_steps_are_bound_to_provider_and_wire() -> None:
    steps = [
        {"fault": "rate_limit", "provider": "p4"},
        {"fault": "server_error", "match": {"wire": "messages"}},
        {"fault": "empty", "times": 2},
        {"fault": "failed", "code": "server_error"},
    ]
    sandbox = Sandbox(script=steps)
    assert [sandbox.p1.script.left, sandbox.p2.script.left, sandbox.p4.script.left] == [3, 2, 5]


async def test_an_unbound_step_is_used_by_whichever_comes_first(go: P4Client) -> None:
    steps = [{"fault": "server_error"}]
    async with Sandbox(script=steps) as sandbox:
        client = P4Client(sandbox, go.session)
        assert [(await client.ask(go_chat())).status for _ in range(2)] == [500, 200]
        assert sandbox.p1.script.left == sandbox.p2.script.left == 0


@pytest.mark.parametrize(
    "step",
    [
        {"fault": "usage", "provider": "p4", "match": {"wire": "responses"}},
        {"fault": "cost_later", "provider": "p2"},
        {"fault": "index_restarts", "match": {"wire": "messages"}},
        {"events": [{"choices": []}], "match": {"wire": "messages"}},
    ],
)
def test_faults_that_a_wire_does_not_know(step: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        Sandbox(script=[step])


async def test_events_are_what_the_official_sdks_know(go: P4Client) -> None:
    pydantic = pytest.importorskip("pydantic")
    chat = pytest.importorskip("openai.types.chat")
    messages = pytest.importorskip("anthropic.types")
    offered = [BASH]
    chunk = pydantic.TypeAdapter(chat.ChatCompletionChunk)
    for event in (await go.ask(go_chat(user("use Bash: ls"), tools=[CHAT_BASH], reasoning_effort="max"))).events:
        chunk.validate_python(event)
    known = pydantic.TypeAdapter(messages.RawMessageStreamEvent)
    reply = await go.ask(go_messages(user("use Bash: ls"), tools=offered, thinking={"type": "adaptive"}))
    for event in reply.events:
        if event["type"] != "ping":
            known.validate_python(event)
    whole = await go.ask(go_messages(user("use Bash: ls"), tools=offered, stream=False))
    pydantic.TypeAdapter(messages.Message).validate_python(whole.json)
    whole = await go.ask(go_chat(user("use Bash: ls"), tools=[CHAT_BASH], stream=False))
    pydantic.TypeAdapter(chat.ChatCompletion).validate_python(whole.json)
