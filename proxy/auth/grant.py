"""Makes a credential from the members of a token response that all issuers share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from proxy.auth.store import Credential
from proxy.core.hiding.secret import Secret
from proxy.core.identity import fits_header

#: Longest lifetime, in seconds; longer ones are cut, to keep absurd numbers out of the file.
MAX_EXPIRES_S = 10 * 365 * 86400


def first_text(body: Mapping[str, Any], *names: str) -> str:
    """The first member that is a non-blank string, else ""."""
    values = (body.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def number(value: object) -> float | None:
    """A finite number, also from a numeric string; None for anything else.

    >>> number("5"), number(2.5), number(True), number("soon"), number("inf")
    (5.0, 2.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def granted(
    body: Mapping[str, Any], old: Credential | None, now_ms: int, *, default_expires_s: float | None = None
) -> Credential:
    """The credential from a token response, with account and extra of `old`, and its refresh token if none is given.

    body               {"access_token": "…", "refresh_token": "…", "expires_in": 900, "token_type": "Bearer"}
    default_expires_s  replaces a missing `expires_in`; None: that is an error

    Raises ValueError, whose text holds no token.
    """
    access, refresh = first_text(body, "access_token"), first_text(body, "refresh_token")
    if not refresh and old is not None:
        refresh = old.refresh.reveal()
    expires_in = body.get("expires_in")
    seconds = number(default_expires_s if expires_in is None else expires_in)
    for name, token in (("access_token", access), ("refresh_token", refresh)):
        if not token:
            raise ValueError(f"the token response has no {name}")
        if not fits_header(token):
            raise ValueError(f"the token response has no usable {name}: it has characters that no header may have")
    if seconds is None or seconds <= 0:
        raise ValueError("the token response has no usable expires_in")
    expires_ms = now_ms + int(min(seconds, MAX_EXPIRES_S) * 1000)
    account, extra = (old.account_id, old.extra) if old else (None, {})
    return Credential(Secret(access), Secret(refresh), expires_ms, account, extra)
