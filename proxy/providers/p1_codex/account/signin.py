"""P1's sign-in: addresses, parameters and claims of the issuer behind the Codex backend.

Two ways in, both ending in an authorization code: a browser on this machine, or a code typed on another one. How the
credential is kept and renewed is generic and lives in `proxy.auth`. The vendor's own `auth.json` is never touched.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from proxy.auth.browser import Opener, open_graphical, open_in_background
from proxy.auth.callback import CALLBACK_TIMEOUT_S, CallbackListener
from proxy.auth.device import Poll, is_typable, poll
from proxy.auth.grant import first_text, granted, number
from proxy.auth.http import Answer, TokenClient
from proxy.auth.jwt import claims
from proxy.auth.pkce import Pkce, Random, new_pkce
from proxy.auth.refresh import Credentials, Renewal
from proxy.auth.store import Credential, CredentialFile
from proxy.core.secret import Secret
from proxy.errors import SignInError
from proxy.observe.lifecycle import Log

LABEL = "p1"
ISSUER = "https://auth.openai.com"

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
SCOPE = "openid profile email offline_access"
ORIGINATOR = "model-proxy"

#: The only two redirect ports the issuer accepts for this client id.
PORTS = (1455, 1457)
CALLBACK_PATH = "/auth/callback"

#: A token response without `expires_in`.
DEFAULT_EXPIRES_S = 3600

#: How long a device code lives.
DEVICE_LIMIT_S = 15 * 60.0
DEVICE_INTERVAL_S = 5.0

#: Added to the issuer's interval, so that no poll comes early by its clock.
DEVICE_MARGIN_S = 3.0

#: The issuer answers these until the user has entered the code.
DEVICE_PENDING = {403, 404}

#: Where the account id may be, in this order: paths into the claims of a token.
ACCOUNT_CLAIMS: tuple[tuple[str | int, ...], ...] = (
    ("chatgpt_account_id",),
    ("https://api.openai.com/auth", "chatgpt_account_id"),
    ("https://api.openai.com/auth.chatgpt_account_id",),  # one flat key, as older tokens have it
    ("organizations", 0, "id"),
)

#: Prints one line for the user.
Say = Callable[[str], None]


# Tokens


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path of member names and list positions; None where the path ends early."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def account_id(id_token: object, access_token: object) -> str | None:
    """The account that requests are made for; None is no error, the account header is then left out."""
    for token in (id_token, access_token):
        found = claims(token)
        for path in ACCOUNT_CLAIMS:
            value = _at(found, path)
            if isinstance(value, str) and value.strip():
                return value
    return None


def credential_from(body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential. What a renewal leaves out (refresh token, account) stays as in `old`.

    {"id_token": "<jwt>", "access_token": "<jwt>", "refresh_token": "…", "expires_in": 864000}

    Raises ValueError, whose text holds no token.
    """
    found = granted(body, old, now_ms, default_expires_s=DEFAULT_EXPIRES_S)
    account = account_id(body.get("id_token"), found.access.reveal())
    return replace(found, account_id=account) if account else found


async def _send_renewal(client: TokenClient, issuer: str, credential: Credential) -> Answer:
    form = {
        "client_id": CLIENT_ID,
        "grant_type": "refresh_token",
        "refresh_token": credential.refresh.reveal(),
    }
    return await client.post_form(f"{issuer}/oauth/token", form)


def p1_credentials(
    config_root: Path,
    issuer: str,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    log: Log | None = None,
) -> Credentials:
    """P1's credentials below a config root. `clock` gives epoch seconds; the caller closes the result."""
    send = partial(_send_renewal, TokenClient(LABEL, session), issuer.rstrip("/"))
    return Credentials(CredentialFile(config_root, LABEL), Renewal(LABEL, send, credential_from), clock=clock, log=log)


# Sign-in


def authorize_url(issuer: str, redirect_uri: str, pkce: Pkce, originator: str = ORIGINATOR) -> str:
    """The page that a browser sign-in begins with."""
    query = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": redirect_uri,
        "scope": SCOPE,
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "state": pkce.state,
        "originator": originator,
    }
    return f"{issuer}/oauth/authorize?{urlencode(query)}"


async def exchange(
    client: TokenClient,
    issuer: str,
    *,
    code: str,
    redirect_uri: str,
    verifier: str,
    now_ms: Callable[[], int],
) -> Credential:
    """Turns an authorization code into a credential. Raises SignInError with status and reason."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "client_id": CLIENT_ID,
        "code_verifier": verifier,
    }
    answer = await client.post_form(f"{issuer}/oauth/token", form)
    if not answer.ok:
        reason = answer.reason(Secret(code), Secret(verifier))
        raise SignInError(f"The sign-in service refused the code: {reason}.", provider=LABEL)
    try:
        return credential_from(answer.data, None, now_ms())
    except ValueError as error:
        raise SignInError(f"The sign-in failed: {error}.", provider=LABEL) from error


async def _store(config_root: Path, credential: Credential, say: Say) -> Credential:
    file = CredentialFile(config_root, LABEL)
    await file.put(credential)
    say(f"Auth saved in {file.path}")
    if credential.account_id:
        say(f"Account: {credential.account_id}")
    return credential


async def login(
    config_root: Path,
    issuer: str = ISSUER,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    originator: str = ORIGINATOR,
    opener: Opener | None = open_graphical,
    ports: tuple[int, ...] = PORTS,
    timeout_s: float = CALLBACK_TIMEOUT_S,
    clock: Callable[[], float] = time.time,
    random: Random = secrets.token_bytes,
) -> Credential:
    """Signs in with a browser on this machine and stores the credential. `opener=None` only prints the address.

    Raises ProxyError with a message for the terminal.
    """
    issuer = issuer.rstrip("/")
    client, pkce = TokenClient(LABEL, session), new_pkce(random)
    async with CallbackListener(
        LABEL, path=CALLBACK_PATH, state=pkce.state, ports=ports, timeout_s=timeout_s
    ) as listener:
        # The name, not the number: it is the form known to be allowed for this client id.
        redirect_uri = f"http://localhost:{listener.port}{CALLBACK_PATH}"
        url = authorize_url(issuer, redirect_uri, pkce, originator)
        say("Open this address in a browser to sign in:")
        say(url)
        if opener is not None:
            open_in_background(url, opener)

        async def finish(code: str) -> Credential:
            credential = await exchange(
                client,
                issuer,
                code=code,
                redirect_uri=redirect_uri,
                verifier=pkce.verifier,
                now_ms=lambda: int(clock() * 1000),
            )
            # Stored before the browser hears of success, so that the page never says what is not true.
            return await _store(config_root, credential, say)

        return await listener.run(finish)


def device_interval(value: object) -> float:
    """Seconds between two polls, from the issuer's `interval`, which is a string of digits or a number."""
    seconds = number(value)
    if not seconds:
        seconds = DEVICE_INTERVAL_S
    return max(1.0, seconds) + DEVICE_MARGIN_S


async def _request_device_code(client: TokenClient, issuer: str) -> Mapping[str, Any]:
    """{"device_auth_id": "…", "user_code": "ABCD-EFGH", "interval": "5"}"""
    answer = await client.post_json(f"{issuer}/api/accounts/deviceauth/usercode", {"client_id": CLIENT_ID})
    if answer.status == 404:
        raise SignInError("Device sign-in is not enabled for this issuer.", provider=LABEL)
    if not answer.ok:
        raise SignInError(f"The sign-in service gave no device code: {answer.reason()}.", provider=LABEL)
    user_code = first_text(answer.data, "user_code", "usercode")
    # It is shown in a terminal, so it must be the kind of code a person can type.
    if not is_typable(user_code) or not first_text(answer.data, "device_auth_id"):
        raise SignInError("The sign-in service sent an unusable device code.", provider=LABEL)
    return {**answer.data, "user_code": user_code}


async def _ask_device(client: TokenClient, issuer: str, body: Mapping[str, Any]) -> Mapping[str, Any] | Poll:
    """One poll. The end is {"authorization_code": "…", "code_verifier": "…"}: here the server made the verifier."""
    answer = await client.post_json(f"{issuer}/api/accounts/deviceauth/token", body)
    if answer.status in DEVICE_PENDING:
        return Poll.PENDING
    if not answer.ok:
        raise SignInError(f"The device sign-in failed: {answer.reason()}.", provider=LABEL)
    if not (first_text(answer.data, "authorization_code") and first_text(answer.data, "code_verifier")):
        raise SignInError("The device sign-in failed: the answer has no code.", provider=LABEL)
    return answer.data


async def login_device(
    config_root: Path,
    issuer: str = ISSUER,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Credential:
    """Signs in with a code that the user enters on any device, and stores the credential. Raises as `login`."""
    issuer = issuer.rstrip("/")
    client = TokenClient(LABEL, session)
    device = await _request_device_code(client, issuer)
    say(f"Open {issuer}/codex/device on any device and enter this code (valid for 15 minutes):")
    say(device["user_code"])
    body = {"device_auth_id": device["device_auth_id"], "user_code": device["user_code"]}
    granted = await poll(
        partial(_ask_device, client, issuer, body),
        label=LABEL,
        interval_s=device_interval(device.get("interval")),
        limit_s=DEVICE_LIMIT_S,
        monotonic=monotonic,
        sleep=sleep,
    )
    credential = await exchange(
        client,
        issuer,
        code=granted["authorization_code"],
        redirect_uri=f"{issuer}/deviceauth/callback",
        verifier=granted["code_verifier"],
        now_ms=lambda: int(clock() * 1000),
    )
    return await _store(config_root, credential, say)


# What is stored


def _moment(epoch_ms: int) -> str:
    """UTC, ISO 8601 with milliseconds; the bare number where the calendar ends."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{epoch_ms % 1000:03d}Z"


def status(config_root: Path, *, say: Say, clock: Callable[[], float] = time.time) -> bool:
    """Prints what is stored, without asking the issuer; False when nothing is (then the exit code is 1)."""
    file = CredentialFile(config_root, LABEL)
    credential = file.load()
    if credential is None:
        say("Not authenticated")
        return False
    left_s = (credential.expires_ms - int(clock() * 1000)) // 1000
    say(f"Account: {credential.account_id or '(none)'}")
    say(f"Expires: {_moment(credential.expires_ms)} (in {left_s}s)")
    say(f"Storage: {file.path}")
    return True


async def logout(config_root: Path, *, say: Say) -> None:
    """Deletes the stored credential; succeeds when there is none. The issuer is not told."""
    await CredentialFile(config_root, LABEL).discard()
    say("Logged out")
