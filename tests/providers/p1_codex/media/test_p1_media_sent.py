"""What reaches the image service and the transcription service."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from typing import Any

from harness import until, with_live
from media_world import FIELDS, PNG, WAV, World, edit, recording
from samples import rows

from proxy.core.media.pieces import BLOCK, Pieces
from proxy.core.media.requests import ImageRequest, InputImage
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.p1_codex.account.workspace import OVERRIDE_HEADER
from proxy.providers.p1_codex.media.calls import (
    image_body,
    images_url,
    transcription_body,
    transcription_url,
)
from proxy.providers.p1_codex.settings import CodexSettings

GIF = base64.b64encode(b"GIF89a").decode()
BEARER = ("authorization", "chatgpt-account-id", "host")


def headers_of(seen: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in seen.headers.items() if name.lower() not in BEARER}


async def test_the_bodies() -> None:
    async def body(request: ImageRequest) -> bytes:
        return b"".join(await image_body(request))

    assert await body(ImageRequest(FIELDS)) == (
        b'{"prompt":"a fox","model":"gpt-image-2","background":"auto","quality":"auto","size":"auto"}'
    )
    gif = InputImage("image/gif", Pieces([GIF.encode()]))
    assert (
        await body(ImageRequest({"prompt": 'a "b"\n\u00e9', "n": 2}, (gif, InputImage("image/png", Pieces()))))
        == (
            '{"prompt":"a \\"b\\"\\né","n":2,"images":[{"image_url":"data:image/gif;base64,R0lGODlh"},'
            '{"image_url":"data:image/png;base64,"}]}'
        ).encode()
    )
    form = b"".join(transcription_body(recording(WAV, name="\u00e9 .wav", language="en"), "b"))
    assert (
        form
        == (
            '--b\r\nContent-Disposition: form-data; name="file"; filename="é .wav"\r\nContent-Type: audio/wav\r\n\r\n'
        ).encode()
        + WAV
        + b'\r\n--b\r\nContent-Disposition: form-data; name="language"\r\n\r\nen\r\n--b--\r\n'
    )
    assert b"".join(transcription_body(recording(WAV), "b")).endswith(WAV + b"\r\n--b--\r\n")


async def test_a_body_is_never_joined() -> None:
    """The pieces of a picture and of a recording stay as they are, and the request forgets them."""
    pieces = [b"A" * BLOCK, b"B" * BLOCK, b"C" * 70_000]
    request = ImageRequest(FIELDS, (InputImage("image/png", Pieces(pieces)),))
    sent = list(await image_body(request))
    assert sent[1:3] == pieces[:2] and sent[3].startswith(pieces[2]) and list(request.images[0].base64) == []
    asked = recording(b"".join(pieces))
    sent = list(transcription_body(asked, "b"))
    assert sent[1:3] == pieces[:2] and sent[3] == pieces[2] + b"\r\n--b--\r\n" and list(asked.audio) == []


async def test_a_prompt_of_any_length_lets_others_work() -> None:
    prompt = 'x"é🙂\n' * 400_000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    body = b"".join(await image_body(ImageRequest({"prompt": prompt, "size": "auto"})))
    task.cancel()
    assert json.loads(body) == {"prompt": prompt, "size": "auto"} and turns >= 7


@rows("base", ["https://h/backend-api/codex", "https://h/x/", "https://h", "https://h//"])
def test_addresses(base: str) -> None:
    codex = CodexSettings(images_base_url=base, transcriptions_base_url=base)
    root = base.rstrip("/")
    assert images_url(codex, ImageRequest(FIELDS)) == f"{root}/images/generations"
    assert images_url(codex, edit(PNG)) == f"{root}/images/edits"
    assert transcription_url(codex) == f"{root}/transcribe"


async def test_headers(media: World) -> None:
    await media.images(session="s 1")
    await media.transcript(recording(language="en"), session="s 1")
    images, audio = media.seen
    common = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "model-proxy/0.1.0"}
    common["x-client-request-id"] = "s 1"
    assert headers_of(images) == {
        **common,
        "content-type": "application/json",
        "originator": "model-proxy",
        "content-length": str(images.size),
    }
    kind = headers_of(audio).pop("content-type")
    assert kind.startswith("multipart/form-data; boundary=recording-")
    assert headers_of(audio) == {
        **common,
        "content-type": kind,
        "originator": "Codex Desktop",
        "content-length": str(audio.size),
    }


@with_live(p1_originator="mine", p1_user_agent="agent/1", p1_model="gpt-5.5", p1_effort="high", p1_service_tier="fast")
async def test_settings_that_count_here(media: World) -> None:
    for _ in range(2):
        await media.images(session=None)
    await media.transcript(session="not\u00e9fit")
    names = [(one.headers["originator"], one.headers["user-agent"]) for one in media.seen]
    assert names == [("mine", "agent/1")] * 2 + [("Codex Desktop", "agent/1")]
    assert not any("x-client-request-id" in one.headers for one in media.seen)
    assert media.seen[0].body == FIELDS


async def test_an_edit_and_a_recording_arrive_whole(media: World) -> None:
    await media.images(edit(PNG, PNG, n=2))
    data = base64.b64decode(PNG)
    told = {"media_type": "image/png", "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert media.seen[-1].body == {**FIELDS, "n": 2, "images": [told, told]}
    assert media.seen[-1].path == "/backend-api/codex/images/edits"
    await media.transcript(recording(WAV, name="recording.webm", media_type="audio/webm;codecs=opus", language="en"))
    file = {"name": "recording.webm", "media_type": "audio/webm;codecs=opus", "size": len(WAV)}
    assert media.seen[-1].body == {
        "file": {**file, "sha256": hashlib.sha256(WAV).hexdigest()},
        "language": "en",
    }


async def test_a_refused_token_is_renewed_and_all_is_sent_again(media: World) -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_000_000)).decode()
    media.live.sandbox.p1.revoke_access()
    request = edit(picture[: 7 * 1000])
    for at in range(7000, len(picture), 100_000):
        request.images[0].base64.add(picture[at : at + 100_000].encode())
    await media.images(request)
    first, second = media.seen
    assert (first.status, second.status, first.size) == (401, 200, second.size)
    assert second.body["images"][0]["size"] == 3_000_008 and media.given == 1
    assert media.live.watcher.told["req_1"] == [UpstreamStarted(1), UpstreamStarted(2)]
    assert media.live.sandbox.p1.refreshes == 1


async def test_the_body_is_given_back_before_the_answer_is_whole(media: World) -> None:
    media.play("silence_mid_text", seconds=None)
    task = asyncio.create_task(media.images(edit(PNG)))
    await until(lambda: media.given == 1)
    assert not task.done() and media.live.sandbox.p1.active == 1
    task.cancel()
    await media.live.sandbox.p1.idle()
    assert media.given == 1


async def test_who_leaves_stops_the_upstream(media: World) -> None:
    for fault in ("silence_before_head", "silence_mid_text"):
        for kind in ("images", "transcription"):
            media.play(fault, seconds=None)
            asked = media.live.upstream
            task = asyncio.create_task(media.ask(kind))
            await until(lambda asked=asked: media.live.upstream > asked)
            task.cancel()
            await media.live.sandbox.p1.idle()
    assert media.given == 4


async def test_the_backend_of_the_workspace(media: World) -> None:
    options = media.live.sandbox.p1.options
    options.workspace_origin, options.routing_override = f"http://localhost:{media.live.sandbox.port}", "us"
    for kind in ("images", "transcription"):
        await media.ask(kind)
        assert media.seen[-1].headers["host"] == f"localhost:{media.live.sandbox.port}"
        assert media.seen[-1].headers[OVERRIDE_HEADER] == "us"
    assert media.live.sandbox.p1.routings == 1


async def test_another_address_is_not_the_workspaces(media: World) -> None:
    sandbox = media.live.sandbox
    options = sandbox.p1.options
    options.workspace_origin, options.routing_override = "https://nowhere.invalid", "us"
    base = f"http://localhost:{sandbox.port}/backend-api"
    media.live.config = media.live.config.changed(
        CodexSettings, images_base_url=f"{base}/codex", transcriptions_base_url=base
    )
    for kind in ("images", "transcription"):
        await media.ask(kind)
        assert media.seen[-1].headers["host"] == f"localhost:{sandbox.port}"
        assert OVERRIDE_HEADER not in media.seen[-1].headers
    assert sandbox.p1.routings == 0, "nobody asks for what is not used"
