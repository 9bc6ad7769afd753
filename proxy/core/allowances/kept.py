"""Allowances as they are kept in a file: JSON, and what of it may be believed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from proxy.core.allowances.report import MAX_WINDOWS, STEPS, Allowance, AllowanceWindow

VERSION = 1
MAX_ACCOUNTS = 32
#: Characters of a text.
MAX_TEXT = 200
_MAX_NOTES = 16

#: `(label of the provider, digest of the account)` -> its allowance, the one heard of last at the end
Kept = Mapping[tuple[str, str], Allowance]


def encode_kept(kept: Kept) -> bytes:
    """The bytes of the file."""
    accounts = [
        {
            "provider": provider,
            "account": account,
            "plan": known.plan,
            "notes": list(known.notes),
            "whole": known.whole,
            "paysOn": known.pays_on,
            "windows": [_window_json(window) for window in known.windows],
        }
        for (provider, account), known in kept.items()
    ]
    return json.dumps({"version": VERSION, "accounts": accounts}, indent=1).encode() + b"\n"


def newest_kept(others: Kept, ours: Kept, now: float) -> Kept:
    """What two proxies know that keep it in one file: of each account what was told last. What was told in the future
    is not believed."""

    def is_newer(other: Allowance, known: Allowance) -> bool:
        return (known.as_of or 0.0) < (other.as_of or 0.0) <= now

    before = {key: other for key, other in others.items() if key not in ours}
    newest = {
        key: others[key] if key in others and is_newer(others[key], known) else known for key, known in ours.items()
    }
    return dict(list({**before, **newest}.items())[-MAX_ACCOUNTS:])


def _window_json(window: AllowanceWindow) -> dict[str, Any]:
    return {
        "title": window.title,
        "limit": window.limit,
        "name": window.name,
        "used": window.used,
        "minutes": window.minutes,
        "resetsAt": window.resets_at,
        "asOf": window.as_of,
        "words": window.words,
        "beyond": window.beyond,
        "warned": window.warned,
    }


def decode_kept(data: bytes, now: float) -> dict[tuple[str, str], Allowance]:
    """What a file holds. Raises ValueError for what is no such file; rows that are not whole are left out. What was
    told in the future was told now: the clock has been set back."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION or not isinstance(found.get("accounts"), list):
        raise ValueError("it is of another program or version")
    kept = {}
    for row in found["accounts"][-MAX_ACCOUNTS:]:
        if isinstance(row, dict) and isinstance(row.get("windows"), list) and _text(row.get("provider")):
            windows = (_window(one, now) for one in row["windows"][:MAX_WINDOWS] if isinstance(one, dict))
            kept[_text(row.get("provider")), _text(row.get("account"))] = Allowance(
                tuple(window for window in windows if window is not None),
                plan=_text(row.get("plan")),
                notes=tuple(filter(None, map(_text, _list(row.get("notes"))[:_MAX_NOTES]))),
                whole=row.get("whole") is not False,
                pays_on=row.get("paysOn") is True,
            )
    return kept


def _window(row: Mapping[str, Any], now: float) -> AllowanceWindow | None:
    title, as_of, minutes = _text(row.get("title")), _amount(row.get("asOf")), _amount(row.get("minutes"))
    if not title or as_of is None:
        return None
    warned = row.get("warned")
    return AllowanceWindow(
        title,
        _amount(row.get("used")),
        min(as_of, now),
        limit=_text(row.get("limit")),
        minutes=None if minutes is None else int(minutes),
        resets_at=_amount(row.get("resetsAt")),
        words=_text(row.get("words")),
        name=_text(row.get("name")),
        beyond=row.get("beyond") is True,
        warned=warned if warned in STEPS else 0,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text that a terminal may show."""
    return "".join(char for char in value[:MAX_TEXT] if char.isprintable()) if isinstance(value, str) else ""


def _amount(value: Any) -> float | None:
    """A number that can be one: not below nothing, and not so large that a date overflows."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        return None
    return float(value) if math.isfinite(value) else None
