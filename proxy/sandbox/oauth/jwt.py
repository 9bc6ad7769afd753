"""Makes JWTs, unsigned or signed, and base64url without padding.

Clients can verify a signed one: ES256 (RFC 7518, section 3.4), with a key that is made for one run and lives in memory.
Signing is slow, about a hundredth of a second a token, and not constant in time; no secret here needs more.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from proxy.core.sse import dump_json


def encode_base64url(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Decodes base64url without padding; raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def unsigned_jwt(claims: Mapping[str, Any]) -> str:
    """A JWT of header, claims and an unverifiable signature."""
    parts = (dump_json({"alg": "none", "typ": "JWT"}), dump_json(claims), "unsigned")
    return ".".join(encode_base64url(part.encode()) for part in parts)


#: The curve P-256 (FIPS 186-4, D.1.2.3): field, order, base point. Its other coefficient is -3.
_FIELD = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)

#: A point other than the one at infinity, which is None.
Point = tuple[int, int]


def plus(one: Point | None, other: Point | None) -> Point | None:
    """The sum of two points."""
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % _FIELD == 0:
        return None
    rise, run = (3 * x1 * x1 - 3, 2 * y1) if one == other else (y2 - y1, x2 - x1)
    slope = rise * pow(run, -1, _FIELD) % _FIELD
    x = (slope * slope - x1 - x2) % _FIELD
    return x, (slope * (x1 - x) - y1) % _FIELD


def times(count: int, point: Point = _BASE) -> Point:
    """The sum of `count` copies of a point."""
    total: Point | None = None
    power: Point | None = point
    while count:
        if count & 1:
            total = plus(total, power)
        power = plus(power, power)
        count >>= 1
    assert total is not None  # noqa: S101  the count is below the order
    return total


def _bytes(*numbers: int) -> str:
    return encode_base64url(b"".join(number.to_bytes(32, "big") for number in numbers))


class SigningKey:
    """A fresh key. `id` names it in tokens."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self._secret = secrets.randbelow(ORDER - 1) + 1

    @cached_property
    def public(self) -> dict[str, str]:
        """The key as a member of a key set (RFC 7517)."""
        x, y = times(self._secret)
        return {
            "kty": "EC",
            "crv": "P-256",
            "alg": "ES256",
            "use": "sig",
            "kid": self.id,
            "x": _bytes(x),
            "y": _bytes(y),
        }

    def jwt(self, claims: Mapping[str, Any]) -> str:
        """A signed JWT with these claims."""
        head = {"alg": "ES256", "typ": "JWT", "kid": self.id}
        signed = ".".join(encode_base64url(dump_json(part).encode()) for part in (head, claims))
        return f"{signed}.{_bytes(*self._signature(signed.encode()))}"

    def _signature(self, data: bytes) -> Point:
        digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
        while True:
            once = secrets.randbelow(ORDER - 1) + 1
            r = times(once)[0] % ORDER
            s = pow(once, -1, ORDER) * (digest + r * self._secret) % ORDER
            if r and s:
                return r, s
