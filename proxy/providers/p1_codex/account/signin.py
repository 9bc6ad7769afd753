"""P1's sign-in: addresses, parameters and claims of the issuer behind the Codex backend.

Two ways to sign in, both ending in an authorization code: a browser on this machine, or a code typed on another one.
The issuer's device flow is not the standard one. The vendor's own `auth.json` is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from proxy.auth.device import Poll, is_typable, poll
from proxy.auth.grant import first_text, granted
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.jwt import claims
from proxy.auth.pasted import ReadLine
from proxy.auth.pkce import Pkce
from proxy.auth.refresh import Credentials, Lent, Renewal
from proxy.auth.store import Credential, CredentialFile
from proxy.core.identity import fits_header
from proxy.errors import SignInError
from proxy.providers.accounts import device_sign_in
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.browser_sign_in import BrowserSignIn
from proxy.providers.accounts.device_sign_in import DEVICE_LIMIT_S
from proxy.providers.accounts.stored import StoredAccount, expiry
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.request import PRODUCT
from proxy.providers.p1_codex.settings import CodexSettings

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
SCOPE = "openid profile email offline_access"
ORIGINATOR = "model-proxy"

#: The only two redirect ports the issuer accepts for this client id; its redirect host is `localhost` by name.
PORTS = (1455, 1457)
CALLBACK_PATH = "/auth/callback"

#: Seconds that a token without `expires_in` is valid.
DEFAULT_EXPIRES_S = 3600

#: Seconds added to the issuer's interval between two polls.
DEVICE_MARGIN_S = 3.0

#: The issuer answers these until the user has entered the code.
DEVICE_PENDING = {403, 404}

#: Paths into the claims of a token where the account id may be, in this order.
ACCOUNT_CLAIMS: tuple[tuple[str | int, ...], ...] = (
    ("chatgpt_account_id",),
    ("https://api.openai.com/auth", "chatgpt_account_id"),
    ("https://api.openai.com/auth.chatgpt_account_id",),  # one flat key, as older tokens have it
    ("organizations", 0, "id"),
)


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
    """The account that requests are made for. None is no error: the account header is then left out."""
    for token in (id_token, access_token):
        found = claims(token)
        for path in ACCOUNT_CLAIMS:
            value = _at(found, path)
            if isinstance(value, str) and value.strip():
                return value
    return None


def credential_from(body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential. What a renewal leaves out (refresh token, account) is kept from `old`.

    {"id_token": "<jwt>", "access_token": "<jwt>", "refresh_token": "…", "expires_in": 864000}

    Raises ValueError, whose text holds no token.
    """
    found = granted(body, old, now_ms, default_expires_s=DEFAULT_EXPIRES_S)
    account = account_id(body.get("id_token"), found.access.reveal())
    if account and not fits_header(account):
        raise ValueError("the token response has no usable account id: it has characters that no header may have")
    return replace(found, account_id=account) if account else found


def credential_file(config_root: Path) -> CredentialFile:
    """The file of P1's credential."""
    return CredentialFile(config_root, LABEL)


def _endpoint(client: TokenClient, issuer: str, clock: Callable[[], float]) -> TokenEndpoint:
    async def send(form: Mapping[str, str]) -> TokenResponse:
        return await client.post_form(f"{issuer}/oauth/token", {"client_id": CLIENT_ID, **form})

    return TokenEndpoint(LABEL, send, credential_from, clock)


def p1_credentials(lent: Lent, issuer: str, session: aiohttp.ClientSession) -> Credentials:
    """P1's credentials; the caller closes the result."""
    endpoint = _endpoint(TokenClient(LABEL, session), issuer.rstrip("/"), lent.clock)
    renewal = Renewal(LABEL, endpoint.refresh, credential_from)
    return Credentials(credential_file(lent.config_root), renewal, lent)


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


class CodexAccount(StoredAccount):
    """Sign-in with a browser or a code."""

    def __init__(self, context: AccountContext) -> None:
        super().__init__(context, credential_file(context.config_root))
        self._config = context.config
        codex = context.config.section(CodexSettings)
        self._issuer, self._originator = codex.issuer.rstrip("/"), codex.originator or PRODUCT

    async def login(self, *, device: bool, say: Say) -> Credential:
        async with self._connect() as http:
            client = TokenClient(LABEL, http)
            return await (self._with_code(client, say) if device else self._with_browser(client, say))

    async def login_pasted(self, *, read: ReadLine, say: Say) -> Credential:
        async with self._connect() as http:
            return await self._with_browser(TokenClient(LABEL, http), say, read)

    async def usage(self) -> UsageReport:
        from proxy.providers.p1_codex.account import usage_windows  # the status needs none of it

        async with (
            self._connect() as http,
            closing_after(p1_credentials(self._lent, self._issuer, http)) as credentials,
        ):
            return await usage_windows.ask(credentials, self._config, http, self._ports.clock)

    async def _with_browser(self, client: TokenClient, say: Say, read: ReadLine | None = None) -> Credential:
        sign_in = BrowserSignIn(
            _endpoint(client, self._issuer, self._ports.clock),
            partial(authorize_url, self._issuer, originator=self._originator),
            path=CALLBACK_PATH,
            listed=PORTS,
            ports=self._ports,
        )
        return await sign_in.run(partial(self._save_new, say), say=say, read=read)

    async def _with_code(self, client: TokenClient, say: Say) -> Credential:
        """Signs in with a code that the user enters on any device."""
        device = await self._device_code(client)
        say(f"Open {self._issuer}/codex/device on any device and enter this code (valid for 15 minutes):")
        say(device["user_code"])
        body = {"device_auth_id": device["device_auth_id"], "user_code": device["user_code"]}
        grant = await poll(
            partial(self._ask_device, client, body),
            label=LABEL,
            interval_s=device_sign_in.poll_interval(device.get("interval"), margin_s=DEVICE_MARGIN_S),
            limit_s=DEVICE_LIMIT_S,
            monotonic=self._ports.monotonic,
            sleep=self._ports.sleep,
        )
        credential = await _endpoint(client, self._issuer, self._ports.clock).exchange(
            code=grant["authorization_code"],
            redirect_uri=f"{self._issuer}/deviceauth/callback",
            verifier=grant["code_verifier"],
        )
        return await self._save_new(say, credential)

    async def _device_code(self, client: TokenClient) -> Mapping[str, Any]:
        """{"device_auth_id": "…", "user_code": "ABCD-EFGH", "interval": "5"}"""
        answer = await client.post_json(f"{self._issuer}/api/accounts/deviceauth/usercode", {"client_id": CLIENT_ID})
        body = device_sign_in.code_answer(answer, label=LABEL)
        user_code = first_text(body, "user_code", "usercode")
        if not is_typable(user_code) or not first_text(body, "device_auth_id"):
            raise device_sign_in.unusable_code(LABEL)
        return {**body, "user_code": user_code}

    async def _ask_device(self, client: TokenClient, body: Mapping[str, Any]) -> Mapping[str, Any] | Poll:
        """Polls once. The last answer is {"authorization_code": "…", "code_verifier": "…"}: here the server made the
        verifier."""
        answer = await client.post_json(f"{self._issuer}/api/accounts/deviceauth/token", body)
        if answer.status in DEVICE_PENDING:
            return Poll.PENDING
        passing = device_sign_in.passing(answer)
        if passing is not None:
            return passing
        if not answer.ok:
            raise device_sign_in.failed(answer, label=LABEL)
        if not (first_text(answer.data, "authorization_code") and first_text(answer.data, "code_verifier")):
            raise SignInError("The device sign-in failed: the answer has no code.", provider=LABEL)
        return answer.data

    async def _save_new(self, say: Say, credential: Credential) -> Credential:
        lines = [f"Account: {credential.account_id}"] if credential.account_id else []
        return await self._save(credential, *lines, say=say)

    def _lines(self, credential: Credential, left_s: int) -> Iterable[str]:
        yield f"Account: {credential.account_id or '(none)'}"
        yield expiry(credential, left_s)
        yield f"Storage: {self._file.path}"
