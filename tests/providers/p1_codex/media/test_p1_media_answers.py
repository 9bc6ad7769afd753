"""Answers as they stand: what is passed on of them and of their headers. Which pass: `core/media/test_answers`."""

from __future__ import annotations

from media_world import FIELDS, World, pictures_of, refused
from samples import rows

from proxy.core.media.requests import ImageRequest
from proxy.core.tokens.usage import usage_of

MIB = 1024 * 1024


@rows("status", [204, 300, 304])
async def test_statuses_without_a_body(media: World, status: int) -> None:
    for kind in ("images", "transcription"):
        media.live.sandbox.p1.script.extend([{"status": status}])
        error = await refused(media.ask(kind))
        assert (error.status, error.code) == (502, "invalid_upstream_response")


PASSED = {
    "retry-after": "soon",
    "x-request-id": "req_7",
    "openai-processing-ms": "12",
    "openai-version": "2020-10-01",
    **{f"x-ratelimit-{what}-{of}": "5" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")},
}
KEPT_BACK = {
    "set-cookie": "a=b",
    "x-ratelimit-limit-images": "5",
    "cf-ray": "x",
    "x-codex-primary-used-percent": "5",
    "openai-organization": "org",
    "content-disposition": "attachment",
}


@rows("status", [200, 429, 500])
async def test_headers_that_are_passed_on(media: World, status: int) -> None:
    bodies = {"images": '{"created":1,"data":[{"b64_json":"aW1n"}]}', "transcription": '{"text":"a"}'}
    for kind, body in bodies.items():
        headers = {**PASSED, **KEPT_BACK}
        media.live.sandbox.p1.script.extend([{"status": status, "headers": headers, "body": body}])
        passed = (await media.ask(kind)).headers if status == 200 else (await refused(media.ask(kind))).passed
        fewer = ("retry-after", "x-request-id", "openai-processing-ms")
        assert passed == ({name: PASSED[name] for name in fewer} if kind == "transcription" else PASSED)


async def test_a_large_answer_comes_as_it_was_sent(media: World) -> None:
    media.play("large", size=5 * MIB)
    answer = await media.images(ImageRequest({**FIELDS, "n": 2}))
    assert all(len(piece) <= 1 * MIB for piece in answer.body) and len(list(answer.body)) > 10
    assert [len(one) for one in pictures_of(b"".join(answer.body))] == [5 * MIB] * 2
    assert answer.usage == usage_of(2, 2048)
    assert sum(len(piece) for piece in answer.body.take()) == answer.body.size and list(answer.body) == []


async def test_a_transcript_is_told_as_text(media: World) -> None:
    media.play("say", text='She said "hi"\nand left.')
    answer = await media.transcript()
    assert answer.text == 'She said "hi"\nand left.' and answer.usage is None
    assert b"".join(answer.body) == b'{"text":"She said \\"hi\\"\\nand left."}'
