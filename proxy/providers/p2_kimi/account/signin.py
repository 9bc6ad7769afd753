"""P2's sign-in: a code that the user confirms in any browser (RFC 8628), and tokens that live for minutes.

Every call carries the device headers, because the tokens are bound to the device id.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth import refresh
from proxy.auth.grant import first_text, granted
from proxy.auth.http import TokenClient, TokenResponse, repeated
from proxy.auth.jwt import claims
from proxy.auth.refresh import Credentials, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.auth.text import one_line, printable
from proxy.observe.lifecycle import Happened, Log, unheard
from proxy.providers.accounts import stored
from proxy.providers.accounts.device_sign_in import DeviceRules, DeviceSignIn
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.contract import Say
from proxy.providers.p2_kimi.account.device import USER_AGENT, device_headers
from proxy.providers.p2_kimi.catalog import LABEL

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"

#: Members of the file. The user takes the place of the account.
FIELDS = Fields(account_id=("userId", "user_id"))

#: A token response without `expires_in`.
DEFAULT_EXPIRES_S = 900

#: No poll comes early by the issuer's clock.
DEVICE_RULES = DeviceRules(margin_s=0.5)

#: Before the second and the third try of a renewal.
REFRESH_WAITS_S = (1.0, 2.0)

#: Another program that renews the same credential without our lock may be about to write.
PEER_WAIT_S = 0.25

#: A refused refresh token is not sent again before this has passed. The file stays: deleting it could destroy what
#: another program has just written.
REFUSED_FOR_S = 300.0


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


def is_refused(answer: TokenResponse) -> bool:
    """As everywhere, and this issuer's word for it with any status."""
    return answer.code == "invalid_grant" or refresh.is_refused(answer)


@dataclass(frozen=True, slots=True)
class _Issuer:
    """The two addresses of the issuer, called with the headers of one device."""

    host: str
    config_root: Path
    session: aiohttp.ClientSession
    user_agent: str

    async def post(self, path: str, form: Mapping[str, str]) -> TokenResponse:
        """Raises IssuerFailure, and ProxyError when there can be no device id."""
        client = TokenClient(LABEL, self.session, await device_headers(self.config_root, self.user_agent))
        return await client.post_form(f"{self.host.rstrip('/')}/api/oauth/{path}", {"client_id": CLIENT_ID, **form})

    def endpoint(self, clock: Callable[[], float]) -> TokenEndpoint:
        return TokenEndpoint(LABEL, partial(self.post, "token"), credential_from, clock)

    async def request_code(self) -> TokenResponse:
        return await self.post("device_authorization", {})


def p2_credentials(
    config_root: Path,
    oauth_host: str,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    log: Log | None = None,
    *,
    user_agent: str = USER_AGENT,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    happened: Happened = unheard,
) -> Credentials:
    """P2's credentials below a config root. `clock` gives epoch seconds; the caller closes the result."""
    endpoint = _Issuer(oauth_host, config_root, session, user_agent).endpoint(clock)

    async def send(credential: Credential) -> TokenResponse:
        once = partial(endpoint.refresh, credential)
        return await repeated(once, waits_s=REFRESH_WAITS_S, is_final=is_refused, sleep=sleep)

    renewal = Renewal(
        LABEL,
        send,
        credential_from,
        is_refused,
        delete_refused=False,
        refused_for_s=REFUSED_FOR_S,
        peer_wait_s=PEER_WAIT_S,
    )
    return Credentials(credential_file(config_root), renewal, clock=clock, sleep=sleep, log=log, happened=happened)


# Sign-in


async def login(
    config_root: Path,
    oauth_host: str,
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
    sign_in = DeviceSignIn(issuer.endpoint(clock), issuer.request_code, DEVICE_RULES, monotonic, sleep)
    credential = await sign_in.run(say=say)
    user = [f"User: {one_line(credential.account_id)}"] if credential.account_id else []
    return await stored.save(credential_file(config_root), credential, *user, "Signed in", say=say)


# What is stored


def _describe(file: CredentialFile, credential: Credential, left_s: int) -> Iterator[str]:
    yield f"Storage: {file.path}"
    yield f"User: {one_line(credential.account_id or '(none)')}"
    yield f"Scope: {printable(first_text(credential.extra, 'scope') or '(none)')}"
    yield f"Expires in {left_s}s" + ("" if left_s > 0 else " (renewed when it is needed)")


def status(config_root: Path, *, say: Say, clock: Callable[[], float] = time.time) -> bool:
    """The command `auth status p2`."""
    return stored.show(credential_file(config_root), _describe, say=say, clock=clock)


async def logout(config_root: Path, *, say: Say) -> None:
    """The command `auth logout p2`. The device id stays."""
    await stored.delete(credential_file(config_root), say=say)
