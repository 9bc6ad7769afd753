"""What is left of P2's quotas: one question to the API, read with patience, because its answer is documented nowhere.

What is known of it: `{"usage": {quota}, "limits": [{"window": {…}, "detail": {quota}}]}` with
`{"limit": "100", "used": "3", "remaining": "97", "resetTime": "2026-10-01T12:00:00Z"}` as a quota. Numbers may be
texts, names may be written otherwise, and members that say who is asking are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from proxy.auth.grant import first_text, number
from proxy.auth.http import TokenClient, TokenResponse
from proxy.auth.refresh import Credential
from proxy.auth.text import printable
from proxy.core.rate_limits import length_in_words
from proxy.providers.accounts.usage_report import NOT_UNDERSTOOD, show_usage
from proxy.providers.contract import Say
from proxy.providers.p2_kimi.account.device import USER_AGENT, device_headers
from proxy.providers.p2_kimi.account.signin import p2_credentials
from proxy.providers.p2_kimi.catalog import LABEL

SERVICE = "Kimi Code"

#: What a quota may be called at the top level, and how it is shown.
_TITLES = {"usage": "Weekly"}

_RESETS = ("resetTime", "reset_time", "resetAt", "reset_at", "resetsAt", "resets_at")

#: How a unit of time ends or begins, whatever its prefix -> seconds.
_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}

#: Quotas beyond this are not shown.
_MAX_LINES = 50


async def show(
    config_root: Path,
    base_url: str,
    oauth_host: str,
    *,
    say: Say,
    session: aiohttp.ClientSession,
    as_json: bool = False,
    user_agent: str = USER_AGENT,
) -> None:
    """The command `usage p2`: asks and prints. Raises ProxyError with a message for the terminal."""
    headers = await device_headers(config_root, user_agent)
    credentials = p2_credentials(config_root, oauth_host, session, user_agent=user_agent)

    async def ask(credential: Credential) -> TokenResponse:
        bearer = {"Authorization": f"Bearer {credential.access.reveal()}"}
        return await TokenClient(LABEL, session, {**headers, **bearer}).get(f"{base_url.rstrip('/')}/usages")

    await show_usage(LABEL, SERVICE, credentials, ask, lines, as_json=as_json, say=say)


def lines(usage: Mapping[str, Any]) -> list[str]:
    """The usage in words, one line a quota. What is not understood is left to the JSON form."""
    found = [f"  {title}: {words}" for title, quota in _quotas(usage) if (words := _in_words(quota))]
    return [f"{SERVICE} usage:", *(found[:_MAX_LINES] or [NOT_UNDERSTOOD])]


def _quotas(usage: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Title and members of everything that may be a quota."""
    for name, value in usage.items():
        if isinstance(value, Mapping):
            yield _title(value) or _TITLES.get(name, printable(name, 60)), value
        elif isinstance(value, list):
            for row in value:
                if isinstance(row, Mapping):
                    detail = row.get("detail")
                    quota = detail if isinstance(detail, Mapping) else row
                    yield _title(row) or _title(quota) or _window(row.get("window")) or printable(name, 60), quota


def _title(row: Mapping[str, Any]) -> str:
    return printable(first_text(row, "title", "name", "label"), 60)


def _window(window: object) -> str:
    """The length of a window in words.

    >>> _window({"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}), _window({"duration": 7, "timeUnit": "DAY"})
    ('5 hours', '7 days')
    """
    if not isinstance(window, Mapping):
        return ""
    count, unit = number(window.get("duration")), first_text(window, "timeUnit", "time_unit", "unit").upper()
    factor = next((seconds for word, seconds in _UNITS.items() if word in unit), None)
    if not count or factor is None:
        return ""
    return length_in_words(count * factor)


def _in_words(quota: Mapping[str, Any]) -> str:
    """What is known of a quota: `3 of 100 used, 97 left, resets 2026-10-01T12:00:00Z`; "" when nothing is."""
    limit, used, left = (number(quota.get(name)) for name in ("limit", "used", "remaining"))
    if used is None and limit is not None and left is not None:
        used = limit - left
    parts = []
    if used is not None:
        parts.append(f"{used:g} of {limit:g} used" if limit is not None else f"{used:g} used")
    elif limit is not None:
        parts.append(f"limit {limit:g}")
    if left is not None:
        parts.append(f"{left:g} left")
    resets = printable(first_text(quota, *_RESETS), 60)
    if parts and resets:
        parts.append(f"resets {resets}")
    return ", ".join(parts)
