"""P1's native Responses route: what is sent, what is passed on, and how a broken answer looks."""

from __future__ import annotations

import json
import socket
from typing import Any

import aiohttp
import pytest
from harness import Answer, Live, kinds, raw_request, until, with_live
from openai_live import P1, RESPONSES, ask_both, body_for, error_of, function
from openai_streams import check_response_events
from samples import each, rows

from proxy.observe.lifecycle import Abandoned, Completed, Failed, ProviderSelected, UsageUpdated
from proxy.providers.upstream.transport import HttpTimers
from proxy.server.request.state import StreamTimers

LITE = "x-openai-internal-codex-responses-lite"
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
TOOL = function(RESPONSES)
CUSTOM = {"type": "custom", "name": "patch"}
SPACE = {"type": "namespace", "name": "more", "description": "", "tools": [{**TOOL, "name": "Read"}]}


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"openai_routes": True}


def sent(live: Live) -> Any:
    return live.sandbox.p1.requests[-1]


async def answered(live: Live, *steps: dict[str, Any], stream: bool = False, **members: Any) -> Answer:
    """The answer of the route while the upstream plays these steps."""
    live.sandbox.p1.script.extend(steps)
    return await ask_both(live, RESPONSES, model=P1, **({"stream": True} if stream else {}), **members)


def plays(*events: Any, **more: Any) -> dict[str, Any]:
    return {"events": list(events), **more}


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "r", **response}}


async def test_what_the_backend_insists_on(live: Live) -> None:
    answer = await ask_both(live, RESPONSES, "hello", model="gpt-5.5")
    assert answer.status == 200
    assert sent(live).body == {"model": "gpt-5.5", "input": [USER], "stream": True, "store": False, "instructions": ""}
    assert LITE not in sent(live).headers and sent(live).headers["accept"] == "text/event-stream"


async def test_everything_else_is_passed_on_as_it_is(live: Live) -> None:
    tools = {"tools": [function(RESPONSES)], "tool_choice": "auto", "parallel_tool_calls": True}
    thoughts = {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
    others = {"prompt_cache_key": "key", "client_metadata": {"thread": "t"}, "text": {"verbosity": "low"}}
    asked = {"model": "gpt-5.5", "input": [USER], "instructions": "Be brief.", "store": False, "stream": True}
    asked |= tools | thoughts | others
    answer = await live.post(asked, RESPONSES)
    assert answer.status == 200, answer.raw
    assert sent(live).body == asked
    assert ProviderSelected("p1", "gpt-5.5", "high") in live.watcher.last


async def test_a_long_cache_key_is_hashed(live: Live) -> None:
    keys = []
    for key in ("k" * 65, "k" * 65, "k" * 64):
        body = {"model": "gpt-5.5", "input": [USER], "prompt_cache_key": key}
        assert (await live.post(body, RESPONSES)).status == 200
        keys.append(sent(live).body["prompt_cache_key"])
    assert keys[0] == keys[1] != keys[2] == "k" * 64 and len(keys[0]) == 64


@pytest.mark.parametrize(
    ("asked", "model", "tier", "lite"),
    [
        ({"model": "gpt-5.6-sol"}, "gpt-5.6-sol", None, True),
        ({"model": "gpt-5.6-sol-fast[1m]"}, "gpt-5.6-sol", "priority", True),
        ({"model": "gpt-5.6-sol-fast", "service_tier": "flex"}, "gpt-5.6-sol", "flex", True),
        ({"model": "haiku"}, "gpt-5.6-luna", None, True),
        ({"model": "gpt-5.6-luna-fast", "tools": [{"type": "web_search"}]}, "gpt-5.6-sol", "priority", False),
        ({"model": "gpt-6-luna", "tools": [{"type": "web_search_preview"}]}, "gpt-6-sol", None, False),
        ({"model": "gpt-5.6-luna", "instructions": "x", "tools": [TOOL]}, "gpt-5.6-luna", None, True),
        ({"model": "gpt-5.6-luna", "instructions": "", "tools": None}, "gpt-5.6-luna", None, True),
        ({"model": "gpt-5.6-terra", "tools": [TOOL, CUSTOM, SPACE]}, "gpt-5.6-terra", None, True),
        ({"model": "gpt-5.6-terra", "tools": [TOOL, {"type": "web_search"}]}, "gpt-5.6-terra", None, False),
        ({"model": "gpt-5.6-terra", "tools": [{"type": "image_generation"}]}, "gpt-5.6-terra", None, False),
        ({"model": "gpt-5.6-terra", "tools": [TOOL], "parallel_tool_calls": True}, "gpt-5.6-terra", None, False),
        ({"model": "gpt-5.6-terra", "parallel_tool_calls": False, "tools": []}, "gpt-5.6-terra", None, True),
    ],
)
async def test_model_tier_and_lane(live: Live, asked: dict[str, Any], model: str, tier: str | None, lite: bool) -> None:
    answer = await live.post({"input": [USER], **asked}, RESPONSES)
    assert answer.status == 200, answer.raw
    body = sent(live).body
    assert (body["model"], body.get("service_tier")) == (model, tier)
    assert (sent(live).headers.get(LITE) == "true") is lite
    assert ("instructions" in body) is not lite
    swapped = "luna" in asked["model"] and not lite
    assert answer.headers.get("x-model-proxy-served") == (model if swapped else None)
    assert bool(live.notes.all("model_stood_in")) is swapped


async def test_a_body_is_fitted_into_the_lite_lane(live: Live) -> None:
    """As the Messages route does it. What the caller put into the input stays behind it, in its order."""
    asked = {"model": "gpt-5.6-luna", "instructions": "Be brief.", "tools": [TOOL], "tool_choice": "auto"}
    answer = await live.post({**asked, "input": "hello"}, RESPONSES)
    assert answer.status == 200, answer.raw
    developer = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    assert sent(live).body == {
        "model": "gpt-5.6-luna",
        "input": [{"type": "additional_tools", "role": "developer", "tools": [TOOL]}, developer, USER],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "stream": True,
        "store": False,
    }


@rows(
    "members, param",
    [
        ({"parallel_tool_calls": True}, "requires `parallel_tool_calls` to be false"),
        ({"tools": [{"type": "image_generation"}]}, "Unsupported tool type: image_generation"),
        ({"instructions": ["x"]}, "does not support `instructions`"),
        ({"input": None, "instructions": "x"}, "Input must be a list"),
        ({"input": [], "instructions": "x"}, "Missing required parameter: 'input'."),
    ],
)
async def test_what_does_not_fit_is_for_the_backend_to_refuse(live: Live, members: Any, param: str) -> None:
    """Nothing that was said is changed: the model that has the lite lane alone stays, with the words of the backend."""
    answer = await live.post({"model": "gpt-5.6-luna", "input": [USER], **members}, RESPONSES)
    assert answer.status == 400 and param in error_of(answer)["message"], answer.raw
    assert sent(live).body["model"] == "gpt-5.6-luna"


@with_live(openai_routes=True, p1_model="gpt-5.4", p1_effort="high", p1_service_tier="fast")
async def test_no_setting_replaces_what_a_native_body_says(live: Live) -> None:
    await ask_both(live, RESPONSES, model="gpt-5.5")
    body = sent(live).body
    assert body["model"] == "gpt-5.5" and "reasoning" not in body and "service_tier" not in body


async def test_the_session_goes_with_it(live: Live) -> None:
    await live.post(body_for(RESPONSES, model=P1), RESPONSES, {"x-client-request-id": "thread-1"})
    headers = sent(live).headers
    assert headers["session-id"] == headers["x-client-request-id"] == "thread-1"
    assert "session_id" not in headers


async def test_reasoning_of_another_provider_is_left_out(live: Live) -> None:
    """The backend keeps nothing, so it would not find an item that is only named."""
    hollow = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
    answer = await live.post({"model": P1, "input": [USER, hollow, USER]}, RESPONSES)
    assert answer.status == 200, answer.raw
    assert sent(live).body["input"] == [USER, USER]


@pytest.mark.parametrize("members", [{"store": True}, {"model": "opus-fast"}], ids=["store", "model"])
async def test_what_is_refused_here(live: Live, members: dict[str, Any]) -> None:
    answer = await ask_both(live, RESPONSES, **{"model": P1, **members})
    error = error_of(answer)
    assert (answer.status, error["param"], error["code"]) == (400, next(iter(members)), None)
    assert live.sandbox.p1.total_requests == 0


async def test_a_stream_is_passed_on_byte_by_byte(live: Live) -> None:
    events = b'event: response.created\ndata: {"type":"response.created"}\n\n: a comment\n\ndata: nonsense\n\n'
    end = b'data: {"type":"response.completed","response":{"id":"r","usage":{"input_tokens":7,"output_tokens":2}}}\n\n'
    answer = await answered(live, plays({"raw": (events + end).decode()}), stream=True)
    assert answer.raw == events + end
    assert UsageUpdated(7, 2, 0) in live.watcher.last and live.watcher.last[-1] == Completed(200)


async def test_a_whole_answer_is_what_the_stream_says(live: Live) -> None:
    asked = {"model": P1, "tools": [function(RESPONSES)]}
    whole = await ask_both(live, RESPONSES, "use Bash: ls", **asked)
    streamed = await ask_both(live, RESPONSES, "use Bash: ls", stream=True, **asked)
    assert whole.headers["content-type"].startswith("application/json")
    response = check_response_events(streamed.events) or {}
    assert whole.json["status"] == response["status"] == "completed"
    assert [item["type"] for item in whole.json["output"]] == [item["type"] for item in response["output"]]
    call = whole.json["output"][-1]
    assert (call["name"], json.loads(call["arguments"])) == ("Bash", {"command": "ls"})


def done(index: int | None, ident: str) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.done", **place, "item": {"type": "message", "id": ident}}


@rows(
    "done_items, output, ids",
    [
        ([(None, "c"), (1, "b"), (0, "a")], [], ["a", "b", "c"]),
        ([(1, "b"), (0, "a")], [{"type": "message"}, {"id": "own"}], ["a", "own"]),
    ],
)
async def test_items_come_from_the_stream_when_the_last_event_has_none(
    live: Live, done_items: Any, output: Any, ids: list[str]
) -> None:
    answer = await answered(live, plays(*[done(*item) for item in done_items], completed(output=output)))
    assert [item["id"] for item in answer.json["output"]] == ids


STANDARD = {"message": "Unknown parameter: 'x'.", "type": "invalid_request_error", "param": "x", "code": None}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_error_of_the_upstream_is_passed_on_as_it_is(live: Live, stream: bool) -> None:
    headers = {"x-request-id": "up", "retry-after": "31", "x-ratelimit-left": "0"}
    dropped = {"set-cookie": "a=b", "x-codex-x": "y"}
    step = {"status": 400, "headers": headers | dropped, "body": json.dumps({"error": STANDARD}, indent=1)}
    answer = await answered(live, step, stream=stream)
    assert answer.status == 400 and answer.raw.decode() == step["body"]
    assert headers.items() <= {name.lower(): value for name, value in answer.headers.items()}.items()
    assert answer.headers["request-id"] and not dropped.keys() & {name.lower() for name in answer.headers}
    assert live.sandbox.p1.total_requests == 1
    assert isinstance(live.watcher.last[-1], Failed) and live.watcher.last[-1].status == 400


#: Status and body of the upstream -> type, param, code, and words of the error.
INVALID = "invalid_request_error"
BODIES: list[tuple[int, Any, str, str | None, str | None, str]] = [
    (400, {"detail": "Unsupported parameter: user"}, INVALID, "user", "unsupported_parameter", "Unsupported parameter"),
    (400, {"detail": "Store must be set to false"}, INVALID, "store", None, "Store must be"),
    (
        400,
        {"detail": "The 'gpt-9' model is not supported when using Codex"},
        INVALID,
        "model",
        "model_not_found",
        "gpt-9",
    ),
    (404, {"detail": "Model not found gpt-5.6-luna"}, INVALID, "model", "model_not_found", "gpt-5.6-luna"),
    (
        400,
        {"message": "Missing required parameter: 'input[0].role'."},
        INVALID,
        "input[0].role",
        "missing_required_parameter",
        "role",
    ),
    (
        422,
        {"detail": [{"loc": ["body", "input", 0], "msg": "Field required"}]},
        INVALID,
        "input[0]",
        None,
        "Field required",
    ),
    (
        400,
        {"detail": {"code": "no_plan", "message": "No plan", "param": "model"}},
        INVALID,
        "model",
        "no_plan",
        "No plan",
    ),
    (400, {"detail": {"code": "no_plan"}}, INVALID, None, "no_plan", "no_plan"),
    (400, "upstream connect error", INVALID, None, None, "upstream connect error"),
    (403, {"detail": "Access denied"}, "permission_error", None, None, "Access denied"),
    (413, {"detail": "too much"}, INVALID, None, "context_length_exceeded", "context window"),
    (502, "<html><h1>Bad Gateway</h1></html>", "api_error", None, None, "502"),
    (400, "", INVALID, None, None, "400"),
    (400, {"error": {"message": " ", "code": "x"}}, INVALID, None, "x", "rror"),
    (400, {"error": {"message": "boom", "code": "x"}}, INVALID, None, "x", "boom"),  # no type
    (503, {"error": {"message": "<html>Bad</html>", "type": "x"}}, "api_error", None, None, "503"),
    (400, [], INVALID, None, None, "400"),
]


@each(1)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("status", "body", "kind", "param", "code", "words"), BODIES)
async def test_any_other_error_is_put_into_the_standard_form(
    live: Live, status: int, body: Any, kind: str, param: str | None, code: str | None, words: str, stream: bool
) -> None:
    """The OpenAI SDK prints nothing of any other. The status is the upstream's."""
    answer = await answered(live, {"status": status, "body": body, "headers": {"retry-after": "7"}}, stream=stream)
    error = error_of(answer)
    assert (answer.status, error["type"], error["param"], error["code"]) == (status, kind, param, code), answer.raw
    assert words in error["message"] and "<html" not in error["message"]
    assert answer.headers["content-type"].startswith("application/json") and answer.headers["retry-after"] == "7"
    assert live.sandbox.p1.total_requests == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_rate_limit_is_waited_for(live: Live, stream: bool) -> None:
    """Before any byte. A wait that is too long is left to the client, and so is a limit that stays."""
    answer = await answered(live, {"fault": "rate_limit", "seconds": 2}, stream=stream)
    assert (answer.status, live.sandbox.p1.total_requests) == (200, 2)
    assert live.sleeps == [2]
    answer = await answered(live, {"fault": "rate_limit", "seconds": 31}, stream=stream)
    assert (answer.status, answer.headers["retry-after"], live.sandbox.p1.total_requests) == (429, "31", 3)
    answer = await answered(live, {"fault": "usage_limit"}, stream=stream)
    assert (answer.status, answer.headers["x-should-retry"], live.sandbox.p1.total_requests) == (429, "false", 4)


async def test_a_rate_limit_that_stays_is_told(live: Live) -> None:
    answer = await answered(live, {"status": 429, "times": None, "body": {"detail": "Slow down"}})
    error = error_of(answer)
    assert (answer.status, error["type"], error["message"]) == (429, "rate_limit_error", "Slow down")
    assert live.sandbox.p1.total_requests == 4


async def test_a_rate_limit_inside_an_answer_that_nobody_has_seen(live: Live) -> None:
    failed = {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow"}}}
    assert (await answered(live, plays(failed))).status == 200
    assert live.sandbox.p1.total_requests == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_json_in_place_of_a_stream_is_the_answer(live: Live, stream: bool) -> None:
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    response = {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": {"input_tokens": 7}}
    answer = await answered(live, {"status": 200, "body": response}, stream=stream)
    assert answer.status == 200
    if stream:
        assert kinds(answer.events) == ["response.output_item.done", "response.completed"]
        assert answer.headers["content-type"].startswith("text/event-stream")
    found = answer.events[-1]["response"] if stream else answer.json
    assert found == response and UsageUpdated(7, 0, 0) in live.watcher.last


@rows("stream", [False, True])
@rows(
    "body, status, words",
    [
        ({"error": {"code": "context_length_exceeded", "message": "too long"}}, 400, "too long"),
        ({"error": {"type": "invalid_request_error", "message": "odd"}}, 400, "odd"),
        (
            {"id": "r", "status": "failed", "error": {"code": "invalid_prompt", "message": "no"}, "output": []},
            400,
            "no",
        ),
        ({"detail": "Bad"}, 500, "Bad"),
    ],
)
async def test_an_error_with_status_200_is_an_error(
    live: Live, body: Any, status: int, words: str, stream: bool
) -> None:
    answer = await answered(live, {"status": 200, "body": body}, stream=stream)
    assert answer.status == status and words in error_of(answer)["message"], answer.raw


async def test_a_redirect_is_not_followed(live: Live) -> None:
    answer = await answered(live, {"status": 307, "headers": {"location": "http://127.0.0.1:9"}, "body": ""})
    assert (answer.status, error_of(answer)["type"]) == (502, "api_error")


async def test_a_refused_token_is_renewed_once(live: Live) -> None:
    assert (await answered(live, {"fault": "unauthorized"})).status == 200
    assert live.sandbox.p1.total_requests == 2
    assert (await answered(live, {"fault": "unauthorized", "times": None})).status == 401
    assert live.sandbox.p1.total_requests == 4


@pytest.mark.parametrize("step", [{"fault": "cut_frame"}, plays(done(0, "abandoned"))], ids=["cut", "end"])
async def test_a_cut_stream_is_cut_here_too(live: Live, step: dict[str, Any]) -> None:
    """Nothing is made up, and the body must not look complete: clients repeat what broke off."""
    with pytest.raises(aiohttp.ClientPayloadError):
        await answered(live, step, stream=True)
    assert isinstance(live.watcher.last[-1], Failed)
    assert not live.notes.all("internal_error")


@pytest.mark.parametrize("step", [{"fault": "cut_frame"}, plays(done(0, "abandoned"))], ids=["cut", "end"])
async def test_a_cut_answer_that_is_not_streamed_is_asked_for_again(live: Live, step: dict[str, Any]) -> None:
    """Nobody has seen anything of it. One that is always cut is an error."""
    answer = await answered(live, step)
    assert answer.status == 200 and "abandoned" not in answer.raw.decode() and live.sleeps == [1.5]
    answer = await answered(live, {**step, "times": 4})
    assert answer.status == 502 and error_of(answer)["type"] == "api_error"
    assert live.sandbox.p1.total_requests == 6


@rows(
    "frame, status, words",
    [
        ('event: error\ndata: {"type": "invalid_request_error", "message": "boom"}\n\n', 400, "boom"),
        ("event: error\ndata: boom\n\n", 500, "boom"),
        ('data: {"error": {"code": 403, "message": "boom"}}\n\n', 403, "boom"),
    ],
)
async def test_an_error_that_only_its_name_tells(live: Live, frame: str, status: int, words: str) -> None:
    step = plays({"type": "response.created"}, {"raw": frame})
    answer = await answered(live, step)
    assert (answer.status, error_of(answer)["message"]) == (status, words)
    assert frame in (await answered(live, step, stream=True)).raw.decode()


@pytest.mark.parametrize("data", ["not json", '{"half":', "5", "[]", "null"])
@pytest.mark.parametrize("repeats", [True, False], ids=["repeated", "not repeated"])
async def test_an_item_that_cannot_be_read_is_missing(live: Live, data: str, repeats: bool) -> None:
    """Unless the last event repeats all of them."""
    step = plays({"raw": f"data: {data}\n\n"}, done(1, "b"), completed(output=[{"id": "b"}] if repeats else []))
    live.sandbox.p1.script.extend([step] * 3)
    answer = await answered(live, step)
    if repeats:
        assert answer.json["output"] == [{"id": "b"}]
    else:
        assert answer.status == 502 and "not a JSON object" in error_of(answer)["message"]


@rows("data", ["[DONE]", "", " "])
async def test_what_is_no_event_is_not_missed(live: Live, data: str) -> None:
    step = plays({"raw": f": quiet\n\ndata: {data}\n\n"}, done(1, "b"), completed(output=[]))
    assert [item["id"] for item in (await answered(live, step)).json["output"]] == ["b"]


async def test_a_failure_event_is_relayed_or_becomes_a_status(live: Live) -> None:
    reason = {"code": "context_length_exceeded", "message": "too long"}
    step = plays({"type": "response.failed", "response": {"error": reason}})
    answer = await answered(live, step)
    error = error_of(answer)
    assert (answer.status, error["code"]) == (400, "context_length_exceeded") and "too long" in error["message"]
    streamed = await answered(live, step, stream=True)
    assert kinds(streamed.events) == ["response.failed"]
    assert isinstance(live.watcher.last[-1], Failed) and live.watcher.last[-1].status == 200


async def test_an_event_of_no_type_disturbs_nobody(live: Live) -> None:
    odd = {"raw": 'event: response.completed\ndata: {"type":["x"]}\n\n'}
    step = plays(odd, completed(output=[]))
    assert (await answered(live, step)).json["id"] == "r"
    assert (await answered(live, step, stream=True)).raw.count(b"data: ") == 2
    assert not live.notes.all("internal_error")


@pytest.mark.parametrize("then", ["stall", "cut", "reset"])
@with_live(openai_routes=True, tuning=(HttpTimers(after_end=0.05),))
async def test_behind_the_last_event_nobody_waits(live: Live, then: str) -> None:
    assert kinds((await answered(live, plays(completed(), then=then), stream=True)).events) == ["response.completed"]
    assert live.watcher.last[-1] == Completed(200)


@with_live(openai_routes=True, tuning=(StreamTimers(stall=0.2),))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_that_reads_nothing_is_given_up(live: Live, stream: bool) -> None:
    item = {"type": "response.output_item.done", "item": {"type": "message", "id": "m", "text": "x" * 4_000_000}}
    live.sandbox.p1.script.extend([plays(item, item, item, item, completed(output=[]))])
    body = json.dumps(body_for(RESPONSES, model=P1, stream=stream)).encode()
    with socket.create_connection(("127.0.0.1", live.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(raw_request(f"POST {RESPONSES}", body=body).replace(b" HTTP/1.1", b" HTTP/1.0", 1))
        await until(lambda: live.watcher.told and isinstance(live.watcher.last[-1], Abandoned), 5)
        with pytest.raises(ConnectionResetError):  # to HTTP/1.0 a connection that is closed would be a whole answer
            while client.recv(1 << 20):
                pass
    assert not live.notes.all("internal_error")
    await live.sandbox.p1.idle()


@with_live(openai_routes=True)
@pytest.mark.parametrize(("status", "expected"), [(500, 503), (401, 401)])
async def test_a_renewal_that_fails_is_told_and_not_the_refusal_before_it(
    live: Live, status: int, expected: int
) -> None:
    live.sandbox.p1.revoke_access()
    body = {"error": {"message": "no", "code": "refresh_token_reused"}}
    live.sandbox.p1.issuer.answer_with(status, body, times=None)
    answer = await ask_both(live, RESPONSES, model=P1)
    assert answer.status == expected
    assert status == 401 or "try again later" in answer.raw.decode().lower()
