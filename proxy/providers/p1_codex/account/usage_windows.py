"""The remaining rate limits of P1, asked of the backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import aiohttp

from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.store import Credential, CredentialSource
from proxy.config import Config
from proxy.providers.accounts.usage_report import UsageReport, ask_usage
from proxy.providers.p1_codex.account.rate_limits import usage_allowance
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.request import account_headers, with_credential
from proxy.providers.p1_codex.settings import CodexSettings

SERVICE = "Codex"


async def ask(
    credentials: CredentialSource, config: Config, session: aiohttp.ClientSession, clock: Callable[[], float]
) -> UsageReport:
    """Asks the backend what is left. Raises ProxyError with a message for the terminal."""
    send = partial(_send, config, session)
    return await ask_usage(LABEL, SERVICE, credentials, send, usage_allowance, clock, moments=False)


async def _send(config: Config, session: aiohttp.ClientSession, credential: Credential) -> TokenResponse:
    headers = with_credential(account_headers(config), credential)
    return await TokenClient(LABEL, session, headers).get(usage_url(config.section(CodexSettings).base_url))


def usage_url(base_url: str) -> str:
    """The usage endpoint beside a Responses endpoint.

    >>> usage_url("https://host/backend-api/codex/responses")
    'https://host/backend-api/wham/usage'
    """
    return base_url.removesuffix("/responses").removesuffix("/codex") + "/wham/usage"
