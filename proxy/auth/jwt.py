"""Reads the claims of a JWT without verifying it: we pass tokens on but do not trust them."""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any, TypeGuard

#: Longest token; usual ones have a few kilobytes.
MAX_TOKEN_CHARS = 256 * 1024

#: An unknown end, in epoch milliseconds: later than that of any token.
NO_END_MS = 1 << 62


def claims(token: object) -> dict[str, Any]:
    """The payload of a JWT, with or without padding; `{}` for anything else.

    >>> claims("e30.eyJzdWIiOiJ1MSJ9.sig")
    {'sub': 'u1'}
    """
    if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS:
        return {}
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    middle = parts[1].rstrip("=")
    try:
        payload = base64.b64decode(middle + "=" * (-len(middle) % 4), altchars=b"-_", validate=True)
        found = json.loads(payload)
    except (binascii.Error, ValueError, RecursionError):  # RecursionError: JSON nested on purpose
        return {}
    return found if isinstance(found, dict) else {}


def expires_ms(token: object) -> int:
    """The end of a token by its own claim, in epoch milliseconds; NO_END_MS if it has none.

    >>> expires_ms("e30.eyJleHAiOjE4MDAwMDAwMDB9.sig"), expires_ms("opaque") == NO_END_MS
    (1800000000000, True)
    """
    end = claims(token).get("exp")
    return int(end) * 1000 if is_number(end) and abs(end) < NO_END_MS // 1000 else NO_END_MS


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether this is a finite number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
