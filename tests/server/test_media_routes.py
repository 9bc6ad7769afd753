"""The routes of images and audio, in front of a provider that a test writes: what is checked in which order, and how it
is answered."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from harness import Live, until, with_live
from media_live import (
    ANSWERS,
    EDITS,
    GENERATIONS,
    GOOD,
    PNG,
    ROUTES,
    SWITCHES,
    TRANSCRIPTIONS,
    edit,
    head,
    read_answer,
    recording,
    refusal,
    send,
    studio,
)
from samples import rows

from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.errors import SignInError, UpstreamError
from proxy.observe.lifecycle import (
    Completed,
    Failed,
    ModelResolved,
    Progress,
    ProviderSelected,
    Started,
    UsageUpdated,
)
from proxy.server.request.state import STATE

FORM = "multipart/form-data"
MIB = 1024 * 1024


@pytest.fixture
def live_options() -> dict[str, Any]:
    return dict(SWITCHES)


# -- off, and asked wrongly


HINT = re.compile(r"; /v1/\S+ is off: PROXY_P1_\w+_API=1, or p1\.\w+Api in config\.json, turns it on at the next start")


@with_live()
@rows("path", ROUTES)
@rows("method, body", [("POST", b"{"), ("GET", None), ("OPTIONS", None), ("POST", b"")])
async def test_a_route_that_is_off_is_a_path_that_nobody_knows(live: Live, path: str, method: str, body: Any) -> None:
    """But for what turns it on, and what clients of that API read."""
    unknown = f"/v1/{'x' * (len(path) - 4)}"
    off, never = [await live.request(method, f"{where}?x=1", data=body) for where in (path, unknown)]
    assert off.status == never.status == 404 and HINT.search(off.error["message"])
    ours = never.json | {"request_id": off.headers["request-id"]}
    read = {"message": off.error["message"], "param": None, "code": "not_found"}
    assert off.json == ours | {"error": ours["error"] | read}
    assert never.error["message"] == f"No route for {method} {unknown}"
    assert off.headers.keys() - never.headers.keys() == {"Cache-Control"}


@rows("path", ["/v1/images/variations", "/v1/audio/speech"])
async def test_what_else_those_apis_have_is_no_route(live: Live, path: str) -> None:
    """In the form of every unknown path, with what the SDK of that API reads."""
    answer = await live.post({"prompt": "x"}, path)
    assert answer.status == 404 and answer.headers["Cache-Control"] == "no-store"
    expected = {"type": "not_found", "message": f"No route for POST {path}", "param": None, "code": "not_found"}
    assert answer.error == expected


@rows("path", ROUTES)
@rows("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_a_wrong_method_is_told_the_right_one(live: Live, path: str, method: str) -> None:
    answer = await live.request(method, f"{path}?x=1")
    assert answer.status == 405 and answer.headers["Allow"] == "POST"
    assert answer.error["type"] == "invalid_request_error" and answer.headers["Cache-Control"] == "no-store"


#: what is wrong, as (path, query, content type, headers, body) -> status, code, param. A row has all the faults that
#: come later in the order of the checks as well, so that the first one counts.
ORDER: list[tuple[str, str, str, dict[str, str], bytes, tuple[int, str, str | None]]] = [
    (GENERATIONS, "?x=1", "text/plain", {"Content-Length": str(65 * MIB)}, b"", (400, "invalid_request", None)),
    (EDITS, "?x=1", "text/plain", {}, b"{", (400, "invalid_request", None)),
    (TRANSCRIPTIONS, "?a", "text/plain", {}, b"{", (400, "invalid_request", None)),
    *(
        (path, "", called, {"Content-Length": str(65 * MIB)}, b"", (415, "unsupported_media_type", None))
        for path, types in {
            GENERATIONS: ("text/plain", "application/jsonp", f"{FORM}; boundary=b", "application/ld+json", "json"),
            EDITS: ("text/plain", "application/jsonp", f"{FORM}2; boundary=b", "multipart/mixed; boundary=b"),
            TRANSCRIPTIONS: ("application/json", "audio/wav", f"x{FORM}"),
        }.items()
        for called in types
    ),
    *(
        (path, "", called, {"Content-Length": str(length)}, b"", (413, "request_too_large", None))
        for path, called, length in (
            (GENERATIONS, "application/json", 262_145),
            (EDITS, "application/json", 64 * MIB + 1),
            (EDITS, f"{FORM}; boundary=b", 65 * MIB),
            (TRANSCRIPTIONS, f"{FORM}; boundary=b", 26 * MIB + 1),
        )
    ),
    (EDITS, "", FORM, {}, b"{", (400, "invalid_multipart", None)),
    (TRANSCRIPTIONS, "", f"{FORM}; boundary=", {}, b"{", (400, "invalid_multipart", None)),
    (GENERATIONS, "", "application/json", {}, b"", (400, "invalid_request", None)),
    (
        GENERATIONS,
        "",
        "application/json",
        {"Content-Encoding": "compress"},
        b"{",
        (415, "unsupported_media_type", None),
    ),
]


@pytest.mark.parametrize(("path", "query", "called", "headers", "body", "refused"), ORDER)
async def test_the_first_fault_of_a_head_counts(
    live: Live,
    path: str,
    query: str,
    called: str,
    headers: dict[str, str],
    body: bytes,
    refused: tuple[int, str, str | None],
) -> None:
    made = studio(live)
    lengths = {"Content-Length": str(len(body))} | headers
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(head(path + query, called, **lengths) + body)
    assert refusal(await read_answer(reader)) == refused and not made.asked
    writer.close()


@rows(
    "path, called",
    [
        (GENERATIONS, "Application/JSON"),
        (GENERATIONS, "application/json ; charset=utf-8"),
        (EDITS, 'MULTIPART/Form-Data ; charset=utf-8; Boundary="b0undary"'),
        (TRANSCRIPTIONS, 'multipart/form-data;boundary="b0undary"; x=y'),
    ],
)
async def test_a_content_type_may_be_written_in_many_ways(live: Live, path: str, called: str) -> None:
    studio(live)
    assert (await send(live, path, content_type=called)).status == 200


#: A body that is refused, and how. The readers have tables of their own.
REFUSED = [
    (GENERATIONS, {"prompt": "x", "model": "gpt-image-1"}, (400, "invalid_request", "model")),
    (GENERATIONS, {"prompt": "x" * 262_144}, (413, "request_too_large", None)),
    (EDITS, edit(PNG, user="x"), (400, "unsupported_parameter", "user")),
    (TRANSCRIPTIONS, recording(b""), (400, "invalid_request", "file")),
]


@rows("path, body, refused", REFUSED)
async def test_a_body_that_is_wrong_is_refused(
    live: Live, path: str, body: Any, refused: tuple[int, str, str | None]
) -> None:
    made = studio(live)
    is_form = not isinstance(body, dict)
    answer = await send(live, path, body.body if is_form else body, body.content_type if is_form else "")
    assert refusal(answer) == refused and not made.asked


# -- answered


async def test_a_checked_request_reaches_the_provider(live: Live) -> None:
    made = studio(live)
    session = {"session_id": " s ", "x-client-request-id": "other"}
    assert (await send(live, GENERATIONS, {"prompt": "x", "n": 2}, **session)).status == 200
    assert (await send(live, EDITS)).status == 200
    assert (await send(live, TRANSCRIPTIONS)).status == 200
    (first, generation), (second, changed), (_, sound) = made.asked
    assert isinstance(generation, ImageRequest) and isinstance(changed, ImageRequest) and changed.edits
    assert generation.fields["n"] == 2 and isinstance(sound, TranscriptionRequest) and sound.name == "a.wav"
    assert (first.session, second.session) == ("s", None) and first.request_id in live.watcher.told
    assert live.app[STATE].sessions.affinity("s") is None


@rows("path", ROUTES)
async def test_an_answer_is_passed_on_byte_by_byte(live: Live, path: str) -> None:
    made = studio(live)
    made.headers = {"x-request-id": "upstream", "openai-version": "1"}
    answer = await send(live, path)
    assert answer.status == 200 and answer.raw == ANSWERS[path]
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store" and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["x-request-id"] == "upstream" and answer.headers["openai-version"] == "1"
    assert answer.headers["request-id"] == made.asked[0][0].request_id


async def test_a_transcript_may_be_wanted_as_text(live: Live) -> None:
    studio(live)
    form = recording(response_format="text")
    answer = await send(live, TRANSCRIPTIONS, form.body, form.content_type)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8" and answer.raw == b'she said "hi"\n'


async def test_the_pieces_of_an_answer_are_forgotten_as_they_are_written(live: Live) -> None:
    made, pieces = studio(live), Pieces([bytes([65 + place]) * 100_000 for place in range(8)])
    made.body = lambda: pieces
    answer = await send(live, GENERATIONS)
    assert len(answer.raw) == pieces.size == 800_000 and answer.raw[::100_000] == b"ABCDEFGH" and not list(pieces)


#: what the provider raises -> status, type, code, headers
ERRORS = [
    (SignInError("sign in with x"), (401, "authentication_error", "authentication_error")),
    (UpstreamError("m", kind="rate_limit", passed={"retry-after": "7"}), (429, "rate_limit_error", "upstream_error")),
    (UpstreamError("m", kind="sign_in"), (401, "authentication_error", "upstream_error")),
    (UpstreamError("m", kind="permission"), (403, "permission_error", "upstream_error")),
    (UpstreamError("m", kind="too_large"), (413, "invalid_request_error", "upstream_error")),
    (UpstreamError("m", kind="upstream", status=402), (402, "invalid_request_error", "upstream_error")),
    (UpstreamError("m", kind="invalid_request", code="moderation"), (400, "invalid_request_error", "moderation")),
    (UpstreamError("m", kind="upstream", status=529), (529, "api_error", "upstream_error")),
    (UpstreamError("m", kind="transient", status=500), (500, "api_error", "upstream_error")),
    (UpstreamError("m", kind="bad_answer"), (502, "api_error", "invalid_upstream_response")),
    (UpstreamError("m", kind="transport"), (502, "api_error", "upstream_error")),
    (UpstreamError("m", kind="unavailable"), (503, "api_error", "upstream_error")),
]


@pytest.mark.parametrize(("error", "told"), ERRORS)
async def test_an_error_of_the_provider_has_the_form_of_these_routes(
    live: Live, error: Any, told: tuple[int, str, str]
) -> None:
    made = studio(live)
    made.error = error
    answer = await send(live, GENERATIONS)
    status, code, param = refusal(answer)
    assert (status, answer.json["error"]["type"], code) == told and param is None
    for name, value in (error.passed or {}).items():
        assert answer.headers[name] == value


async def test_refusals_of_the_guard_have_it_too(live: Live) -> None:
    studio(live)
    assert refusal(await send(live, GENERATIONS, Host="evil.example")) == (403, "permission_error", None)


# -- watched and logged


async def test_an_image_is_logged_and_watched_under_its_own_endpoint(live: Live) -> None:
    studio(live)
    for path, endpoint, model in (
        (GENERATIONS, "generation", "gpt-image-2"),
        (EDITS, "edit", "gpt-image-2"),
        (TRANSCRIPTIONS, "transcriptions", None),
    ):
        assert (await send(live, path, session_id="s")).status == 200
        await until(lambda: isinstance(live.watcher.last[-1], Completed))
        record = live.notes.all("request_completed")[-1]
        assert (record["endpoint"], record["provider"], record.get("model")) == (endpoint, "p1", model)
        begin, usage = Started(endpoint, "s"), UsageUpdated(7, 5, 0)
        chosen = ProviderSelected("p1", model or "", None)
        named = [ModelResolved(model, model), usage] if model else []
        assert live.watcher.last == [begin, chosen, *named, Completed(200)]
        told = list(live.watcher.told.values())[-1]
        assert sum(event.bytes for event in told if isinstance(event, Progress)) == len(ANSWERS[path])
    assert len(live.notes.all("request")) == 3 and not live.notes.all("unknown model")


@pytest.mark.parametrize("path", ROUTES)
async def test_a_refusal_is_logged_without_a_file(live: Live, path: str) -> None:
    """Also one that is found while the parts are read, when no model is known."""
    studio(live)
    body = {GENERATIONS: b"{", EDITS: edit(b"hello").body, TRANSCRIPTIONS: recording(stream="true").body}[path]
    answer = await send(live, path, body)
    assert answer.status == 400
    (record,) = live.notes.all("request_failed")
    assert record["status"] == 400 and "model" not in record and "errorFile" not in record and not live.notes.captures
    assert record["message"] == answer.json["error"]["message"]
    assert isinstance(live.watcher.last[-1], Failed)


async def test_nothing_of_a_request_is_written_down(live: Live) -> None:
    """Neither what was asked for nor what came, whatever became of it."""
    made = studio(live)
    made.body = lambda: Pieces([b'{"b64_json": "ANSWERED"}'])
    await send(live, GENERATIONS, {"prompt": "SECRET"})
    await send(live, GENERATIONS, {"prompt": "SECRET", "n": 0})
    await send(live, EDITS, edit(PNG, prompt="SECRET", n="11").body)
    made.error = UpstreamError("m", kind="transport")
    await send(live, EDITS, edit(PNG, prompt="SECRET").body)
    written = repr((live.notes.records, live.notes.captures, live.watcher.told))
    assert "SECRET" not in written and "ANSWERED" not in written and "iVBOR" not in written


# -- packed


@rows("path", ROUTES)
async def test_a_packed_body_is_unpacked(live: Live, path: str) -> None:
    studio(live)
    packed = gzip.compress(GOOD[path][0])
    assert (await send(live, path, packed, **{"Content-Encoding": "gzip"})).status == 200


async def test_limits_are_those_of_the_unpacked_body(live: Live) -> None:
    made = studio(live)
    packed = gzip.compress(json.dumps({"prompt": "x" * 300_000}).encode())
    answer = await send(live, GENERATIONS, packed, **{"Content-Encoding": "gzip"})
    assert refusal(answer) == (413, "request_too_large", None)
    broken = await send(live, GENERATIONS, packed[:-20], **{"Content-Encoding": "gzip"})
    assert broken.status in (400, 413) and not made.asked


@rows("encoding, pack", [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_nothing_follows_a_packed_body(live: Live, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """It would be kept beside what is counted."""
    made = studio(live)
    packed = pack(GOOD[GENERATIONS][0])
    for behind in (b"x", bytes(200_000), packed):
        answer = await send(live, GENERATIONS, packed + behind, **{"Content-Encoding": encoding})
        assert refusal(answer) == (400, "invalid_request", None) and not made.asked


async def test_a_body_without_a_length_is_counted(live: Live) -> None:
    async def pieces() -> Any:
        yield b'{"prompt": "'
        for _ in range(5):
            yield b"x" * 60_000

    made = studio(live)
    headers = {"Content-Type": "application/json"}
    answer = await live.request("POST", GENERATIONS, data=pieces(), headers=headers)
    assert refusal(answer) == (413, "request_too_large", None) and not made.asked
