"""P3's sign-in: an OpenID Connect issuer, with a browser on this machine or a code confirmed on any other.

The endpoints of a browser sign-in and of a renewal are in the issuer's discovery document, those of the device flow
have fixed paths. Exactly five members are stored, none of which identifies the user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from proxy.auth.discovery import Discovery
from proxy.auth.grant import first_text, granted
from proxy.auth.http import TokenClient, TokenResponse, repeated
from proxy.auth.pasted import ReadLine
from proxy.auth.pkce import Pkce
from proxy.auth.refresh import Credentials, Lent, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.auth.text import printable
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.browser_sign_in import BrowserSignIn
from proxy.providers.accounts.device_sign_in import DeviceRules, DeviceSignIn
from proxy.providers.accounts.stored import StoredAccount
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.p3_grok.settings import GrokSettings

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"

#: The API refuses every request without this scope.
API_SCOPE = "grok-cli:access"
SCOPE = f"openid profile email offline_access {API_SCOPE} api:access conversations:read conversations:write"

#: Any port: the redirect address is registered with the issuer without one.
PORTS = (0,)
CALLBACK_PATH = "/callback"

#: Issuer -> the origin of its sign-in page, which calls the redirect address by script.
CALLERS = {"https://auth.x.ai": "https://accounts.x.ai"}

DEVICE_PATH = "/oauth2/device/code"
DEVICE_TOKEN_PATH = "/oauth2/token"  # noqa: S105  a path
DEVICE_PAGE_PATH = "/device"

DEVICE_LIMIT_S = 600.0
DEVICE_LONGEST_S = 24 * 3600.0

#: All members of the file.
FIELDS = Fields(expires_ms=("expires_at_ms",), account_id=(), texts=frozenset({"issuer", "client_id"}))

#: For calls to a token endpoint.
TIMEOUT = aiohttp.ClientTimeout(total=30.0, connect=10.0)

#: Seconds before the second and the third try of a renewal. Only a try that provably had no effect is repeated: the
#: issuer takes a refresh token that comes twice for stolen, and revokes all that it issued for it.
REFRESH_WAITS_S = (1.0, 2.0)

#: Error words that end a sign-in; every other failure passes, and costs no credential.
REFUSED = ("invalid_grant", "invalid_client")


def credential_file(config_root: Path) -> CredentialFile:
    """The file of P3's credential."""
    return CredentialFile(config_root, LABEL, fields=FIELDS)


# Tokens


def credential_from(issuer: str, body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential; a refresh token that a renewal leaves out is kept from `old`.

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
    """Why a stored credential must not be sent to this issuer, as the end of a sentence; "" when it may."""
    made_at, client = credential.extra["issuer"], credential.extra["client_id"]
    if made_at != issuer:
        return f"was made at {printable(made_at)}, not at {issuer}"
    return "" if client == CLIENT_ID else "was made by another client"


async def _post(client: TokenClient, url: str, form: Mapping[str, str]) -> TokenResponse:
    """Posts a form. A refusal keeps its OAuth error, but no other body, which might repeat secrets."""
    answer = await client.post_form(url, {"client_id": CLIENT_ID, **form})
    return answer if answer.ok else replace(answer, text="")


def _client(session: aiohttp.ClientSession) -> TokenClient:
    return TokenClient(LABEL, session, timeout=TIMEOUT)


def p3_credentials(lent: Lent, issuer: str, session: aiohttp.ClientSession) -> Credentials:
    """P3's credentials; the caller closes the result."""
    issuer = issuer.rstrip("/")
    parse = partial(credential_from, issuer)
    discovery = Discovery(LABEL, issuer, session, clock=lent.clock, sleep=lent.sleep)

    async def send(credential: Credential) -> TokenResponse:
        post = partial(_post, _client(session), await discovery.token_endpoint())
        once = partial(TokenEndpoint(LABEL, post, parse, lent.clock).refresh, credential)
        return await repeated(once, waits_s=REFRESH_WAITS_S, is_final=is_refused, once_sent=False, sleep=lent.sleep)

    renewal = Renewal(LABEL, send, parse, is_refused, delete_refused=False, unfit=partial(_unfit, issuer))
    return Credentials(credential_file(lent.config_root), renewal, lent)


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


class GrokAccount(StoredAccount):
    """Sign-in with a browser or a code."""

    def __init__(self, context: AccountContext) -> None:
        grok = self._grok = context.config.section(GrokSettings)
        super().__init__(context, credential_file(context.config_root), grok.issuer, grok.base_url)
        self._issuer = grok.issuer.rstrip("/")
        self._scope = ""  # the scope granted by the issuer

    async def login(self, *, device: bool, say: Say) -> Credential:
        return await self._sign_in(self._with_code if device else self._with_browser, say)

    async def login_pasted(self, *, read: ReadLine, say: Say) -> Credential:
        return await self._sign_in(partial(self._with_browser, read=read), say)

    async def usage(self) -> UsageReport:
        from proxy.providers.p3_grok.account import usage_windows  # the status needs none of it

        async with (
            self._connect() as http,
            closing_after(p3_credentials(self._lent, self._issuer, http)) as credentials,
        ):
            return await usage_windows.ask(credentials, self._grok, http, self._ports.clock)

    async def _sign_in(
        self, way: Callable[[aiohttp.ClientSession, Say], Awaitable[Credential]], say: Say
    ) -> Credential:
        from proxy.providers.p3_grok.account import usage_windows

        async with self._connect() as http:
            credential = await way(http, say)
            await usage_windows.tell_missing_plan(self._grok, credential, http, say)
        return credential

    async def _with_browser(self, http: aiohttp.ClientSession, say: Say, *, read: ReadLine | None = None) -> Credential:
        ports = self._ports
        discovery = Discovery(LABEL, self._issuer, http, clock=ports.clock, sleep=ports.sleep)
        endpoints = await discovery.sign_in_endpoints()
        browser = BrowserSignIn(
            self._endpoint(http, endpoints.token),
            partial(authorize_url, endpoints.authorization),
            path=CALLBACK_PATH,
            listed=PORTS,
            ports=ports,
            host="127.0.0.1",
            caller=CALLERS.get(self._issuer, ""),
        )
        return await browser.run(partial(self._save_new, say), say=say, read=read)

    async def _with_code(self, http: aiohttp.ClientSession, say: Say) -> Credential:
        """Signs in with a code that the user confirms on any device."""
        rules = DeviceRules(
            wait_first=True,
            limit_s=DEVICE_LIMIT_S,
            longest_s=DEVICE_LONGEST_S,
            page=f"{self._issuer}{DEVICE_PAGE_PATH}",
            patient=False,
        )
        device = DeviceSignIn(
            self._endpoint(http, f"{self._issuer}{DEVICE_TOKEN_PATH}"),
            partial(_post, _client(http), f"{self._issuer}{DEVICE_PATH}", {"scope": SCOPE}),
            rules,
            self._ports,
        )
        return await self._save_new(say, await device.run(say=say))

    def _endpoint(self, http: aiohttp.ClientSession, url: str) -> TokenEndpoint:
        return TokenEndpoint(LABEL, partial(_post, _client(http), url), self._parse, self._ports.clock)

    def _parse(self, body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
        self._scope = first_text(body, "scope")
        return credential_from(self._issuer, body, old, now_ms)

    async def _save_new(self, say: Say, credential: Credential) -> Credential:
        lines = ["Signed in"]
        if self._scope and API_SCOPE not in self._scope.split():
            lines.append(
                f"But {API_SCOPE} was not granted, without which Grok refuses every request. Sign in again and allow "
                "all that the page asks for; if it is missing then too, the account's plan does not include it."
            )
        return await self._save(credential, *lines, say=say)

    def _lines(self, credential: Credential, left_s: int) -> Iterable[str]:
        yield f"Storage: {self._file.path}"
        yield f"Signed in at {credential.extra['issuer']}"
        yield f"Expires in {max(left_s, 0)}s" + ("" if left_s > 0 else " (renewed when it is needed)")

    def _unfit(self, credential: Credential) -> str:
        return _unfit(self._issuer, credential)
