"""Answers that no simulator gives: before the request was read, with odd lengths, packed, or hardly HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from media_world import World, edit, refused

from proxy.core.media.requests import ImageRequest
from proxy.providers.p1_codex.media import calls
from proxy.providers.p1_codex.settings import CodexSettings

GOOD = b'{"created":1,"data":[{"b64_json":"aW1n"}]}'
WORDS = b'{"error":{"message":"Too much.","code":"too_much"}}'


def answer(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} X", f"content-length: {size}", *headers, "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + body


async def serve(said: bytes, ends: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(said)
    await writer.drain()
    if not ends:
        await reader.read()
    writer.close()


@asynccontextmanager
async def service(media: World, said: bytes, *, ends: bool = True) -> AsyncIterator[None]:
    """An image service that reads no body and says this; `ends`: it then closes the connection."""
    server = await asyncio.start_server(partial(serve, said, ends), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    media.live.config = media.live.config.changed(CodexSettings, images_base_url=f"http://{host}:{port}")
    try:
        yield
    finally:
        server.close()


def large() -> ImageRequest:
    """More than the buffers of a connection take."""
    request = edit()
    picture = edit("iVBORw0KGgo=").images[0]
    for _ in range(200):
        picture.base64.add(b"A" * 100_000)
    return ImageRequest(request.fields, (picture,))


@pytest.mark.parametrize("request_of", [large, lambda: ImageRequest(edit().fields)])
async def test_a_refusal_before_the_request_was_read(media: World, request_of: Callable[[], ImageRequest]) -> None:
    async with service(media, answer(413, WORDS, "connection: close", "x-request-id: r1")):
        error = await refused(media.images(request_of()))
    assert (error.status, error.code, error.upstream_id) == (413, "too_much", "r1")
    assert error.message.endswith("status 413: Too much.") and media.given == 1


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (answer(500, b"", length=10**10), 500, "upstream_error"),
        (answer(302, b"", "location: https://elsewhere.invalid", length=10**10), 502, "invalid_upstream_response"),
        (answer(200, GOOD, length=128 * 1024 * 1024 + 1), 502, "invalid_upstream_response"),
        (answer(200, GOOD, length=len(GOOD) + 1), 502, "invalid_upstream_response"),
        (answer(200, GOOD, "content-encoding: gzip"), 502, "invalid_upstream_response"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", 502, "upstream_error"),
        (b"", 502, "upstream_error"),
    ],
)
async def test_heads_that_promise_too_much_or_too_little(media: World, said: bytes, status: int, code: str) -> None:
    async with service(media, said):
        error = await refused(media.images())
    assert (error.status, error.code) == (status, code)
    assert media.given == 1 and media.live.sandbox.p1.total_requests == 0


@pytest.mark.parametrize("status", [200, 302, 400, 500])
async def test_an_error_keeps_the_id_that_the_service_gave(media: World, status: int) -> None:
    async with service(media, answer(status, b"{}", "x-request-id: r1")):
        error = await refused(media.images())
    assert (error.upstream_id, error.passed) == ("r1", {"x-request-id": "r1"})


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ("size", "size"),
        ("images[0].image_url", "images[0].image_url"),
        ("no member", None),
        (5, None),
        ("x" * 65, None),
    ],
)
async def test_a_refusal_names_the_member_that_the_service_names(media: World, said: Any, param: str | None) -> None:
    words = json.dumps({"error": {"message": "No.", "param": said}}).encode()
    async with service(media, answer(400, words)):
        assert (await refused(media.images())).param == param


async def test_a_packed_answer_is_unpacked(media: World) -> None:
    async with service(media, answer(200, gzip.compress(GOOD), "content-encoding: gzip")):
        found = await media.images()
    assert b"".join(found.body) == GOOD and not found.headers


async def test_a_header_that_cannot_be_written_again_stays_here(media: World) -> None:
    said = answer(200, GOOD, "x-request-id: r\udcff", "retry-after: 7")
    async with service(media, said):
        assert (await media.images()).headers == {"retry-after": "7"}


async def test_words_that_do_not_come_are_not_waited_for(media: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "WORDS_S", 0.05)
    async with service(media, answer(400, WORDS[:-1], length=1000), ends=False):
        error = await refused(media.images())
    assert (error.status, error.code) == (400, "upstream_error") and error.message.endswith("status 400")
