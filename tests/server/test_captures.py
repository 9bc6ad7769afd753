"""Who tells a capture what: every provider, route and transport, every end."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from harness import Answer, Live, ask, configured, until, watch_often
from openai_live import BOTH, CHAT, RESPONSES, body_for
from samples import each
from stations import Recorded, RecordedRequest
from wires import BODY_WIRES, PICTURE, WIRES, Wire

from proxy.config import Config
from proxy.sandbox import Sandbox

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
SESSION = {"x-claude-code-session-id": "s1"}
P1 = (Wire("p1", "http", "gpt-5.5"), Wire("p1", "websocket", "gpt-5.5"))
MEDIA_ROUTES = {"image_routes": True, "transcription_route": True}
KINDS = {MESSAGES: "messages", COUNT: "count_tokens", CHAT: "chat_completions", RESPONSES: "responses"}
#: What comes of an attempt that is answered, by the transport.
ANSWERED = {"http": "http 200 data", "websocket": "websocket 101 events", "connect": "connect 200 events sent"}


@pytest.fixture
def live_options(recorded: Recorded) -> dict[str, Any]:
    return {"captures": recorded, "openai_routes": True, **MEDIA_ROUTES, "tuning": (watch_often(),)}


def body_of(path: str, model: str, prompt: str = "hello", **members: Any) -> dict[str, Any]:
    return body_for(path, prompt, model, **members) if path in BOTH else ask(prompt, model=model, **members)


def transport(wire: Wire, path: str) -> str:
    """What an answer of this wire comes over."""
    if wire.traits.run:
        return "connect"
    return "websocket" if wire.kind == "websocket" and path != RESPONSES else "http"


def over(wire: Wire, live: Live) -> None:
    """P1 over the transport of the wire."""
    if wire.label == "p1":
        live.config = configured(live.config, p1_transport=wire.kind)


async def posted(live: Live, recorded: Recorded, path: str, body: Any) -> tuple[bytes, Answer]:
    """A request as it is sent, and its answer; the request is over."""
    data = body if isinstance(body, bytes) else json.dumps(body, indent=1).encode()
    answer = await live.post(data, f"{path}?beta=true", headers=SESSION)
    await until(lambda: all(request.ends for request in recorded.requests))
    return data, answer


def check_begun(recorded: RecordedRequest, wire: Wire, path: str, data: bytes, model: str) -> None:
    begun = recorded.begun
    assert (begun.kind, begun.provider, begun.requested) == (KINDS[path], wire.label, model)
    assert (begun.method, begun.path, begun.query) == ("POST", path, "beta=true")
    assert (begun.session, begun.number, begun.headers["X-Claude-Code-Session-Id"]) == ("s1", 1, "s1")
    assert begun.body == data and begun.model


@each(2, lambda wire, path, stream: [transport(wire, path), path, stream, wire.label])
@pytest.mark.parametrize("wire", [*P1, *WIRES], ids=str)
@pytest.mark.parametrize("path", [MESSAGES, *BOTH])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "folded"])
async def test_an_answer_is_told_from_both_ends(
    live: Live, recorded: Recorded, wire: Wire, path: str, stream: bool
) -> None:
    over(wire, live)
    data, answer = await posted(live, recorded, path, body_of(path, wire.model, stream=stream))
    assert answer.status == 200
    (request,) = recorded.requests
    check_begun(request, wire, path, data, wire.model)
    assert request.way == f"{ANSWERED[transport(wire, path)]} {'streamed' if stream else 'replied'} completed:200"
    assert request.raw == answer.raw and request.ends == [("completed", 200, None)]
    converted = request.begun.converted
    native = path == MESSAGES or (wire.label == "p1" and path == RESPONSES)
    assert (converted is None) == native and (native or "hello" in str(converted["messages"]))  # type: ignore[index]


@pytest.mark.parametrize("wire", [*P1, *BODY_WIRES], ids=str)
async def test_an_attempt_is_told_as_it_is_sent(live: Live, recorded: Recorded, wire: Wire) -> None:
    over(wire, live)
    await posted(live, recorded, MESSAGES, body_of(MESSAGES, wire.model))
    (attempt,) = recorded.last.attempts
    sent = live.sandbox[wire.label].requests[-1]
    assert isinstance(attempt.body, bytes) and json.loads(attempt.body) == sent.body
    assert attempt.headers.items() <= {**sent.headers, **attempt.headers}.items() and attempt.details["number"] == 1
    lower = {name.lower(): value for name, value in sent.headers.items()}
    assert all(lower[name.lower()] == value for name, value in attempt.headers.items())
    if attempt.transport == "http":
        assert (attempt.method, attempt.url.partition("://")[0]) == ("POST", "http")
        assert b"hello" in b"".join(attempt.chunks)  # the sandbox repeats a prompt that it does not know
    else:
        assert (attempt.method, attempt.url.partition("://")[0]) == ("GET", "ws")
        assert [event["type"] for event in attempt.said][-1] == "response.completed"


@pytest.mark.parametrize("wire", [P1[0], *WIRES], ids=str)
async def test_a_count_has_no_upstream(live: Live, recorded: Recorded, wire: Wire) -> None:
    data, answer = await posted(live, recorded, COUNT, body_of(COUNT, wire.model))
    check_begun(recorded.last, wire, COUNT, data, wire.model)
    assert recorded.last.way == "replied completed:200" and recorded.last.raw == answer.raw


# -- failures

#: name -> (step of the sandbox, the way streamed, the way folded); `{busy}` is the status of a service with too much to
#: do, `{down}` what tells of the answer.
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "busy once": ({"fault": "overloaded"}, *["http {busy} refused failed http 200 data {down} completed:200"] * 2),
    "refused": ({"fault": "forbidden"}, *["http 403 refused failed replied failed:403"] * 2),
    "token refused once": (
        {"status": 401},
        *["http 401 refused failed http 200 data {down} completed:200"] * 2,
    ),
    "cut before output": (
        {"fault": "cut_before_output"},
        *["http 200 data failed http 200 data {down} completed:200"] * 2,
    ),
    "cut": (
        {"fault": "cut_text"},
        "http 200 data streamed failed failed:200",
        "http 200 data failed http 200 data replied completed:200",
    ),
    "redirected": ({"fault": "redirect"}, *["http 302 failed replied failed:502"] * 2),
}
#: P4 has a key, which cannot be renewed.
KEYED = "http 401 refused failed replied failed:401"


@each(1, lambda wire, name, stream: [(name, stream), (name, wire.label == "p1"), wire.name])
@pytest.mark.parametrize("wire", [P1[0], *BODY_WIRES], ids=str)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "folded"])
async def test_a_failed_attempt_is_captured(
    live: Live, recorded: Recorded, wire: Wire, name: str, stream: bool
) -> None:
    step, streamed, folded = FAULTS[name]
    live.sandbox[wire.label].script.extend([{"provider": wire.label, **step}])
    _, answer = await posted(live, recorded, MESSAGES, body_of(MESSAGES, wire.model, stream=stream))
    way = KEYED if (name, wire.label) == ("token refused once", "p4") else streamed if stream else folded
    busy = 503 if wire.label == "p1" else 529
    assert recorded.last.way == way.format(busy=busy, down="streamed" if stream else "replied")
    assert recorded.last.raw == answer.raw and all(words for one in recorded.last.attempts for words in one.failures)
    assert [one.details["number"] for one in recorded.last.attempts] == list(range(1, len(recorded.last.attempts) + 1))


@pytest.mark.parametrize("wire", [P1[0], *WIRES], ids=str)
async def test_no_connection_is_captured(live: Live, recorded: Recorded, wire: Wire) -> None:
    live.config = configured(live.config, **{f"{wire.label}_base_url": "http://127.0.0.1:9"})
    await posted(live, recorded, MESSAGES, ask(model=wire.model))
    attempts = 1 if wire.traits.run else 4
    assert recorded.last.way == f"{transport(wire, MESSAGES)} failed " * attempts + "replied failed:502"
    assert all("cannot reach the upstream" in one.failures[0] for one in recorded.last.attempts)


@each(1)
@pytest.mark.parametrize("wire", [P1[0], *WIRES], ids=str)
@pytest.mark.parametrize("path", [MESSAGES, *BOTH])
async def test_without_a_login_there_is_no_attempt(
    sandbox: Sandbox, tmp_path: Path, recorded: Recorded, wire: Wire, path: str
) -> None:
    name, value = wire.traits.signed_out
    async with Live(sandbox, tmp_path, captures=recorded, openai_routes=True, **{name: value}) as live:
        data, answer = await posted(live, recorded, path, body_of(path, wire.model))
    check_begun(recorded.last, wire, path, data, wire.model)
    assert recorded.last.way == "replied failed:401" and recorded.last.raw == answer.raw


@each(1)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "folded"])
@pytest.mark.parametrize("wire", [*P1, *WIRES], ids=str)
async def test_a_client_that_leaves_is_captured(live: Live, recorded: Recorded, wire: Wire, stream: bool) -> None:
    over(wire, live)
    paused = {"events": [{"type": "text_delta", "text": "Hi"}, {"pause_s": 20}]}
    step = paused if wire.traits.run else {"fault": "silence_mid_text", "seconds": 20}
    live.sandbox[wire.label].script.extend([{"provider": wire.label, **step}])
    asking = asyncio.create_task(live.post(ask(model=wire.model, stream=stream)))
    came = "streamed" if stream else ANSWERED[transport(wire, MESSAGES)].split()[2]
    await until(lambda: recorded.requests and came in recorded.last.way)
    asking.cancel()
    await until(lambda: recorded.last.ends)
    ending = "abandoned:200" if stream else "abandoned:None"
    assert recorded.last.way.endswith(f"{came} {ending}") and "client left" in str(recorded.last.ends)


#: What is no request that is right and will be served: (path, body)
NOTHING: dict[str, tuple[str, Any]] = {
    "no route": ("/v1/nothing", {}),
    "no JSON": (MESSAGES, b"{"),
    "no object": (MESSAGES, []),
    "wrong shape": (MESSAGES, {"model": "gpt-5.5", "messages": [{}]}),
    "no model": (MESSAGES, {"messages": []}),
    "unknown model": (MESSAGES, ask(model="nobody")),
    "no messages": (MESSAGES, ask([])),
    "count, no JSON": (COUNT, b"nothing"),
    "count, unknown model": (COUNT, ask(model="nobody")),
    "chat, no JSON": (CHAT, b"["),
    "chat, unknown model": (CHAT, body_for(CHAT, model="nobody")),
    "chat, no messages": (CHAT, {"model": "kimi-for-coding"}),
    "chat of P1, no messages": (CHAT, {"model": "gpt-5.5"}),
    "responses, unknown model": (RESPONSES, body_for(RESPONSES, model="nobody")),
    "responses, no input": (RESPONSES, {"model": "kimi-for-coding", "input": 1}),
    "too large": (MESSAGES, ask("x" * 5000)),
}


@pytest.mark.parametrize("name", NOTHING)
async def test_of_what_is_not_served_nothing_is_captured(live: Live, recorded: Recorded, name: str) -> None:
    live.config = live.config.changed(Config, max_body_bytes=4000)
    path, body = NOTHING[name]
    _, answer = await posted(live, recorded, path, body)
    assert answer.status in (400, 404, 413) and not recorded.requests


WAV = b"RIFF" + (36).to_bytes(4, "little") + b"WAVEfmt " + bytes(28)
IMAGE = f"data:image/png;base64,{PICTURE}"
GENERATION = {"model": "gpt-image-2", "prompt": "a cat"}
MEDIA: dict[str, tuple[str, dict[str, Any], int]] = {
    "generation": ("images/generations", {"json": GENERATION}, 200),
    "refused generation": ("images/generations", {"json": {**GENERATION, "n": 99}}, 400),
    "edit": ("images/edits", {"json": {**GENERATION, "images": [{"image_url": IMAGE}]}}, 200),
    "transcription": ("audio/transcriptions", {"data": {"model": "gpt-4o-transcribe", "file": io.BytesIO(WAV)}}, 200),
}


@pytest.mark.parametrize("name", MEDIA)
async def test_of_images_and_recordings_nothing_is_ever_told(live: Live, recorded: Recorded, name: str) -> None:
    path, options, status = MEDIA[name]
    answer = await live.request("POST", f"/v1/{path}", **options)
    assert answer.status == status and not recorded.requests


# -- where it is said


@pytest.mark.parametrize("path", [MESSAGES, *BOTH])
async def test_log_and_error_file_name_the_capture_and_the_reply_does_not(
    live: Live, recorded: Recorded, path: str
) -> None:
    live.sandbox.p2.script.extend([{"provider": "p2", "fault": "forbidden"}])
    _, answer = await posted(live, recorded, path, body_of(path, "kimi-for-coding"))
    place = recorded.last.place
    assert place is not None and place.encode() not in answer.raw and place not in str(answer.headers)
    assert live.notes.all("request_failed")[-1]["capture"] == live.notes.captures[-1]["capture"] == place


async def test_without_captures_nothing_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path) as live:
        live.sandbox.p2.script.extend([{"provider": "p2", "fault": "forbidden"}])
        assert (await live.post(ask(model="kimi-for-coding"))).status == 403
    assert "capture" not in live.notes.all("request_failed")[-1] and "capture" not in live.notes.captures[-1]


async def test_an_alias_is_told_as_it_was_asked_for(live: Live, recorded: Recorded) -> None:
    await posted(live, recorded, MESSAGES, ask(model="claude-sonnet-5[1m]"))
    begun = recorded.last.begun
    assert (begun.requested, begun.provider) == ("claude-sonnet-5[1m]", "p1") and begun.model.startswith("gpt-")


async def test_requests_of_a_session_are_numbered(live: Live, recorded: Recorded) -> None:
    for path in (MESSAGES, COUNT, CHAT):
        await posted(live, recorded, path, body_of(path, "kimi-for-coding"))
    await live.post(ask(model="kimi-for-coding"))
    assert [(one.begun.session, one.begun.number) for one in recorded.requests] == [
        *(("s1", number) for number in (1, 2, 3)),
        (None, 0),
    ]
