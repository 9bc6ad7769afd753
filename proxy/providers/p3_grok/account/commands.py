"""What the command line can do with a P3 account."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from proxy.auth.pasted import ReadLine
from proxy.auth.store import Credential
from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p3_grok.account import signin
from proxy.providers.p3_grok.account import usage_windows as usage
from proxy.providers.p3_grok.account.usage_windows import tell_missing_plan
from proxy.providers.p3_grok.settings import GrokSettings


class GrokAccount:
    """Sign-in with a browser or a code."""

    def __init__(self, context: AccountContext) -> None:
        self._root = context.config_root
        self._grok = context.config.section(GrokSettings)
        self._connect = context.connect

    async def login(self, *, device: bool, say: Say) -> None:
        await self._sign_in(signin.login_device if device else signin.login, say)

    async def login_pasted(self, *, read: ReadLine, say: Say) -> None:
        await self._sign_in(partial(signin.login, read=read), say)

    async def _sign_in(self, sign_in: Callable[..., Awaitable[Credential]], say: Say) -> None:
        issuer = self._grok.issuer
        async with self._connect(issuer, self._grok.base_url) as http:
            credential = await sign_in(self._root, issuer, say=say, session=http)
            await tell_missing_plan(self._grok, credential, http, say)

    def status(self, *, say: Say) -> bool:
        return signin.status(self._root, self._grok.issuer, say=say)

    async def logout(self, *, say: Say) -> None:
        await signin.logout(self._root, say=say)

    async def usage(self) -> UsageReport:
        grok = self._grok
        async with (
            self._connect(grok.issuer, grok.base_url) as http,
            closing_after(signin.p3_credentials(self._root, grok.issuer, http)) as credentials,
        ):
            return await usage.ask(credentials, grok, http, time.time)
