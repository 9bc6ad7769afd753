"""The simulated image and transcription services: what they demand, what they answer, and what a script makes of it."""

import asyncio
import base64
import contextlib
import hashlib
import io
import json
import struct
import wave
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from p1_sandbox_client import Client
from pictures import png
from raw_client import Reply, never_crashes
from samples import rows

from proxy.sandbox import FAULTS, P1Options, Place, Sandbox
from proxy.sandbox.p1.media.answers import image_answer, transcript
from proxy.sandbox.p1.media.checks import Part, check_edit, check_recording, read_form
from proxy.sandbox.wires.refusal import Refused

IMAGES, TRANSCRIPTION = Place("p1", "images", stream=False), Place("p1", "transcription", stream=False)
GOOD = {"prompt": "a fox", "model": "gpt-image-2", "background": "auto", "quality": "auto", "size": "auto"}
PNG = png()
URL = f"data:image/png;base64,{PNG}"
BOUNDARY = "b0undary"


def recording(seconds: float = 0.5) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(8000)
        made.writeframes(bytes(int(16_000 * seconds)))
    return file.getvalue()


def part(name: str, data: bytes, *, filename: str | None = None, kind: str | None = None) -> bytes:
    named = "" if filename is None else f'; filename="{filename}"'
    typed = "" if kind is None else f"\r\nContent-Type: {kind}"
    return f'Content-Disposition: form-data; name="{name}"{named}{typed}\r\n\r\n'.encode() + data + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(f"--{BOUNDARY}\r\n".encode() + one for one in parts) + f"--{BOUNDARY}--\r\n".encode()


FILE = part("file", recording(), filename="a.wav", kind="audio/wav")
LANGUAGE = part("language", b"en")


class Media(Client):
    """Asks for pictures, and for transcripts: a body of bytes is a form."""

    def headers(self, body: Any = None) -> dict[str, str]:
        headers = {
            name: value
            for name, value in super().headers().items()
            if name not in ("session-id", "openai-beta", "content-type", "originator")
        }
        form = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "originator": "Codex Desktop"}
        pictures = {"content-type": "application/json", "originator": "codex_cli_rs"}
        return {**headers, "accept": "application/json", **(form if isinstance(body, bytes) else pictures)}

    def address(self, body: Any) -> str:
        base = self.url.removesuffix("/codex/responses")
        if isinstance(body, bytes):
            return f"{base}/transcribe"
        return f"{base}/codex/images/{'edits' if isinstance(body, dict) and 'images' in body else 'generations'}"

    async def played(self, body: Any, fault: str, **params: Any) -> Reply:
        self.sandbox.p1.script.extend([{"fault": fault, **params}])
        async with asyncio.timeout(5):
            return await self.ask(body)


@pytest.fixture
def media(sandbox: Sandbox, session: aiohttp.ClientSession) -> Media:
    return Media(sandbox, session)


def size_of(b64: str) -> tuple[int, int]:
    """Width and height of a PNG that is whole: every chunk with its checksum."""
    data = base64.b64decode(b64, validate=True)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds = 8, []
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        at += length + 12
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


@rows("members, size", [({}, (1024, 1024)), ({"size": "1536x1024"}, (1536, 1024)), ({"n": 3}, (1024, 1024))])
async def test_pictures(media: Media, members: dict[str, Any], size: tuple[int, int]) -> None:
    reply = await media.ask({**GOOD, **members})
    assert reply.status == 200 and reply.headers["x-request-id"] and reply.headers["set-cookie"]
    pictures = [one["b64_json"] for one in reply.json["data"]]
    assert len(set(pictures)) == members.get("n", 1)
    assert all(len(one) > 1_000 for one in pictures)
    assert [size_of(one) for one in pictures] == [size] * len(pictures)
    assert (reply.json["background"], reply.json["quality"]) == ("opaque", "medium")
    assert reply.json["size"] == f"{size[0]}x{size[1]}" and reply.json["usage"]["total_tokens"] > 0


async def test_an_edit_tells_what_it_works_on(media: Media) -> None:
    reply = await media.ask({**GOOD, "images": [{"image_url": URL}, {"image_url": URL}]})
    assert reply.status == 200 and reply.json["usage"]["input_tokens_details"]["image_tokens"] == 646
    data = base64.b64decode(PNG)
    seen = {"media_type": "image/png", "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert media.sandbox.p1.requests[-1].body == {**GOOD, "images": [seen, seen]}


async def test_pictures_as_large_as_one_likes(session: aiohttp.ClientSession) -> None:
    async with Sandbox(options=[P1Options(picture_bytes=300_000)]) as sandbox:
        client = Media(sandbox, session)
        (picture,) = (await client.ask(GOOD)).json["data"]
        assert size_of(picture["b64_json"]) == (1024, 1024) and len(picture["b64_json"]) >= 400_000
        (picture,) = (await client.played(GOOD, "large", size=1_000_001)).json["data"]
        assert len(base64.b64decode(picture["b64_json"])) == 1_000_001


async def test_a_transcript_follows_from_the_recording(media: Media) -> None:
    reply = await media.ask(form(FILE, LANGUAGE))
    assert reply.json == {"text": "This is a recording of 8044 bytes, WAV as audio/wav, 0.50 seconds long, in en."}
    other = await media.ask(form(part("file", b"\x1aE\xdf\xa3..", filename="é.webm", kind="audio/webm;codecs=opus")))
    assert other.json["text"] == "This is a recording of 6 bytes, WebM as audio/webm;codecs=opus."
    assert media.sandbox.p1.requests[-1].body["file"]["name"] == "é.webm"


@rows(
    "audio", [b"RIFF....WAVE" * 20_000, b"RIFF" + bytes(40) + b"data", recording()[:40], recording()[:28] + bytes(60)]
)
def test_recordings_that_are_none_have_no_length(audio: bytes) -> None:
    words = transcript(Part("file", "a.wav", "audio/wav", audio), None, {}).body["text"]
    assert "WAV" in words and "seconds" not in words


#: Body, headers -> status.
REFUSED: list[tuple[Any, dict[str, str | None], int]] = [
    *(
        (GOOD, headers, status)
        for headers, status in (
            ({"authorization": "Bearer x"}, 401),
            ({"chatgpt-account-id": None}, 403),
            ({"originator": None}, 400),
            ({"accept": "text/html"}, 406),
            ({"content-type": "text/plain"}, 415),
            ({"session_id": "s"}, 400),
            ({"openai-beta": "responses=experimental"}, 400),
            ({"x-codex-beta-features": "x"}, 400),
            ({"session-id": "s"}, 400),
            ({"x-codex-window-id": "s:0"}, 400),
            ({"version": "1"}, 400),
            ({"x-openai-internal-codex-responses-lite": "true"}, 400),
            ({"x-client-request-id": ""}, 400),
        )
    ),
    *(
        ({**GOOD, **members}, {}, status)
        for members, status in (
            ({"prompt": " "}, 400),
            ({"prompt": "\ud83d"}, 400),
            ({"prompt": None}, 422),
            ({"n": None}, 422),
            ({"n": 0}, 400),
            ({"n": 11}, 400),
            ({"n": True}, 400),
            ({"model": "gpt-image-1"}, 400),
            ({"background": "Auto"}, 400),
            ({"quality": "hd"}, 400),
            ({"size": "huge"}, 400),
            ({"response_format": "b64_json"}, 400),
            ({"images": []}, 400),
            ({"images": [{"image_url": URL}] * 6}, 400),
            ({"images": [URL]}, 400),
            ({"images": [{"image_url": URL, "detail": "high"}]}, 400),
            ({"images": [{"image_url": "https://e/x.png"}]}, 400),
            ({"images": [{"image_url": URL.replace("png", "jpeg")}]}, 400),
            ({"images": [{"image_url": URL.replace("png", "bmp")}]}, 400),
            ({"images": [{"image_url": URL[:-3]}]}, 400),
            ({"images": [{"image_url": "data:image/png;base64,iVBORw0KGgp="}]}, 400),
            ({"images": [{"image_url": URL + "\n"}]}, 400),
        )
    ),
    *(({name: one for name, one in GOOD.items() if name != missing}, {}, 400) for missing in GOOD),
    ([GOOD], {}, 400),
    (form(FILE), {"originator": "codex_cli_rs"}, 403),
    (form(FILE), {"content-type": "multipart/form-data"}, 400),
    (form(FILE), {"content-type": "multipart/form-data; boundary=other"}, 400),
    (form(FILE).replace(b"\r\n", b"\n"), {}, 400),
    (b"\r\n" + form(FILE), {}, 400),
    (form(FILE)[:-6], {}, 400),
    (form(FILE) + b"x", {}, 400),
    (form(LANGUAGE, FILE), {}, 400),
    (form(FILE, FILE), {}, 400),
    (form(LANGUAGE), {}, 400),
    (form(FILE, part("model", b"whisper-1")), {}, 400),
    (form(FILE, part("language", b" ")), {}, 400),
    (form(FILE, part("language", b"\xff")), {}, 400),
    (form(FILE, part("language", b"en", kind="text/plain")), {}, 400),
    (form(part("file", b"", filename="a.wav", kind="audio/wav")), {}, 400),
    (form(part("file", b"x", kind="audio/wav")), {}, 400),
    (form(part("file", b"x", filename="a.wav")), {}, 415),
    (form(part("file", b"x", filename="a.wav", kind="Audio/wav")), {}, 415),
    (form(part("file", b"x", filename="a.wav", kind="video/webm")), {}, 415),
    (form(FILE.replace(b"Content-Type", b"X-Type")), {}, 400),
    (form(FILE.replace(b"a.wav", b"\xff.wav")), {}, 400),
    (form(b"no header\r\n\r\n\r\n"), {}, 400),
]


@rows("body, headers, status", REFUSED)
async def test_what_is_refused(media: Media, body: Any, headers: dict[str, str | None], status: int) -> None:
    reply = await media.ask(body, headers)
    assert reply.status == status and media.sandbox.p1.requests[-1].status == status
    assert reply.json.keys() <= {"error", "detail", "status"}


async def test_a_body_without_a_length_is_refused(media: Media) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield json.dumps(GOOD).encode()

    async with media.session.post(media.address(GOOD), data=pieces(), headers=media.headers()) as response:
        assert response.status == 411


#: Fault, parameters -> status, and whether the body is whole JSON.
SHARED: list[tuple[str, dict[str, Any], int, bool]] = [
    ("usage_limit", {}, 429, True),
    ("huge_retry_after", {}, 429, True),
    ("overloaded", {}, 503, True),
    ("server_error", {}, 500, True),
    ("unauthorized", {}, 401, True),
    ("forbidden", {}, 403, True),
    ("json_error", {}, 200, True),
    ("html_error", {}, 502, False),
    ("redirect", {}, 302, False),
    ("rate_limit", {}, 429, True),
    ("limited", {"retry_after": "soon"}, 429, True),
    ("refused", {}, 400, True),
    ("refused", {"shape": "html"}, 400, False),
    ("as_status", {"status": 206}, 206, True),
    ("other_type", {}, 200, True),
    ("html_page", {}, 200, False),
    ("event_stream", {}, 200, False),
    ("empty_body", {}, 200, False),
    ("byte_order_mark", {}, 200, False),
    ("in_a_list", {}, 200, True),
    ("trailing", {}, 200, False),
    ("malformed_json", {}, 200, False),
    ("invalid_utf8", {}, 200, False),
    ("cut_before_output", {}, 200, False),
    ("cut_text", {"reset": True}, 200, False),
    ("silence_before_head", {"seconds": 0.01}, 200, True),
    ("silence_mid_text", {"seconds": 0.01}, 200, True),
    ("tiny_writes", {"size": 100}, 200, True),
    ("too_long", {"size": 100_000}, 200, True),
    ("more_members", {}, 200, True),
]
OF_IMAGES: list[tuple[str, dict[str, Any], int, bool]] = [
    ("large", {"size": 100_000}, 200, True),
    ("created", {}, 200, True),
    ("url_answer", {}, 200, True),
    ("blank_picture", {}, 200, True),
    ("bare_pictures", {}, 200, True),
    ("empty", {}, 200, True),
    ("no_data", {}, 200, True),
    ("escaped_slashes", {}, 200, True),
    ("escaped_signs", {}, 200, True),
    ("bad_usage", {}, 200, True),
]
OF_TRANSCRIPTS: list[tuple[str, dict[str, Any], int, bool]] = [
    ("say", {}, 200, True),
    ("ascii", {}, 200, True),
    ("empty", {}, 200, True),
    ("no_text", {}, 200, True),
    ("other_text", {}, 200, True),
]


@rows(
    "body, fault, params, status, whole",
    [
        *((GOOD, *row) for row in (*SHARED, *OF_IMAGES)),
        *((form(FILE), *row) for row in (*SHARED, *OF_TRANSCRIPTS)),
    ],
)
async def test_faults(media: Media, body: Any, fault: str, params: dict[str, Any], status: int, whole: bool) -> None:
    reply = await media.played(body, fault, **params)
    assert reply.status == status
    assert (reply.broken is not None) is fault.startswith("cut")
    try:
        json.loads(reply.data.decode())
    except ValueError:
        assert not whole
    else:
        assert whole
    await media.sandbox.p1.idle()


async def test_a_length_beyond_all_bounds(media: Media) -> None:
    for body in (GOOD, form(FILE)):
        media.sandbox.p1.script.extend([{"fault": "declared_too_long", "size": 10**10}])
        async with media.post(body) as response:
            assert response.status == 200 and response.headers["content-length"] == "10000000000"
            assert await response.content.readany()
            response.close()
    await media.sandbox.p1.idle()


async def test_the_same_answer_in_other_words(media: Media) -> None:
    (good,) = (await media.ask(GOOD)).json["data"]
    for fault in ("escaped_slashes", "escaped_signs"):
        reply = await media.played(GOOD, fault)
        assert reply.json["data"] == [good] and reply.data.count(b"\\") > 10
    assert (await media.played(form(FILE), "say")).json == {"text": 'She said "hi"\nand left.'}
    reply = await media.played(form(FILE), "ascii")
    assert reply.json == {"text": "Grüße 🙂"} and reply.data.isascii()


def test_junk_is_refused() -> None:
    def serve(body: Any) -> object:
        pictures = check_edit(body)
        return image_answer(body, len(pictures), created=1, least=0, headers={}).data

    never_crashes({**GOOD, "n": 1, "images": [{"image_url": URL}]}, serve)


@given(
    st.lists(
        st.sampled_from(
            [
                FILE,
                LANGUAGE,
                b"--",
                f"--{BOUNDARY}\r\n".encode(),
                f"--{BOUNDARY}--".encode(),
                b":",
                b'"',
                b"\xff",
                b"\r\n\r\n",
            ]
        )
    )
)
def test_broken_forms_are_refused(pieces: list[bytes]) -> None:
    with contextlib.suppress(Refused):
        file, _ = check_recording(read_form(f"multipart/form-data; boundary={BOUNDARY}", b"".join(pieces)))
        assert file.data


def test_every_fault_has_a_row() -> None:
    shared = {row[0] for row in SHARED} | {"declared_too_long"}
    assert set(FAULTS[IMAGES]) == shared | {row[0] for row in OF_IMAGES}
    assert set(FAULTS[TRANSCRIPTION]) == shared | {row[0] for row in OF_TRANSCRIPTS}


def test_every_fault_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[4] / "docs" / "sandbox.md").read_text()
    section = manual[manual.index("## Pictures and recordings of p1") : manual.index("## Runs of p5")]
    assert [fault for fault in {**FAULTS[IMAGES], **FAULTS[TRANSCRIPTION]} if f"`{fault}`" not in section] == []


async def test_a_step_may_look_at_the_request(media: Media) -> None:
    media.sandbox.p1.script.extend(
        [
            {"match": {"prompt": "owl"}, "fault": "empty"},
            {"match": {"wire": "transcription"}, "status": 418, "body": {}},
        ]
    )
    assert (await media.ask(GOOD)).json["data"]
    assert not (await media.ask({**GOOD, "prompt": "an owl"})).json["data"]
    assert (await media.ask(form(FILE))).status == 418
