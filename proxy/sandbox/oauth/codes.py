"""Authorization codes with PKCE, as simulated sign-in services give them: good once, for the program that asked."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.oauth.endpoint import MAX_PENDING, oauth_error
from proxy.sandbox.oauth.jwt import encode_base64url
from proxy.sandbox.oauth.tokens import remember


@dataclass(slots=True)
class _AuthorizationCode:
    """A code that waits for its exchange."""

    challenge: str
    redirect_uri: str


class AuthorizationCodes:
    """Those of one issuer."""

    def __init__(self) -> None:
        self._codes: dict[str, _AuthorizationCode] = {}

    def new(self, challenge: str, redirect_uri: str) -> str:
        code = f"ac_{secrets.token_urlsafe(24)}"
        remember(self._codes, code, _AuthorizationCode(challenge, redirect_uri), MAX_PENDING)
        return code

    def redeem(self, fields: Mapping[str, Any]) -> None:
        """Checks the fields of an exchange. Raises Refused. The code is gone whatever comes."""
        code = self._codes.pop(str(fields.get("code")), None)
        if code is None:
            raise oauth_error("invalid_grant", "the code is unknown or was used")
        if fields.get("redirect_uri") != code.redirect_uri:
            raise oauth_error("invalid_grant", "redirect_uri differs from that of the authorization")
        if challenge_of(str(fields.get("code_verifier", ""))) != code.challenge:
            raise oauth_error("invalid_grant", "code_verifier does not match the challenge")


def checked_query(query: Mapping[str, str], client_id: str, scopes: set[str]) -> None:
    """The parameters that every authorize page needs. Raises Refused."""
    demands = {
        "client_id": query.get("client_id") == client_id,
        "response_type": query.get("response_type") == "code",
        "code_challenge_method": query.get("code_challenge_method") == "S256",
        "code_challenge": len(query.get("code_challenge", "")) == 43,  # SHA-256 in base64url
        "scope": scopes <= set(query.get("scope", "").split()),
        "state": bool(query.get("state")),
    }
    for name, met in demands.items():
        if not met:
            raise oauth_error("invalid_request", f"{name} is missing or wrong")


def challenge_of(verifier: str) -> str:
    return encode_base64url(hashlib.sha256(verifier.encode()).digest())
