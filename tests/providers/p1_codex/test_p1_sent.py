"""What P1 is told about a request, end to end: history, session, prompt cache, and what was removed from a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from checks import check_message_stream
from harness import Live, ask, texts, with_live
from p1_events import completed, delta, done
from p1_faults import TOOLS, play

from proxy.version import __version__


async def thought_about(live: Live) -> list[dict[str, Any]]:
    """A conversation with reasoning of this account in it."""
    thought = (await live.post(ask(output_config={"effort": "high"}))).json["content"][0]
    assert thought["type"] == "thinking" and thought["signature"]
    said = [("user", "hello"), ("assistant", [thought, {"type": "text", "text": "Hi."}]), ("user", "go on")]
    return [{"role": role, "content": content} for role, content in said]


@pytest.mark.parametrize("stream", [True, False])
async def test_reasoning_of_another_account_is_left_out_at_once(live: Live, stream: bool) -> None:
    history = await thought_about(live)
    live.sandbox.p1.options.account_id = live.sandbox.p1.tokens.account_id = "acct-other"
    live.sandbox.write_credentials(live.root)
    assert (await live.post(ask(history, stream=stream))).status == 200 and not live.sleeps
    bodies = [seen.body["input"] for seen in live.sandbox.p1.requests][-2:]
    assert [sum(item["type"] == "reasoning" for item in items) for items in bodies] == [1, 0]


async def test_a_request_that_is_refused_for_its_reasoning_twice_is_told(live: Live) -> None:
    history = await thought_about(live)
    play(live, {"fault": "unsealable", "times": None})
    assert (await live.post(ask(history))).status == 400
    assert live.upstream == 3


@pytest.mark.parametrize(("model", "name"), [("gpt-5.5", "model-proxy"), ("haiku", "codex_cli_rs")])
async def test_the_session_travels_in_headers_and_body(live: Live, model: str, name: str) -> None:
    await live.stream(ask(model=model), headers={"x-claude-code-session-id": "s1"})
    seen = live.sandbox.p1.requests[-1]
    names = ("session-id", "thread-id", "x-client-request-id", "x-codex-window-id")
    assert [seen.headers[key] for key in names] == ["s1", "s1", "s1", "s1:0"]
    assert seen.headers["originator"] == name and seen.body["prompt_cache_key"] == "s1"
    assert "session_id" not in seen.headers


@with_live(p1_transport="http")
@pytest.mark.parametrize(("model", "lite"), [("gpt-5.5", False), ("haiku", True)])
async def test_what_the_vendors_client_always_sends(live: Live, model: str, lite: bool) -> None:
    """A version that says who we are; no beta header but the one that it has; the lane in the header alone."""
    await live.stream(ask(model=model))
    seen = live.sandbox.p1.requests[-1]
    own = f"model-proxy/{__version__}"
    assert seen.headers["user-agent"] == (f"codex_cli_rs/0.169.0 ({own.replace('/', '; ')})" if lite else own)
    assert "openai-beta" not in seen.headers and "client_metadata" not in seen.body
    assert (seen.headers.get("x-openai-internal-codex-responses-lite") == "true") is lite
    assert seen.body["tool_choice"] == "auto" and seen.body["include"] == ["reasoning.encrypted_content"]


@with_live(p1_transport="http", p1_reasoning_signatures=False)
async def test_no_encrypted_reasoning_is_asked_for_when_a_setting_forbids_it(live: Live) -> None:
    await live.stream(ask(output_config={"effort": "high"}))
    assert "include" not in live.sandbox.p1.requests[-1].body


ADAPTIVE = {"thinking": {"type": "adaptive"}}


async def test_adaptive_thinking_is_shown(live: Live) -> None:
    await live.stream(ask(**ADAPTIVE))
    assert live.sandbox.p1.requests[-1].body["reasoning"] == {"effort": "medium", "summary": "auto"}


@pytest.mark.parametrize(
    ("members", "signed"), [({}, False), ({"output_config": {"effort": "low"}}, True), (ADAPTIVE, True)]
)
async def test_encrypted_reasoning_is_for_who_asked_for_thinking(live: Live, members: Any, signed: bool) -> None:
    """It is asked for always; anybody else gets the text alone."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAA"}
    play(live, {"events": [done(thought, 0), delta("hi"), completed()]})
    answer = await live.post(ask(**members))
    assert [block["type"] for block in answer.json["content"]] == [*(["thinking"] if signed else []), "text"]


async def test_without_a_session_nothing_stands_for_one(live: Live) -> None:
    await live.stream(ask())
    seen = live.sandbox.p1.requests[-1]
    assert not {"session-id", "x-client-request-id", "x-codex-window-id"} & {name.lower() for name in seen.headers}
    assert "prompt_cache_key" not in seen.body


async def test_the_classifier_is_answered_by_the_small_model_up_to_its_stop(live: Live) -> None:
    marker = "You are a security monitor for autonomous AI coding agents."
    body = ask(system=[{"type": "text", "text": marker}], stop_sequences=["</block>"], max_tokens=64)
    answer = (await live.post(body)).json
    assert live.sandbox.p1.requests[-1].body["model"] == "gpt-5.6-luna"
    assert answer["content"] == [{"type": "text", "text": "<block>no"}]
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "</block>")
    await live.sandbox.p1.idle()


async def test_a_compaction_thinks_little(live: Live) -> None:
    prompt = (
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\nYour task is to create a detailed summary of it."
    )
    answer = await live.stream(ask(prompt, output_config={"effort": "xhigh"}, model="gpt-5.6-sol"))
    check_message_stream(answer.events)
    assert live.sandbox.p1.requests[-1].body["reasoning"]["effort"] == "low"
    assert "<summary>" in texts(answer.events)


@pytest.mark.parametrize(
    ("first", "then", "prompt", "noted"),
    [("s", "s", "read it", True), ("s", "other", "read it", False), ("s", "s", "something else", False)],
    ids=["its own", "another session", "another conversation"],
)
async def test_a_removed_offset_is_told_to_its_own_conversation_only(
    live: Live, first: str, then: str, prompt: str, noted: bool
) -> None:
    """The call has the same id everywhere."""
    play(live, {"fault": "read_huge_offset"})
    answer = await live.post(ask("read it", tools=TOOLS), headers={"x-claude-code-session-id": first})
    call = answer.json["content"][-1]
    assert call["type"] == "tool_use" and "offset" not in call["input"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "1\tx"}
    history = [{"role": "user", "content": prompt}, {"role": "assistant", "content": [call]}]
    body = ask([*history, {"role": "user", "content": [result]}], tools=TOOLS)
    assert (await live.post(body, headers={"x-claude-code-session-id": then})).status == 200
    assert ("the requested offset 1300000" in json.dumps(live.sandbox.p1.requests[-1].body)) is noted
