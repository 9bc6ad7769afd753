"""P2's sign-in: a code that the user confirms in any browser (RFC 8628), and tokens that live for minutes.

Every call carries the device headers, because the tokens are bound to the device id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth import refresh
from proxy.auth.grant import first_text, granted
from proxy.auth.http import TokenClient, TokenResponse, repeated
from proxy.auth.jwt import claims
from proxy.auth.refresh import Credentials, Lent, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.auth.text import one_line, printable
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.device_sign_in import DeviceRules, DeviceSignIn
from proxy.providers.accounts.stored import StoredAccount
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.p2_kimi.account.device import USER_AGENT, device_headers, user_agent
from proxy.providers.p2_kimi.catalog import LABEL
from proxy.providers.p2_kimi.settings import KimiSettings

#: Public client id of the vendor's command-line client; it has no secret.
CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"

#: Members of the file. The user id is stored as the account id.
FIELDS = Fields(account_id=("userId", "user_id"))

#: Seconds that a token without `expires_in` is valid.
DEFAULT_EXPIRES_S = 900

#: The margin keeps polls from coming early by the issuer's clock.
DEVICE_RULES = DeviceRules(margin_s=0.5)

#: Seconds before the second and the third try of a renewal.
REFRESH_WAITS_S = (1.0, 2.0)

#: Another program that renews the same credential without our lock may be about to write.
PEER_WAIT_S = 0.25

#: Seconds before a refused refresh token is sent again. The file stays: deleting it could destroy what another program
#: has just written.
REFUSED_FOR_S = 300.0


def credential_file(config_root: Path) -> CredentialFile:
    """The file of P2's credential."""
    return CredentialFile(config_root, LABEL, fields=FIELDS)


# Tokens


def credential_from(body: Mapping[str, Any], old: Credential | None, now_ms: int) -> Credential:
    """A token response as a credential. What a renewal leaves out (refresh token, scope, user) is kept from `old`.

    {"access_token": "<jwt>", "refresh_token": "…", "expires_in": 900, "scope": "…", "token_type": "Bearer"}

    Raises ValueError, whose text holds no token.
    """
    new = granted(body, old, now_ms, default_expires_s=DEFAULT_EXPIRES_S)
    user, scope = first_text(claims(new.access.reveal()), "user_id"), first_text(body, "scope")
    extra = {**new.extra, "scope": scope} if scope else new.extra
    return replace(new, account_id=user or new.account_id, extra=extra)


def is_refused(answer: TokenResponse) -> bool:
    """Whether the answer refuses the credential: by the common rule, or by this issuer's word with any status."""
    return answer.code == "invalid_grant" or refresh.is_refused(answer)


@dataclass(frozen=True, slots=True)
class _Issuer:
    """The two addresses of the issuer, called with the headers of one device."""

    host: str
    config_root: Path
    session: aiohttp.ClientSession
    user_agent: str

    async def post(self, path: str, form: Mapping[str, str]) -> TokenResponse:
        """Posts a form. Raises IssuerFailure, and ProxyError when no device id can be made."""
        client = TokenClient(LABEL, self.session, await device_headers(self.config_root, self.user_agent))
        return await client.post_form(f"{self.host.rstrip('/')}/api/oauth/{path}", {"client_id": CLIENT_ID, **form})

    def endpoint(self, clock: Callable[[], float]) -> TokenEndpoint:
        return TokenEndpoint(LABEL, partial(self.post, "token"), credential_from, clock)

    async def request_code(self) -> TokenResponse:
        return await self.post("device_authorization", {})


def p2_credentials(
    lent: Lent, oauth_host: str, session: aiohttp.ClientSession, *, user_agent: str = USER_AGENT
) -> Credentials:
    """P2's credentials; the caller closes the result."""
    endpoint = _Issuer(oauth_host, lent.config_root, session, user_agent).endpoint(lent.clock)

    async def send(credential: Credential) -> TokenResponse:
        once = partial(endpoint.refresh, credential)
        return await repeated(once, waits_s=REFRESH_WAITS_S, is_final=is_refused, sleep=lent.sleep)

    renewal = Renewal(
        LABEL,
        send,
        credential_from,
        is_refused,
        delete_refused=False,
        refused_for_s=REFUSED_FOR_S,
        peer_wait_s=PEER_WAIT_S,
    )
    return Credentials(credential_file(lent.config_root), renewal, lent)


class KimiAccount(StoredAccount):
    """Sign-in is always with a code. The device id outlives the credential."""

    def __init__(self, context: AccountContext) -> None:
        kimi = self._kimi = context.config.section(KimiSettings)
        super().__init__(context, credential_file(context.config_root), kimi.oauth_host, kimi.base_url)
        self._root, self._agent = context.config_root, user_agent(context.config)

    async def login(self, *, device: bool, say: Say) -> Credential:
        async with self._connect() as http:
            issuer = _Issuer(self._kimi.oauth_host, self._root, http, self._agent)
            endpoint = issuer.endpoint(self._ports.clock)
            credential = await DeviceSignIn(endpoint, issuer.request_code, DEVICE_RULES, self._ports).run(say=say)
        user = [f"User: {one_line(credential.account_id)}"] if credential.account_id else []
        return await self._save(credential, *user, "Signed in", say=say)

    async def usage(self) -> UsageReport:
        from proxy.providers.p2_kimi.account import usage_windows  # the status needs none of it

        kimi, agent = self._kimi, self._agent
        async with (
            self._connect() as http,
            closing_after(p2_credentials(self._lent, kimi.oauth_host, http, user_agent=agent)) as credentials,
        ):
            return await usage_windows.ask(credentials, self._root, kimi.base_url, agent, http, self._ports.clock)

    def _lines(self, credential: Credential, left_s: int) -> Iterable[str]:
        yield f"Storage: {self._file.path}"
        yield f"User: {one_line(credential.account_id or '(none)')}"
        yield f"Scope: {printable(first_text(credential.extra, 'scope') or '(none)')}"
        yield f"Expires in {left_s}s" + ("" if left_s > 0 else " (renewed when it is needed)")
