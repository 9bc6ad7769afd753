"""Sign-in through a browser: authorization code with PKCE (RFC 7636), received by a loopback listener (RFC 8252), or
pasted by the user where the browser runs on another machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proxy.auth.browser import open_in_background
from proxy.auth.callback import CallbackListener
from proxy.auth.pasted import ReadLine, ask
from proxy.auth.pkce import Pkce, new_pkce
from proxy.auth.store import Credential
from proxy.providers.accounts.account import Ports, Say
from proxy.providers.accounts.token_endpoint import TokenEndpoint

#: Port in the redirect address of a pasted sign-in, where the issuer accepts any port; nothing listens there.
PASTED_PORT = 1457


@dataclass(frozen=True, slots=True)
class BrowserSignIn:
    """One issuer's sign-in through a browser.

    authorize  (redirect address, PKCE values) -> the page that the sign-in begins with
    host       host of the redirect address, in the form registered with the issuer
    listed     the ports registered with the issuer, tried in this order; 0 lets the system choose
    caller     origin of the issuer's page if a script there calls the redirect address; "": the browser is sent there
    """

    endpoint: TokenEndpoint
    authorize: Callable[[str, Pkce], str]
    path: str
    listed: tuple[int, ...]
    ports: Ports
    host: str = "localhost"
    caller: str = ""

    async def run(
        self, save: Callable[[Credential], Awaitable[Credential]], *, say: Say, read: ReadLine | None = None
    ) -> Credential:
        """Prints and opens the page, waits for the browser, saves the credential. With `read` nothing is opened and
        nothing listens: the user pastes the address that the browser ended at. Raises ProxyError."""
        pkce = new_pkce(self.ports.random)
        if read is not None:
            return await save(await self._pasted(pkce, read, say))
        listener = CallbackListener(
            self.endpoint.label,
            path=self.path,
            state=pkce.state,
            ports=self.listed if self.ports.listen_on is None else self.ports.listen_on,
            caller=self.caller,
            timeout_s=self.ports.timeout_s,
        )
        async with listener:
            redirect_uri = f"http://{self.host}:{listener.port}{self.path}"
            page = self.authorize(redirect_uri, pkce)
            say("Open this address in a browser to sign in:")
            say(page)
            if self.ports.opener is not None:
                open_in_background(page, self.ports.opener)

            async def finish(code: str) -> Credential:
                credential = await self.endpoint.exchange(code=code, redirect_uri=redirect_uri, verifier=pkce.verifier)
                # Stored before the browser learns of success, so that the page never claims what is not true.
                return await save(credential)

            return await listener.run(finish)

    async def _pasted(self, pkce: Pkce, read: ReadLine, say: Say) -> Credential:
        redirect_uri = f"http://{self.host}:{self.listed[0] or PASTED_PORT}{self.path}"
        say("Open this address in a browser, on any device, and sign in:")
        say(self.authorize(redirect_uri, pkce))
        say(f"The browser then goes to {redirect_uri}?code=…, and finds nothing there. Copy that whole address out of")
        say("its address bar (or the code, if the page shows one), paste it here, and press Enter; it is not shown.")
        code = await ask(read, label=self.endpoint.label, path=self.path, state=pkce.state, say=say)
        return await self.endpoint.exchange(code=code, redirect_uri=redirect_uri, verifier=pkce.verifier)
