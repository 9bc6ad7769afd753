"""Images and recordings through the openai SDK: what reaches the service, what comes back, and how it is refused."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import openai

from e2e.expecting import Scenarios, expect
from e2e.media_files import noisy_png, png_sides, recording, red_png
from e2e.sdk_scenarios import Python
from e2e.servers import CAPTURES, watched_proxy
from proxy.observe.capture.layout import TRAFFIC
from proxy.sandbox import Sandbox

PYTHON: Scenarios[Python] = Scenarios()

MODEL = "gpt-image-2"
#: Of one picture.
LIMIT = 20 * 1024 * 1024
#: A picture of each size that makes a difference.
SIZES: Mapping[str, Callable[[], bytes]] = {
    "tiny": red_png,
    "small": lambda: noisy_png(300_000),
    "medium": lambda: noisy_png(5_000_000),
    "just under the limit": lambda: noisy_png(LIMIT),
}
#: As this Python calls a WAV; where that says little to the service, the ending of the name does.
WAV = "audio/x-wav" if mimetypes.guess_type("note.wav")[0] == "audio/x-wav" else "audio/wav"
#: No answer takes longer, however slow the machine.
QUICK_S = 10.0


@asynccontextmanager
async def media_proxy(
    folder: Path, script: Sequence[Mapping[str, Any]] = (), settings: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[str, Sandbox]]:
    """A proxy that keeps captures, but none of these routes."""
    async with watched_proxy(folder, script, {CAPTURES: "1", **(settings or {})}) as (url, sandbox):
        yield url, sandbox
    kept = [str(path.relative_to(folder)) for path in (folder / "state").rglob("*")]
    expect(not any(TRAFFIC in name for name in kept) and kept, "nothing is captured", kept)


@contextmanager
def quick(what: str) -> Any:
    begun = time.monotonic()
    yield
    seconds = time.monotonic() - begun
    expect(seconds < QUICK_S, f"{what} takes less than {QUICK_S:g} s", seconds)


def expect_pictures(answer: Mapping[str, Any], sides: Sequence[tuple[int, int]]) -> None:
    """`answer` is the JSON: its pictures are real, and of these sides."""
    files = [base64.b64decode(item["b64_json"], validate=True) for item in answer["data"]]
    expect([png_sides(file) for file in files] == sides, f"pictures of {sides}", [len(file) for file in files])
    expect(answer["output_format"] == "png" and answer["usage"]["total_tokens"] > 0, "and what they cost", answer)


def expect_received(sandbox: Sandbox, files: Sequence[bytes], **members: Any) -> None:
    """The last request at the service: an edit of these pictures, in their order."""
    got = dict(sandbox.p1.requests[-1].body)
    images = [(image["media_type"], image["size"], image["sha256"]) for image in got.pop("images")]
    expect(images == [told(file) for file in files], "the pictures arrive as they are", images)
    wanted = {"model": MODEL, "background": "auto", "quality": "auto", "size": "auto", **members}
    expect(got == wanted, "and what else was asked for", got)


def told(file: bytes) -> tuple[str, int, str]:
    """What the simulator keeps of a PNG."""
    return "image/png", len(file), hashlib.sha256(file).hexdigest()


def client(url: str, key: str = "unused") -> openai.AsyncOpenAI:
    """The SDK, without the outgoing proxies and the retries that it may have."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=http)


@PYTHON.add
async def images_generate(_python: Python, folder: Path) -> None:
    async with media_proxy(folder) as (url, sandbox), client(url) as sdk:
        with quick("a picture"):
            made = await sdk.images.generate(prompt="a red fox", model=MODEL, size="1024x1536", n=2, quality="low")
        raw = await sdk.images.with_raw_response.generate(prompt="«ü» \u2028 \U0001f98a", background="opaque")
        bodies = [request.body for request in sandbox.p1.requests]
    expect_pictures(made.to_dict(), [(1024, 1536)] * 2)
    expect_pictures(raw.parse().to_dict(), [(1024, 1024)])
    expect(made.created and made.size == "1024x1536" and made.quality == "low", "with what was chosen", made.size)
    named = ("cache-control", "x-content-type-options", "set-cookie")
    headers = [raw.headers.get(name) for name in named]
    expect(headers == ["no-store", "nosniff", None] and raw.headers["request-id"], "headers", headers)
    asked = [(body["prompt"], body["size"], body.get("n"), body["background"]) for body in bodies]
    expect(
        asked == [("a red fox", "1024x1536", 2, "auto"), ("«ü» \u2028 \U0001f98a", "auto", None, "opaque")],
        "what is asked for reaches the service",
        asked,
    )


@PYTHON.add
async def images_edit(python: Python, folder: Path) -> None:
    """One picture of each size, several at once, and each way of the SDK to name a file."""
    python.folder.mkdir(parents=True, exist_ok=True)
    files = {name: make() for name, make in SIZES.items()}
    path = python.folder / "small.png"
    path.write_bytes(files["small"])
    async with media_proxy(folder) as (url, sandbox), client(url) as sdk:
        for name, file in files.items():
            with quick(f"an edit of the picture {name}"):
                made = await sdk.images.edit(model=MODEL, image=file, prompt="in the snow")
            expect_pictures(made.to_dict(), [(1024, 1024)])
            expect_received(sandbox, [file], prompt="in the snow")
        several: list[Any] = [files["tiny"], path, ("fox.webp", files["medium"], "image/webp"), path.open("rb")]
        with quick("an edit of several"):
            made = await sdk.images.edit(image=several, prompt="both", n=3, size="1536x1024", background="opaque")
        expect_pictures(made.to_dict(), [(1536, 1024)] * 3)
        wanted = [files[name] for name in ("tiny", "small", "medium", "small")]
        expect_received(sandbox, wanted, prompt="both", n=3, size="1536x1024", background="opaque")


@PYTHON.add
async def audio_transcriptions(python: Python, folder: Path) -> None:
    """Each way of the SDK to name a file; an answer with signs that JSON escapes."""
    python.folder.mkdir(parents=True, exist_ok=True)
    heard, path = recording(), python.folder / "note.wav"
    path.write_bytes(heard)
    named: Sequence[tuple[Any, str]] = (
        (path, WAV),
        (path.open("rb"), WAV),
        (heard, "audio/wav"),  # it has no name: its first bytes tell
        (("speech.webm", heard, "audio/webm;codecs=opus"), "audio/webm;codecs=opus"),
        (("speech.mp4", heard, "video/mp4"), "audio/mp4"),
    )
    strange = 'she said "hi" \\ \u2028 é \U0001f98a'
    escaped = {"match": {"contains": "eo"}, "fault": "ascii", "text": strange, "times": 2}
    async with media_proxy(folder, [escaped]) as (url, sandbox), client(url) as sdk:
        create = sdk.audio.transcriptions.create
        for file, kind in named:
            with quick("a transcript"):
                text = (await create(model="gpt-4o-transcribe", file=file, language="en")).text
            expect(f"WAV as {kind}, 1.00 seconds long, in en" in text, f"a recording as {kind}", text)
            got = sandbox.p1.requests[-1].body["file"]
            expect(got["sha256"] == hashlib.sha256(heard).hexdigest(), "arrives as it is", got)
        plain = str(await create(model="whisper-1", file=path, response_format="text"))
        same = [
            (await create(model="m", file=path, language="eo")).text,
            str(await create(model="m", file=path, language="eo", response_format="text")).removesuffix("\n"),
        ]
    expect(plain.endswith("1.00 seconds long.\n"), "as bare text", plain)
    expect(same == [strange] * 2, "what was said is what is read", same)


#: What is tried, its status, and the code and the param of the error.
Refusal = tuple[Callable[[openai.AsyncOpenAI], Awaitable[Any]], type[openai.APIStatusError], str | None, str | None]
_TINY = red_png()
_REFUSED: Mapping[str, Refusal] = {
    "a mask": (
        lambda sdk: sdk.images.edit(image=_TINY, mask=_TINY, prompt="x"),
        openai.BadRequestError,
        "unsupported_parameter",
        "mask",
    ),
    "an address as answer": (
        lambda sdk: sdk.images.generate(prompt="x", response_format="url"),
        openai.BadRequestError,
        "unsupported_parameter",
        "response_format",
    ),
    "too many": (lambda sdk: sdk.images.generate(prompt="x", n=11), openai.BadRequestError, "invalid_request", "n"),
    "another model": (
        lambda sdk: sdk.images.generate(prompt="x", model="dall-e-3"),
        openai.BadRequestError,
        "invalid_request",
        "model",
    ),
    "no prompt": (lambda sdk: sdk.images.generate(prompt=" "), openai.BadRequestError, "invalid_request", "prompt"),
    "no picture": (
        lambda sdk: sdk.images.edit(image=b"plain text", prompt="x"),
        openai.BadRequestError,
        "invalid_request",
        "image",
    ),
    "six pictures": (
        lambda sdk: sdk.images.edit(image=[_TINY] * 6, prompt="x"),
        openai.BadRequestError,
        "invalid_request",
        "image",
    ),
    "a picture over the limit": (
        lambda sdk: sdk.images.edit(image=noisy_png(LIMIT + 1), prompt="x"),
        openai.APIStatusError,
        "request_too_large",
        "image",
    ),
    "a prompt over the limit": (
        lambda sdk: sdk.images.generate(prompt="x" * 300_000),
        openai.APIStatusError,
        "request_too_large",
        None,
    ),
    "a stream of pictures": (
        lambda sdk: sdk.images.generate(prompt="x", stream=True),
        openai.BadRequestError,
        "unsupported_parameter",
        "stream",
    ),
    "a variation": (lambda sdk: sdk.images.create_variation(image=_TINY), openai.NotFoundError, "not_found", None),
    "a translation": (
        lambda sdk: sdk.audio.translations.create(model="whisper-1", file=("a.wav", recording(0.1))),
        openai.NotFoundError,
        "not_found",
        None,
    ),
    "subtitles": (
        lambda sdk: sdk.audio.transcriptions.create(model="m", file=("a.wav", b"RIFF"), response_format="srt"),
        openai.BadRequestError,
        "unsupported_parameter",
        "response_format",
    ),
    "a hint": (
        lambda sdk: sdk.audio.transcriptions.create(model="m", file=("a.wav", recording(0.1)), prompt="names"),
        openai.BadRequestError,
        "unsupported_parameter",
        "prompt",
    ),
    "a text as recording": (
        lambda sdk: sdk.audio.transcriptions.create(model="m", file=("a.txt", b"hello", "text/plain")),
        openai.BadRequestError,
        "invalid_request",
        "file",
    ),
    "an empty recording": (
        lambda sdk: sdk.audio.transcriptions.create(model="m", file=("a.wav", b"")),
        openai.BadRequestError,
        "invalid_request",
        "file",
    ),
    "too often": (
        lambda sdk: sdk.images.generate(prompt="limited"),
        openai.RateLimitError,
        "rate_limit_exceeded",
        None,
    ),
    "a service that fails": (
        lambda sdk: sdk.images.generate(prompt="failing"),
        openai.InternalServerError,
        "upstream_error",
        None,
    ),
}


@PYTHON.add
async def media_errors(_python: Python, folder: Path) -> None:
    """Each refusal is the SDK's own class, with what is needed to act on it."""
    key = "caller-key-of-the-media-errors"
    script: list[dict[str, Any]] = [
        {"match": {"prompt": "limited"}, "fault": "rate_limit", "seconds": 7},
        {"match": {"prompt": "failing"}, "fault": "server_error", "times": None},
    ]
    found = {}
    async with media_proxy(folder, script, {"PROXY_API_KEY": key}) as (url, sandbox), client(url, key) as sdk:
        for name, (call, *_) in _REFUSED.items():
            with quick(name):
                found[name] = await _failure(call(sdk))
        reached = sandbox.p1.total_requests
        async with client(url, "another") as stranger:
            unknown = await _failure(stranger.images.generate(prompt="x"))
    expect(isinstance(unknown, openai.AuthenticationError), "the key of the caller is asked for", unknown)
    expect(found["too often"].response.headers["retry-after"] == "7", "when to come again", found["too often"])
    wrong = [
        f"{name}: {type(error).__name__} {error.status_code} {error.code} {error.param} {error.message}"
        for name, error in found.items()
        if (type(error), error.code, error.param) != _REFUSED[name][1:]
    ]
    expect(not wrong, "each refusal by its class, code and param", "; ".join(wrong))
    expect(reached == 2, "the service is asked for what it can do only", reached)


async def _failure(call: Awaitable[Any]) -> openai.APIStatusError:
    try:
        answer = await call
    except openai.APIStatusError as error:
        return error
    raise AssertionError(f"it was answered: {str(answer)[:200]}")
