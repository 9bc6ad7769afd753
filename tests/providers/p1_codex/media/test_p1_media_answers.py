"""Answers as they stand: which pass and which do not, byte by byte, and what is passed on beside them."""

from __future__ import annotations

import pytest
from media_world import FIELDS, World, pictures_of, refused
from samples import rows

from proxy.core.media.requests import ImageRequest
from proxy.core.tokens.usage import usage_of

MIB = 1024 * 1024

#: Body -> whether it is one.
IMAGES: list[tuple[str, bool]] = [
    ('{"created":1,"data":[{"b64_json":"aW1n"}]}', True),
    ('{"created":1,"data":[{"b64_json":"aW\\/n"}]}', True),
    ('{"created":1,"data":[{"b64_json":"aW\\u002Fn"}]}', True),
    (' \n{"created":1,"data":[{"b64_json":"aW1n"}],"usage":"x"}\n', True),
    ('{"created":1,"data":[{"b64_json":"aW1n"}],"usage":{"input_tokens":1.5}}', True),
    ('{"created":1,"data":[{"b64_json":"aW1n","url":null},{"b64_json":"x"}]}', True),
    ('{"created":1,"data":[{"b64_json":"aW1n"}],"note":"\\\\u002B \\\\/ \\"\\u002B"}', True),
    ('{"data":[{"b64_json":"aW1n"}]}', False),
    ('{"created":1,"data":[{"url":"https://e"}]}', False),
    ('{"created":1,"data":[{"b64_json":"aW1n"},{}]}', False),
    ('{"created":1,"data":{"b64_json":"aW1n"}}', False),
    ('{"created":1,"data":["aW1n"]}', False),
    ('{"created":NaN,"data":[{"b64_json":"aW1n"}]}', False),
    ('{"created":1,"data":[{"b64_json":"aW1n"}]}x', False),
    ('[{"created":1,"data":[{"b64_json":"aW1n"}]}]', False),
    ('{"created":1,"data":[{"b64_json":"aW1', False),
    ("[" * 100_000, False),
    ("null", False),
]

TRANSCRIPTS: list[tuple[str, bool]] = [
    ('{"text":"a \\"b\\"\\nc"}', True),
    ('{"text":"\\u00e9","segments":[],"language":"fr"}', True),
    ('{"text":"  "}', False),
    ('{"text":"\\u2003"}', False),
    ("{}", False),
    ('["x"]', False),
    ('"x"', False),
    ('{"text":null}', False),
]


@pytest.mark.parametrize(
    ("kind", "body", "good"),
    [*(("images", *row) for row in IMAGES), *(("transcription", *row) for row in TRANSCRIPTS)],
)
async def test_what_is_an_answer(media: World, kind: str, body: str, good: bool) -> None:
    media.live.sandbox.p1.script.extend([{"status": 200, "headers": {"content-type": "text/plain"}, "body": body}])
    if good:
        assert b"".join((await media.ask(kind)).body) == body.encode()
        return
    error = await refused(media.ask(kind))
    assert (error.status, error.code) == (502, "invalid_upstream_response")
    assert media.live.upstream == 1


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
    bodies = {"images": IMAGES[0][0], "transcription": TRANSCRIPTS[0][0]}
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
