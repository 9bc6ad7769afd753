"""`POST …/images/generations`, `…/images/edits` and `…/transcribe`, and the faults of their answers.

A fault is a function of the good answer and of its script step's parameters, as with streams: another status, or a
wrong answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.p1.media.answers import ImageAnswer, MediaAnswer, image_answer, transcript
from proxy.sandbox.p1.media.checks import (
    check_audio_headers,
    check_edit,
    check_generation,
    check_image_headers,
    check_recording,
    read_form,
)
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.play.actions import Action, Cut, HttpFault, Pace, Raw, Reply, Stall, Values, failure, silence
from proxy.sandbox.play.player import play
from proxy.sandbox.play.script import Place, Tables
from proxy.sandbox.upstream import Received, read_json, refusals_noted
from proxy.sandbox.wires.refusal import detail, invalid, plain_reply

JSON = {"content-type": "application/json"}

MIB = 1024 * 1024
_BLOCK = 64 * 1024


class Played(NamedTuple):
    """An answer with any status, action by action. Headers replace those of the good one; an empty one is dropped."""

    actions: Iterator[Action]
    status: int = 200
    headers: Mapping[str, str] = {}


Fault = Callable[..., Reply | Played]


def played(*actions: Action, status: int = 200, **headers: str) -> Played:
    return Played(iter(actions), status, _named(headers))


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _other(answer: MediaAnswer, **members: Any) -> Played:
    """The answer with other members; None drops one."""
    body = {name: value for name, value in {**answer.body, **members}.items() if value is not None}
    return played(Raw(dump_json(body).encode()))


def _half(answer: MediaAnswer, *actions: Action, **headers: str) -> Played:
    data = answer.data
    return Played(iter((Raw(data[: len(data) // 2]), *actions)), headers=_named(headers))


def _silence(answer: MediaAnswer, seconds: float | None, share: int) -> Played:
    data = answer.data
    begun = [Raw(data[: len(data) // share])] if share else []
    return played(*begun, silence(seconds), Raw(data[len(data) // share if share else 0 :]))


def _in_pieces(answer: MediaAnswer, size: int) -> Played:
    data = answer.data
    return Played(Raw(data[at : at + size]) for at in range(0, len(data), size))


def _blanks(answer: MediaAnswer, size: int) -> Iterator[Action]:
    """The answer after this many blanks, which JSON allows."""
    left = size
    while left:
        yield Raw(b" " * min(left, _BLOCK))
        left -= min(left, _BLOCK)
    yield Raw(answer.data)


def _declared(answer: MediaAnswer, size: int) -> Played:
    """Declares an excessive length, and then sends nothing more."""
    return _half(answer, Stall(), content_length=str(size))


def _page(answer: MediaAnswer) -> Played:
    page = f"<!doctype html><html><body><h1>Just a moment...</h1><p>{len(answer.data)}</p></body></html>"
    return played(Raw(page.encode()), content_type="text/html")


#: Faults of both services.
COMMON: dict[str, Fault] = {
    "as_status": lambda answer, status=201: played(Raw(answer.data), status=status),
    "other_type": lambda answer, kind="text/plain": played(Raw(answer.data), content_type=kind),
    "html_page": _page,
    "event_stream": lambda answer: played(Raw(b"data: " + answer.data + b"\n\n"), content_type="text/event-stream"),
    "empty_body": lambda answer: played(Raw(answer.data[:0])),
    "byte_order_mark": lambda answer: played(Raw(b"\xef\xbb\xbf" + answer.data)),
    "in_a_list": lambda answer: played(Raw(b"[" + answer.data + b"]")),
    "trailing": lambda answer: played(Raw(answer.data + b"\n{}")),
    "malformed_json": lambda answer: _half(answer),
    "invalid_utf8": lambda answer: played(Raw(answer.data[:-1] + b',"x":"\xff\xfe"}')),
    "cut_before_output": lambda answer, reset=False: played(Raw(answer.data[:1]), Cut(reset)),
    "cut_text": lambda answer, reset=False: _half(answer, Cut(reset)),
    "silence_before_head": lambda answer, seconds=5.0: _silence(answer, seconds, 0),
    "silence_mid_text": lambda answer, seconds=5.0: _silence(answer, seconds, 2),
    "tiny_writes": lambda answer, size=1: _in_pieces(answer, size),
    "declared_too_long": lambda answer, size=1024 * MIB: _declared(answer, size),
    "too_long": lambda answer, size=128 * MIB: Played(_blanks(answer, size)),
    "more_members": lambda answer: _other(answer, id="x", object=["later"]),
}


def _larger(answer: ImageAnswer, size: int) -> Played:
    answer.least = size
    return Played(Raw(piece) for piece in answer.pieces())


def _rewritten(answer: MediaAnswer, *pairs: tuple[bytes, bytes]) -> Played:
    data = answer.data
    for old, new in pairs:
        data = data.replace(old, new)
    return played(Raw(data))


def _of_pictures(answer: ImageAnswer, edit: Callable[[str], Any]) -> Played:
    return _other(answer, data=[edit(one["b64_json"]) for one in answer.body["data"]])


#: Faults of pictures.
OF_IMAGES: dict[str, Fault] = {
    "large": lambda answer, size=100 * MIB: _larger(answer, size),
    "created": lambda answer, value=None: _other(answer, created=value),
    "url_answer": lambda answer: _of_pictures(answer, lambda _: {"url": "https://files.invalid/picture.png"}),
    "blank_picture": lambda answer, value="": _of_pictures(answer, lambda _: {"b64_json": value}),
    "bare_pictures": lambda answer: _of_pictures(answer, lambda text: text),
    "empty": lambda answer: _other(answer, data=[]),
    "no_data": lambda answer: _other(answer, data=None),
    # how other JSON writers treat base64
    "escaped_slashes": lambda answer: _rewritten(answer, (b"/", b"\\/")),
    "escaped_signs": lambda answer: _rewritten(answer, (b"+", b"\\u002B"), (b"/", b"\\u002f")),
    "bad_usage": lambda answer, value="x": _other(answer, usage=value),
}

#: Faults of transcripts.
OF_TRANSCRIPTS: dict[str, Fault] = {
    "say": lambda answer, text='She said "hi"\nand left.': _other(answer, text=text),
    # every non-ASCII character escaped
    "ascii": lambda answer, text="Grüße 🙂": played(Raw(json.dumps({**answer.body, "text": text}).encode())),
    "empty": lambda answer: _other(answer, text=""),
    "no_text": lambda answer: _other(answer, text=None),
    "other_text": lambda answer, value=1: _other(answer, text=value),
}


#: The shapes of a refusal.
_SHAPES: dict[str, Callable[[Values], Any]] = {
    "error": lambda values: invalid(values["message"], code=values["code"], kind=values["kind"]).body,
    "detail": lambda values: detail(values["message"]).body,
    "flat": lambda values: {"message": values["message"]},
    "text": lambda values: str(values["message"]),
    "html": lambda values: f"<html><body>{values['message']}</body></html>",
}


def _refusal(values: Values) -> Any:
    return _SHAPES[values["shape"]](values)


def _wait(values: Values) -> dict[str, str]:
    """The wait in seconds, as a moment, or in words."""
    return {"retry-after": str(values["retry_after"])}


_MODERATED = "Your request was rejected by the safety system."
_LIMITED = {"error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Rate limit reached."}}

#: The statuses of P1 that apply here, and those of these services.
HTTP: dict[str, HttpFault] = {
    **{name: fault for name, fault in HTTP_FAULTS.items() if name not in ("context_http", "unsealable", "rate_limit")},
    "rate_limit": failure(429, _LIMITED, seconds=1, status=429),
    "limited": failure(429, _LIMITED, _wait, retry_after="7"),
    "refused": failure(
        400,
        _refusal,
        status=400,
        shape="error",
        message=_MODERATED,
        code="moderation_blocked",
        kind="image_generation_user_error",
    ),
}


IMAGES = Place("p1", "images", stream=False)
TRANSCRIPTION = Place("p1", "transcription", stream=False)

#: Faults by place.
MEDIA_FAULTS: Tables = {
    IMAGES: {**HTTP, **COMMON, **OF_IMAGES},
    TRANSCRIPTION: {**HTTP, **COMMON, **OF_TRANSCRIPTS},
}

#: Checks a request, notes its result in `seen`, and prepares the answer. Raises Refused.
Prepare = Callable[[P1, Received, bytes], MediaAnswer]


def media_routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/images/generations", partial(_serve, p1, IMAGES, _generation)),
        web.post(f"{CODEX_PATH}/images/edits", partial(_serve, p1, IMAGES, _edit)),
        web.post("/backend-api/transcribe", partial(_serve, p1, TRANSCRIPTION, _transcription)),
    ]


async def _serve(p1: P1, place: Place, prepare: Prepare, request: web.Request) -> web.StreamResponse:
    """Serves one request: the checks, then the script's step for it or the good answer."""
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
    """Keeps the pictures as digests: a few requests would fill the memory."""
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
    sent = {"name": file.filename, "media_type": file.kind, "size": len(file.data)}
    seen.body = {"file": {**sent, "sha256": hashlib.sha256(file.data).hexdigest()}, "language": language}
    return transcript(file, language, _headers(p1))


def _headers(p1: P1) -> dict[str, str]:
    """Headers of every good answer; the cookie is for the client alone."""
    return {"openai-processing-ms": "1024", "set-cookie": f"__cf_bm={p1.ids.new('bm')}; path=/; HttpOnly"}
