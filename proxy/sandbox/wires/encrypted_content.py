"""The sealed content of thoughts: opaque to a client, recognised when it comes back.

The seal is a short MAC, so that content issued to another account, or moved to another item, is recognised without
keeping anything in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from proxy.core.sse import dump_json
from proxy.sandbox.oauth.jwt import decode_base64url, encode_base64url
from proxy.sandbox.wires.refusal import Refused, invalid

_PREFIX = "gAAAAA"  # what sealed content of the real service begins with
_KEY = b"sandbox seal, not a secret"
_MAC_BYTES = 12


def seal(account_id: str, item_id: str, nonce: str = "") -> str:
    """Opaque content for the item, good for this account only. Another nonce gives another text of equal worth."""
    plain = dump_json({"account": account_id, "item": item_id, "nonce": nonce}).encode()
    return _PREFIX + encode_base64url(_mac(plain) + plain)


def is_sealed(content: str, account_id: str) -> bool:
    """Whether this account got this content, for whatever item."""
    opened = _open_seal(content)
    return opened is not None and opened["account"] == account_id


def check_seal(content: str, account_id: str, item_id: str | None, prefix: str = "") -> None:
    """Raises Refused (400) unless this account got exactly this content, for this item when an id is given.

    `prefix` is how the id of the item must begin for which it was made, given or not.
    """
    opened = _open_seal(content)
    if opened is None or opened["account"] != account_id or not opened["item"].startswith(prefix):
        raise unverifiable(content, "Encrypted content could not be decrypted or parsed.")
    if item_id is not None and opened["item"] != item_id:
        raise unverifiable(content, "Encrypted content item_id did not match the target item id.")


def unverifiable(content: str, reason: str) -> Refused:
    shown = content if len(content) <= 12 else f"{content[:6]}...{content[-4:]}"
    return invalid(
        f"The encrypted content {shown} could not be verified. Reason: {reason}",
        code="thinking_signature_invalid",
        param="input",
    )


def _open_seal(content: str) -> dict[str, str] | None:
    try:
        data = decode_base64url(content.removeprefix(_PREFIX))
    except ValueError:
        return None
    mac, plain = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not content.startswith(_PREFIX) or not hmac.compare_digest(mac, _mac(plain)):
        return None
    opened: dict[str, str] = json.loads(plain)
    return opened


def _mac(plain: bytes) -> bytes:
    return hmac.new(_KEY, plain, hashlib.sha256).digest()[:_MAC_BYTES]
