"""The official openai SDK makes images and has recordings written down, by p1 and its simulated services."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from harness import Live, until, with_live
from media_live import EDITS, GENERATIONS, PNG, ROUTES, SWITCHES, TRANSCRIPTIONS, Form, part, refusal, send
from samples import rows
from sdk import openai_client, validate

Client = openai.AsyncOpenAI
WAV = b"RIFF\x24\0\0\0WAVEfmt "


@pytest.fixture
def live_options() -> dict[str, Any]:
    return dict(SWITCHES)


@pytest.fixture
async def client(live: Live) -> AsyncIterator[Client]:
    async with openai_client(live.url) as running:
        yield running


async def test_images_are_made_and_edited(client: Client, live: Live) -> None:
    made = await client.images.generate(model="gpt-image-2", prompt="a fox", n=2, size="1024x1536", quality="low")
    validate(made)
    assert made.data is not None and len(made.data) == 2 and made.usage is not None and made.created
    picture = base64.b64decode(made.data[0].b64_json or "")
    assert picture.startswith(b"\x89PNG")
    for image in (picture, ("a.png", picture), [("a.png", picture), ("b.bin", PNG, "text/plain")]):
        changed: Any = await client.images.edit(image=image, prompt="blue", model="gpt-image-2", background="opaque")
        validate(changed)
        assert changed.data[0].b64_json
    seen = live.sandbox.p1.requests[-1].body
    assert seen["background"] == "opaque" and len(seen["images"]) == 2


#: what the SDK sends of a recording: a file with a name that says its kind, with one that does not, with a type
RECORDINGS: list[tuple[Any, str]] = [
    (("a.wav", WAV), "WAV"),
    (("a.webm", b"\x1aE\xdf\xa3"), "audio/webm"),
    (("a.mp4", b"\0\0\0\x20ftypisom"), "audio/mp4"),
    (("a.mpeg", b"ID3"), "audio/mpeg"),
    (("a.ogg", b"OggS"), "audio/ogg"),
    ((None, WAV), "WAV"),
    (WAV, "WAV"),
    (("../a", WAV, "audio/wav;codecs=1"), "audio/wav;codecs=1"),
]


@pytest.mark.parametrize(("file", "words"), RECORDINGS)
async def test_recordings_are_written_down(client: Client, file: Any, words: str) -> None:
    heard = await client.audio.transcriptions.create(model="gpt-4o-transcribe", file=file, language="en")
    validate(heard)
    assert words in heard.text and "in en" in heard.text
    plain: Any = await client.audio.transcriptions.create(model="whisper-1", file=file, response_format="text")
    assert words in plain and plain.endswith("\n")


async def test_what_is_refused_is_an_error_of_the_sdk(client: Client) -> None:
    with pytest.raises(openai.BadRequestError) as blank:
        await client.images.generate(prompt=" ")
    assert (blank.value.param, blank.value.code) == ("prompt", "invalid_request")
    assert blank.value.type == "invalid_request_error" and blank.value.request_id
    with pytest.raises(openai.BadRequestError) as masked:
        await client.images.edit(image=PNG, mask=PNG, prompt="x")
    assert (masked.value.param, masked.value.code) == ("mask", "unsupported_parameter")
    with pytest.raises(openai.BadRequestError) as wanted:
        await client.audio.transcriptions.create(model="m", file=WAV, response_format="srt")
    assert wanted.value.param == "response_format"


#: a fault of the service -> status and code at the caller
FAULTS: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
    ("created", {}, (502, "invalid_upstream_response")),
    ("url_answer", {}, (502, "invalid_upstream_response")),
    ("redirect", {"status": 302}, (502, "invalid_upstream_response")),
    ("redirect", {"status": 304}, (502, "invalid_upstream_response")),
    ("refused", {"status": 500, "shape": "html"}, (500, "upstream_error")),
    ("limited", {}, (429, "rate_limit_exceeded")),
    ("refused", {"status": 529, "shape": "text"}, (529, "upstream_error")),
    ("cut_text", {}, (502, "invalid_upstream_response")),
]


@pytest.mark.parametrize(("fault", "params", "told"), FAULTS)
async def test_faults_of_the_service_reach_the_caller(
    live: Live, fault: str, params: dict[str, Any], told: tuple[int, str]
) -> None:
    live.sandbox.p1.script.extend([{"fault": fault, **params}])
    answer = await send(live, GENERATIONS)
    assert refusal(answer) == (*told, None) and live.sandbox.p1.total_requests == 1
    assert answer.headers.get("Retry-After") == ("7" if fault == "limited" else None)


async def test_an_answer_with_escapes_is_passed_on_as_it_is(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "escaped_slashes"}, {"fault": "bad_usage"}, {"fault": "say"}])
    assert b"\\/" in (await send(live, GENERATIONS)).raw
    assert (await send(live, GENERATIONS)).status == 200
    assert (await send(live, TRANSCRIPTIONS)).json == {"text": 'She said "hi"\nand left.'}


@with_live(**SWITCHES, signed_in=False)
async def test_without_a_sign_in_a_wrong_request_is_wrong_and_a_right_one_names_the_cure(live: Live) -> None:
    for path in ROUTES:
        assert (await send(live, path, b"{")).status == 400
        answer = await send(live, path)
        assert refusal(answer) == (401, "authentication_error", None)
        assert "auth login p1" in answer.json["error"]["message"] and answer.headers["x-should-retry"] == "false"
    assert live.upstream == 0


async def test_a_renewal_is_not_seen_and_two_refusals_are(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "unauthorized"}])
    assert (await send(live, EDITS)).status == 200 and live.sandbox.p1.refreshes == 1
    live.sandbox.p1.script.extend([{"fault": "unauthorized", "times": 2}])
    assert refusal(await send(live, EDITS)) == (401, "upstream_error", None)


@pytest.mark.parametrize("path", ROUTES)
async def test_a_client_that_leaves_stops_the_service(live: Live, path: str) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_before_head", "seconds": None}])
    task = asyncio.ensure_future(send(live, path))
    await until(lambda: live.sandbox.p1.active)
    task.cancel()
    await live.sandbox.p1.idle(1.0)
    assert (await send(live, path)).status == 200


@rows("letters, status", [("é" * 33, 400), (f"{'e' * 64}  ", 200), ("  ", 200)])
async def test_a_language_has_a_length(live: Live, letters: str, status: int) -> None:
    form = Form((part("file", WAV, "../recording.webm", "audio/webm;codecs=opus"), part("language", letters)))
    answer = await send(live, TRANSCRIPTIONS, form.body, form.content_type)
    assert answer.status == status
    if status == 400:
        assert refusal(answer) == (400, "invalid_request", "language")
    else:
        seen = live.sandbox.p1.requests[-1].body
        assert seen.get("language") == (letters.strip() or None)
