"""The providers that sign in with OAuth, for tests that ask the same of each: a config root, a simulated account, and
a clock that only sleeping moves."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest

from proxy.auth.refresh import Credentials, Lent
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.loading import load
from proxy.providers.accounts.account import Account, AccountContext, Ports
from proxy.providers.p1_codex.account import signin as p1
from proxy.providers.p2_kimi.account import signin as p2
from proxy.providers.p3_grok.account import signin as p3
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


def context_of(root: Path, config: Config, session: Any = None, **ports: Any) -> AccountContext:
    """What the command line lends an account, with this session and these ports."""

    @asynccontextmanager
    async def connect(*_urls: str) -> AsyncIterator[Any]:
        yield session

    return AccountContext(root, config, lambda _key: None, connect, ports=Ports(**ports))


@dataclass(frozen=True)
class OAuthAccount:
    """What differs.

    make          its account, for the command line
    owner         the members of the file that say whose the credential is; {} stands for the origin
    lifetime_s    of a token response without `expires_in`; None: that is a failure
    options       of its credentials, beside those that all have
    waits         before the further tries of a renewal
    deletes       whether a refusal deletes the file
    remembered_s  how long a refusal is remembered otherwise
    expires       the member of the file with the end of the access token
    more          a further member that the file may have
    issuer        what its functions are told, before their other arguments
    """

    label: str
    signin: ModuleType
    make: Callable[[AccountContext], Account]
    owner: dict[str, str]
    lifetime_s: int | None
    options: dict[str, Any] = field(default_factory=dict)
    waits: tuple[float, ...] = ()
    deletes: bool = True
    remembered_s: float = math.inf
    expires: str = "expires"
    more: dict[str, str] = field(default_factory=lambda: {"note": "kept"})
    issuer: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.label

    @property
    def extra(self) -> dict[str, str]:
        """What a credential has beside tokens and account, whatever the token response says."""
        return {"issuer": self.issuer[0], "client_id": self.signin.CLIENT_ID} if self.issuer else {}

    def parse(self, body: dict[str, Any], old: Credential | None = None) -> Credential:
        found: Credential = self.signin.credential_from(*self.issuer, body, old, NOW_MS)
        return found


P1 = OAuthAccount("p1", p1, p1.CodexAccount, {"accountId": "acct-sandbox"}, 3600)
P2 = OAuthAccount(
    "p2",
    p2,
    p2.KimiAccount,
    {"userId": "u_sandbox", "scope": "kimi-code"},
    900,
    options={"user_agent": "KimiCLI/2"},
    waits=(1.0, 2.0),
    deletes=False,
    remembered_s=300,
)
P3 = OAuthAccount(
    "p3",
    p3,
    p3.GrokAccount,
    {"issuer": "{}", "client_id": p3.CLIENT_ID},
    None,
    waits=(1.0, 2.0),
    deletes=False,
    expires="expires_at_ms",
    more={},
    issuer=("https://auth.x.ai",),
)

ACCOUNTS = [P1, P2, P3]
each_account = pytest.mark.parametrize("account", ACCOUNTS)


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
    def owner(self) -> dict[str, str]:
        """The members of the file that say whose the credential is."""
        return {name: text.format(self.sandbox.origin) for name, text in self.account.owner.items()}

    @property
    def stored(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.path.read_text())
        return record

    def command_line(self, **ports: Any) -> Any:
        """The account, as a command has it, on the clock of this world."""
        ports = {"clock": self.clock, "monotonic": self.clock, "sleep": self.clock.sleep, **ports}
        config = load(self.sandbox.settings())[0]
        return self.account.make(context_of(self.root, config, self.session, **ports))

    def credentials(self) -> Credentials:
        make = getattr(self.account.signin, f"{self.account}_credentials")
        lent = Lent(self.root, self.clock, self.clock.sleep)
        found: Credentials = make(lent, self.sandbox.origin + "/", self.session, **self.account.options)
        return found
