"""What the command line can do with a P2 account."""

from __future__ import annotations

import time

from proxy.providers.accounts.usage_report import UsageReport, closing_after
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p2_kimi.account import signin
from proxy.providers.p2_kimi.account import usage_windows as usage
from proxy.providers.p2_kimi.account.device import user_agent
from proxy.providers.p2_kimi.settings import KimiSettings


class KimiAccount:
    """Sign-in is always with a code."""

    def __init__(self, context: AccountContext) -> None:
        self._root = context.config_root
        self._config = context.config
        self._kimi = context.config.section(KimiSettings)
        self._connect = context.connect

    async def login(self, *, device: bool, say: Say) -> None:
        agent = user_agent(self._config)
        async with self._connect(self._kimi.oauth_host, self._kimi.base_url) as http:
            await signin.login(self._root, self._kimi.oauth_host, say=say, session=http, user_agent=agent)

    def status(self, *, say: Say) -> bool:
        return signin.status(self._root, say=say)

    async def logout(self, *, say: Say) -> None:
        await signin.logout(self._root, say=say)

    async def usage(self) -> UsageReport:
        kimi, agent = self._kimi, user_agent(self._config)
        async with self._connect(kimi.oauth_host, kimi.base_url) as http:
            made = signin.p2_credentials(self._root, kimi.oauth_host, http, user_agent=agent)
            async with closing_after(made) as credentials:
                return await usage.ask(credentials, self._root, kimi.base_url, agent, http, time.time)
