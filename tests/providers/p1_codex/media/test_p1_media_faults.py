"""What becomes of a request for pictures or a transcript, fault by fault."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness import with_live
from media_world import World, refused
from samples import sampled, walk

from proxy.errors import headers, media_body
from proxy.providers.upstream.transport import HttpTimers
from proxy.sandbox import FAULTS, Place

MIB = 1024 * 1024
KINDS = ("images", "transcription")


@dataclass(frozen=True)
class Refused:
    """`words` stand in the message; `passed` are headers that must be there."""

    status: int
    code: str = "upstream_error"
    type: str = "api_error"
    attempts: int = 1
    words: str = ""
    passed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Good:
    attempts: int = 1


Row = tuple[str, dict[str, Any], Good | Refused]

#: An answer that is none.
INVALID = Refused(502, "invalid_upstream_response")
NO_JSON = Refused(502, "invalid_upstream_response", words="not a JSON object")
LIMITED = "rate_limit_error"
BAD = "invalid_request_error"
MODERATED = Refused(400, "moderation_blocked", BAD, words="status 400: Your request was rejected by the safety system.")

SHARED: list[Row] = [
    ("rate_limit", {"seconds": 7}, Refused(429, "rate_limit_exceeded", LIMITED, passed={"retry-after": "7"})),
    *(
        ("limited", {"retry_after": wait}, Refused(429, "rate_limit_exceeded", LIMITED, passed={"retry-after": wait}))
        for wait in ("7", "0.5", "soon", "Wed, 21 Oct 2026 07:28:00 GMT")
    ),
    ("huge_retry_after", {}, Refused(429, "rate_limit_exceeded", LIMITED, passed={"retry-after": "86400"})),
    ("usage_limit", {}, Refused(429, type=LIMITED, words="The usage limit has been reached")),
    ("overloaded", {"retry_after": 3}, Refused(503, words="overloaded", passed={"retry-after": "3"})),
    *(("server_error", {"status": status}, Refused(status)) for status in (500, 502, 504, 599)),
    ("unauthorized", {}, Good(2)),
    (
        "unauthorized",
        {"times": 2},
        Refused(
            401, "upstream_error", "authentication_error", 2, "is expired. (sign in again: `model-proxy auth login p1`"
        ),
    ),
    ("forbidden", {}, Refused(403, type="permission_error", words="Access denied")),
    ("html_error", {}, Refused(502, words="service answered with status 502")),
    *(("redirect", {"status": status}, INVALID) for status in (300, 301, 302, 303, 304, 307, 308)),
    ("json_error", {}, INVALID),
    ("refused", {}, MODERATED),
    ("refused", {"code": None}, Refused(400, type=BAD, words="safety system")),
    ("refused", {"code": "not a word"}, Refused(400, type=BAD, words="safety system")),
    ("refused", {"code": "x" * 65}, Refused(400, type=BAD)),
    (
        "refused",
        {"shape": "detail", "message": "No\r\n such  size\x07"},
        Refused(400, type=BAD, words=": No such size"),
    ),
    ("refused", {"shape": "flat"}, Refused(400, type=BAD, words="safety system")),
    ("refused", {"shape": "text"}, Refused(400, type=BAD)),
    ("refused", {"shape": "html"}, Refused(400, type=BAD)),
    ("refused", {"message": "x" * 501}, Refused(400, "moderation_blocked", BAD, words="x" * 499 + "…")),
    ("refused", {"message": "x" * 70_000}, Refused(400, type=BAD)),
    (
        "refused",
        {"message": "No image: 'data:image/png;base64,iVBORw0K'."},
        Refused(400, "moderation_blocked", BAD, words=": No image: '[redacted data-url len=30]'."),
    ),
    (
        "refused",
        {"message": "Bearer abcdefghijkl"},
        Refused(400, "moderation_blocked", BAD, words="Bearer [redacted len=12]"),
    ),
    *(
        ("refused", {"status": status, "shape": "text"}, Refused(status, type=BAD))
        for status in (402, 404, 408, 409, 413, 418, 422, 425, 451)
    ),
    *(("as_status", {"status": status}, Good()) for status in (201, 202, 203, 205, 206)),
    *(("as_status", {"status": status}, INVALID) for status in (300, 399)),
    *(("as_status", {"status": status}, Refused(status)) for status in (500, 599)),
    ("other_type", {}, Good()),
    ("other_type", {"kind": "text/html"}, Good()),
    ("html_page", {}, NO_JSON),
    ("event_stream", {}, NO_JSON),
    ("empty_body", {}, NO_JSON),
    ("byte_order_mark", {}, NO_JSON),
    ("in_a_list", {}, NO_JSON),
    ("trailing", {}, NO_JSON),
    ("malformed_json", {}, NO_JSON),
    ("invalid_utf8", {}, NO_JSON),
    *((fault, {"reset": reset}, INVALID) for fault in ("cut_before_output", "cut_text") for reset in (False, True)),
    ("silence_before_head", {"seconds": 0.05}, Good()),
    ("silence_mid_text", {"seconds": 0.05}, Good()),
    ("tiny_writes", {}, Good()),
    ("declared_too_long", {}, Refused(502, "invalid_upstream_response", words="1073741824 bytes")),
    ("more_members", {}, Good()),
]

IMAGES: list[Row] = [
    ("large", {"size": 3 * MIB}, Good()),
    ("created", {"value": 0}, Good()),
    *(("created", {"value": value}, INVALID) for value in (None, -1, 1.0, "1", True)),
    ("url_answer", {}, INVALID),
    *(("blank_picture", {"value": value}, INVALID) for value in ("", None, 1, ["x"])),
    ("blank_picture", {"value": "no base64"}, Good()),
    ("bare_pictures", {}, INVALID),
    ("empty", {}, INVALID),
    ("no_data", {}, INVALID),
    ("escaped_slashes", {}, Good()),
    ("escaped_signs", {}, Good()),
    *(("bad_usage", {"value": value}, Good()) for value in ("x", None, {"input_tokens": "1"}, [])),
    ("too_long", {}, Refused(502, "invalid_upstream_response", words="passed 134217728 bytes")),
]

TRANSCRIPTS: list[Row] = [
    ("say", {}, Good()),
    ("say", {"text": "x" * (MIB - len('{"text":""}'))}, Good()),
    ("say", {"text": "x" * MIB}, INVALID),
    ("ascii", {}, Good()),
    ("empty", {}, INVALID),
    *(("say", {"text": text}, INVALID) for text in ("  ", "\u00a0\n\u2003")),
    ("no_text", {}, INVALID),
    *(("other_text", {"value": value}, INVALID) for value in (1, ["x"], {"text": "x"})),
    ("too_long", {"size": MIB}, INVALID),
]

TABLE = [
    *((kind, *row) for kind in KINDS for row in SHARED),
    *(("images", *row) for row in IMAGES),
    *(("transcription", *row) for row in TRANSCRIPTS),
]


def differs(kind: str, fault: str, params: dict[str, Any], outcome: Good | Refused) -> Sequence[Hashable]:
    """What makes a difference: each row, and each outcome to each kind."""
    return (fault, repr(params)), (kind, repr(outcome))


@pytest.mark.parametrize("kind", KINDS)
async def test_faults(media: World, kind: str) -> None:
    with walk() as row:
        for of, fault, params, outcome in sampled(TABLE, 1, differs):
            if of == kind:
                with row(f"{fault} {params}"[:200]):
                    await comes_out(media, kind, fault, params, outcome)


async def comes_out(media: World, kind: str, fault: str, params: dict[str, Any], outcome: Good | Refused) -> None:
    p1 = media.live.sandbox.p1
    media.live.forget()
    refreshed, given = p1.refreshes, media.given
    p1.script.replace([{"fault": fault, **params}])
    if isinstance(outcome, Good):
        answer = await media.ask(kind)
        assert isinstance(json.loads(b"".join(answer.body)), dict)
    else:
        error = await refused(media.ask(kind))
        shape = media_body(error)["error"]
        assert (error.status, shape["code"], shape["type"]) == (outcome.status, outcome.code, outcome.type)
        assert shape["provider"] == "p1" and shape["param"] is None
        assert outcome.words in error.message and len(error.message) < 700 and error.message.isprintable()
        assert "<" not in error.message
        assert outcome.passed.items() <= headers(error).items()
    assert (p1.total_requests, p1.refreshes - refreshed) == (outcome.attempts, outcome.attempts - 1)
    assert media.given - given == 1 and media.live.sleeps == []
    await p1.idle()


def test_every_fault_has_an_outcome() -> None:
    for kind in KINDS:
        named = {fault for one, fault, _, _ in TABLE if one == kind}
        assert named == set(FAULTS[Place("p1", kind, stream=False)])


@with_live(tuning=(HttpTimers(idle=0.05),))
@pytest.mark.parametrize("kind", KINDS)
async def test_a_body_that_stalls(media: World, kind: str) -> None:
    media.play("silence_mid_text", seconds=None)
    error = await refused(media.ask(kind))
    assert (error.status, error.code) == (502, "invalid_upstream_response")
    await media.live.sandbox.p1.idle()


@with_live(p1_header_timeout_ms=50)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_head_that_does_not_come(media: World, kind: str) -> None:
    media.play("silence_before_head", seconds=None)
    error = await refused(media.ask(kind))
    assert (error.status, error.code) == (502, "upstream_error") and "unavailable" in error.message
    assert media.given == 1 and media.live.sandbox.p1.total_requests == 1
    await media.live.sandbox.p1.idle()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_service_that_is_away(media: World, kind: str) -> None:
    await media.live.sandbox.stop()
    error = await refused(media.ask(kind))
    assert (error.status, error.code) == (502, "upstream_error") and "unavailable" in error.message
    assert media.given == 1


@with_live(signed_in=False)
@pytest.mark.parametrize("kind", KINDS)
async def test_nobody_has_signed_in(media: World, kind: str) -> None:
    error = await refused(media.ask(kind))
    assert (error.status, error.row.openai) == (401, "authentication_error")
    assert "auth login p1" in error.message and media.seen == [] and media.given == 1


@pytest.mark.parametrize(("status", "kind", "expected"), [(401, "sign_in", 401), (500, "unavailable", 503)])
async def test_a_renewal_that_fails(media: World, status: int, kind: str, expected: int) -> None:
    media.play("unauthorized")
    body = {"error": {"message": "no", "code": "refresh_token_reused"}}
    media.live.sandbox.p1.issuer.answer_with(status, body, times=None)
    error = await refused(media.images())
    assert (error.kind, error.status, error.code) == (kind, expected, None)
    assert media.live.sandbox.p1.total_requests == 1 and media.given == 1
