"""The remaining subscription of P4, asked of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.text import printable
from proxy.core.allowances.rate_limits import WEEK_MINUTES, moment_of
from proxy.core.allowances.report import FULL, Allowance, AllowanceWindow
from proxy.core.hiding.secret import Secret
from proxy.core.hiding.texts import masked
from proxy.core.upstream_failures import kind_of_status, passes
from proxy.errors import ProxyError, RequestError, SignInError, UpstreamError
from proxy.providers.accounts.usage_report import UsageReport, invalid_usage, with_ends_of_ours
from proxy.providers.p4_opencode.catalog import LABEL
from proxy.version import __version__

SERVICE = "OpenCode Go"

#: The vendor asks programs to identify themselves.
USER_AGENT = f"model-proxy/{__version__}"

#: Window of the answer -> its title and minutes, in display order.
WINDOWS: dict[str, tuple[str, int | None]] = {
    "rolling": ("Rolling (5 hour)", 300),
    "weekly": ("Weekly", WEEK_MINUTES),
    "monthly": ("Monthly", None),
}

#: The gateway answers 401 for these, too; they concern money, not the key.
_SPENT = {"CreditsError", "MonthlyLimitError", "UserLimitError"}

NO_KEY = "p4 has no API key: set PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4.apiKey in config.json."


async def ask(
    base_url: str, api_key: Secret | None, session: aiohttp.ClientSession, clock: Callable[[], float]
) -> UsageReport:
    """Asks for the three windows, without their ids. Raises ProxyError with a message for the terminal.

    {"rolling": {"status": "ok", "percent": 12.5, "resetsAt": "2026-10-01T12:00:00.000Z"}, "weekly": …, "monthly": …}"""
    if not api_key:
        raise SignInError(NO_KEY, provider=LABEL)
    headers = {"Authorization": f"Bearer {api_key.reveal()}", "User-Agent": USER_AGENT}
    answer = await TokenClient(LABEL, session, headers).get(f"{base_url.rstrip('/')}/usage")
    if not answer.ok:
        raise _error(answer, api_key)
    found = answer.data.get("usage")
    if not isinstance(found, Mapping) or not all(_is_window(found.get(name)) for name in WINDOWS):
        raise invalid_usage(LABEL, SERVICE)
    usage = {name: {member: found[name][member] for member in ("status", "percent", "resetsAt")} for name in WINDOWS}
    now = clock()
    known = with_ends_of_ours(allowance_of(usage, now), answer, now)
    return UsageReport(SERVICE, {"usage": usage}, known, api_key.reveal())


def _is_window(window: object) -> bool:
    if not isinstance(window, Mapping):
        return False
    percent = window.get("percent")
    return (
        window.get("status") in ("ok", "rate-limited")
        and isinstance(percent, int | float)
        and not isinstance(percent, bool)
        and -1e9 < percent < 1e9  # excludes infinity and NaN
        and isinstance(window.get("resetsAt"), str)
    )


def _error(answer: TokenResponse, api_key: Secret) -> ProxyError:
    """The error for a failed answer: the gateway's own words, and its status when that means something to the
    caller."""
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
        kind = kind_of_status(status) if passes(status) else "invalid_request"
        return UpstreamError(message, kind=kind, status=status, **details)
    return UpstreamError(message, kind="upstream", **details)


def _message(answer: TokenResponse, api_key: Secret) -> str:
    error = answer.data.get("error")
    for words in (error.get("message") if isinstance(error, Mapping) else None, answer.data.get("message")):
        if isinstance(words, str) and words.strip():
            return printable(masked(words.replace(api_key.reveal(), "[redacted]")))
    return f"{SERVICE} upstream returned HTTP {answer.status}"


def allowance_of(usage: Mapping[str, Mapping[str, Any]], now: float) -> Allowance:
    """The windows as an allowance."""
    return Allowance(tuple(_window(name, *row, usage[name], now) for name, row in WINDOWS.items()))


def _window(name: str, title: str, minutes: int | None, row: Mapping[str, Any], now: float) -> AllowanceWindow:
    """One window in words such as `12.5% used, status ok`; whole numbers have no decimals."""
    percent, resets = row["percent"], printable(row["resetsAt"], 60)
    shown = int(percent) if percent == int(percent) else percent
    return AllowanceWindow(
        title,
        max(0.0, float(percent), FULL if row["status"] == "rate-limited" else 0.0),
        now,
        minutes=minutes,
        resets_at=moment_of(resets),
        words=f"{shown}% used, status {row['status']}",
        resets=resets,
        name=name,
    )
