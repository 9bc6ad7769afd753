"""What the command line can do with a P1 account."""

from __future__ import annotations

import time

from aiohttp import ClientSession

from proxy.auth.pasted import ReadLine
from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p1_codex.account import signin
from proxy.providers.p1_codex.account import usage_windows as usage
from proxy.providers.p1_codex.request import PRODUCT
from proxy.providers.p1_codex.settings import CodexSettings


class CodexAccount:
    """Sign-in with a browser or a code."""

    def __init__(self, context: AccountContext) -> None:
        self._root = context.config_root
        self._config = context.config
        self._codex = context.config.section(CodexSettings)
        self._connect = context.connect

    async def login(self, *, device: bool, say: Say) -> None:
        async with self._connect() as http:
            if device:
                await signin.login_device(self._root, self._codex.issuer, say=say, session=http)
            else:
                await self._with_browser(http, say)

    async def login_pasted(self, *, read: ReadLine, say: Say) -> None:
        async with self._connect() as http:
            await self._with_browser(http, say, read)

    async def _with_browser(self, http: ClientSession, say: Say, read: ReadLine | None = None) -> None:
        originator = self._codex.originator or PRODUCT
        await signin.login(self._root, self._codex.issuer, say=say, session=http, originator=originator, read=read)

    def status(self, *, say: Say) -> bool:
        return signin.status(self._root, say=say)

    async def logout(self, *, say: Say) -> None:
        await signin.logout(self._root, say=say)

    async def usage(self) -> UsageReport:
        async with (
            self._connect() as http,
            closing_after(signin.p1_credentials(self._root, self._codex.issuer, http)) as credentials,
        ):
            return await usage.ask(credentials, self._config, http, time.time)
