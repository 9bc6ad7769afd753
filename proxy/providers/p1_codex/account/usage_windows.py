"""What is left of P1's rate limits: one question to the backend, and its answer in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.rate_limits import Credits, RateLimitStatus, Window
from proxy.providers.accounts.usage_report import NOT_UNDERSTOOD, show_usage
from proxy.providers.contract import Say
from proxy.providers.p1_codex.account.rate_limits import MAIN, of_usage, utc_text
from proxy.providers.p1_codex.account.signin import p1_credentials
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.request import account_headers, with_credential
from proxy.providers.p1_codex.settings import CodexSettings

SERVICE = "Codex"


async def show(
    config_root: Path,
    config: Config,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    as_json: bool = False,
    clock: Callable[[], float] = time.time,
) -> None:
    """The command `usage p1`: asks and prints. Raises ProxyError with a message for the terminal."""
    codex = config.section(CodexSettings)
    credentials = p1_credentials(config_root, codex.issuer, session, clock)

    async def ask(credential: Credential) -> TokenResponse:
        headers = with_credential(account_headers(config), credential)
        return await TokenClient(LABEL, session, headers).get(usage_url(codex.base_url))

    def in_words(answer: Mapping[str, Any]) -> list[str]:
        return lines(answer, clock())

    await show_usage(LABEL, SERVICE, credentials, ask, in_words, as_json=as_json, say=say)


def usage_url(base_url: str) -> str:
    """The usage endpoint beside a Responses endpoint.

    >>> usage_url("https://host/backend-api/codex/responses")
    'https://host/backend-api/wham/usage'
    """
    return base_url.removesuffix("/responses").removesuffix("/codex") + "/wham/usage"


def lines(answer: Mapping[str, Any], now: float) -> list[str]:
    """The usage in words, one line a window. What is not understood is left to the JSON form."""
    known = of_usage(answer, now)
    title = f"{SERVICE} usage ({known.plan} plan):" if known.plan else f"{SERVICE} usage:"
    found = list(_found(known))
    return [title, *(found or [NOT_UNDERSTOOD])]


def _found(known: RateLimitStatus) -> Iterator[str]:
    for limit, windows in known.limits.items():
        for window in windows:
            title = window.title if limit == MAIN else f"{limit}, {window.title}"
            yield f"  {title}: {_in_words(window)}"
    if known.credits is not None:
        yield f"  Credits: {_credits_in_words(known.credits)}"


def _in_words(window: Window) -> str:
    resets = "" if window.resets_at is None else f", resets {utc_text(window.resets_at)}"
    return f"{window.used:g}% used{resets}"


def _credits_in_words(credits: Credits) -> str:
    if credits.unlimited:
        return "unlimited"
    return (credits.balance or "some") if credits.available else "none"
