"""Mutated answers of upstreams: streams, whole JSON and errors."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random
from typing import Any

from fuzz_stub import Step

from fuzz.connect import mutate_connect, mutate_message
from fuzz.mutation import TEXTS, dumped, mutate, mutate_bytes, mutate_frames

_RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "base.json").read_text())
#: Wire -> name of the prompt -> frames; of Connect in base64.
ANSWERS: dict[str, dict[str, list[str]]] = _RECORDED["answers"]
#: Path -> content type and body in base64.
SERVICES: dict[str, list[str]] = _RECORDED["services"]
CONNECT = "p5-connect"

_ODD_STATUSES = (201, 202, 206, 299, 301, 302, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 425, 429, 500, 502)
_STATUSES = (*_ODD_STATUSES, 503, 504, 522, 529, 530, 599, 600, 999)
_ERROR_BODIES: tuple[Any, ...] = (
    {"error": {"message": "no", "type": "invalid_request_error", "code": "context_length_exceeded", "param": None}},
    {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    {"detail": "no"},
    {"error": "no", "code": 1},
    {"error": "invalid_grant", "error_description": "no"},
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
    *("", "0", "-1", "1e400", "9" * 400, "nan", "inf", "soon", "Wed, 21 Oct 2065 07:28:00 GMT", "gzip", "br"),
    *("text/html", "application/json", "text/event-stream; charset=x", "\u00e9", "a" * 6000, "true", "false", "1.5"),
)


def plain_answers() -> dict[str, Step]:
    """Wire -> what it answers where a case says nothing."""
    return {wire: Step.of(raw_of(wire, named["text"])) for wire, named in ANSWERS.items()}


def raw_of(wire: str, frames: list[str]) -> bytes:
    if wire == CONNECT:
        return b"".join(base64.b64decode(one) for one in frames)
    return ("\n\n".join(frames) + "\n\n").encode("utf-8", "surrogatepass")


def streamed(wire: str, rng: Random) -> Step:
    """One of the recorded streams after some changes, or an error in its place."""
    named = ANSWERS[wire]
    frames = named[rng.choice(list(named))]
    end = rng.choice(("end", "end", "end", "end", "cut", "reset"))
    if rng.random() < 0.15:
        return failure(rng, end)
    change = mutate_connect if wire == CONNECT else mutate_frames
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        frames = change(frames, rng)
    raw = raw_of(wire, frames)
    return Step.of(mutate_bytes(raw, rng) if rng.random() < 0.12 else raw, end=end)


def failure(rng: Random, end: str) -> Step:
    value = mutate(json.loads(json.dumps(rng.choice(_ERROR_BODIES))), rng)
    raw = dumped(value) if rng.random() < 0.8 else mutate_bytes(dumped(value), rng)
    headers = {"content-type": "application/json"}
    headers |= {rng.choice(_HEADER_NAMES): rng.choice(_HEADER_VALUES) for _ in range(rng.randrange(3))}
    return Step.of(raw, status=rng.choice(_STATUSES), headers=headers, end=end)


def whole(value: Any, rng: Random) -> Step:
    """JSON after some changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = mutate(value, rng)
    raw = dumped(value) if rng.random() < 0.8 else mutate_bytes(dumped(value), rng)
    return Step.of(raw, headers={"content-type": "application/json"}, end=rng.choice(("end", "end", "end", "cut")))


def served(path: str, rng: Random) -> Step:
    """The recorded answer of a service after some changes, or an error in its place."""
    if rng.random() < 0.15:
        return failure(rng, rng.choice(("end", "end", "cut", "reset")))
    kind, body = SERVICES[path]
    raw = base64.b64decode(body)
    if "json" not in kind:
        return Step.of(mutate_message(raw, rng), headers={"content-type": kind})
    value = json.loads(raw)
    tokens = [name for name, one in value.items() if isinstance(one, str) and one.count(".") == 2]
    if tokens and rng.random() < 0.6:
        name = rng.choice(tokens)
        value[name] = _mutated_token(value[name], rng)
        return Step.of(dumped(value), headers={"content-type": "application/json"})
    return whole(value, rng)


def _mutated_token(token: str, rng: Random) -> str:
    """A JWT with other claims."""
    head, claims, signature = token.split(".")
    value = mutate(json.loads(base64.urlsafe_b64decode(claims + "==")), rng)
    raw = dumped(value) if rng.random() < 0.8 else rng.choice(TEXTS).encode("utf-8", "surrogatepass")
    return f"{head}.{base64.urlsafe_b64encode(raw).decode().rstrip('=')}.{signature}"
