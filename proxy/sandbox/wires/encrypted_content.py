"""The encrypted content of thoughts: opaque to a client, recognised when it comes back.

It is signed rather than encrypted: a short MAC recognises content of another account or another item without keeping
anything in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from proxy.core.sse import dump_json
from proxy.sandbox.oauth.jwt import decode_base64url, encode_base64url
from proxy.sandbox.wires.refusal import Refused, invalid

_PREFIX = "gAAAAA"  # beginning of the real service's encrypted content
_KEY = b"sandbox, not a secret"
_MAC_BYTES = 12


def encrypt(account_id: str, item_id: str, nonce: str = "") -> str:
    """Opaque content for the item, valid for this account only. Another nonce gives another, equally valid text."""
    plain = dump_json({"account": account_id, "item": item_id, "nonce": nonce}).encode()
    return _PREFIX + encode_base64url(_mac(plain) + plain)


def is_from_account(content: str, account_id: str) -> bool:
    """Whether this account got this content, for any item."""
    issued = _decrypt(content)
    return issued is not None and issued["account"] == account_id


def check_encrypted(content: str, account_id: str, item_id: str | None, prefix: str = "") -> None:
    """Raises Refused (400) unless this account got exactly this content, for this item when an id is given.

    `prefix`: required beginning of the id of the item that it was made for."""
    issued = _decrypt(content)
    if issued is None or issued["account"] != account_id or not issued["item"].startswith(prefix):
        raise unverifiable(content, "Encrypted content could not be decrypted or parsed.")
    if item_id is not None and issued["item"] != item_id:
        raise unverifiable(content, "Encrypted content item_id did not match the target item id.")


def unverifiable(content: str, reason: str) -> Refused:
    shown = content if len(content) <= 12 else f"{content[:6]}...{content[-4:]}"
    return invalid(
        f"The encrypted content {shown} could not be verified. Reason: {reason}",
        code="thinking_signature_invalid",
        param="input",
    )


def _decrypt(content: str) -> dict[str, str] | None:
    try:
        data = decode_base64url(content.removeprefix(_PREFIX))
    except ValueError:
        return None
    mac, plain = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not content.startswith(_PREFIX) or not hmac.compare_digest(mac, _mac(plain)):
        return None
    issued: dict[str, str] = json.loads(plain)
    return issued


def _mac(plain: bytes) -> bytes:
    return hmac.new(_KEY, plain, hashlib.sha256).digest()[:_MAC_BYTES]
