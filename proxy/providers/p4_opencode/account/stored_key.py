"""The key of a named account. That of the account without a name stands in the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proxy.auth.store import CredentialFile, Fields
from proxy.config import Config
from proxy.providers.accounts.named import OwnSettings
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.providers.p4_opencode.settings import OpenCodeSettings

#: `{"key": "…"}`. A key has no end that anybody tells, and nothing renews it.
FIELDS = Fields(access=("key",), expires_ms=(), needs_refresh=False)


def key_file(root: Path) -> CredentialFile:
    """Where the key of a named account lies."""
    return CredentialFile(root, LABEL, fields=FIELDS)


def own_key(root: Path) -> Callable[[Config], Config]:
    """The settings of an account with the key in its folder, as it is now."""
    file = key_file(root)

    def key() -> Mapping[str, Any]:
        credential = file.load()
        return {"api_key": None if credential is None else credential.access}

    return OwnSettings(OpenCodeSettings, key)
