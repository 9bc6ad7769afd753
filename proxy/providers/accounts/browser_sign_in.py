"""Sign-in through a browser on this machine: authorization code with PKCE (RFC 7636), received by a loopback
listener (RFC 8252)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proxy.auth.browser import Opener, open_graphical, open_in_background
from proxy.auth.callback import CALLBACK_TIMEOUT_S, CallbackListener
from proxy.auth.pkce import Pkce, Random, new_pkce
from proxy.auth.store import Credential
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.providers.contract import Say


@dataclass(frozen=True, slots=True)
class BrowserSignIn:
    """How one issuer does it.

    authorize  (redirect address, PKCE values) -> the page that the sign-in begins with
    host       of the redirect address, in the form that the issuer has listed
    ports      tried in this order; 0 lets the system choose
    caller     origin of the issuer's page if that calls the redirect address by script; "": the browser is sent there
    """

    endpoint: TokenEndpoint
    authorize: Callable[[str, Pkce], str]
    path: str
    ports: tuple[int, ...]
    host: str = "localhost"
    caller: str = ""
    opener: Opener | None = open_graphical
    timeout_s: float = CALLBACK_TIMEOUT_S
    random: Random = secrets.token_bytes

    async def run(self, save: Callable[[Credential], Awaitable[Credential]], *, say: Say) -> Credential:
        """Prints and opens the page, waits for the browser, saves the credential. Raises ProxyError."""
        pkce = new_pkce(self.random)
        listener = CallbackListener(
            self.endpoint.label,
            path=self.path,
            state=pkce.state,
            ports=self.ports,
            caller=self.caller,
            timeout_s=self.timeout_s,
        )
        async with listener:
            redirect_uri = f"http://{self.host}:{listener.port}{self.path}"
            page = self.authorize(redirect_uri, pkce)
            say("Open this address in a browser to sign in:")
            say(page)
            if self.opener is not None:
                open_in_background(page, self.opener)

            async def finish(code: str) -> Credential:
                credential = await self.endpoint.exchange(code=code, redirect_uri=redirect_uri, verifier=pkce.verifier)
                # Stored before the browser hears of success, so that the page never says what is not true.
                return await save(credential)

            return await listener.run(finish)
