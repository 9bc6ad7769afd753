"""Puts encrypted reasoning into the signature of a thinking block, and reads it back.

The upstream keeps nothing (`store: false`), so the client carries its reasoning from turn to turn, as an opaque
signature: `model-proxy:<label>:v1:<base64url(reasoning id)>:<encrypted content>`. Any other signature comes from
another provider and cannot be read here; it is dropped on the way to the upstream, never an error.
"""

from __future__ import annotations

import base64
import binascii

#: label -> prefixes of an earlier public proxy, in the same format; transcripts with them are still around.
_EARLIER = {"p1": ("ccp:codex:v1:",)}

MAX_ID_BYTES = 4096
MAX_ENCODED_ID = 5464
MAX_CONTENT_BYTES = 8 * 1024 * 1024


_OURS = "model-proxy:"


def prefix_of(label: str) -> str:
    """The beginning of a provider's signatures."""
    return f"{_OURS}{label}:v1:"


def is_ours(signature: str) -> bool:
    """Whether a signature carries the encrypted reasoning of some provider."""
    return signature.startswith(_OURS)


def encode_signature(label: str, reasoning_id: str, encrypted: str) -> str | None:
    """The signature for a provider's reasoning, or None if one of the parts is missing or too long.

    >>> encode_signature("p1", "rs_1", "gAAAAAopaque")
    'model-proxy:p1:v1:cnNfMQ:gAAAAAopaque'
    """
    try:
        raw = reasoning_id.encode()
    except UnicodeEncodeError:
        return None
    if not 0 < len(raw) <= MAX_ID_BYTES or not 0 < len(encrypted) <= MAX_CONTENT_BYTES:
        return None
    return f"{prefix_of(label)}{base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}:{encrypted}"


def decode_signature(label: str, signature: object) -> tuple[str, str] | None:
    """`(reasoning id, encrypted content)` of a signature for this provider, else None."""
    if not isinstance(signature, str):
        return None
    for prefix in (prefix_of(label), *_EARLIER.get(label, ())):
        if signature.startswith(prefix):
            break
    else:
        return None
    encoded, colon, encrypted = signature[len(prefix) :].partition(":")
    if not colon or not 0 < len(encoded) <= MAX_ENCODED_ID or not 0 < len(encrypted) <= MAX_CONTENT_BYTES:
        return None
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        reasoning_id = raw.decode()
    except (binascii.Error, ValueError):
        return None
    return (reasoning_id, encrypted) if 0 < len(raw) <= MAX_ID_BYTES else None
