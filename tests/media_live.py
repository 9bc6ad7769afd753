"""A provider of images and transcripts whose answers a test writes, and bodies for its routes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness import Answer, Fake, Live, use
from multidict import CIMultiDict
from pictures import png

from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.core.tokens.usage import usage_of
from proxy.errors import ProxyError
from proxy.providers.contract import MediaAnswer, MediaCall

GENERATIONS, EDITS, TRANSCRIPTIONS = "/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions"
ROUTES = (GENERATIONS, EDITS, TRANSCRIPTIONS)
SWITCHES = {"image_routes": True, "transcription_route": True}

PNG = base64.b64decode(png())
IMAGES = b'{"created": 1, "data": [{"b64_json": "aW1n"}]}'
TEXT = b'{"text": "she said \\"hi\\""}'
#: Members of the OpenAI envelope.
MEMBERS = {"message", "type", "param", "code"}


class Studio(Fake):
    """Makes images and writes recordings down, once `gate` is open.

    body     gives the pieces of an answer
    headers  those of the answer
    error    raised in place of an answer
    """

    image_model = "gpt-image-2"

    def __init__(self, label: str = "p1") -> None:
        super().__init__(label)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[tuple[MediaCall, ImageRequest | TranscriptionRequest]] = []
        self.active = 0
        self.body: Callable[[], Pieces] | None = None
        self.headers: Mapping[str, str] = {}
        self.error: ProxyError | None = None

    async def make_images(self, call: MediaCall, request: ImageRequest) -> MediaAnswer:
        return await self._answer(call, request, MediaAnswer(self.headers, Pieces([IMAGES]), usage=usage_of(7, 5)))

    async def transcribe(self, call: MediaCall, request: TranscriptionRequest) -> MediaAnswer:
        return await self._answer(call, request, MediaAnswer(self.headers, Pieces([TEXT]), 'she said "hi"'))

    async def _answer(
        self, call: MediaCall, request: ImageRequest | TranscriptionRequest, answer: MediaAnswer
    ) -> MediaAnswer:
        self.asked.append((call, request))
        self.active += 1
        try:
            await self.gate.wait()
        finally:
            self.active -= 1
        if self.error is not None:
            raise self.error
        return MediaAnswer(answer.headers, self.body(), answer.text) if self.body else answer


def studio(live: Live) -> Studio:
    """The proxy with this provider as its p1."""
    found = Studio()
    use(live, found)
    return found


@dataclass(frozen=True, slots=True)
class Form:
    """A body of multipart/form-data."""

    parts: tuple[bytes, ...]
    boundary: str = "b0undary"

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def body(self) -> bytes:
        line = b"--" + self.boundary.encode()
        return b"".join(line + b"\r\n" + part + b"\r\n" for part in self.parts) + line + b"--\r\n"


def part(name: str, value: bytes | str, filename: str = "", media_type: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"'
    head += f'; filename="{filename}"' if filename else ""
    head += f"\r\nContent-Type: {media_type}" if media_type else ""
    return head.encode() + b"\r\n\r\n" + (value.encode() if isinstance(value, str) else value)


def edit(*images: bytes, **fields: str) -> Form:
    files = (part("image", image, "a.png", "image/png") for image in images or (PNG,))
    return Form((*files, *(part(name, value) for name, value in {"prompt": "x", **fields}.items())))


def recording(audio: bytes = b"RIFF0000WAVE", **fields: str) -> Form:
    file = part("file", audio, "a.wav", "audio/wav")
    return Form((file, *(part(name, value) for name, value in {"model": "whisper-1", **fields}.items())))


#: path -> a body that is right, and what it calls itself
GOOD: dict[str, tuple[bytes, str]] = {
    GENERATIONS: (json.dumps({"prompt": "x"}).encode(), "application/json"),
    EDITS: (edit().body, edit().content_type),
    TRANSCRIPTIONS: (recording().body, recording().content_type),
}
ANSWERS = {GENERATIONS: IMAGES, EDITS: IMAGES, TRANSCRIPTIONS: TEXT}


async def send(live: Live, path: str, body: Any = None, content_type: str = "", **headers: str) -> Answer:
    """A request; without a body, one that is right."""
    good, known = GOOD[path]
    data = good if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return await live.post(data, path, {"content-type": content_type or known, **headers})


async def read_answer(reader: asyncio.StreamReader, timeout_s: float = 5.0) -> Answer:
    """The next answer of a connection, whose body has a length."""
    async with asyncio.timeout(timeout_s):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = CIMultiDict(line.split(": ", 1) for line in lines)
        return Answer(int(status.split()[1]), headers, await reader.readexactly(int(headers.get("Content-Length", 0))))


def head(path: str, content_type: str, **headers: Any) -> bytes:
    """The head of a request."""
    lines = {"Host": "localhost", "Content-Type": content_type, **headers}
    shown = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{shown}\r\n".encode()


def refusal(answer: Answer) -> tuple[int, str, str | None]:
    """Status, code and param of an error of these routes, whose form is checked."""
    error = answer.json["error"]
    assert set(error) - {"provider"} == MEMBERS and error["message"], error
    assert answer.headers["Cache-Control"] == "no-store" and "X-Content-Type-Options" not in answer.headers
    return answer.status, error["code"], error["param"]
