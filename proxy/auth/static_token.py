"""`StaticToken`: an access token that the user has set, in place of a sign-in."""

from __future__ import annotations

import time
from collections.abc import Callable

from proxy.auth import jwt
from proxy.auth.refresh import sign_in_hint
from proxy.auth.store import Credential, account_digest
from proxy.core.hiding.secret import Secret
from proxy.errors import SignInError


class StaticToken:
    """A token that is never renewed and never stored, with the interface of `Credentials`.

    place   where the user has set it, such as the name of a variable
    end_ms  a token with this much left or less, by its own claim, is not sent
    """

    def __init__(
        self, label: str, token: Secret, place: str, *, end_ms: int = 0, clock: Callable[[], float] = time.time
    ) -> None:
        self._label = label
        self._place = place
        self._end_ms = end_ms
        self._clock = clock
        self._credential = Credential(token, Secret(""), jwt.expires_ms(token.reveal()))

    @property
    def present(self) -> bool:
        """True: the user has set it."""
        return True

    @property
    def account(self) -> int | None:
        """See `account_digest`."""
        return account_digest(self._credential)

    async def get(self) -> Credential:
        """The token. Raises SignInError if it ends."""
        left_ms = self._credential.expires_ms - int(self._clock() * 1000)
        if left_ms <= self._end_ms:
            raise self._unusable("has expired" if left_ms <= 0 else f"expires in {left_ms // 1000} s")
        return self._credential

    async def renew(self, rejected: Secret) -> Credential:
        """Raises SignInError, since it cannot be renewed."""
        raise self._unusable("was refused")

    async def close(self) -> None:
        """Does nothing: there is no background work."""

    def _unusable(self, why: str) -> SignInError:
        message = (
            f"The {self._label} token in {self._place} {why}, and is never renewed: set another one, or unset it and "
            f"{sign_in_hint(self._label)}."
        )
        return SignInError(message, provider=self._label)
