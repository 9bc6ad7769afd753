"""What is sent to the image service and to the transcription service: addresses, headers, bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from proxy.config import Config
from proxy.core.identity import fits_header
from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.core.sse import dump_json
from proxy.providers.p1_codex.request import account_headers
from proxy.providers.p1_codex.settings import CodexSettings

#: The only client whose recordings are taken.
RECORDER = "Codex Desktop"

#: A longer text is escaped in parts, between which others get their turn: a prompt may have sixty million characters.
_SLICE = 256 * 1024


def images_url(codex: CodexSettings, request: ImageRequest) -> str:
    path = "edits" if request.edits else "generations"
    return f"{codex.images_base_url.rstrip('/')}/images/{path}"


def transcription_url(codex: CodexSettings) -> str:
    return f"{codex.transcriptions_base_url.rstrip('/')}/transcribe"


def is_routed(url: str, base_url: str) -> bool:
    """Whether the backend of the account's workspace stands in for this address: as for all other requests, when it has
    their origin."""
    return urlsplit(url)[:2] == urlsplit(base_url)[:2]


def image_headers(config: Config, session: str | None) -> dict[str, str]:
    """Without the credential. No session beyond an id, and nothing of the caller."""
    return {"content-type": "application/json", **_headers(config, session)}


def transcription_headers(config: Config, session: str | None, boundary: str) -> dict[str, str]:
    return {
        "content-type": f"multipart/form-data; boundary={boundary}",
        **_headers(config, session),
        "originator": RECORDER,
    }


def _headers(config: Config, session: str | None) -> dict[str, str]:
    told = {"x-client-request-id": session} if session is not None and fits_header(session) else {}
    return {"accept": "application/json", **account_headers(config), **told}


async def image_body(request: ImageRequest) -> Pieces:
    """The JSON; the pictures of the request become a part of it."""
    body = Pieces()
    async for text in _members(request.fields):
        body.add(text)
    start = b',"images":['
    for image in request.images:
        body.add(start + f'{{"image_url":"data:{image.media_type};base64,'.encode())
        body.move(image.base64)
        start = b'"},'
    body.add(b'"}]}' if request.images else b"}")
    return body


async def _members(fields: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """A JSON object without its last brace."""
    waiting = "{"
    for number, (name, value) in enumerate(fields.items()):
        waiting += f"{',' if number else ''}{dump_json(name)}:"
        if not isinstance(value, str) or len(value) <= _SLICE:
            waiting += dump_json(value)
            continue
        yield waiting.encode() + b'"'
        for start in range(0, len(value), _SLICE):
            yield dump_json(value[start : start + _SLICE])[1:-1].encode()
            await asyncio.sleep(0)
        waiting = '"'
    yield waiting.encode()


def transcription_body(request: TranscriptionRequest, boundary: str) -> Pieces:
    """The form; the recording of the request becomes a part of it."""
    file = f'name="file"; filename="{request.name}"\r\nContent-Type: {request.media_type}'
    body = Pieces([f"--{boundary}\r\nContent-Disposition: form-data; {file}\r\n\r\n".encode()])
    body.move(request.audio)
    end = f"\r\n--{boundary}"
    if request.language is not None:
        end += f'\r\nContent-Disposition: form-data; name="language"\r\n\r\n{request.language}\r\n--{boundary}'
    body.add(f"{end}--\r\n".encode())
    return body
