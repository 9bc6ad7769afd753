"""P3's sign-in: an OpenID Connect issuer, entered by a browser on this machine or by a code confirmed on any other.

The endpoints of a browser sign-in and of a renewal are in the issuer's discovery document, those of the device flow
have fixed paths. What is stored has five members and no others; none of them tells whose it is.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from proxy.auth.browser import Opener, open_graphical
from proxy.auth.callback import CALLBACK_TIMEOUT_S
from proxy.auth.discovery import Discovery
from proxy.auth.grant import first_text, granted
from proxy.auth.http import TokenClient, TokenResponse, repeated
from proxy.auth.pasted import ReadLine
from proxy.auth.pkce import Pkce, Random
from proxy.auth.refresh import Credentials, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.auth.text import printable
from proxy.observe.lifecycle import Happened, Log, unheard
from proxy.providers.accounts import stored
from proxy.providers.accounts.browser_sign_in import BrowserSignIn
from proxy.providers.accounts.device_sign_in import DeviceRules, DeviceSignIn
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.contract import Say
from proxy.providers.p3_grok.catalog import LABEL

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"

#: Without this one the API refuses every request.
API_SCOPE = "grok-cli:access"
SCOPE = f"openid profile email offline_access {API_SCOPE} api:access conversations:read conversations:write"

#: Any port: the issuer has the address listed without one.
PORTS = (0,)
CALLBACK_PATH = "/callback"

#: Issuer -> the origin of the page that a user signs in on, which calls the redirect address by script.
CALLERS = {"https://auth.x.ai": "https://accounts.x.ai"}

DEVICE_PATH = "/oauth2/device/code"
DEVICE_TOKEN_PATH = "/oauth2/token"  # noqa: S105  a path
DEVICE_PAGE_PATH = "/device"

DEVICE_LIMIT_S = 600.0
DEVICE_LONGEST_S = 24 * 3600.0

#: Members of the file, all of them.
FIELDS = Fields(expires_ms=("expires_at_ms",), account_id=(), texts=frozenset({"issuer", "client_id"}))

#: Of calls to a token endpoint.
TIMEOUT = aiohttp.ClientTimeout(total=30.0, connect=10.0)

#: Before the second and the third try of a renewal. Only one that provably did nothing is repeated, because the issuer
#: takes a refresh token that comes twice for stolen, and then revokes what it has issued for it.
REFRESH_WAITS_S = (1.0, 2.0)

#: Words for a sign-in that is over; everything else passes, and costs no credential.
REFUSED = ("invalid_grant", "invalid_client")


def credential_file(config_root: Path) -> CredentialFile:
    """Where P3's credential is."""
    return CredentialFile(config_root, LABEL, fields=FIELDS)


# Tokens


def credential_from(issuer: str, body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential; a refresh token that a renewal leaves out stays as in `old`.

    {"access_token": "…", "refresh_token": "…", "expires_in": 21600, "token_type": "Bearer", "scope": "…"}

    Raises ValueError, whose text holds no token.
    """
    kind = body.get("token_type")
    if kind is not None and (not isinstance(kind, str) or kind.lower() != "bearer"):
        raise ValueError("the token response has no usable token_type")
    return replace(granted(body, old, now_ms), extra={"issuer": issuer, "client_id": CLIENT_ID})


def is_refused(answer: TokenResponse) -> bool:
    return answer.code in REFUSED


def _unfit(issuer: str, credential: Credential) -> str:
    """Why a stored credential is not to be sent to this issuer, as the end of a sentence; "" when it is its own."""
    made_at, client = credential.extra["issuer"], credential.extra["client_id"]
    if made_at != issuer:
        return f"was made at {printable(made_at)}, not at {issuer}"
    return "" if client == CLIENT_ID else "was made by another client"


async def _post(client: TokenClient, url: str, form: Mapping[str, str]) -> TokenResponse:
    """A refusal keeps its OAuth error, but no body of another form: nobody knows what that may repeat."""
    answer = await client.post_form(url, {"client_id": CLIENT_ID, **form})
    return answer if answer.ok else replace(answer, text="")


def _endpoint(issuer: str, client: TokenClient, url: str, clock: Callable[[], float]) -> TokenEndpoint:
    return TokenEndpoint(LABEL, partial(_post, client, url), partial(credential_from, issuer), clock)


def p3_credentials(
    config_root: Path,
    issuer: str,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    log: Log | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    happened: Happened = unheard,
) -> Credentials:
    """P3's credentials below a config root. `clock` gives epoch seconds; the caller closes the result."""
    issuer = issuer.rstrip("/")
    client = TokenClient(LABEL, session, timeout=TIMEOUT)
    discovery = Discovery(LABEL, issuer, session, clock=clock, sleep=sleep)

    async def send(credential: Credential) -> TokenResponse:
        once = partial(_endpoint(issuer, client, await discovery.token_endpoint(), clock).refresh, credential)
        return await repeated(once, waits_s=REFRESH_WAITS_S, is_final=is_refused, once_sent=False, sleep=sleep)

    renewal = Renewal(
        LABEL, send, partial(credential_from, issuer), is_refused, delete_refused=False, unfit=partial(_unfit, issuer)
    )
    return Credentials(credential_file(config_root), renewal, clock=clock, sleep=sleep, log=log, happened=happened)


# Sign-in


def authorize_url(endpoint: str, redirect_uri: str, pkce: Pkce) -> str:
    """The page that a browser sign-in begins with."""
    query = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": redirect_uri,
        "scope": SCOPE,
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        "state": pkce.state,
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


@dataclass(slots=True)
class _SignIn:
    """One sign-in: where it is stored, and what the issuer granted."""

    config_root: Path
    issuer: str
    say: Say
    scope: str = field(default="", init=False)

    def parse(self, body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
        self.scope = first_text(body, "scope")
        return credential_from(self.issuer, body, old, now_ms)

    async def save(self, credential: Credential) -> Credential:
        lines = ["Signed in"]
        if self.scope and API_SCOPE not in self.scope.split():
            lines.append(
                f"But {API_SCOPE} was not granted, without which Grok refuses every request. Sign in again and allow "
                "all that the page asks for; if it is missing then too, the account's plan does not include it."
            )
        return await stored.save(credential_file(self.config_root), credential, *lines, say=self.say)


async def login(
    config_root: Path,
    issuer: str,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    opener: Opener | None = open_graphical,
    ports: tuple[int, ...] = PORTS,
    timeout_s: float = CALLBACK_TIMEOUT_S,
    clock: Callable[[], float] = time.time,
    random: Random = secrets.token_bytes,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    read: ReadLine | None = None,
) -> Credential:
    """Signs in with a browser on this machine and stores the credential. `opener=None` only prints the address. With
    `read` the browser may be on any machine: the user pastes where it ended.

    Raises ProxyError with a message for the terminal.
    """
    sign_in = _SignIn(config_root, issuer.rstrip("/"), say)
    endpoints = await Discovery(LABEL, sign_in.issuer, session, clock=clock, sleep=sleep).sign_in_endpoints()
    client = TokenClient(LABEL, session, timeout=TIMEOUT)
    browser = BrowserSignIn(
        TokenEndpoint(LABEL, partial(_post, client, endpoints.token), sign_in.parse, clock),
        partial(authorize_url, endpoints.authorization),
        path=CALLBACK_PATH,
        ports=ports,
        host="127.0.0.1",
        caller=CALLERS.get(sign_in.issuer, ""),
        opener=opener,
        timeout_s=timeout_s,
        random=random,
    )
    return await browser.run(sign_in.save, say=say, read=read)


async def login_device(
    config_root: Path,
    issuer: str,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Credential:
    """Signs in with a code that the user confirms on any device, and stores the credential. Raises as `login`."""
    sign_in = _SignIn(config_root, issuer.rstrip("/"), say)
    client = TokenClient(LABEL, session, timeout=TIMEOUT)
    rules = DeviceRules(
        wait_first=True,
        limit_s=DEVICE_LIMIT_S,
        longest_s=DEVICE_LONGEST_S,
        page=f"{sign_in.issuer}{DEVICE_PAGE_PATH}",
        patient=False,
    )
    device = DeviceSignIn(
        TokenEndpoint(LABEL, partial(_post, client, f"{sign_in.issuer}{DEVICE_TOKEN_PATH}"), sign_in.parse, clock),
        partial(_post, client, f"{sign_in.issuer}{DEVICE_PATH}", {"scope": SCOPE}),
        rules,
        monotonic,
        sleep,
    )
    return await sign_in.save(await device.run(say=say))


# What is stored


def _describe(file: CredentialFile, credential: Credential, left_s: int) -> Iterator[str]:
    yield f"Storage: {file.path}"
    yield f"Signed in at {credential.extra['issuer']}"
    yield f"Expires in {max(left_s, 0)}s" + ("" if left_s > 0 else " (renewed when it is needed)")


def status(config_root: Path, issuer: str, *, say: Say, clock: Callable[[], float] = time.time) -> bool:
    """The command `auth status p3`."""
    unfit = partial(_unfit, issuer.rstrip("/"))
    return stored.show(credential_file(config_root), _describe, say=say, clock=clock, unfit=unfit)


async def logout(config_root: Path, *, say: Say) -> None:
    """The command `auth logout p3`."""
    await stored.delete(credential_file(config_root), say=say)
