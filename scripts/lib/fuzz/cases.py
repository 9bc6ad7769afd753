"""Case number i of a seed: the same bytes wherever and whenever it is made."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from fuzzing import FuzzCase, Step

from fuzz.mutation import HUGE, any_value, dumped, mutate, mutate_bytes, mutate_frames
from fuzz.requests import CHAT, JSON, MESSAGES, MODELS, PNG, ROUTES, full, prompted

BASE: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "base.json").read_text())

_AGENT_MODEL = "cursor:gpt-5.5"
_ODD_STATUSES = (201, 202, 206, 299, 301, 302, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 425, 429, 500, 502)
_STATUSES = (*_ODD_STATUSES, 503, 504, 522, 529, 530, 599, 600, 999)
_ERROR_BODIES: tuple[Any, ...] = (
    {"error": {"message": "no", "type": "invalid_request_error", "code": "context_length_exceeded", "param": None}},
    {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    {"detail": "no"},
    {"error": "no", "code": 1},
    {"error": {"type": "usage_limit_reached", "resets_in_seconds": 5, "plan_type": "plus", "resets_at": 1}},
)
_HEADER_NAMES = (
    *(
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "content-type",
        "content-encoding",
        "x-request-id",
        "location",
    ),
    *("x-codex-primary-used-percent", "x-codex-primary-reset-after-seconds", "x-codex-primary-window-minutes"),
    *("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset", "set-cookie", "date", "x-models-etag"),
)
_HEADER_VALUES = (
    *(
        "",
        "0",
        "-1",
        "1e400",
        "9" * 400,
        "nan",
        "inf",
        "soon",
        "Wed, 21 Oct 2065 07:28:00 GMT",
        "gzip",
        "br",
        "identity",
    ),
    *("text/html", "application/json", "text/event-stream; charset=x", "\u00e9", "a" * 6000, "true", "false", "1.5"),
)
_REQUEST_HEADERS = (
    *("content-type", "accept", "anthropic-version", "anthropic-beta", "user-agent", "x-session-id", "session_id"),
    *("x-claude-code-session-id", "authorization", "x-api-key", "origin", "content-encoding", "x-request-id", "host"),
    *("x-codex-turn-metadata", "openai-beta", "accept-encoding", "if-none-match", "range", "x-stainless-retry-count"),
)
_PLACES = ("/v1/models", "/v1/models/", "/limits", "/v1/account/limits", "/metrics", "/healthz", "/monitor", "/usage")
_MEDIA = ("/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions")


def plain_answers() -> dict[str, Step]:
    """Wire -> what it answers where a case says nothing."""
    return {wire: stream(named["text"]) for wire, named in BASE.items()}


def stream(frames: list[str], **members: Any) -> Step:
    return Step.of(("\n\n".join(frames) + "\n\n").encode("utf-8", "surrogatepass"), **members)


def case_of(seed: int, number: int) -> FuzzCase:
    rng = Random(f"{seed}:{number}")
    pick = rng.random()
    make = (
        _socket
        if pick < 0.1
        else _answer
        if pick < 0.55
        else _request
        if pick < 0.88
        else _reading
        if pick < 0.95
        else _media
    )
    case = make(rng)
    case.name = f"{seed}-{number}"
    return case


def _answer(rng: Random) -> FuzzCase:
    wire = rng.choice(list(MODELS))
    route = rng.choice(ROUTES)
    named = BASE[wire]
    body = prompted(route, MODELS[wire], "hello", stream=rng.random() < 0.75)
    if route == CHAT and body["stream"] and rng.random() < 0.5:
        body["stream_options"] = {"include_usage": True}
    steps = [_step(rng, named[rng.choice(list(named))])]
    if rng.random() < 0.3:
        steps.append(_step(rng, named[rng.choice(list(named))]))
    return FuzzCase(route, body=json.dumps(body), headers=JSON, upstream=steps)


def _socket(rng: Random) -> FuzzCase:
    """Over the socket of p1: events as a script of its simulator."""
    route = rng.choice(ROUTES)
    body = prompted(route, MODELS["p1-responses"], "hello", stream=rng.random() < 0.75)
    named = BASE["p1-responses"]
    frames = named[rng.choice(list(named))]
    for _ in range(rng.choice((1, 1, 2, 4))):
        frames = mutate_frames(frames, rng)
    events: list[Any] = [one for frame in frames if (one := _event(frame)) is not None]
    if rng.random() < 0.1:
        events.insert(rng.randrange(len(events) + 1), {"raw_base64": base64.b64encode(rng.randbytes(9)).decode()})
    then = rng.choice(("end", "end", "cut", "reset"))
    step = {"match": {"wire": "websocket"}, "times": None, "events": events, "then": then}
    return FuzzCase(route, body=json.dumps(body), headers=JSON, script=[step])


def _event(frame: str) -> dict[str, Any] | None:
    """The event of a frame, where it has a type that a script can play. Frames that no reader takes are skipped on the
    socket, and when the last is one the answer waits for as long as silence may last: too long here."""
    if HUGE in frame:
        return None
    try:
        value = json.loads(frame.partition("data: ")[2])
    except ValueError:
        return None
    playable = isinstance(value, dict) and isinstance(value.get("type"), str)
    return value if playable and not {"raw", "raw_base64", "pause_s"} & value.keys() else None


def _step(rng: Random, frames: list[str]) -> Step:
    end = rng.choice(("end", "end", "end", "end", "cut", "reset"))
    if rng.random() < 0.15:
        return _failure(rng, end)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        frames = mutate_frames(frames, rng)
    raw = stream(frames).raw
    if rng.random() < 0.12:
        raw = mutate_bytes(raw, rng)
    return Step.of(raw, end=end)


def _failure(rng: Random, end: str) -> Step:
    value = mutate(json.loads(json.dumps(rng.choice(_ERROR_BODIES))), rng)
    raw = dumped(value) if rng.random() < 0.8 else mutate_bytes(dumped(value), rng)
    headers = {"content-type": "application/json"}
    headers |= {rng.choice(_HEADER_NAMES): rng.choice(_HEADER_VALUES) for _ in range(rng.randrange(3))}
    return Step.of(raw, status=rng.choice(_STATUSES), headers=headers, end=end)


def _request(rng: Random) -> FuzzCase:
    route = rng.choice((*ROUTES, f"{MESSAGES}/count_tokens"))
    model = rng.choice((*MODELS.values(), _AGENT_MODEL) if rng.random() < 0.2 else tuple(MODELS.values()))
    body = full(MESSAGES if "count" in route else route, model)
    if rng.random() < 0.5:
        body["stream"] = True
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        body = mutate(body, rng)
    raw = dumped(body)
    if rng.random() < 0.06:
        raw = mutate_bytes(raw, rng)
    return FuzzCase(_with_query(route, rng), body=Step.of(raw).body, headers={**JSON, **_headers(rng)})


def _with_query(path: str, rng: Random) -> str:
    if rng.random() < 0.85:
        return path
    value = any_value(rng)
    name = rng.choice(("beta", "api-version", "limit", "x", "after_id"))
    return f"{path}?{name}={quote(str(value)[:300], errors='replace')}"


def _headers(rng: Random) -> dict[str, str]:
    if rng.random() < 0.7:
        return {}
    texts = (
        "",
        "x",
        "é",
        "a" * 5000,
        "{",
        "\t",
        "application/json; charset=utf-16",
        "gzip",
        "-1",
        "http://evil.example",
    )
    return {rng.choice(_REQUEST_HEADERS): rng.choice(texts) for _ in range(rng.choice((1, 2)))}


def _reading(rng: Random) -> FuzzCase:
    path = rng.choice(_PLACES)
    if path.endswith("/"):
        path += quote(str(any_value(rng))[:200], safe="", errors="replace")
    return FuzzCase(_with_query(path, rng), method=rng.choice(("GET", "GET", "HEAD", "POST")), headers=_headers(rng))


def _media(rng: Random) -> FuzzCase:
    path = rng.choice(_MEDIA)
    steps = [_failure(rng, "end") if rng.random() < 0.4 else _media_answer(rng)]
    if path == _MEDIA[0]:
        body: Any = {"model": "gpt-image-2", "prompt": "a cat", "size": "1024x1024", "n": 1, "quality": "low"}
        return FuzzCase(path, body=Step.of(dumped(_perhaps(body, rng))).body, headers=JSON, upstream=steps)
    fields = {"model": b"gpt-4o-transcribe", "prompt": b"a cat", "response_format": b"json", "n": b"1"}
    if path == _MEDIA[1]:
        fields["model"] = b"gpt-image-2"
    if rng.random() < 0.4:
        fields[rng.choice(list(fields))] = dumped(any_value(rng))[:2000]
    raw = b"".join(
        b'--b\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v) for k, v in fields.items()
    )
    name = b"image" if path == _MEDIA[1] else b"file"
    raw += b'--b\r\ncontent-disposition: form-data; name="%s"; filename="a.png"\r\n' % name
    raw += b"content-type: image/png\r\n\r\n" + base64.b64decode(PNG) + b"\r\n--b--\r\n"
    if rng.random() < 0.6:
        raw = mutate_bytes(raw, rng)
    form = {"content-type": "multipart/form-data; boundary=b"}
    return FuzzCase(path, body=Step.of(raw).body, headers=form, upstream=steps)


def _perhaps(value: Any, rng: Random) -> Any:
    return mutate(value, rng) if rng.random() < 0.7 else value


def _media_answer(rng: Random) -> Step:
    value: Any = {"created": 1, "data": [{"b64_json": PNG}], "text": "words", "usage": {"input_tokens": 1}}
    value = mutate(value, rng)
    raw = dumped(value) if rng.random() < 0.8 else mutate_bytes(dumped(value), rng)
    return Step.of(raw, headers={"content-type": "application/json"}, end=rng.choice(("end", "end", "cut")))


#: Cumulated shares of the kinds of cases.
_KINDS = ((0.1, _socket), (0.55, _answer), (0.88, _request), (0.95, _reading), (1.0, _media))
