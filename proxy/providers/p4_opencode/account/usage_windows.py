"""What is left of P4's subscription: one question to the gateway, and its answer in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.text import printable
from proxy.core.secret import Secret
from proxy.errors import ProxyError, RequestError, SignInError, UpstreamError
from proxy.providers.accounts.usage_report import invalid_usage
from proxy.providers.contract import Say
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.version import __version__

SERVICE = "OpenCode Go"

#: The vendor asks programs to say who they are.
USER_AGENT = f"model-proxy/{__version__}"

#: Window of the answer -> how it is shown, in this order.
WINDOWS = {"rolling": "Rolling (5 hour)", "weekly": "Weekly", "monthly": "Monthly"}

#: The gateway answers 401 for these, too; they are about money and not about the key.
_SPENT = {"CreditsError", "MonthlyLimitError", "UserLimitError"}

NO_KEY = "p4 has no API key: set PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4.apiKey in config.json."


async def show(
    base_url: str,
    api_key: Secret | None,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    as_json: bool = False,
) -> None:
    """The command `usage p4`: asks and prints. Raises ProxyError with a message for the terminal."""
    usage = await fetch(base_url, api_key, session)
    for line in [json.dumps({"usage": usage}, indent=2)] if as_json else lines(usage):
        say(line)


async def fetch(base_url: str, api_key: Secret | None, session: aiohttp.ClientSession) -> dict[str, dict[str, Any]]:
    """The three windows, without the ids that come with them. Raises ProxyError.

    {"rolling": {"status": "ok", "percent": 12.5, "resetsAt": "2026-10-01T12:00:00.000Z"}, "weekly": …, "monthly": …}
    """
    if not api_key:
        raise SignInError(NO_KEY, provider=LABEL)
    headers = {"Authorization": f"Bearer {api_key.reveal()}", "User-Agent": USER_AGENT}
    answer = await TokenClient(LABEL, session, headers).get(f"{base_url.rstrip('/')}/usage")
    if not answer.ok:
        raise _error(answer, api_key)
    usage = answer.data.get("usage")
    if not isinstance(usage, Mapping) or not all(_is_window(usage.get(name)) for name in WINDOWS):
        raise invalid_usage(LABEL, SERVICE)
    return {name: {member: usage[name][member] for member in ("status", "percent", "resetsAt")} for name in WINDOWS}


def _is_window(window: object) -> bool:
    if not isinstance(window, Mapping):
        return False
    percent = window.get("percent")
    return (
        window.get("status") in ("ok", "rate-limited")
        and isinstance(percent, int | float)
        and not isinstance(percent, bool)
        and -1e9 < percent < 1e9  # and so neither infinite nor NaN
        and isinstance(window.get("resetsAt"), str)
    )


def _error(answer: TokenResponse, api_key: Secret) -> ProxyError:
    """A failed answer: the gateway's own words, its status where that means something to the caller."""
    status, word = answer.status, answer.code
    details: dict[str, Any] = {"provider": LABEL, "retry_after": answer.retry_after}
    message = _message(answer, api_key)
    if word == "ModelError":
        return RequestError(message, **details)
    if word in _SPENT or status in (402, 403):
        return UpstreamError(message, kind="permission", status=status if status in (402, 403) else 402, **details)
    if status == 401:
        return SignInError(message, **details)
    if status == 429:
        return UpstreamError(
            message, kind="usage_limit" if word.endswith("UsageLimitError") else "rate_limit", **details
        )
    if 400 <= status < 500:
        return UpstreamError(message, kind="invalid_request", status=status, **details)
    return UpstreamError(message, kind="upstream", **details)


def _message(answer: TokenResponse, api_key: Secret) -> str:
    error = answer.data.get("error")
    for words in (error.get("message") if isinstance(error, Mapping) else None, answer.data.get("message")):
        if isinstance(words, str) and words.strip():
            return printable(words.replace(api_key.reveal(), "[redacted]"))
    return f"{SERVICE} upstream returned HTTP {answer.status}"


def lines(usage: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The windows in words."""
    return [f"{SERVICE} usage:", *(f"  {title}: {_in_words(usage[name])}" for name, title in WINDOWS.items())]


def _in_words(window: Mapping[str, Any]) -> str:
    """`12.5% used, status ok, resets 2026-10-01T12:00:00.000Z`; whole numbers have no decimals."""
    percent = window["percent"]
    shown = int(percent) if percent == int(percent) else percent
    return f"{shown}% used, status {window['status']}, resets {printable(window['resetsAt'], 60)}"
