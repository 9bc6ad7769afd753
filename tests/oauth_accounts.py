"""The providers that sign in with OAuth, for tests that ask the same of each: a config root, a simulated account, and
a clock that only sleeping moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.providers.p1_codex.account import signin as p1
from proxy.providers.p2_kimi.account import signin as p2
from proxy.sandbox import Sandbox

NOW_S = 1_800_000_000.0
NOW_MS = 1_800_000_000_000


class Clock:
    """`then` runs after each sleep."""

    def __init__(self) -> None:
        self.now = NOW_S
        self.sleeps: list[float] = []
        self.then: Callable[[], Any] = lambda: None

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        self.then()


@dataclass(frozen=True)
class OAuthAccount:
    """What differs.

    owner       the members of the file that say whose the credential is
    lifetime_s  of a token response without `expires_in`
    options     of its credentials, beside those that all have
    waits       before the further tries of a renewal
    deletes     whether a refusal deletes the file
    """

    label: str
    signin: ModuleType
    owner: dict[str, str]
    lifetime_s: int
    options: Callable[[Clock], dict[str, Any]] = lambda _clock: {}
    waits: tuple[float, ...] = ()
    deletes: bool = True

    def __str__(self) -> str:
        return self.label

    def parse(self, body: dict[str, Any], old: Credential | None = None) -> Credential:
        found: Credential = self.signin.credential_from(body, old, NOW_MS)
        return found


P1 = OAuthAccount("p1", p1, {"accountId": "acct-sandbox"}, 3600)
P2 = OAuthAccount(
    "p2",
    p2,
    {"userId": "u_sandbox", "scope": "kimi-code"},
    900,
    options=lambda clock: {"sleep": clock.sleep, "user_agent": "KimiCLI/2"},
    waits=(1.0, 2.0),
    deletes=False,
)

each_account = pytest.mark.parametrize("account", [P1, P2])


@dataclass
class World:
    """One account, not signed in yet."""

    account: OAuthAccount
    root: Path
    sandbox: Sandbox
    clock: Clock
    session: aiohttp.ClientSession
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.upstream: Any = getattr(self.sandbox, self.account.label)
        self.issuer: Any = self.upstream.issuer
        self.path = self.root / self.account.label / "auth.json"

    def store(self, left_s: int = -1, **members: Any) -> dict[str, Any]:
        """Signs in; the access token ends in so many seconds."""
        self.sandbox.write_credentials(self.root, lifetime_s=left_s)
        return self.write({**self.stored, **members})

    def write(self, record: dict[str, Any]) -> dict[str, Any]:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(record))
        return record

    @property
    def stored(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.path.read_text())
        return record

    def credentials(self) -> Credentials:
        make = getattr(self.account.signin, f"{self.account}_credentials")
        options = self.account.options(self.clock)
        found: Credentials = make(self.root, self.sandbox.origin + "/", self.session, self.clock, **options)
        return found
