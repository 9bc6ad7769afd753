"""The sign-in of the toy provider: a token for whoever asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import aiohttp

from proxy.auth.grant import granted
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.refresh import Credentials, Lent, Renewal
from proxy.auth.store import Credential, CredentialFile
from proxy.core.allowances.report import Allowance
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.stored import StoredAccount
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.accounts.usage_report import UsageReport
from toy_provider.entry import LABEL
from toy_provider.settings import ToySettings

CLIENT_ID = "toy-client"
_parse = partial(granted, default_expires_s=3600)


def _endpoint(session: aiohttp.ClientSession, base_url: str, clock: Callable[[], float] = time.time) -> TokenEndpoint:
    async def send(form: Mapping[str, str]) -> TokenResponse:
        client = TokenClient(LABEL, session, {})
        return await client.post_form(f"{base_url}/token", {"client_id": CLIENT_ID, **form})

    return TokenEndpoint(LABEL, send, _parse, clock)


def toy_credentials(lent: Lent, session: aiohttp.ClientSession, base_url: str) -> Credentials:
    refresh = _endpoint(session, base_url, lent.clock).refresh
    return Credentials(CredentialFile(lent.config_root, LABEL), Renewal(LABEL, refresh, _parse), lent)


class ToyAccount(StoredAccount):
    def __init__(self, context: AccountContext) -> None:
        self._base_url = context.config.section(ToySettings).base_url
        super().__init__(context, CredentialFile(context.config_root, LABEL), self._base_url)

    async def login(self, *, device: bool, say: Say) -> Credential:
        async with self._connect() as session:
            endpoint = _endpoint(session, self._base_url)
            answer = await endpoint.send({"grant_type": "client_credentials"})
        return await self._save(endpoint.credential(answer.data), say=say)

    def _lines(self, credential: Credential, left_s: int) -> list[str]:
        return ["Signed in"]

    async def usage(self) -> UsageReport:
        return UsageReport("Toys", {}, Allowance(notes=("not counted",)))
