"""Answers that are one JSON object, of services beside the model, and their faults."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import Action, Cut, HttpFault, Pace, Raw, Reply, silence
from proxy.sandbox.play.player import play
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Options, Received, Upstream
from proxy.sandbox.wires.refusal import plain_reply

_JSON = {"content-type": "application/json"}
_BLOCK = 64 * 1024
_MIB = 1024 * 1024


def _half(data: bytes, *actions: Action) -> list[Action]:
    return [Raw(data[: len(data) // 2]), *actions]


def _blanks(data: bytes, size: int) -> Iterator[Action]:
    """The answer after this many blanks, which JSON allows."""
    for _ in range(0, size, _BLOCK):
        yield Raw(b" " * _BLOCK)
    yield Raw(data)


#: Faults of the bytes of an answer, given the good ones.
JSON_FAULTS: Mapping[str, Callable[..., Any]] = {
    "silence_before_head": lambda answer, seconds=5.0: [silence(seconds), Raw(answer)],
    "silence_mid_text": lambda answer, seconds=5.0: _half(answer, silence(seconds), Raw(answer[len(answer) // 2 :])),
    "cut_before_output": lambda answer, reset=False: [Raw(answer[:1]), Cut(reset)],
    "cut_text": lambda answer, reset=False: _half(answer, Cut(reset)),
    "malformed_json": lambda answer: _half(answer),
    "empty_body": lambda answer: [Raw(answer[:0])],
    "in_a_list": lambda answer: [Raw(b"[" + answer + b"]")],
    "too_long": lambda answer, size=16 * _MIB: _blanks(answer, size),
}


async def serve_json(
    upstream: Upstream,
    place: Place,
    faults: Mapping[str, HttpFault],
    request: web.Request,
    seen: Received,
    answer: Mapping[str, Any],
) -> web.StreamResponse:
    """Sends a checked request's answer, or what the script's step for it says.

    faults  the HTTP faults of the upstream
    """
    step = upstream.script.take(place, seen.body, "")
    data, seen.status = dump_json(answer).encode(), 200
    actions: Any = [Raw(data)]
    if step is not None and step.fault is not None:
        fault = faults.get(step.fault)
        actions = JSON_FAULTS[step.fault](data, **step.params) if fault is None else fault(**step.params)
    elif step is not None and step.outcome is not None:
        actions = step.outcome
    headers = upstream.trace_headers()
    if isinstance(actions, Reply):
        seen.status = actions.status
        return plain_reply(actions.status, actions.body, {**headers, **(actions.headers or {})})
    return await play(request, {**headers, **_JSON}, actions, Pace())


async def serve_list(
    options: Options, request: web.Request, body: bytes, headers: Mapping[str, str], kind: str = "application/json"
) -> web.StreamResponse:
    """Sends the list of models: a 304 to a client that has it, or the list with the fault of the options."""
    fault, tag = options.list_fault, f'"{zlib.crc32(body):08x}"'
    if fault == "refused":
        return web.json_response({"error": {"message": "invalid token", "type": "auth"}}, status=401)
    if fault:
        return await play(request, {**headers, "content-type": kind}, JSON_FAULTS[fault](body), Pace())
    headers = {**headers, "etag": tag}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=kind, headers=headers)
