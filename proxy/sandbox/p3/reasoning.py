"""Encrypted reasoning as this service has it: standard base64 without padding, readable by one family of models."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.wires.encrypted_content import encrypt, is_from_account

#: What the content of another vendor begins with, and none of here.
_FOREIGN = "gAAAAA"

_STANDARD = str.maketrans("-_", "+/")
_URL_SAFE = str.maketrans("+/", "-_")


def encrypt_for(reader: str, item_id: str, nonce: str) -> str:
    """Content that this reader (an account and a family) can decrypt."""
    return encrypt(reader, item_id, nonce).removeprefix(_FOREIGN).translate(_STANDARD)


def is_readable(content: Any, reader: str) -> bool:
    """Whether this reader can decrypt it, whichever item it is in."""
    return isinstance(content, str) and is_from_account(_FOREIGN + content.translate(_URL_SAFE), reader)
