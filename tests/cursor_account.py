"""A config root that is signed in to the simulated P5, or not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from oauth_accounts import Clock

from proxy.auth.refresh import Lent
from proxy.auth.store import CredentialSource
from proxy.core.hiding.secret import Secret
from proxy.providers.p5_cursor.account.signin import cursor_credentials
from proxy.providers.p5_cursor.settings import CursorSettings
from proxy.sandbox import Sandbox


@dataclass
class World:
    """An account, not signed in yet, and a clock that only sleeping moves."""

    root: Path
    sandbox: Sandbox
    session: aiohttp.ClientSession
    clock: Clock
    said: list[str] = field(default_factory=list)
    token: str | None = None

    def __post_init__(self) -> None:
        self.p5 = self.sandbox.p5
        self.path = self.root / "p5" / "auth.json"

    @property
    def settings(self) -> CursorSettings:
        """`token` is one that the user has set."""
        settings = CursorSettings(base_url=self.sandbox.origin, website_url=self.sandbox.origin)
        return settings if self.token is None else replace(settings, auth_token=Secret(self.token))

    def jwt(self, left_s: int) -> str:
        """An access token that ends in so many seconds."""
        token: str = self.p5.tokens.issue(left_s)["accessToken"]
        return token

    def store(self, left_s: int = -1, **members: Any) -> dict[str, Any]:
        """Signs in; the access token ends in so many seconds. A member that is None is left out."""
        record = {**self.p5.stored_credential(left_s), **members}
        return self.write({name: value for name, value in record.items() if value is not None})

    def write(self, record: dict[str, Any]) -> dict[str, Any]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.write_text(json.dumps(record))
        return record

    @property
    def stored(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.path.read_text())
        return record

    def credentials(self) -> CredentialSource:
        return cursor_credentials(Lent(self.root, self.clock, self.clock.sleep), self.settings, self.session)
