"""The official openai SDK makes images and has recordings written down, by p1 and its simulated services."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from harness import Live, with_live
from media_live import GENERATIONS, PNG, ROUTES, SWITCHES, refusal, send
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


@rows("fault, told", [("url_answer", (502, "invalid_upstream_response")), ("limited", (429, "rate_limit_exceeded"))])
async def test_faults_of_the_service_reach_the_caller(live: Live, fault: str, told: tuple[int, str]) -> None:
    """Of the many: see `test_p1_media_faults`."""
    live.sandbox.p1.script.extend([{"fault": fault}])
    answer = await send(live, GENERATIONS)
    assert refusal(answer) == (*told, None) and live.sandbox.p1.total_requests == 1
    assert answer.headers.get("Retry-After") == ("7" if fault == "limited" else None)


@with_live(**SWITCHES, signed_in=False)
async def test_without_a_sign_in_a_wrong_request_is_wrong_and_a_right_one_names_the_cure(live: Live) -> None:
    for path in ROUTES:
        assert (await send(live, path, b"{")).status == 400
        answer = await send(live, path)
        assert refusal(answer) == (401, "authentication_error", None)
        assert "auth login p1" in answer.json["error"]["message"] and answer.headers["x-should-retry"] == "false"
    assert live.upstream == 0
