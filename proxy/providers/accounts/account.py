"""The actions on an account of a provider, and the context that the command line gives them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from proxy.auth.browser import Opener, open_graphical
from proxy.auth.callback import CALLBACK_TIMEOUT_S

if TYPE_CHECKING:
    import aiohttp

    from proxy.auth.pasted import ReadLine
    from proxy.auth.pkce import Random
    from proxy.auth.store import Credential
    from proxy.config import Config
    from proxy.providers.accounts.usage_report import UsageReport

#: Prints one line for the user.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """Time, randomness and the browser of a sign-in, which tests replace.

    clock      epoch seconds
    opener     opens a page; None: its address is only printed
    listen_on  TCP ports for the browser's return, in this order; None: those registered with the issuer
    timeout_s  how long to wait for the browser's return
    """

    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = secrets.token_bytes
    opener: Opener | None = open_graphical
    listen_on: tuple[int, ...] | None = None
    timeout_s: float = CALLBACK_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class AccountContext:
    """The context that the command line gives an account.

    source   says where a setting comes from, given its key (or first variable): a variable, or the file
    connect  opens the client for calls to the service; raises ProxyError when an outgoing proxy is set wrongly. Given
             URLs that all lead to this machine, it goes there directly
    name     the account's name, "" for the unnamed one
    """

    config_root: Path
    config: Config
    source: Callable[[str], str | None]
    connect: Callable[..., AbstractAsyncContextManager[aiohttp.ClientSession]]
    name: str = ""
    ports: Ports = field(default_factory=Ports)


class Account(Protocol):
    """The actions on an account of a provider. Failures are ProxyErrors with a message for the terminal."""

    async def login(self, *, device: bool, say: Say) -> Credential:
        """Signs in and stores the credential."""
        ...

    def status(self, *, say: Say) -> bool:
        """Prints what is known without asking the service; False when there is no credential."""
        ...

    async def logout(self, *, say: Say) -> None: ...

    async def usage(self) -> UsageReport:
        """Asks the service what is left of the allowance."""
        ...


@runtime_checkable
class Pasting(Protocol):
    """An account whose sign-in in a browser ends at an address, which may be pasted."""

    async def login_pasted(self, *, read: ReadLine, say: Say) -> Credential:
        """Signs in with a browser on any machine. `read` returns what the user pasted."""
        ...
