"""P5's sign-in: a page in any browser, and a question to the API, repeated until the page was confirmed.

There is no callback and no device code. No expiry is stored: the access token is a JWT that contains it.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from proxy.auth import jwt
from proxy.auth.browser import open_in_background
from proxy.auth.device import MAX_FAILURES
from proxy.auth.grant import first_text
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.pkce import RANDOM_BYTES, base64url, challenge_of
from proxy.auth.refresh import Credentials, Lent, Renewal, is_refused, sign_in_hint
from proxy.auth.static_token import StaticToken
from proxy.auth.store import Credential, CredentialFile, CredentialSource, Fields
from proxy.auth.text import one_line
from proxy.core.hiding.secret import Secret
from proxy.core.identity import fits_header
from proxy.errors import PROGRAM, ProxyError, RequestError, SignInError, UpstreamError
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.stored import StoredAccount, expiry
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.p5_cursor.catalog import LABEL
from proxy.providers.p5_cursor.settings import CursorSettings

#: About 24 minutes in all, as in the vendor's client.
ATTEMPTS = 150
FIRST_DELAY_MS, GROWTH, LONGEST_DELAY_MS = 1000.0, 1.2, 10_000.0

#: The page was not confirmed yet.
PENDING = 404

#: Statuses that do not pass.
FINAL = {400, 401, 403, 410}


def delay_s(attempt: int) -> float:
    """Seconds between this attempt, counted from 0, and the next.

    >>> delay_s(0), delay_s(1), delay_s(20)
    (1.0, 1.2, 10.0)
    """
    return min(FIRST_DELAY_MS * GROWTH**attempt, LONGEST_DELAY_MS) / 1000


async def tokens_of_page(
    ask: Callable[[], Awaitable[TokenResponse]], *, hide: Secret, sleep: Callable[[float], Awaitable[None]]
) -> TokenResponse:
    """The answer with status 200. Errors do not show `hide`.

    Raises SignInError, and UpstreamError when the service is not reached; both after MAX_FAILURES in a row if they may
    pass."""
    failures = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            await sleep(delay_s(attempt - 1))
        outcome = await _asked(ask, hide)
        if isinstance(outcome, TokenResponse):
            return outcome
        failures = 0 if outcome is None else failures + 1
        if outcome is not None and (failures >= MAX_FAILURES or outcome.final):
            raise outcome
    raise SignInError("The page was not confirmed in time; start the sign-in again.", provider=LABEL)


async def _asked(ask: Callable[[], Awaitable[TokenResponse]], hide: Secret) -> TokenResponse | ProxyError | None:
    """The answer with the tokens, a failure (`final`: it does not pass), or None while it is pending."""
    try:
        answer = await ask()
    except UpstreamError as error:
        return error.replaced(final=error.kind != "unavailable")
    if answer.status == PENDING:
        return None
    if answer.status != 200:
        message = f"The sign-in service refused the sign-in: {answer.reason(hide)}."
        return SignInError(message, provider=LABEL, final=answer.status in FINAL)
    if not answer.data:
        return SignInError(
            "The sign-in failed: the answer is not a JSON object, or is empty.", provider=LABEL, final=True
        )
    return answer


#: Members of the file. Others, such as the user's API key, are kept.
FIELDS = Fields(access=("accessToken",), refresh=("refreshToken",), expires_ms=(), account_id=(), needs_refresh=False)
API_KEY = "apiKey"

PAGE_PATH = "/loginDeepControl"
POLL_PATH = "/auth/poll"
REFRESH_PATH = "/auth/refresh"
EXCHANGE_PATH = "/auth/exchange_user_api_key"

#: A token that expires within this time is renewed, and not sent if no other comes.
MARGIN_MS = 60 * 1000

#: How long a refusal is remembered; it is not known whether refusals are always permanent.
REFUSED_FOR_S = 300.0

#: For calls to the sign-in service.
TIMEOUT = aiohttp.ClientTimeout(total=30.0, connect=10.0)

#: The variables for a token that the user sets.
TOKEN_VARIABLE = "PROXY_P5_AUTH_TOKEN"  # noqa: S105  a name
VARIABLES = f"{TOKEN_VARIABLE} (or CURSOR_AUTH_TOKEN)"


def credential_file(config_root: Path) -> CredentialFile:
    """The file of P5's credential."""
    return CredentialFile(config_root, LABEL, fields=FIELDS)


def credential_from(body: Mapping[str, Any], old: Credential | None, _now_ms: int) -> Credential:
    """The tokens of an answer. A missing refresh token and other stored members are kept from `old`.

    {"accessToken": "…", "refreshToken": "…", "authId": "…"}

    Raises ValueError, whose text holds no token."""
    access, refresh = first_text(body, "accessToken"), first_text(body, "refreshToken")
    if not refresh and old is not None:
        refresh = old.refresh.reveal()
    if not (access and fits_header(access)):
        raise ValueError("the answer has no usable accessToken")
    if not fits_header(refresh) or (not refresh and old is None):
        raise ValueError("the answer has no usable refreshToken")
    return Credential(Secret(access), Secret(refresh), jwt.expires_ms(access), extra=old.extra if old else {})


def _bearers(credential: Credential) -> Iterator[tuple[str, Secret]]:
    """The endpoints and secrets that can renew a credential."""
    if credential.refresh:
        yield REFRESH_PATH, credential.refresh
    api_key = credential.extra.get(API_KEY)
    if isinstance(api_key, str) and fits_header(api_key.strip()) and api_key.strip():
        yield EXCHANGE_PATH, Secret(api_key.strip())


def cursor_credentials(lent: Lent, settings: CursorSettings, session: aiohttp.ClientSession) -> CredentialSource:
    """P5's credentials: the user's own token, else the stored ones. The caller closes the result."""
    token = settings.auth_token
    if token is not None:
        return StaticToken(LABEL, token, VARIABLES, end_ms=MARGIN_MS, clock=lent.clock)

    async def send(credential: Credential) -> TokenResponse:
        """Renews the credential. A failed answer to the API key keeps nothing but its status, since it might repeat
        anything."""
        answer = TokenResponse(401, "", {})
        for path, bearer in _bearers(credential):
            client = TokenClient(LABEL, session, {"Authorization": f"Bearer {bearer.reveal()}"}, timeout=TIMEOUT)
            answer = await client.post_json(f"{settings.base_url}{path}", {})
            if path == EXCHANGE_PATH and not answer.ok:
                answer = replace(answer, text="", data={})
            if not is_refused(answer):
                break
        return answer

    renewal = Renewal(
        LABEL,
        send,
        credential_from,
        delete_refused=False,
        refused_for_s=REFUSED_FOR_S,
        margin_ms=MARGIN_MS,
        end_ms=MARGIN_MS,
        ends=True,
        renewable=lambda credential: any(_bearers(credential)),
    )
    return Credentials(credential_file(lent.config_root), renewal, lent)


# Sign-in


def page_url(website_url: str, challenge: str, sign_in_id: str) -> str:
    """The page that the user confirms."""
    query = {"challenge": challenge, "uuid": sign_in_id, "mode": "login", "redirectTarget": "cli"}
    return f"{website_url}{PAGE_PATH}?{urlencode(query)}"


class CursorAccount(StoredAccount):
    """Sign-in with a browser, on this machine or another."""

    def __init__(self, context: AccountContext) -> None:
        self._settings = context.config.section(CursorSettings)
        super().__init__(context, credential_file(context.config_root), self._settings.base_url)
        self._place = context.source(TOKEN_VARIABLE) or TOKEN_VARIABLE

    async def login(self, *, device: bool, say: Say) -> Credential:
        if device:
            raise SignInError(
                f"{LABEL} has no sign-in with a code (--device is unsupported): `{PROGRAM} auth login {LABEL}` prints"
                " an address that can be opened on any device",
                provider=LABEL,
            )
        async with self._connect() as http:
            credential = await self._with_page(http, say)
        self._mention_token(say)
        return credential

    async def _with_page(self, http: aiohttp.ClientSession, say: Say) -> Credential:
        settings, ports = self._settings, self._ports
        verifier = base64url(ports.random(RANDOM_BYTES))
        sign_in_id = str(uuid.UUID(bytes=ports.random(16), version=4))
        page = page_url(settings.website_url, challenge_of(verifier), sign_in_id)
        say("Open this address in a browser, on this machine or any other, to sign in:")
        say(page)
        if ports.opener is not None:
            open_in_background(page, ports.opener)
        client = TokenClient(LABEL, http, {"Content-Type": "application/json"}, timeout=TIMEOUT)
        question = f"{settings.base_url}{POLL_PATH}?{urlencode({'uuid': sign_in_id, 'verifier': verifier})}"
        ask = partial(client.get_from_issuer, question)
        answer = await tokens_of_page(ask, hide=Secret(verifier), sleep=ports.sleep)
        try:
            credential = credential_from(answer.data, None, int(ports.clock() * 1000))
        except ValueError as error:
            raise SignInError(f"The sign-in failed: {error}.", provider=LABEL) from error
        return await self._save(credential, "Signed in", say=say)

    def status(self, *, say: Say) -> bool:
        token = self._settings.auth_token
        if token is None:
            return super().status(say=say)
        ends_ms = jwt.expires_ms(token.reveal())
        credential = Credential(token, Secret(""), ends_ms)
        left_s = (ends_ms - int(self._ports.clock() * 1000)) // 1000
        for line in _described(f"environment ({self._place})", credential, left_s):
            say(line)
        if self._file.path.exists():
            say(f"The sign-in in {self._file.path} is not used while {self._place} is set")
        return True

    def _lines(self, credential: Credential, left_s: int) -> Iterable[str]:
        yield from _described(str(self._file.path), credential, left_s)
        if left_s * 1000 <= MARGIN_MS:
            renewable = any(_bearers(credential))
            yield "It is renewed when it is needed" if renewable else f"To sign in again, {sign_in_hint(LABEL)}"

    async def logout(self, *, say: Say) -> None:
        await super().logout(say=say)
        self._mention_token(say)

    def _mention_token(self, say: Say) -> None:
        """Says that a token set by the user takes precedence, and that no command changes it."""
        if self._settings.auth_token is not None:
            say(f"{self._place} is set and goes on being used in place of a stored sign-in: unset it to stop that")

    async def usage(self) -> UsageReport:
        raise RequestError(
            f"{LABEL} has no usage report that a program could ask for. "
            f"{self._settings.website_url} shows it after a sign-in there.",
            provider=LABEL,
        )


def _described(place: str, credential: Credential, left_s: int) -> Iterator[str]:
    claims = jwt.claims(credential.access.reveal())
    yield f"Storage: {place}"
    for title, name in (("User", "sub"), ("Email", "email")):
        value = claims.get(name)
        if isinstance(value, str) and value.strip():
            yield f"{title}: {one_line(value)}"
    yield expiry(credential, left_s)
