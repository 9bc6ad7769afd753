"""What the simulated P1 signs: access and refresh tokens, and the sealed content of reasoning items.

The tokens are unsigned JWTs with the claims that clients read. The seal is a short MAC, so that content issued to
another account, or moved to another item, is recognised without keeping anything in memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from proxy.core.sse import dump_json
from proxy.sandbox.refusal import Refused, invalid

V = TypeVar("V")

AUTH_CLAIM = "https://api.openai.com/auth"
PROFILE_CLAIM = "https://api.openai.com/profile"
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"

#: A test that signs in a thousand times is plausible, more is a leak: the oldest are forgotten.
MAX_TOKENS = 10_000

_SEAL_PREFIX = "gAAAAA"  # what sealed content of the real service begins with
_SEAL_KEY = b"sandbox seal, not a secret"
_MAC_BYTES = 12


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


class TokenBook:
    """The tokens of one account: issued, rotated, revoked. Times in epoch seconds, from `clock`."""

    def __init__(self, *, account_id: str, email: str, plan: str, lifetime_s: int, clock: Callable[[], float]) -> None:
        self.account_id = account_id
        self.email = email
        self.plan = plan
        self.lifetime_s = lifetime_s
        self._clock = clock
        self._access: dict[str, float] = {}  # token -> epoch seconds of its end
        self._refresh: dict[str, str] = {}  # token -> "live" | the code with which it is refused

    def issue(self, issuer: str, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response `{"id_token","access_token","refresh_token","token_type","expires_in"}`.

        A negative lifetime gives an access token that is already expired; `expires_in` is then 1, since a client
        may refuse zero or less.
        """
        lifetime = self.lifetime_s if lifetime_s is None else lifetime_s
        now = int(self._clock())
        claims = self._claims(issuer, now, now + lifetime)
        access = unsigned_jwt({**claims, "aud": ["https://api.openai.com/v1"], "jti": secrets.token_hex(8)})
        refresh = f"rt_{secrets.token_urlsafe(32)}"
        _remember(self._access, access, float(now + lifetime))
        _remember(self._refresh, refresh, "live")
        return {
            "id_token": unsigned_jwt({**claims, "aud": [CLIENT_ID], "email": self.email}),
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": max(lifetime, 1),
        }

    def accepts(self, access: str) -> bool:
        """Whether a request with this bearer is served now."""
        return self._access.get(access, 0.0) > self._clock()

    def rotate(self, refresh: str, issuer: str) -> dict[str, Any]:
        """A refresh token is good once. Raises Refused (401) with the vendor's code for a used or unknown one."""
        state = self._refresh.get(refresh, "refresh_token_invalidated")
        if state != "live":
            raise invalid(f"Your refresh token cannot be used ({state}). Please sign in again.", status=401, code=state)
        self._refresh[refresh] = "refresh_token_reused"
        return self.issue(issuer)

    def revoke(self, token: str) -> None:
        """Sign-out of one token, access or refresh. Unknown ones are no error."""
        self._access.pop(token, None)
        if token in self._refresh:
            self._refresh[token] = "refresh_token_invalidated"

    def revoke_access(self) -> None:
        """Every access token stops working; refresh tokens live on."""
        self._access.clear()

    def revoke_refresh(self, code: str = "refresh_token_expired") -> None:
        """Every refresh token is from now on refused with `code`."""
        self._refresh = dict.fromkeys(self._refresh, code)

    def _claims(self, issuer: str, now: int, end: int) -> dict[str, Any]:
        return {
            "iss": issuer,
            "sub": "user-sandbox",
            "iat": now,
            "exp": end,
            AUTH_CLAIM: {
                "chatgpt_account_id": self.account_id,
                "chatgpt_plan_type": self.plan,
                "chatgpt_user_id": "user-sandbox",
                "user_id": "user-sandbox",
                "organization_id": "org-sandbox",
            },
            PROFILE_CLAIM: {"email": self.email, "email_verified": True},
        }


def _remember(book: dict[str, V], key: str, value: V) -> None:
    book[key] = value
    if len(book) > MAX_TOKENS:
        del book[next(iter(book))]


def seal(account_id: str, item_id: str, nonce: str = "") -> str:
    """Opaque content for the item, good for this account only. Another nonce gives another text of equal worth."""
    plain = dump_json({"account": account_id, "item": item_id, "nonce": nonce}).encode()
    return _SEAL_PREFIX + encode_base64url(_mac(plain) + plain)


def check_seal(content: str, account_id: str, item_id: str | None) -> None:
    """Raises Refused (400) unless this account got exactly this content, for this item when an id is given."""
    opened = _open_seal(content)
    if opened is None or opened["account"] != account_id:
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
        data = decode_base64url(content.removeprefix(_SEAL_PREFIX))
    except ValueError:
        return None
    mac, plain = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not content.startswith(_SEAL_PREFIX) or not hmac.compare_digest(mac, _mac(plain)):
        return None
    opened: dict[str, str] = json.loads(plain)
    return opened


def _mac(plain: bytes) -> bytes:
    return hmac.new(_SEAL_KEY, plain, hashlib.sha256).digest()[:_MAC_BYTES]
