"""A request for pictures or for a transcript, from sign-in to the whole answer.

A refused token is renewed once and the request sent again. Nothing else is repeated, since each attempt costs the
account. The body is held until the head of an answer arrives that does not refuse the token; the answer is held once.
The services' errors have few codes: one for a refusal or no connection, one for an invalid answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from proxy.config import Config
from proxy.core.error_bodies import error_of_value
from proxy.core.hiding.secret import blanked
from proxy.core.hiding.texts import masked
from proxy.core.identity import fits_header
from proxy.core.media.answers import HeldAnswer, check_images, images_usage, transcript_of
from proxy.core.media.pieces import Pieces
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.core.reducer import BadAnswer
from proxy.core.sse import dump_json, load_json
from proxy.core.upstream_failures import is_refusal, kind_of_status
from proxy.errors import MEDIA_BAD_ANSWER, MEDIA_UPSTREAM, UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import MediaAnswer, MediaCall
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import PROFILE, SIGN_IN_HINT
from proxy.providers.p1_codex.request import account_headers
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer

#: The only client whose recordings are taken.
RECORDER = "Codex Desktop"

#: A longer text is escaped in parts, so that other tasks run in between: a prompt may have sixty million characters.
_SLICE = 256 * 1024


def images_url(codex: CodexSettings, request: ImageRequest) -> str:
    path = "edits" if request.edits else "generations"
    return f"{codex.images_base_url.rstrip('/')}/images/{path}"


def transcription_url(codex: CodexSettings) -> str:
    return f"{codex.transcriptions_base_url.rstrip('/')}/transcribe"


def is_routed(url: str, base_url: str) -> bool:
    """Whether the workspace's backend replaces this address, which is so when it has the Responses endpoint's
    origin."""
    return urlsplit(url)[:2] == urlsplit(base_url)[:2]


def image_headers(config: Config, session: str | None) -> dict[str, str]:
    """The headers without the credential. Of the caller only the session id is sent."""
    return {"content-type": "application/json", **_headers(config, session)}


def transcription_headers(config: Config, session: str | None, boundary: str) -> dict[str, str]:
    return {
        "content-type": f"multipart/form-data; boundary={boundary}",
        **_headers(config, session),
        "originator": RECORDER,
    }


def _headers(config: Config, session: str | None) -> dict[str, str]:
    sent = {"x-client-request-id": session} if session is not None and fits_header(session) else {}
    return {"accept": "application/json", **account_headers(config), **sent}


async def image_body(request: ImageRequest) -> Pieces:
    """The JSON body; takes over the pictures of the request."""
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
    """A JSON object without its closing brace, in pieces."""
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
    """The multipart body; takes over the recording of the request."""
    file = f'name="file"; filename="{request.name}"\r\nContent-Type: {request.media_type}'
    body = Pieces([f"--{boundary}\r\nContent-Disposition: form-data; {file}\r\n\r\n".encode()])
    body.move(request.audio)
    end = f"\r\n--{boundary}"
    if request.language is not None:
        end += f'\r\nContent-Disposition: form-data; name="language"\r\n\r\n{request.language}\r\n--{boundary}'
    body.add(f"{end}--\r\n".encode())
    return body


#: Seconds to wait for the body of a refusal.
WORDS_S = 5.0
#: Characters of it that are shown.
MAX_WORDS = 500

_MEMBER = re.compile(r"[A-Za-z][\w.\[\]-]{0,63}", re.ASCII)
_SHORT_WORD = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)


def unreadable(service: str, what: str, upstream_id: str | None, passed: Mapping[str, str]) -> UpstreamError:
    """The error for an answer that cannot be passed on, except for these headers."""
    words = f"the {service} service gave no valid answer: {what}"
    return PROFILE.error(words, kind="bad_answer", code=MEDIA_BAD_ANSWER, upstream_id=upstream_id, passed=passed)


def unreachable(service: str, error: UpstreamError) -> UpstreamError:
    """The error for a request without an answer. An outgoing proxy that refuses and a bad certificate keep their
    kind."""
    words = error.message.removeprefix(f"{PROFILE.label}: ")
    return error.replaced(
        message=f"{PROFILE.label}: the {service} service is unavailable: {words}", code=MEDIA_UPSTREAM
    )


async def refusal(service: str, answer: OpenAnswer, passed: Mapping[str, str]) -> UpstreamError:
    """The error for a non-success response."""
    status, upstream_id = answer.response.status, answer.response.headers.get("x-request-id")
    if not is_refusal(status):
        return unreadable(service, f"status {status}", upstream_id, passed)
    error = _error_in(await _read(answer))
    message = f"the {service} service answered with status {status}"
    words = _words(error.get("message"))
    if words:
        message += f": {words}"
    if status == 401:
        message += f" ({SIGN_IN_HINT})"
    # an invalid request is explained by code and param; the status alone says that a token or the service is bad
    code, param = (error.get(name) if status < 500 and status != 401 else None for name in ("code", "param"))
    return PROFILE.error(
        message,
        kind=kind_of_status(status),
        status=status,
        code=code if isinstance(code, str) and _SHORT_WORD.fullmatch(code) else MEDIA_UPSTREAM,
        param=param if isinstance(param, str) and _MEMBER.fullmatch(param) else None,
        upstream_id=upstream_id,
        passed=passed,
    )


async def _read(answer: OpenAnswer) -> bytes:
    try:
        async with asyncio.timeout(WORDS_S):
            return await answer.error_body()
    except TimeoutError:
        return b""


def _error_in(body: bytes) -> Mapping[str, Any]:
    """The error object of a JSON body; {} for anything else."""
    try:
        value = load_json(body.decode())
    except (ValueError, RecursionError):
        return {}
    return (error_of_value(value) if isinstance(value, Mapping) else None) or {}


def _words(message: Any) -> str:
    """The message on one line, without credentials and file paths."""
    text = masked(message) if isinstance(message, str) else ""
    line = "".join(sign if sign.isprintable() else " " for sign in text[: 2 * MAX_WORDS])
    line = " ".join(line.split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


_MIB = 1024 * 1024
_ALWAYS_PASSED = ("retry-after", "x-request-id", "openai-processing-ms")
_LIMITS = tuple(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens"))


@dataclass(frozen=True, slots=True)
class MediaService:
    """One media service.

    name      shown to people
    limit     bytes that an answer may have
    pictures  whether its answer contains base64
    check     raises BadAnswer for JSON that is not a valid answer
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
    """A whole answer. `value` is its parsed body."""

    headers: dict[str, str]
    body: Pieces
    value: Mapping[str, Any]


class _Upload:
    """The body of a request, kept while it may have to be sent again."""

    def __init__(self, call: MediaCall, url: str, headers: dict[str, str], body: Pieces) -> None:
        self.url = url
        self.headers = {**headers, "content-length": str(body.size)}
        self.body = body
        self._call: MediaCall | None = call

    def done(self) -> None:
        """Releases the body."""
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
        """Makes or edits images. Raises ProxyError."""
        config = self._services.config()
        url = images_url(config.section(CodexSettings), request)
        body = await image_body(request)
        upload = _Upload(call, url, image_headers(config, call.session), body)
        answer = await self._ask(IMAGES, call, config, upload)
        return MediaAnswer(answer.headers, answer.body, usage=images_usage(answer.value))

    async def transcript(self, call: MediaCall, request: TranscriptionRequest) -> MediaAnswer:
        """Transcribes a recording. Raises ProxyError."""
        config, boundary = self._services.config(), f"recording-{self._services.new_id()}"
        url = transcription_url(config.section(CodexSettings))
        headers = transcription_headers(config, call.session, boundary)
        upload = _Upload(call, url, headers, transcription_body(request, boundary))
        answer = await self._ask(TRANSCRIPTION, call, config, upload)
        return MediaAnswer(answer.headers, answer.body, text=transcript_of(answer.value))

    async def _ask(self, service: MediaService, call: MediaCall, config: Config, upload: _Upload) -> _Answer:
        """Sends the request. Raises ProxyError."""
        signed = self._signer.request(call.request_id, call.timings)
        codex = config.section(CodexSettings)
        routed = is_routed(upload.url, codex.base_url)

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
    """The headers of an answer that the caller gets; unprintable ones are left out."""
    return {name: blanked(headers[name]) for name in names if name in headers and headers[name].isprintable()}
