"""Failures of the image service and of the transcription service as errors for the caller.

Their codes are few: one for a refusal and for a service that is out of reach, one for an answer that is none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from proxy.core.error_bodies import error_of_value, masked
from proxy.core.sse import load_json
from proxy.core.upstream_failures import is_refusal, kind_of_status
from proxy.errors import MEDIA_BAD_ANSWER, MEDIA_UPSTREAM, UpstreamError
from proxy.providers.p1_codex.failures import PROFILE, SIGN_IN_HINT
from proxy.providers.upstream.transport import OpenAnswer

#: How long the words of a refusal are waited for.
WORDS_S = 5.0
#: What is shown of them, in characters.
MAX_WORDS = 500

_MEMBER = re.compile(r"[A-Za-z][\w.\[\]-]{0,63}", re.ASCII)
_SHORT_WORD = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)


def unreadable(service: str, what: str, upstream_id: str | None, passed: Mapping[str, str]) -> UpstreamError:
    """An answer that cannot be passed on, but for the headers that are."""
    words = f"the {service} service gave no valid answer: {what}"
    return PROFILE.error(words, kind="bad_answer", code=MEDIA_BAD_ANSWER, upstream_id=upstream_id, passed=passed)


def unreachable(service: str, error: UpstreamError) -> UpstreamError:
    """A request that got no answer. An outgoing proxy that refuses and a bad certificate keep their kind."""
    words = error.message.removeprefix(f"{PROFILE.label}: ")
    return error.replaced(
        message=f"{PROFILE.label}: the {service} service is unavailable: {words}", code=MEDIA_UPSTREAM
    )


async def refusal(service: str, answer: OpenAnswer, passed: Mapping[str, str]) -> UpstreamError:
    """The error behind an answer that is none."""
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
    # what a request did wrong has names; that a token or the service is bad is said by the status
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
    """On one line, without credentials and files."""
    text = masked(message) if isinstance(message, str) else ""
    line = "".join(sign if sign.isprintable() else " " for sign in text[: 2 * MAX_WORDS])
    line = " ".join(line.split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
