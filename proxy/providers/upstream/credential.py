"""The credential of one request, which is renewed once when the service refuses it."""

from __future__ import annotations

from typing import Protocol

from proxy.auth.store import Credential
from proxy.core.secret import Secret
from proxy.observe.timings import Timings


class CredentialSource(Protocol):
    """`proxy.auth.refresh.Credentials`, or a token that the user has set. All raise ProxyError."""

    async def get(self) -> Credential:
        """One that is ready for use."""
        ...

    @property
    def present(self) -> bool:
        """Whether there is one to try, without asking anybody."""
        ...

    @property
    def account(self) -> int | None:
        """Whose it is, to be compared only, see `account_digest`."""
        ...

    async def renew(self, rejected: Secret) -> Credential:
        """One whose access token is not this, which the service has refused."""
        ...

    async def close(self) -> None:
        """Ends background work. Called once, at shutdown."""
        ...


class RequestCredential:
    """`renewed` tells whether that has happened; `timings` of the request learn how long it waited."""

    def __init__(self, credentials: CredentialSource, timings: Timings | None = None) -> None:
        self._credentials = credentials
        self._timings = timings or Timings()
        self._current: Credential | None = None
        self.renewed = False

    @property
    def current(self) -> Credential:
        """The one to send. Only after `get`."""
        if self._current is None:
            raise RuntimeError("used before sign-in")
        return self._current

    @property
    def account_id(self) -> str | None:
        """Whose it is, as far as that is known."""
        return self._current.account_id if self._current is not None else None

    async def get(self) -> Credential:
        """Raises ProxyError."""
        if self._current is not None:  # what came before the first attempt is over
            self._current = await self._credentials.get()
            return self._current
        self._timings.signing_in()
        self._current = await self._credentials.get()
        self._timings.signed_in()
        return self._current

    async def renew(self) -> bool:
        """Another one in place of a refused one; False when that was done before. Raises ProxyError."""
        if self.renewed or self._current is None:
            return False
        self.renewed = True
        self._current = await self._credentials.renew(self._current.access)
        return True
