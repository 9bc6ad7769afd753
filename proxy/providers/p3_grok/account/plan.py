"""What the service tells of the account beside answers: its plan, and whether it may use the service at all.

    GET settings -> {"subscription_tier_display": "SuperGrok", "allow_access": false, "gate_message": "…", …}

A sign-in succeeds without a subscription, so these settings, which the vendor's client asks for at its start, are the
first to tell that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp

from proxy.auth.grant import first_text
from proxy.auth.http import TIMEOUT, TokenClient, TokenResponse
from proxy.auth.store import Credential
from proxy.auth.text import printable
from proxy.errors import UpstreamError
from proxy.providers.contract import Say
from proxy.providers.p3_grok.catalog import LABEL
from proxy.providers.p3_grok.headers import client_headers
from proxy.providers.p3_grok.settings import GrokSettings

#: For a question behind a sign-in that is done: nobody should wait long for it.
QUICK = aiohttp.ClientTimeout(total=5.0)

#: Of the settings, which are otherwise switches of the vendor's client.
_PLAN = ("subscription_tier_display", "allow_access", "gate_message")


class AccountService:
    """Questions about an account to the API, asked with its credential."""

    def __init__(
        self,
        grok: GrokSettings,
        credential: Credential,
        session: aiohttp.ClientSession,
        *,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
    ) -> None:
        headers = {"authorization": f"Bearer {credential.access.reveal()}", **client_headers(grok.client_version)}
        self._base = grok.base_url.rstrip("/").removesuffix("/responses")
        self._client = TokenClient(LABEL, session, headers, timeout=timeout)

    async def get(self, path: str) -> TokenResponse:
        """Raises UpstreamError."""
        return await self._client.get(f"{self._base}/{path}")

    async def plan(self) -> dict[str, Any]:
        """The three settings, as far as the service tells them; {} when it cannot be asked."""
        try:
            answer = await self.get("settings")
        except UpstreamError:
            return {}
        return {name: answer.data[name] for name in _PLAN if answer.ok and name in answer.data}


async def tell_missing_plan(
    grok: GrokSettings, credential: Credential, session: aiohttp.ClientSession, say: Say
) -> None:
    """Says after a sign-in that the account is not served, where the service tells that in time."""
    why = no_access(await AccountService(grok, credential, session, timeout=QUICK).plan())
    if why:
        say(f"But Grok does not serve this account: {why}")


def no_access(plan: Mapping[str, Any]) -> str:
    """Why the account may not use the service, "" when nothing says so."""
    if plan.get("allow_access") is not False:
        return ""
    return printable(first_text(plan, "gate_message")) or "the service gives no reason"
