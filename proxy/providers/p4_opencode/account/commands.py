"""What the command line can do with a P4 account: there is no sign-in, only a key."""

from __future__ import annotations

import time

from proxy.errors import SignInError
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p4_opencode.account import usage_windows as usage
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.providers.p4_opencode.settings import OpenCodeSettings

_PLACES = "PROXY_P4_API_KEY, OPENCODE_API_KEY or p4.apiKey in config.json"


class OpenCodeAccount:
    """The key is never written by the proxy, and never shown."""

    def __init__(self, context: AccountContext) -> None:
        self._settings = context.config.section(OpenCodeSettings)
        self._source = context.source
        self._connect = context.connect

    async def login(self, *, device: bool, say: Say) -> None:
        raise SignInError(f"{LABEL} has no sign-in: it uses an API key, set as {_PLACES}", provider=LABEL)

    def status(self, *, say: Say) -> bool:
        if not self._settings.api_key:
            say("Not authenticated")
            return False
        say("API key configured: true")
        say(f"Source: {self._source('p4.apiKey')}")
        say(f"Base URL: {self._settings.base_url}")
        return True

    async def logout(self, *, say: Say) -> None:
        raise SignInError(f"the key of {LABEL} is yours to remove: {_PLACES}", provider=LABEL)

    async def usage(self) -> UsageReport:
        settings = self._settings
        async with self._connect(settings.base_url) as http:
            return await usage.ask(settings.base_url, settings.api_key, http, time.time)
