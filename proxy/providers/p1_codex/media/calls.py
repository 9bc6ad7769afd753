"""A request for pictures or for a transcript, from sign-in to the whole answer.

A refused token is renewed once and the request sent again; nothing else is repeated, since each attempt costs the
account. The body is held until the head of an answer has come that is no refused token, and the answer is held once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from proxy.config import Config
from proxy.core.media.answers import HeldAnswer, check_images, images_usage, transcript_of
from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.core.reducer import BadAnswer
from proxy.core.secret import blanked
from proxy.errors import MEDIA_UPSTREAM, UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import MediaAnswer, MediaCall
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.media import requests as media_requests
from proxy.providers.p1_codex.media.failures import refusal, unreachable, unreadable
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer

_MIB = 1024 * 1024
_ALWAYS_PASSED = ("retry-after", "x-request-id", "openai-processing-ms")
_LIMITS = tuple(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens"))


@dataclass(frozen=True, slots=True)
class MediaService:
    """
    name      for people
    limit     bytes that an answer may have
    pictures  whether it has base64
    check     raises BadAnswer for JSON that is no answer
    passed    headers of an answer that the caller gets
    """

    name: str
    limit: int
    pictures: bool
    check: Callable[[Mapping[str, Any]], object]
    passed: tuple[str, ...]


IMAGES = MediaService("image", 128 * _MIB, True, check_images, (*_ALWAYS_PASSED, "openai-version", *_LIMITS))
TRANSCRIPTION = MediaService("transcription", _MIB, False, transcript_of, _ALWAYS_PASSED)


class _Answer(NamedTuple):
    """`value` is what the body says."""

    headers: dict[str, str]
    body: Pieces
    value: Mapping[str, Any]


class _Upload:
    """The body of a request, as long as it may have to be sent again."""

    def __init__(self, call: MediaCall, url: str, headers: dict[str, str], body: Pieces) -> None:
        self.url = url
        self.headers = {**headers, "content-length": str(body.size)}
        self.body = body
        self._call: MediaCall | None = call

    def done(self) -> None:
        """Nobody needs it any more."""
        call, self._call = self._call, None
        if call is not None:
            self.body.drop()
            call.sent()


class MediaCalls:
    """Both services of one account."""

    def __init__(self, signer: Signer, transport: HttpTransport) -> None:
        self._signer = signer
        self._services = signer.services
        self._transport = transport

    async def images(self, call: MediaCall, request: ImageRequest) -> MediaAnswer:
        """Raises ProxyError."""
        config = self._services.config()
        url = media_requests.images_url(config.section(CodexSettings), request)
        body = await media_requests.image_body(request)
        upload = _Upload(call, url, media_requests.image_headers(config, call.session), body)
        answer = await self._ask(IMAGES, call, config, upload)
        return MediaAnswer(answer.headers, answer.body, usage=images_usage(answer.value))

    async def transcript(self, call: MediaCall, request: TranscriptionRequest) -> MediaAnswer:
        """Raises ProxyError."""
        config, boundary = self._services.config(), f"recording-{self._services.new_id()}"
        url = media_requests.transcription_url(config.section(CodexSettings))
        headers = media_requests.transcription_headers(config, call.session, boundary)
        upload = _Upload(call, url, headers, media_requests.transcription_body(request, boundary))
        answer = await self._ask(TRANSCRIPTION, call, config, upload)
        return MediaAnswer(answer.headers, answer.body, text=transcript_of(answer.value))

    async def _ask(self, service: MediaService, call: MediaCall, config: Config, upload: _Upload) -> _Answer:
        """Raises ProxyError."""
        signed = self._signer.request(call.request_id, call.timings)
        codex = config.section(CodexSettings)
        routed = media_requests.is_routed(upload.url, codex.base_url)

        async def send(number: int) -> _Answer:
            call.record(UpstreamStarted(number))
            try:
                if routed:
                    await signed.locate()
                request = signed.post(codex, upload.headers, upload.body, number, url=upload.url)
                async with self._transport.open(request) as answer:
                    if answer.response.status == 401 and not signed.credential.renewed:
                        raise PROFILE.error("the token was refused", kind="sign_in", status=401, code=MEDIA_UPSTREAM)
                    upload.done()
                    return await self._read(service, answer)
            except UpstreamError as error:
                raise error if error.code else unreachable(service.name, error) from None

        try:
            await signed.credential.get()
            return await signed.attempts().ask(send, repeats=lambda _error: False)
        finally:
            upload.done()

    async def _read(self, service: MediaService, answer: OpenAnswer) -> _Answer:
        """The whole answer. Raises UpstreamError."""
        response = answer.response
        passed = passed_headers(response.headers, service.passed)
        if not 200 <= response.status < 300:
            raise await refusal(service.name, answer, passed)
        held = HeldAnswer(service.limit, shortens=service.pictures)
        try:
            if (response.content_length or 0) > service.limit:
                raise BadAnswer(f"the answer has {response.content_length} bytes")
            while chunk := await self._transport.read(answer):
                held.add(chunk)
            value = await asyncio.to_thread(held.end)
            service.check(value)
        except (BadAnswer, UpstreamError) as error:
            what = str(error).removeprefix(f"{LABEL}: ")
            raise unreadable(service.name, what, response.headers.get("x-request-id"), passed) from None
        return _Answer(passed, held.body, value)


def passed_headers(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """What the caller gets of the headers of an answer; what cannot be written again is left out."""
    return {name: blanked(headers[name]) for name in names if name in headers and headers[name].isprintable()}
