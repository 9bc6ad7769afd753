"""Case number i of a seed: the same bytes wherever and whenever it is made."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any
from urllib.parse import quote

from fuzz_stub import FuzzCase, Step

from fuzz.answers import ANSWERS, failure, plain_answers, served, streamed, whole
from fuzz.mutation import LONG, any_value, dumped, mutate, mutate_bytes, mutate_frames
from fuzz.requests import CHAT, COUNT, JSON, MESSAGES, MODELS, PNG, ROUTES, compacting, full, prompted, searching
from fuzz.seeds import (
    FORM,
    FORMS,
    GENERATION,
    IMAGE,
    LENIENT,
    LIMITS,
    MODEL_LIST,
    READ,
    SESSION,
    TELEMETRY,
    form,
    posted,
)

_P1, _P5 = MODELS["p1-responses"], MODELS["p5-connect"]
_REQUEST_HEADERS = (
    *("content-type", "accept", "anthropic-version", "anthropic-beta", "user-agent", "x-session-id", "session_id"),
    *("x-claude-code-session-id", "authorization", "x-api-key", "origin", "content-encoding", "x-request-id", "host"),
    *("x-codex-turn-metadata", "openai-beta", "accept-encoding", "if-none-match", "range", "x-stainless-retry-count"),
)
_HEADER_TEXTS = (
    *("", "x", "é", "a" * 5000, "{", "\t", "application/json; charset=utf-16", "gzip", "-1", "http://evil.example"),
    *("Bearer \x80", "deflate, gzip", "text/plain"),
)
_WINDOWS = ("/backend-api/wham/usage", "/coding/v1/usages", "/v1/billing", "/v1/settings", "/zen/go/v1/usage")
#: The path of a token endpoint -> a wire whose upstream refuses the token.
_TOKENS = {
    "/oauth/token": "p1-responses",
    "/api/oauth/token": "p2-chat",
    "/oauth2/token": "p3-responses",
    "/.well-known/openid-configuration": "p3-responses",
    "/auth/refresh": "p5-connect",
}


def case_of(seed: int, number: int) -> FuzzCase:
    rng = Random(f"{seed}:{number}")
    [make] = rng.choices(list(_KINDS), list(_KINDS.values()))
    case: FuzzCase = make(rng)
    case.name = f"{seed}-{number}"
    return case


def _answer(rng: Random) -> FuzzCase:
    wire = rng.choice(list(MODELS))
    route = rng.choice(ROUTES)
    body = prompted(route, MODELS[wire], "hello", stream=rng.random() < 0.75)
    if route == CHAT and body["stream"] and rng.random() < 0.5:
        body["stream_options"] = {"include_usage": True}
    session = {"session_id": f"s-{rng.getrandbits(64):x}"}  # p5 wants one beside tools
    return posted(route, body, session, upstream=[streamed(wire, rng) for _ in range(rng.choice((1, 1, 2)))])


def _socket(rng: Random) -> FuzzCase:
    """Over the socket of p1: events as a script of its simulator."""
    route = rng.choice(ROUTES)
    body = prompted(route, _P1, "hello", stream=rng.random() < 0.75)
    named = ANSWERS["p1-responses"]
    frames = named[rng.choice(list(named))]
    for _ in range(rng.choice((1, 1, 2, 4))):
        frames = mutate_frames(frames, rng)
    events: list[Any] = [one for frame in frames if (one := _event(frame)) is not None]
    if rng.random() < 0.1:
        events.insert(rng.randrange(len(events) + 1), {"raw_base64": base64.b64encode(rng.randbytes(9)).decode()})
    then = rng.choice(("end", "end", "cut", "reset"))
    step = {"match": {"wire": "websocket"}, "times": None, "events": events, "then": then}
    return posted(route, body, script=[step])


def _event(frame: str) -> dict[str, Any] | None:
    """The event of a frame, where it has a type that a script can play. Frames that no reader takes are skipped on the
    socket, and when the last is one the answer waits for as long as silence may last: too long here."""
    if any(text in frame for text in LONG):
        return None
    try:
        value = json.loads(frame.partition("data: ")[2])
    except ValueError:
        return None
    playable = isinstance(value, dict) and isinstance(value.get("type"), str)
    return value if playable and not {"raw", "raw_base64", "pause_s"} & value.keys() else None


def _request(rng: Random) -> FuzzCase:
    route = rng.choice((*ROUTES, COUNT))
    body = full(MESSAGES if route == COUNT else route, rng.choice(list(MODELS.values())))
    if rng.random() < 0.5:
        body["stream"] = True
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        body = mutate(body, rng)
    raw = dumped(body)
    if rng.random() < 0.06:
        raw = mutate_bytes(raw, rng)
    headers = JSON | ({"session_id": f"s-{rng.getrandbits(64):x}"} if rng.random() < 0.7 else {}) | _headers(rng)
    config = LENIENT if rng.random() < 0.8 else {}
    return FuzzCase(_with_query(route, rng), body=Step.of(raw).body, headers=headers, config=config)


def _with_query(path: str, rng: Random) -> str:
    if rng.random() < 0.85:
        return path
    name = rng.choice(("beta", "api-version", "limit", "x", "after_id", "provider", "edges"))
    return f"{path}?{name}={quote(str(any_value(rng))[:300], errors='replace')}"


def _headers(rng: Random) -> dict[str, str]:
    if rng.random() < 0.7:
        return {}
    return {rng.choice(_REQUEST_HEADERS): rng.choice(_HEADER_TEXTS) for _ in range(rng.choice((1, 2)))}


def _reading(rng: Random) -> FuzzCase:
    path = rng.choice((*READ, *TELEMETRY, "/v1/responses", f"{MODEL_LIST}/", "/monitor/page/"))
    if path.endswith("/"):
        path += quote(str(any_value(rng))[:200], safe="", errors="replace")
    method = rng.choice(("GET", "GET", "HEAD", "POST"))
    body = Step.of(dumped(any_value(rng))).body if method == "POST" and path != "/v1/responses" else None
    return FuzzCase(_with_query(path, rng), method=method, body=body, headers=_headers(rng))


def _media(rng: Random) -> FuzzCase:
    path = rng.choice((GENERATION, *FORMS))
    answer: Any = {"created": 1, "data": [{"b64_json": PNG}], "text": "words", "usage": {"input_tokens": 1}}
    steps = [failure(rng, "end") if rng.random() < 0.4 else whole(answer, rng)]
    if path == GENERATION:
        body = mutate(dict(IMAGE), rng) if rng.random() < 0.7 else IMAGE
        return FuzzCase(path, body=Step.of(dumped(body)).body, headers=JSON, upstream=steps)
    fields = dict(FORMS[path][0])
    if rng.random() < 0.4:
        fields[rng.choice(list(fields))] = dumped(any_value(rng))[:2000]
    raw = form(path, fields)
    if rng.random() < 0.6:
        raw = mutate_bytes(raw, rng)
    return FuzzCase(path, body=Step.of(raw).body, headers=FORM, upstream=steps)


def _windows(rng: Random) -> FuzzCase:
    asked = rng.sample(_WINDOWS, rng.choice((1, 1, 2, 5)))
    return FuzzCase(LIMITS, "GET", services={path: served(path, rng) for path in asked}, times=2)


def _tokens(rng: Random) -> FuzzCase:
    path = rng.choice(list(_TOKENS))
    wire = _TOKENS[path]
    steps = [Step(status=401), plain_answers()[wire]]
    return posted(
        MESSAGES, prompted(MESSAGES, MODELS[wire], "hello"), upstream=steps, services={path: served(path, rng)}
    )


def _models(rng: Random) -> FuzzCase:
    path = "/agent.v1.AgentService/GetUsableModels"
    services = {path: served(path, rng)}
    if rng.random() < 0.5:
        return FuzzCase(MODEL_LIST, "GET", services=services, times=3)
    return posted(MESSAGES, prompted(MESSAGES, _P5, "hello"), services=services, times=2)


def _asides(rng: Random) -> FuzzCase:
    """What p1 is asked beside an answer: where the workspace is served, and what a search finds."""
    path = rng.choice(("/backend-api/wham/accounts/check", "/backend-api/codex/alpha/search"))
    body = searching(_P1) if path.endswith("search") else prompted(MESSAGES, _P1, "hello")
    return posted(MESSAGES, {**body, "stream": rng.random() < 0.5}, services={path: served(path, rng)})


def _compaction(rng: Random) -> FuzzCase:
    """Asked twice: what was kept of the first answer may serve the second."""
    steps = [streamed("p1-responses", rng) for _ in range(rng.choice((1, 2)))]
    config = {"p1_server_compaction": True}
    return posted(MESSAGES, mutate(compacting(_P1), rng), SESSION, upstream=steps, config=config, times=2)


#: How a case is made -> its weight among a hundred.
_KINDS = {
    _answer: 45,
    _request: 28,
    _socket: 9,
    _reading: 7,
    _media: 7,
    # each in an application of its own, which takes longer than all the others
    _tokens: 0.7,
    _windows: 1,
    _models: 0.7,
    _asides: 0.4,
    _compaction: 0.4,
}
