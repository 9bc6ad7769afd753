"""`POST …/images/generations`, `POST …/images/edits` and `POST …/transcribe`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.p1.media.answers import MediaAnswer, image_answer, transcript
from proxy.sandbox.p1.media.checks import (
    check_audio_headers,
    check_edit,
    check_generation,
    check_image_headers,
    check_recording,
    read_form,
)
from proxy.sandbox.p1.media.faults import COMMON, HTTP, JSON, OF_IMAGES, OF_TRANSCRIPTS, Played
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.play.actions import Pace, Raw, Reply
from proxy.sandbox.play.player import play
from proxy.sandbox.play.script import Place, Tables
from proxy.sandbox.upstream import Received, read_json, refusals_noted
from proxy.sandbox.wires.refusal import plain_reply

IMAGES = Place("p1", "images", stream=False)
TRANSCRIPTION = Place("p1", "transcription", stream=False)

#: The faults of both places.
MEDIA_FAULTS: Tables = {
    IMAGES: {**HTTP, **COMMON, **OF_IMAGES},
    TRANSCRIPTION: {**HTTP, **COMMON, **OF_TRANSCRIPTS},
}

#: Checks a request, of which `seen` then tells, and prepares its answer. Raises Refused.
Prepare = Callable[[P1, Received, bytes], MediaAnswer]


def media_routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/images/generations", partial(_serve, p1, IMAGES, _generation)),
        web.post(f"{CODEX_PATH}/images/edits", partial(_serve, p1, IMAGES, _edit)),
        web.post("/backend-api/transcribe", partial(_serve, p1, TRANSCRIPTION, _transcription)),
    ]


async def _serve(p1: P1, place: Place, prepare: Prepare, request: web.Request) -> web.StreamResponse:
    """One request: the checks, then the script's step for it or the good answer."""
    with p1.at_work():
        data = await request.read()
        seen = Received(request.path, request.headers, None, size=len(data))
        p1.note(seen)
        with refusals_noted(seen):
            check_account(request.headers, p1.tokens)
            answer = prepare(p1, seen, data)
        del data
        outcome, pace = _outcome(p1, place, seen.body, answer)
        seen.status = outcome.status
        if isinstance(outcome, Reply):
            return plain_reply(outcome.status, outcome.body, {**p1.trace_headers(), **(outcome.headers or {})})
        headers = {**p1.trace_headers(), **JSON, **answer.headers, **outcome.headers}
        return await play(request, headers, outcome.actions, pace, status=outcome.status)


def _outcome(p1: P1, place: Place, body: Mapping[str, Any], answer: MediaAnswer) -> tuple[Reply | Played, Pace]:
    step = p1.script.take(place, body, str(body.get("prompt", "")))
    pace = Pace()
    if step is not None and isinstance(step.outcome, Reply):
        return step.outcome, pace
    if step is None or step.fault is None:
        return Played(Raw(piece) for piece in answer.pieces()), pace
    if step.fault in HTTP:
        return HTTP[step.fault](**step.params), pace
    return MEDIA_FAULTS[place][step.fault](answer, **step.params), pace


def _generation(p1: P1, seen: Received, data: bytes) -> MediaAnswer:
    check_image_headers(seen.headers)
    seen.body = read_json(data)
    check_generation(seen.body)
    return _pictures(p1, seen.body, 0)


def _edit(p1: P1, seen: Received, data: bytes) -> MediaAnswer:
    """The pictures are kept by their digest: a few requests would fill the memory."""
    check_image_headers(seen.headers)
    body = read_json(data)
    pictures = check_edit(body)
    seen.body = {**body, "images": [picture._asdict() for picture in pictures]}
    return _pictures(p1, seen.body, len(pictures))


def _pictures(p1: P1, asked: Mapping[str, Any], given: int) -> MediaAnswer:
    limits = {f"x-ratelimit-{kind}-requests": str(value) for kind, value in (("limit", 5), ("remaining", 4))}
    headers = {**_headers(p1), "openai-version": "2020-10-01", **limits, "x-ratelimit-reset-requests": "12s"}
    return image_answer(asked, given, created=int(p1.clock()), least=p1.options.picture_bytes, headers=headers)


def _transcription(p1: P1, seen: Received, data: bytes) -> MediaAnswer:
    check_audio_headers(seen.headers)
    file, language = check_recording(read_form(seen.headers.get("content-type", ""), data))
    told = {"name": file.filename, "media_type": file.kind, "size": len(file.data)}
    seen.body = {"file": {**told, "sha256": hashlib.sha256(file.data).hexdigest()}, "language": language}
    return transcript(file, language, _headers(p1))


def _headers(p1: P1) -> dict[str, str]:
    """Of every good answer; the cookie is for the client alone."""
    return {"openai-processing-ms": "1024", "set-cookie": f"__cf_bm={p1.ids.new('bm')}; path=/; HttpOnly"}
