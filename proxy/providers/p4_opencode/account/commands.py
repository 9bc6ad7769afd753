"""What the command line can do with a P4 account: there is no sign-in, only a key."""

from __future__ import annotations

import asyncio
import getpass
import sys
import time

from proxy.auth.store import Credential
from proxy.core.secret import Secret
from proxy.errors import RequestError, SignInError
from proxy.providers.accounts import stored
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p4_opencode.account import usage_windows as usage
from proxy.providers.p4_opencode.account.stored_key import key_file
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.providers.p4_opencode.settings import OpenCodeSettings
from proxy.settings import UnfitValue, secret

_PLACES = "PROXY_P4_API_KEY, OPENCODE_API_KEY or p4.apiKey in config.json"


class OpenCodeAccount:
    """The key of the settings is never written by the proxy, those of named accounts are; none is shown."""

    def __init__(self, context: AccountContext) -> None:
        self._settings = context.config.section(OpenCodeSettings)
        self._source = context.source
        self._connect = context.connect
        self._file = key_file(context.config_root) if context.name else None

    async def login(self, *, device: bool, say: Say) -> None:
        if self._file is None:
            raise SignInError(f"{LABEL} has no sign-in: it uses an API key, set as {_PLACES}", provider=LABEL)
        if sys.stdin.isatty():
            typed = await asyncio.to_thread(getpass.getpass, f"API key of {LABEL}: ")
        else:  # one line, as a password manager gives it
            typed = await asyncio.to_thread(sys.stdin.readline)
        try:
            key: Secret = secret(typed)
        except UnfitValue as error:
            raise RequestError(f"API key of {LABEL}: {error}", provider=LABEL) from None
        await stored.save(self._file, Credential(key, Secret(""), 0), say=say)

    def status(self, *, say: Say) -> bool:
        if not self._settings.api_key:
            say("Not authenticated")
            return False
        say("API key configured: true")
        say(f"Source: {self._source('p4.apiKey') if self._file is None else self._file.path}")
        say(f"Base URL: {self._settings.base_url}")
        return True

    async def logout(self, *, say: Say) -> None:
        if self._file is None:
            raise SignInError(f"the key of {LABEL} is yours to remove: {_PLACES}", provider=LABEL)
        await stored.delete(self._file, say=say)

    async def usage(self) -> UsageReport:
        settings = self._settings
        async with self._connect(settings.base_url) as http:
            return await usage.ask(settings.base_url, settings.api_key, http, time.time)
