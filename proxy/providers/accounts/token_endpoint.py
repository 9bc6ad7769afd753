"""An issuer's token endpoint (RFC 6749, section 3.2), for one public client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.auth.http import TokenResponse
from proxy.auth.store import Credential
from proxy.core.hiding.secret import Secret
from proxy.errors import SignInError

#: (token response, credential it replaces, now in ms) -> credential; ValueError when it is unusable, without a token.
Parse = Callable[[Mapping[str, Any], Credential | None, int], Credential]


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The endpoint of one issuer. `label` names the provider in errors.

    send   posts a form, to which it adds client id and headers
    parse  a token response as a credential
    clock  epoch seconds
    """

    label: str
    send: Callable[[Mapping[str, str]], Awaitable[TokenResponse]]
    parse: Parse
    clock: Callable[[], float]

    async def refresh(self, credential: Credential) -> TokenResponse:
        """Sends the refresh token. Raises UpstreamError."""
        return await self.send({"grant_type": "refresh_token", "refresh_token": credential.refresh.reveal()})

    async def exchange(self, *, code: str, redirect_uri: str, verifier: str) -> Credential:
        """Turns an authorization code into a credential. Raises SignInError with status and reason."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        answer = await self.send(form)
        if not answer.ok:
            reason = answer.reason(Secret(code), Secret(verifier))
            raise SignInError(f"The sign-in service refused the code: {reason}.", provider=self.label)
        return self.credential(answer.data)

    def credential(self, body: Mapping[str, Any]) -> Credential:
        """The credential of a new sign-in. Raises SignInError."""
        try:
            return self.parse(body, None, int(self.clock() * 1000))
        except ValueError as error:
            raise SignInError(f"The sign-in failed: {error}.", provider=self.label) from error
