"""Unsigned JWTs, and base64url without padding in which they are written."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from proxy.core.sse import dump_json


def encode_base64url(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """The reverse; raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def unsigned_jwt(claims: Mapping[str, Any]) -> str:
    """Header, claims and a signature that nobody can check, in the usual three parts."""
    parts = (dump_json({"alg": "none", "typ": "JWT"}), dump_json(claims), "unsigned")
    return ".".join(encode_base64url(part.encode()) for part in parts)
