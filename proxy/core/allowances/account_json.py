"""Writes an allowance in the open format of comparable programs: an account with its meters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proxy.core.allowances.report import FULL, Allowance, AllowanceWindow, status_of
from proxy.core.allowances.words import utc_text

#: minutes of a window -> its name for programs, and for people.
_LENGTHS = {300: ("5h", "5h"), 1440: ("daily", "Daily"), 10_080: ("weekly", "Weekly"), 43_200: ("monthly", "Monthly")}


@dataclass(frozen=True, slots=True)
class ProviderAllowance:
    """An allowance and its provider.

    label    the provider's label: p1
    product  the vendor's name of the subscription
    """

    label: str
    product: str
    known: Allowance


def accounts_json(found: Sequence[ProviderAllowance], now: float, wanted: str = "") -> dict[str, Any]:
    """The wanted provider, or the one with the least left, in the format of one account; and all of them as `accounts`.

    {"provider": "OpenCode Go", "label": "p4", "status": "ok", "updatedAt": "…Z", "meters": [{…}], "accounts": [{…}]}
    """
    accounts = {one.label: account_json(one, now) for one in found}
    fullest = max(found, key=lambda one: _fullest(one.known, now), default=None)
    first = accounts.get(wanted) or (accounts[fullest.label] if fullest is not None and not wanted else None)
    nothing: dict[str, Any] = {"provider": wanted or None, "status": "ok", "updatedAt": None, "meters": []}
    return {**(first or nothing), "accounts": list(accounts.values())}


def account_json(one: ProviderAllowance, now: float) -> dict[str, Any]:
    """One account. A window that was reset since it was reported is left out, since its use is unknown."""
    current = [window for window in one.known.windows if window.used is not None and not window.is_over(now)]
    as_of = one.known.as_of
    return {
        "provider": one.product,
        "label": one.label,
        "status": status_of(current, now),
        "updatedAt": None if as_of is None else utc_text(as_of),
        "meters": [_meter(one.product, window) for window in current],
    }


def _meter(product: str, window: AllowanceWindow) -> dict[str, Any]:
    used = min(max(window.used or 0.0, 0.0), FULL)
    word, title = _LENGTHS.get(window.minutes or 0, (_slug(window.title), window.title))
    return {
        "id": "_".join(filter(None, (_slug(product), _slug(window.limit), window.name or _slug(window.title)))),
        "kind": "quota",
        "label": " ".join(filter(None, (window.limit, title, "quota"))),
        "limit": 100,
        "used": used,
        "remaining": FULL - used,
        "unit": "%",
        "window": word,
        "resetAt": None if window.resets_at is None else utc_text(window.resets_at),
        "asOf": utc_text(window.as_of),
    }


def _fullest(known: Allowance, now: float) -> float:
    return max((window.used or 0.0 for window in known.windows if not window.is_over(now)), default=-1.0)


def _slug(text: str) -> str:
    """
    >>> _slug("OpenCode Go"), _slug("5 hours")
    ('opencode_go', '5_hours')
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
