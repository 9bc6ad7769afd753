"""`TokenClient`: small POSTs to an issuer with a code or a refresh token, which must be sent only once; and small GETs
about an account.

It follows no redirect (a 307 would replay the secret elsewhere), logs nothing, and uses no connection twice (if a
pooled one died, it is unknown whether the token was spent). Sizes and times are bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp

from proxy.auth.text import printable
from proxy.core.bodies.decode import load_any_json
from proxy.core.hiding.secret import Secret
from proxy.core.hiding.texts import masked
from proxy.core.sizes import LARGE_BYTES
from proxy.core.upstream_failures import moment_of_http_date, passes
from proxy.errors import UpstreamError
from proxy.off_loop import in_thread_if

CONNECT_TIMEOUT_S = 15.0
TOTAL_TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024

TIMEOUT = aiohttp.ClientTimeout(total=TOTAL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
_HEADERS = {"Accept": "application/json", "Connection": "close"}

#: Errors before there was a connection, so nothing was sent. They include a certificate that does not match.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """An issuer's answer.

    text, data  the body, and its JSON object, {} for anything else; never logged
    date        the issuer's clock, epoch seconds

    Error answers have one of two shapes:
        {"error": {"code": "refresh_token_reused", "message": "…"}}
        {"error": "invalid_grant", "error_description": "…"}
    """

    status: int
    text: str = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    content_type: str = ""
    retry_after: float | None = None
    date: float | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        """The error's code word, "" if there is none."""
        error = self.data.get("error")
        if isinstance(error, dict):
            error = error.get("code") or error.get("type")
        return error if isinstance(error, str) else ""

    def reason(self, *hide: Secret) -> str:
        """Code and message of an error as one bounded line, `401 refresh_token_reused: …`, without the secrets
        `hide`."""
        error = self.data.get("error")
        words = error.get("message") if isinstance(error, dict) else None
        for name in ("error_description", "message", "detail"):
            words = words or self.data.get(name)
        if not isinstance(words, str):
            words = "" if self.code else self.text
        shown = []
        for part in (self.code, words):
            for secret in hide:
                if secret:
                    part = part.replace(secret.reveal(), "[redacted]")
            shown.append(printable(masked(part)))
        detail = ": ".join(filter(None, shown))
        return f"{self.status} {detail}".rstrip()


class IssuerFailure(UpstreamError):
    """The issuer gave no usable answer. `sent`: whether it may have seen the request."""

    def __init__(self, label: str, why: str, *, sent: bool) -> None:
        super().__init__(
            f"The {label} sign-in service could not be used: {why}. Try again later.",
            kind="unavailable",
            provider=label,
        )
        self.why = why
        self.sent = sent


async def repeated(
    send: Callable[[], Awaitable[TokenResponse]],
    *,
    waits_s: tuple[float, ...],
    is_final: Callable[[TokenResponse], bool] = lambda _answer: False,
    once_sent: bool = True,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> TokenResponse:
    """The answer of `send`, which is called again after each of the waits while its failure is a passing one.

    is_final   whether an answer must not be repeated, whatever its status
    once_sent  whether a call without answer that may have reached the issuer is repeated too

    A call that timed out is not repeated: the caller has waited for half a minute already.
    """
    for wait_s in waits_s:
        try:
            answer = await send()
        except IssuerFailure as error:
            if isinstance(error.__cause__, TimeoutError) or (error.sent and not once_sent):
                raise
        else:
            if not passes(answer.status) or is_final(answer):
                return answer
        await sleep(wait_s)
    return await send()


class TokenClient:
    """Talks to the issuer of provider `label`.

    session  decides about outgoing proxies and certificates; its errors about a proxy are passed on and never repeated
    headers  sent with every call
    most_bytes  largest successful answer
    """

    def __init__(
        self,
        label: str,
        session: aiohttp.ClientSession,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        most_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._label = label
        self._timeout = timeout
        self._most_bytes = most_bytes
        self._session = session
        self._headers = {**_HEADERS, **(headers or {})}

    async def post_form(self, url: str, form: Mapping[str, str]) -> TokenResponse:
        """Sends a form. Raises IssuerFailure, and UpstreamError if an outgoing proxy failed."""
        return await self._post(url, data=dict(form))

    async def post_json(self, url: str, body: Mapping[str, Any]) -> TokenResponse:
        """Sends JSON. Raises IssuerFailure, and UpstreamError if an outgoing proxy failed."""
        return await self._post(url, json=dict(body))

    async def get(self, url: str) -> TokenResponse:
        """Fetches facts about the account. Raises UpstreamError `transport`."""
        try:
            return await self.get_from_issuer(url)
        except IssuerFailure as error:
            message = f"{self._label} could not be reached: {error.why}. Try again later."
            raise UpstreamError(message, kind="transport", provider=self._label) from error

    async def get_from_issuer(self, url: str) -> TokenResponse:
        """Fetches from the sign-in service. Raises IssuerFailure, and UpstreamError if an outgoing proxy failed."""
        return await self._call("GET", url, {})

    async def _post(self, url: str, **body: Any) -> TokenResponse:
        """Posts, with a second try only if there was no connection: then the first one did no harm."""
        try:
            return await self._call("POST", url, body)
        except IssuerFailure as error:
            if error.sent or isinstance(error.__cause__, TimeoutError):
                raise
        return await self._call("POST", url, body)

    async def _call(self, method: str, url: str, body: Mapping[str, Any]) -> TokenResponse:
        try:
            response = await self._session.request(
                method, url, headers=self._headers, timeout=self._timeout, allow_redirects=False, **body
            )
            try:
                return await self._read(response)
            finally:
                response.close()  # never back to a pool, even if the server would keep it open
        except _NOT_SENT as error:
            raise self._failure(error, sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error, sent=True) from error

    async def _read(self, response: aiohttp.ClientResponse) -> TokenResponse:
        ok = 200 <= response.status < 300
        limit = self._most_bytes if ok else MAX_ERROR_BYTES
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                break
        if ok and len(body) > limit:
            raise IssuerFailure(self._label, f"its answer is longer than {limit} bytes", sent=True)
        text = bytes(body[:limit]).decode("utf-8", "replace")
        return TokenResponse(
            response.status,
            text,
            await in_thread_if(len(text) > LARGE_BYTES, partial(_json_object, text)),
            response.content_type,
            _seconds(response.headers.get("Retry-After")),
            _moment(response.headers.get("Date")),
        )

    def _failure(self, error: Exception, *, sent: bool) -> IssuerFailure:
        # The class and the system's words suffice; the error's own text holds addresses.
        detail = error.strerror if isinstance(error, OSError) and error.strerror else ""
        return IssuerFailure(self._label, f"{type(error).__name__} {printable(detail)}".rstrip(), sent=sent)


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = load_any_json(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _moment(value: str | None) -> float | None:
    return None if value is None else moment_of_http_date(value)


def _seconds(value: str | None) -> float | None:
    """A Retry-After in seconds; None for a date, which is rare here."""
    if value is None or len(value) > 6 or not (value.isascii() and value.isdigit()):
        return None
    return float(value)
