"""The OpenAI-style routes: what is refused, how answers and failures look, and what a session is."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from events import delta, opened
from harness import Answer, Fake, Live, configured, kinds, played, use, watch_often, whole_message, with_live
from openai_live import BOTH, CHAT, P1, P2, P3, RESPONSES, ask_both, body_for, chunks_of, error_of, function
from openai_streams import check_chat_chunks, check_response_events
from samples import each, rows

from proxy.errors import KINDS, UpstreamError
from proxy.observe.lifecycle import Completed, Failed, ProviderSelected, Sequenced, Started

both = pytest.mark.parametrize("path", BOTH)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
Batch = list[dict[str, Any]]


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


# -- the gate


@both
@with_live()
async def test_without_the_switch_the_paths_are_unknown(live: Live, path: str) -> None:
    answer = await ask_both(live, path)
    upgrade = await live.get(path, Upgrade="websocket", Connection="Upgrade")
    assert answer.status == upgrade.status == 404
    assert answer.error == {"type": "not_found", "code": "not_found", "param": None, "message": turned_on_by(path)}


def turned_on_by(path: str) -> str:
    return (
        f"No route for POST {path}; {path} is off: PROXY_P1_RESPONSES_API=1, or p1.responsesApi in config.json,"
        " turns it on at the next start"
    )


async def test_a_websocket_is_refused_at_once(live: Live) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await live.client.ws_connect(live.url + RESPONSES)
    assert refused.value.status == 426
    assert (await live.get(RESPONSES)).status == 405


@both
async def test_the_key_of_the_caller_is_not_looked_at(live: Live, path: str) -> None:
    headers = {"authorization": "Bearer of-somebody-else"}
    assert (await live.post(body_for(path), path, headers)).status == 200
    assert "of-somebody-else" not in live.sandbox.p2.requests[-1].headers["authorization"]


# -- what is refused before anybody is asked


@both
@rows(
    "raw, param, code",
    [
        *((raw, None, "invalid_json") for raw in (b"", b"{")),
        (b"[]", None, None),
        *((raw, "model", None) for raw in (b"{}", b'{"model":7}', b'{"model":""}', b'{"model":"nope"}')),
    ],
)
async def test_the_first_checks(live: Live, path: str, raw: bytes, param: str | None, code: str | None) -> None:
    error = refused(await live.post(raw, path))
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    if b"nope" in raw:
        assert '"nope"' in error["message"] and "kimi-for-coding" in error["message"] and "gpt-5.5" in error["message"]


def refused(answer: Answer) -> dict[str, Any]:
    assert answer.status == 400, answer.raw
    return error_of(answer)


@both
@with_live(openai_routes=True, max_body_bytes=1000)
async def test_a_body_over_the_limit(live: Live, path: str) -> None:
    answer = await ask_both(live, path, "x" * 2000)
    assert answer.status == 413 and error_of(answer)["code"] == "request_too_large"


@both
async def test_a_refused_request_leaves_no_session(live: Live, path: str) -> None:
    headers = {"x-agent-session-id": "s"}
    error = refused(await live.post(body_for(path, temperature=0.5), path, headers))
    assert (error["param"], error["code"]) == ("temperature", "unsupported_parameter")
    assert live.watcher.names == ["Started", "Failed"] and live.sandbox.p2.total_requests == 0
    assert (await live.post(body_for(path, temperature=None), path, headers)).status == 200
    assert Sequenced(1) in live.watcher.last and any(isinstance(event, ProviderSelected) for event in live.watcher.last)
    # a refused request of p1 must not have taken the session's aliases along
    wrong = {"n": 1} if path == CHAT else {"store": True}
    refused(await live.post(body_for(path, model="gpt-5.5", **wrong), path, headers))
    before = live.sandbox.p2.total_requests
    assert (await live.post(body_for(path, model="haiku"), path, headers)).status == 200
    assert live.sandbox.p2.total_requests == before + 1


@pytest.mark.parametrize(
    ("headers", "session"),
    [
        ({}, None),
        ({"x-client-request-id": "c"}, "c"),
        ({"x-client-request-id": "c", "session_id": " s "}, "s"),
        ({"session_id": "s", "x-claude-code-session-id": "real"}, "real"),
        ({"x-claude-code-session-id": "real", "x-agent-session-id": "neutral"}, "neutral"),
        ({"x-agent-session-id": "  ", "session_id": "", "x-client-request-id": "c"}, "c"),
        ({"session-id": "with-a-hyphen"}, None),
    ],
)
async def test_the_session_is_the_first_header_that_says_something(
    live: Live, headers: dict[str, str], session: str | None
) -> None:
    for path in BOTH:
        assert (await live.post(body_for(path), path, headers)).status == 200
        client_id = headers.get("x-client-request-id")
        begun = Started("responses" if path == RESPONSES else "chat_completions", session)
        assert live.watcher.last[0] == replace(begun, client_id=None if client_id == session else client_id)
        assert live.sandbox.p2.requests[-1].body.get("prompt_cache_key") == session


@both
@pytest.mark.parametrize("asked", ["kimi-k2.6[1m]", "kimi-k2.6[1M]"])
async def test_the_hint_of_a_model_name_is_stripped(live: Live, path: str, asked: str) -> None:
    answer = await ask_both(live, path, model=asked)
    assert answer.json["model"] == "kimi-k2.6"


# -- answers


@both
async def test_a_stream_adds_up_to_the_whole_answer(live: Live, path: str) -> None:
    asked = {"tools": [function(path)], "model": "opencode-go/kimi-k2.6"}
    whole = await ask_both(live, path, "use Bash: ls -la", **asked)
    options = {"stream_options": {"include_usage": True}} if path == CHAT else {}
    parts = await ask_both(live, path, "use Bash: ls -la", stream=True, **asked, **options)
    assert parts.headers["content-type"] == "text/event-stream" and parts.headers["cache-control"] == "no-cache"
    added = whole_of(path, parts, include_usage=True)
    if path == CHAT:
        assert added["choices"][0]["finish_reason"] == "tool_calls"
    else:
        assert added["status"] == "completed" and added["tools"] == asked["tools"]
    assert without_ids(added) == without_ids(whole.json)
    assert live.watcher.last[-1] == Completed(200, "tool_use")


def whole_of(path: str, answer: Answer, *, include_usage: bool = False, cut: bool = False) -> dict[str, Any]:
    """What a legal stream of the route adds up to."""
    if path == CHAT:
        return check_chat_chunks(chunks_of(answer), include_usage=include_usage, cut=cut)
    return check_response_events(answer.events, cut=cut) or {}


def without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [without_ids(member) for member in value]
    if isinstance(value, dict):
        changing = ("id", "call_id", "created", "created_at")
        return {key: without_ids(member) for key, member in value.items() if key not in changing}
    return value


async def test_a_tool_in_a_namespace_comes_back_under_its_own_name(live: Live) -> None:
    inner = function(RESPONSES, "spawn", "task")
    asked = {"tools": [{"type": "namespace", "name": "agents", "tools": [inner]}, {"type": "web_search"}]}
    answer = await ask_both(live, RESPONSES, "use agents__spawn: dig", **asked)
    call = answer.json["output"][-1]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "agents", "spawn")
    assert json.loads(call["arguments"]) == {"task": "dig"} and answer.json["tools"] == asked["tools"]
    sent = live.sandbox.p2.requests[-1].body["tools"]
    assert [entry["function"]["name"] for entry in sent] == ["agents__spawn", "web_search"]


@both
@pytest.mark.parametrize("parallel", [None, True, False])
@pytest.mark.parametrize("choice", ["none", "required"])
async def test_choice_parallel_setting_and_effort_reach_the_upstream(
    live: Live, path: str, choice: str, parallel: bool | None
) -> None:
    effort = {"reasoning_effort": "high"} if path == CHAT else {"reasoning": {"effort": "high"}}
    members = {"tools": [function(path)], "tool_choice": choice, "parallel_tool_calls": parallel, **effort}
    assert (await ask_both(live, path, **members)).status == 200
    body = live.sandbox.p2.requests[0].body  # this model bears no forced choice; it is asked again without
    assert (body["tool_choice"], body["thinking"]["effort"]) == (choice, "high")
    assert body.get("parallel_tool_calls") == parallel


@both
@pytest.mark.parametrize(("label", "model"), [("p2", P2), ("p3", P3), ("p4", "opencode-go/gpt-5.6-luna")])
async def test_instructions_of_several_messages_stay_apart(live: Live, path: str, label: str, model: str) -> None:
    said = [{"role": role, "content": f"{role}."} for role in ("system", "developer", "user")]
    members = {"messages": said} if path == CHAT else {"input": said[1:], "instructions": said[0]["content"]}
    assert (await live.post({"model": model, **members}, path)).status == 200
    body = getattr(live.sandbox, label).requests[-1].body
    assert (body.get("instructions") or body["messages"][0]["content"]) == "system.\n\ndeveloper."


# -- failures


@each(2)
@both
@streamed
@rows(
    "kind, status, type_, code",
    [
        ("rate_limit", 429, "rate_limit_error", None),
        ("usage_limit", 429, "rate_limit_error", "insufficient_quota"),
        ("context", 400, "invalid_request_error", "context_length_exceeded"),
        ("overloaded", 503, "api_error", None),
        ("transient", 503, "api_error", None),
        ("transport", 502, "api_error", None),
        ("bad_answer", 502, "api_error", "upstream_protocol_error"),
        ("permission", 403, "permission_error", None),
        ("billing", 402, "permission_error", None),
        ("sign_in", 401, "authentication_error", None),
        ("unprocessable", 422, "invalid_request_error", None),
    ],
)
async def test_a_failure_before_the_first_word_keeps_its_status(
    live: Live, path: str, stream: bool, kind: str, status: int, type_: str, code: str | None
) -> None:
    use(live, Fake("p2", played(UpstreamError("x", kind=kind, retry_after=17))))
    answer = await ask_both(live, path, stream=stream)
    told = error_of(answer)
    assert (answer.status, told["type"], told["code"]) == (status, type_, code)
    assert answer.headers["Retry-After"] == "17"
    assert (answer.headers.get("x-should-retry") == "false") is KINDS[kind].final
    assert live.watcher.last[-1] == Failed(status, "x", kind)


WHOLE = whole_message(P2, "fine")
BEGUN: Batch = WHOLE[:3]
CALL: Batch = [WHOLE[0], opened("tool_use"), delta('{"comm', "input_json_delta")]


CODES = {
    "transport": "server_error",
    "overloaded": "server_error",
    "sign_in": "server_error",
    "rate_limit": "rate_limit_exceeded",
    "context": "context_length_exceeded",
    "usage_limit": "insufficient_quota",
    "invalid_request": "invalid_prompt",
}


@pytest.mark.parametrize("kind", CODES)
async def test_a_responses_stream_that_breaks_ends_as_failed(live: Live, kind: str) -> None:
    error = UpstreamError("it broke", kind=kind, retry_after=7, code="server_is_overloaded")
    use(live, Fake("p2", played(BEGUN, error)))
    events = (await ask_both(live, RESPONSES, stream=True)).events
    check_response_events(events)
    last = events[-1]["response"]
    assert kinds(events)[-1] == "response.failed" and last["status"] == "failed"
    words = "try again in 7s" if kind == "rate_limit" else "it broke"
    assert last["error"]["code"] == CODES[kind] and words in last["error"]["message"]
    assert isinstance(live.watcher.last[-1], Failed) and live.watcher.last[-1].status == 200


async def test_a_chat_stream_that_breaks_ends_with_an_error_chunk(live: Live) -> None:
    use(live, Fake("p2", played(BEGUN, UpstreamError("it broke", kind="overloaded", provider="p2"))))
    answer = await ask_both(live, CHAT, stream=True)
    *chunks, last = chunks_of(answer)
    assert chunks[1]["choices"][0]["delta"] == {"content": "fine"}
    members = {"type": "api_error", "param": None, "code": None, "provider": "p2"}
    assert last == {"error": {"message": "it broke", **members}}
    assert not any(chunk["choices"][0]["finish_reason"] for chunk in chunks)


@both
@streamed
async def test_an_answer_without_an_end_is_never_a_whole_one(live: Live, path: str, stream: bool) -> None:
    use(live, Fake("p2", played(BEGUN)))
    answer = await ask_both(live, path, stream=stream)
    if not stream:
        assert answer.status == 502 and error_of(answer)["code"] == "upstream_protocol_error"
    elif path == CHAT:
        assert chunks_of(answer)[-1]["error"]["code"] == "upstream_protocol_error"
    else:
        assert kinds(answer.events)[-1] == "response.failed"


@both
@streamed
async def test_a_call_that_the_token_limit_cut_is_an_incomplete_answer(live: Live, path: str, stream: bool) -> None:
    end = {"stop_reason": "max_tokens", "stop_sequence": None}
    usage = {"input_tokens": 3, "output_tokens": 9}
    last = [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
    use(live, Fake("p2", played(CALL, last)))
    answer = await ask_both(live, path, stream=stream)
    assert answer.status == 200 and live.watcher.last[-1] == Completed(200, "max_tokens")
    whole = whole_of(path, answer, cut=True) if stream else answer.json
    if path == CHAT:
        assert whole["choices"][0]["finish_reason"] == "length"
        return
    assert whole["status"] == "incomplete" and whole["incomplete_details"] == {"reason": "max_output_tokens"}
    assert whole["output"][-1]["status"] == "incomplete" and whole["usage"]["output_tokens"] == 9


# -- silence and leaving


@pytest.mark.parametrize(
    ("path", "sign"), [(CHAT, b": keepalive\n\n"), (RESPONSES, b'event: keepalive\ndata: {"type":"keepalive"')]
)
@with_live(openai_routes=True, tuning=(watch_often(keepalive=0.03),))
async def test_a_silence_is_filled_in_the_form_of_the_route(live: Live, path: str, sign: bytes) -> None:
    use(live, Fake("p2", played(BEGUN, 0.3, WHOLE[3:])))
    answer = await ask_both(live, path, stream=True)
    assert answer.raw.count(sign) >= 2
    whole_of(path, answer)


@with_live(openai_routes=True, stream_grace_ms=10, tuning=(watch_often(),))
async def test_after_the_grace_a_response_is_announced(live: Live) -> None:
    more = asyncio.Event()
    use(live, Fake("p2", played(WHOLE[:1], more, WHOLE[1:])))
    async with live.client.post(live.url + RESPONSES, json=body_for(RESPONSES, stream=True)) as response:
        first = await response.content.readany()
        assert b"response.created" in first and b"response.in_progress" in first
        more.set()
        assert b"response.completed" in await response.content.read()


# -- p1's chat


async def test_p1_has_its_own_list_of_chat_fields_and_keeps_the_order_of_instructions(live: Live) -> None:
    roles = ("system", "user", "assistant", "developer", "user")
    asked = {"model": P1, "messages": [{"role": role, "content": f"{role} says"} for role in roles]}
    answer = await live.post({**asked, "temperature": 0.5, "user": "me", "max_tokens": None}, CHAT)
    assert answer.status == 200, answer.raw
    body = live.sandbox.p1.requests[-1].body
    assert "temperature" not in body and "user" not in body and body["reasoning"]["effort"] == "medium"
    assert [item["role"] for item in body["input"]] == ["developer", "user", "assistant", "developer", "user"]
    error = error_of(await ask_both(live, CHAT, model=P1, max_tokens=5))
    assert (error["param"], error["code"]) == ("max_tokens", "unsupported_parameter")


async def test_forced_settings_of_p1_come_first_on_chat(live: Live) -> None:
    live.config = configured(live.config, p1_effort="high", p1_model="gpt-5.4")
    await ask_both(live, CHAT, model=P1, reasoning_effort="low")
    body = live.sandbox.p1.requests[-1].body
    assert (body["reasoning"]["effort"], body["model"]) == ("high", "gpt-5.4")
