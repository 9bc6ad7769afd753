"""The remaining quotas of P2: one question to the API, whose undocumented answer is read leniently.

Its known form: `{"usage": {quota}, "limits": [{"window": {…}, "detail": {quota}}]}` with `{"limit": "100", "used": "3",
"remaining": "97", "resetTime": "2026-10-01T12:00:00Z"}` as a quota. Numbers may be texts, names may be spelled
differently, and members that identify the user are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth.grant import first_text, number
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.store import Credential, CredentialSource
from proxy.auth.text import printable
from proxy.core.allowances.rate_limits import WEEK_MINUTES, length_in_words, moment_of
from proxy.core.allowances.report import MAX_WINDOWS, Allowance, AllowanceWindow
from proxy.providers.accounts.usage_report import UsageReport, ask_usage
from proxy.providers.p2_kimi.account.device import device_headers
from proxy.providers.p2_kimi.catalog import LABEL

SERVICE = "Kimi Code"

#: Name of a quota at the top level -> its title.
_TITLES = {"usage": "Weekly"}
#: Title -> minutes, when the answer does not give a window's length.
_LENGTHS = {"Weekly": WEEK_MINUTES}

_RESETS = ("resetTime", "reset_time", "resetAt", "reset_at", "resetsAt", "resets_at")

#: Ending or beginning of a unit of time, whatever its prefix -> seconds.
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}


async def ask(
    credentials: CredentialSource,
    config_root: Path,
    base_url: str,
    user_agent: str,
    session: aiohttp.ClientSession,
    clock: Callable[[], float],
) -> UsageReport:
    """Asks the API. Raises ProxyError with a message for the terminal."""
    headers = await device_headers(config_root, user_agent)

    async def send(credential: Credential) -> TokenResponse:
        bearer = {"Authorization": f"Bearer {credential.access.reveal()}"}
        return await TokenClient(LABEL, session, {**headers, **bearer}).get(f"{base_url.rstrip('/')}/usages")

    return await ask_usage(LABEL, SERVICE, credentials, send, allowance_of, clock)


def allowance_of(usage: Mapping[str, Any], now: float) -> Allowance:
    """The allowance in the answer, as far as it is understood."""
    windows = (_of_quota(title, seconds, quota, now) for title, seconds, quota in _quotas(usage))
    return Allowance(tuple(window for window in windows if window is not None)[:MAX_WINDOWS])


def _of_quota(title: str, seconds: float | None, quota: Mapping[str, Any], now: float) -> AllowanceWindow | None:
    words, resets = _in_words(quota), printable(first_text(quota, *_RESETS), 60)
    if not words:
        return None
    return AllowanceWindow(
        title,
        _percent(quota),
        now,
        minutes=_LENGTHS.get(title) if seconds is None else int(seconds / 60),
        resets_at=moment_of(resets),
        words=words,
        resets=resets,
    )


def _quotas(usage: Mapping[str, Any]) -> Iterator[tuple[str, float | None, Mapping[str, Any]]]:
    """Title, length in seconds and members of everything that may be a quota."""
    for name, value in usage.items():
        if isinstance(value, Mapping):
            yield _title(value) or _TITLES.get(name, printable(name, 60)), None, value
        elif isinstance(value, list):
            for row in value[:MAX_WINDOWS]:
                if isinstance(row, Mapping):
                    detail = row.get("detail")
                    quota = detail if isinstance(detail, Mapping) else row
                    seconds = _length(row.get("window"))
                    words = "" if seconds is None else length_in_words(seconds)
                    yield _title(row) or _title(quota) or words or printable(name, 60), seconds, quota


def _title(row: Mapping[str, Any]) -> str:
    return printable(first_text(row, "title", "name", "label"), 60)


def _length(window: object) -> float | None:
    """The length of a window in seconds.

    >>> _length({"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}), _length({"duration": 7, "timeUnit": "DAY"})
    (18000.0, 604800.0)
    """
    if not isinstance(window, Mapping):
        return None
    count, unit = number(window.get("duration")), first_text(window, "timeUnit", "time_unit", "unit").upper()
    factor = next((seconds for word, seconds in _UNITS.items() if word in unit), None)
    return count * factor if count and factor is not None and 0 < count < 1e6 else None


def _amounts(quota: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Limit, amount used and amount left, as far as known."""
    limit, used, left = (number(quota.get(name)) for name in ("limit", "used", "remaining"))
    if used is None and limit is not None and left is not None:
        used = limit - left
    return limit, used, left


def _percent(quota: Mapping[str, Any]) -> float | None:
    limit, used, _ = _amounts(quota)
    if not limit or used is None or limit < 0:
        return None
    return min(max(0.0, round(100 * used / limit, 2)), 1e6)


def _in_words(quota: Mapping[str, Any]) -> str:
    """A quota in words: `3 of 100 used, 97 left`; "" when nothing is known."""
    limit, used, left = _amounts(quota)
    parts = []
    if used is not None:
        parts.append(f"{used:g} of {limit:g} used" if limit is not None else f"{used:g} used")
    elif limit is not None:
        parts.append(f"limit {limit:g}")
    if left is not None:
        parts.append(f"{left:g} left")
    return ", ".join(parts)
