"""A credential, its file and its issuer, for tests of renewal. The issuer is a function, the clock a number."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proxy.auth.http import TokenResponse
from proxy.auth.refresh import PATIENCE_S, Credentials, Lent, Renewal
from proxy.auth.store import Credential, CredentialFile, Fields, render_record, write_private
from proxy.core.hiding.secret import Secret
from proxy.errors import SignInError, UpstreamError
from proxy.observe.lifecycle import NullLog

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1000
HOUR_MS = 3_600_000


def record(access: str, refresh: str, left_ms: int = HOUR_MS, **more: Any) -> Credential:
    return Credential(Secret(access), Secret(refresh), NOW_MS + left_ms, **more)


OLD = record("old", "r1", -1, account_id="acct", extra={"scope": "s"})
NEW = record("new", "r2", account_id="acct", extra={"scope": "s"})


def granted(access: str = "new", refresh: str = "r2") -> TokenResponse:
    return TokenResponse(200, "", {"access": access, "refresh": refresh})


def refused(code: str = "refresh_token_reused", status: int = 401) -> TokenResponse:
    return TokenResponse(status, "", {"error": {"code": code, "message": "used before"}})


def parse(body: Mapping[str, Any], old: Credential, now_ms: int) -> Credential:
    if "access" not in body:
        raise ValueError("no access token")
    return Credential(Secret(body["access"]), Secret(body["refresh"]), now_ms + HOUR_MS, old.account_id, old.extra)


class Issuer:
    """Counts calls and gives the answers in turn. `hold` keeps them back until it is set."""

    def __init__(self, *answers: TokenResponse | Exception | Callable[[], TokenResponse]) -> None:
        self.answers = list(answers)
        self.tokens: list[str] = []
        self.called, self.hold = asyncio.Event(), asyncio.Event()
        self.hold.set()

    async def send(self, credential: Credential) -> TokenResponse:
        self.tokens.append(credential.refresh.reveal())
        self.called.set()
        await self.hold.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, TokenResponse) else answer()


class Disk(CredentialFile):
    """The credential's file; `full` fails each of these steps with its error, and `tries` counts them."""

    def __init__(self, root: Path, label: str) -> None:
        super().__init__(root, label)
        self.full: dict[str, OSError] = {}
        self.tries: list[str] = []

    def _step(self, name: str) -> None:
        self.tries.append(name)
        if name in self.full:
            raise self.full[name]

    async def save(self, credential: Credential) -> None:
        self._step("save")
        await super().save(credential)

    async def delete(self) -> None:
        self._step("delete")
        await super().delete()

    async def mark_pending(self, credential: Credential) -> None:
        self._step("mark")
        await super().mark_pending(credential)


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


class Notes(NullLog):
    """What was logged: the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        self.messages.append(msg)


class World:
    """A stored credential, an issuer, and the object under test."""

    def __init__(
        self,
        root: Path,
        *answers: Any,
        stored: Credential | None = OLD,
        patience_s: float = PATIENCE_S,
        **rules: Any,
    ) -> None:
        self.root = root
        self.now_s = float(NOW_S)
        self.issuer = Issuer(*answers)
        self.file = Disk(root, "p1")
        self.other = CredentialFile(root, "p1")  # another process, as far as files go
        if stored is not None:
            self.write(stored)
        renewal = Renewal("p1", self.issuer.send, parse, **rules)
        self.notes = Notes()
        lent = Lent(root, lambda: self.now_s, log=self.notes)
        self.credentials = Credentials(self.file, renewal, lent, patience_s=patience_s)

    def write(self, credential: Credential) -> None:
        write_private(self.file.path, render_record(credential, Fields()))

    @property
    def stored(self) -> Credential | None:
        return self.other.reload()

    @property
    def leftovers(self) -> set[str]:
        return {path.name for path in self.file.path.parent.iterdir()} - {"auth.json.refresh.lock"}


async def failing(world: World) -> SignInError | UpstreamError:
    """What `get` raises."""
    with pytest.raises((SignInError, UpstreamError)) as caught:
        await world.credentials.get()
    return caught.value


async def settled(world: World) -> None:
    flight = world.credentials._running()
    if flight is not None:
        await asyncio.wait({flight})


async def begin(world: World) -> asyncio.Task[Credential]:
    """A `get` whose call to the issuer is under way and stays there until `hold` is set."""
    world.issuer.hold.clear()
    task = asyncio.create_task(world.credentials.get())
    await world.issuer.called.wait()
    return task
