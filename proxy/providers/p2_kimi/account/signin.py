"""P2's sign-in: a code that the user confirms in any browser (RFC 8628), and tokens that live for minutes.

How the credential is kept and renewed is generic and lives in `proxy.auth`. Every call carries the device headers,
because the tokens are bound to the device id.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from proxy.auth import refresh
from proxy.auth.device import Poll, is_typable, poll
from proxy.auth.grant import first_text, granted, number
from proxy.auth.http import Answer, TokenClient, repeated
from proxy.auth.jwt import claims
from proxy.auth.refresh import Credentials, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.auth.text import printable
from proxy.core.secret import Secret
from proxy.errors import SignInError
from proxy.observe.lifecycle import Log
from proxy.providers.p2_kimi.account.device import USER_AGENT, device_headers
from proxy.providers.p2_kimi.catalog import LABEL

OAUTH_HOST = "https://auth.kimi.com"

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

#: Members of the file. The user takes the place of the account.
FIELDS = Fields(account_id=("userId", "user_id"))

#: A token response without `expires_in`.
DEFAULT_EXPIRES_S = 900

#: How long the user has at most, whatever the issuer allows.
DEVICE_LIMIT_S = 15 * 60.0
DEVICE_INTERVAL_S = 5.0

#: Added to the issuer's interval, so that no poll comes early by its clock.
DEVICE_MARGIN_S = 0.5

#: Before the second and the third try of a renewal.
REFRESH_WAITS_S = (1.0, 2.0)

#: Another program that renews the same credential without our lock may be about to write.
PEER_WAIT_S = 0.25

#: A refused refresh token is not sent again before this has passed. The file stays: deleting it could destroy what
#: another program has just written.
REFUSED_FOR_S = 300.0

#: OAuth error words of a poll that mean "ask again".
_WAITING = {"authorization_pending": Poll.PENDING, "slow_down": Poll.SLOW_DOWN}

#: Those that end the sign-in, in words for the user.
_ENDS = {
    "expired_token": "The code has expired; start the sign-in again.",
    "access_denied": "The sign-in was refused in the browser.",
}

#: Prints one line for the user.
Say = Callable[[str], None]


def credential_file(config_root: Path) -> CredentialFile:
    """Where P2's credential is."""
    return CredentialFile(config_root, LABEL, fields=FIELDS)


# Tokens


def credential_from(body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential. What a renewal leaves out (refresh token, scope, user) stays as in `old`.

    {"access_token": "<jwt>", "refresh_token": "…", "expires_in": 900, "scope": "…", "token_type": "Bearer"}

    Raises ValueError, whose text holds no token.
    """
    new = granted(body, old, now_ms, default_expires_s=DEFAULT_EXPIRES_S)
    user, scope = first_text(claims(new.access.reveal()), "user_id"), first_text(body, "scope")
    extra = {**new.extra, "scope": scope} if scope else new.extra
    return replace(new, account_id=user or new.account_id, extra=extra)


def is_refused(answer: Answer) -> bool:
    """As everywhere, and this issuer's word for it with any status."""
    return answer.code == "invalid_grant" or refresh.is_refused(answer)


@dataclass(frozen=True, slots=True)
class _Issuer:
    """The two addresses of the issuer, spoken to as one device."""

    host: str
    config_root: Path
    session: aiohttp.ClientSession
    user_agent: str

    async def post(self, path: str, **form: str) -> Answer:
        """Raises IssuerFailure, and ProxyError when there can be no device id."""
        client = TokenClient(LABEL, self.session, await device_headers(self.config_root, self.user_agent))
        return await client.post_form(f"{self.host.rstrip('/')}/api/oauth/{path}", {"client_id": CLIENT_ID, **form})

    async def refresh(self, token: Secret) -> Answer:
        return await self.post("token", grant_type="refresh_token", refresh_token=token.reveal())


async def _send_renewal(issuer: _Issuer, sleep: Callable[[float], Awaitable[None]], credential: Credential) -> Answer:
    send = partial(issuer.refresh, credential.refresh)
    return await repeated(send, waits_s=REFRESH_WAITS_S, is_final=is_refused, sleep=sleep)


def p2_credentials(
    config_root: Path,
    oauth_host: str,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    log: Log | None = None,
    *,
    user_agent: str = USER_AGENT,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Credentials:
    """P2's credentials below a config root. `clock` gives epoch seconds; the caller closes the result."""
    issuer = _Issuer(oauth_host, config_root, session, user_agent)
    renewal = Renewal(
        LABEL,
        partial(_send_renewal, issuer, sleep),
        credential_from,
        is_refused,
        delete_refused=False,
        refused_for_s=REFUSED_FOR_S,
        peer_wait_s=PEER_WAIT_S,
    )
    return Credentials(credential_file(config_root), renewal, clock=clock, sleep=sleep, log=log)


# Sign-in


@dataclass(frozen=True, slots=True)
class _Code:
    """What the issuer gave for the user to confirm."""

    device: Secret
    user: str
    page: str
    interval_s: float
    limit_s: float


def _read_code(body: Mapping[str, Any]) -> _Code:
    """{"user_code":"ABCD-1234","device_code":"…","verification_uri_complete":"https://…","expires_in":900,"interval":5}

    Raises SignInError. Code and address are shown in a terminal, so they must be what they seem.
    """
    user, device = first_text(body, "user_code"), first_text(body, "device_code")
    page = first_text(body, "verification_uri_complete")
    if not (is_typable(user) and device and _is_page(page)):
        raise SignInError("The sign-in service sent an unusable device code.", provider=LABEL)
    interval, expires = number(body.get("interval")), number(body.get("expires_in"))
    return _Code(
        device=Secret(device),
        user=user,
        page=page,
        interval_s=max(1.0, interval or DEVICE_INTERVAL_S) + DEVICE_MARGIN_S,
        limit_s=min(expires, DEVICE_LIMIT_S) if expires and expires > 0 else DEVICE_LIMIT_S,
    )


def _is_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.netloc) and url.isascii() and url == printable(url, 2000)


async def _request_code(issuer: _Issuer) -> _Code:
    answer = await issuer.post("device_authorization")
    if not answer.ok:
        raise SignInError(f"The sign-in service gave no device code: {answer.reason()}.", provider=LABEL)
    return _read_code(answer.data)


async def _ask(issuer: _Issuer, code: Secret) -> Mapping[str, Any] | Poll:
    """One poll. The body decides, not the status: there are pending answers with status 200."""
    answer = await issuer.post("token", grant_type=DEVICE_GRANT, device_code=code.reveal())
    if answer.code in _WAITING:
        return _WAITING[answer.code]
    if answer.code in _ENDS:
        raise SignInError(_ENDS[answer.code], provider=LABEL)
    if answer.status == 429:
        return Poll.SLOW_DOWN
    if answer.status >= 500:  # passes by itself, and the user is busy in the browser meanwhile
        return Poll.PENDING
    if answer.ok and not answer.code:
        return answer.data
    raise SignInError(f"The device sign-in failed: {answer.reason(code)}.", provider=LABEL)


async def login(
    config_root: Path,
    oauth_host: str = OAUTH_HOST,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    user_agent: str = USER_AGENT,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Credential:
    """Signs in with a code that the user confirms in any browser, and stores the credential.

    Raises ProxyError with a message for the terminal.
    """
    issuer = _Issuer(oauth_host, config_root, session, user_agent)
    code = await _request_code(issuer)
    say("Open this address in a browser on any device to sign in:")
    say(code.page)
    say(f"and check that it shows this code: {code.user}")
    body = await poll(
        partial(_ask, issuer, code.device),
        label=LABEL,
        interval_s=code.interval_s,
        limit_s=code.limit_s,
        monotonic=monotonic,
        sleep=sleep,
    )
    try:
        credential = credential_from(body, None, int(clock() * 1000))
    except ValueError as error:
        raise SignInError(f"The sign-in failed: {error}.", provider=LABEL) from error
    file = credential_file(config_root)
    await file.put(credential)
    say(f"Auth saved in {file.path}")
    if credential.account_id:
        say(f"User: {printable(credential.account_id)}")
    say("Signed in")
    return credential


#: There is no other way in.
login_device = login


# What is stored


def status(config_root: Path, *, say: Say, clock: Callable[[], float] = time.time) -> bool:
    """Prints what is stored, without asking the issuer; False when nothing is (then the exit code is 1)."""
    file = credential_file(config_root)
    credential = file.load()
    if credential is None:
        say("Not authenticated")
        return False
    left_s = (credential.expires_ms - int(clock() * 1000)) // 1000
    scope = first_text(credential.extra, "scope")
    say(f"Storage: {file.path}")
    say(f"User: {printable(credential.account_id or '(none)')}")
    say(f"Scope: {printable(scope or '(none)')}")
    say(f"Expires in {left_s}s" + ("" if left_s > 0 else " (renewed when it is needed)"))
    return True


async def logout(config_root: Path, *, say: Say) -> None:
    """Deletes the stored credential, not the device id; succeeds when there is none. The issuer is not told."""
    await credential_file(config_root).discard()
    say("Logged out")
