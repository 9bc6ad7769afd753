"""Proof Key for Code Exchange (RFC 7636), method S256, and the `state` that ties a callback to its request."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

#: 32 bytes make 43 characters, the shortest verifier of RFC 7636 and the one that the vendors' own clients send.
RANDOM_BYTES = 32

#: Source of random bytes; tests pass their own.
Random = Callable[[int], bytes]


def base64url(data: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def challenge_of(verifier: str) -> str:
    """The S256 challenge: SHA-256 over the ASCII verifier."""
    return base64url(hashlib.sha256(verifier.encode("ascii")).digest())


@dataclass(frozen=True, slots=True)
class Pkce:
    """The secrets of one sign-in. `verifier` goes to the token endpoint only, `challenge` and `state` into the URL."""

    verifier: str = field(repr=False)
    challenge: str
    state: str = field(repr=False)


def new_pkce(random: Random = secrets.token_bytes) -> Pkce:
    """Fresh values for one sign-in."""
    verifier = base64url(random(RANDOM_BYTES))
    return Pkce(verifier, challenge_of(verifier), base64url(random(RANDOM_BYTES)))
