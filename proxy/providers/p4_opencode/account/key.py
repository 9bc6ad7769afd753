"""The key of a P4 account. The unnamed account's key is in the settings."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proxy.auth.store import Credential, CredentialFile, Fields
from proxy.config import Config
from proxy.core.hiding.secret import Secret
from proxy.errors import RequestError, SignInError
from proxy.providers.accounts.account import AccountContext, Say
from proxy.providers.accounts.stored import StoredAccount
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.entry import OwnSettings
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.providers.p4_opencode.settings import OpenCodeSettings
from proxy.settings import UnfitValue, secret

_PLACES = "PROXY_P4_API_KEY, OPENCODE_API_KEY or p4.apiKey in config.json"


#: `{"key": "…"}`. Keys have no known expiry and are never renewed.
FIELDS = Fields(access=("key",), expires_ms=(), needs_refresh=False)


def key_file(root: Path) -> CredentialFile:
    """The file with the key of a named account."""
    return CredentialFile(root, LABEL, fields=FIELDS)


def own_key(root: Path) -> Callable[[Config], Config]:
    """Adds the current key in an account's folder to the settings."""
    file = key_file(root)

    def key() -> Mapping[str, Any]:
        credential = file.load()
        return {"api_key": None if credential is None else credential.access}

    return OwnSettings(OpenCodeSettings, key)


class OpenCodeAccount(StoredAccount):
    """An account with a key and no sign-in. The proxy never writes the key of the settings, only those of named
    accounts; it shows none."""

    def __init__(self, context: AccountContext) -> None:
        self._settings = context.config.section(OpenCodeSettings)
        super().__init__(context, key_file(context.config_root), self._settings.base_url)
        self._is_named, self._source = bool(context.name), context.source

    async def login(self, *, device: bool, say: Say) -> Credential:
        if not self._is_named:
            raise SignInError(f"{LABEL} has no sign-in: it uses an API key, set as {_PLACES}", provider=LABEL)
        if sys.stdin.isatty():
            typed = await asyncio.to_thread(getpass.getpass, f"API key of {LABEL}: ")
        else:  # one line, as a password manager prints it
            typed = await asyncio.to_thread(sys.stdin.readline)
        try:
            key: Secret = secret(typed)
        except UnfitValue as error:
            raise RequestError(f"API key of {LABEL}: {error}", provider=LABEL) from None
        return await self._save(Credential(key, Secret(""), 0), say=say)

    def status(self, *, say: Say) -> bool:
        if not self._settings.api_key:
            say("Not authenticated")
            return False
        say("API key configured: true")
        say(f"Source: {self._file.path if self._is_named else self._source('p4.apiKey')}")
        say(f"Base URL: {self._settings.base_url}")
        return True

    async def logout(self, *, say: Say) -> None:
        if not self._is_named:
            raise SignInError(f"the key of {LABEL} is yours to remove: {_PLACES}", provider=LABEL)
        await super().logout(say=say)

    async def usage(self) -> UsageReport:
        from proxy.providers.p4_opencode.account import usage_windows  # the status needs none of it

        settings = self._settings
        async with self._connect() as http:
            return await usage_windows.ask(settings.base_url, settings.api_key, http, self._ports.clock)
