"""Authorization codes with PKCE, as simulated sign-in services give them: good once, for the program that asked."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.endpoint import MAX_PENDING, oauth_error
from proxy.sandbox.oauth.jwt import encode_base64url
from proxy.sandbox.oauth.tokens import remember


@dataclass(slots=True)
class _AuthorizationCode:
    """A code that waits for its exchange."""

    challenge: str
    redirect_uri: str
    nonce: str | None


class AuthorizationCodes:
    """Those of one issuer, for one program. `deny` makes the authorize page send that error back."""

    def __init__(self, client_id: str) -> None:
        self.deny: str | None = None
        self._client_id = client_id
        self._codes: dict[str, _AuthorizationCode] = {}

    def authorize(self, query: Mapping[str, str], is_listed: Callable[[URL], bool]) -> web.Response:
        """The answer of the authorize page: straight back to the program. Raises Refused.

        is_listed  whether an address is one that this program may be called back at
        """
        redirect = _checked_redirect(query.get("redirect_uri", ""), is_listed)
        _check_query(query, self._client_id)
        answer = {"state": query["state"]}
        if self.deny is not None:
            answer["error"] = self.deny
        else:
            answer["code"] = self.new(query["code_challenge"], query["redirect_uri"], query.get("nonce"))
        return web.Response(status=302, headers={"location": str(redirect.update_query(answer))})

    def new(self, challenge: str, redirect_uri: str, nonce: str | None = None) -> str:
        code = f"ac_{secrets.token_urlsafe(24)}"
        remember(self._codes, code, _AuthorizationCode(challenge, redirect_uri, nonce), MAX_PENDING)
        return code

    def redeem(self, fields: Mapping[str, Any]) -> str | None:
        """Checks the fields of an exchange and returns the `nonce` of the authorization, which belongs into the
        identity token. Raises Refused. The code is gone whatever comes."""
        code = self._codes.pop(str(fields.get("code")), None)
        if code is None:
            raise oauth_error("invalid_grant", "the code is unknown or was used")
        if fields.get("redirect_uri") != code.redirect_uri:
            raise oauth_error("invalid_grant", "redirect_uri differs from that of the authorization")
        if challenge_of(str(fields.get("code_verifier", ""))) != code.challenge:
            raise oauth_error("invalid_grant", "code_verifier does not match the challenge")
        return code.nonce


def _checked_redirect(text: str, is_listed: Callable[[URL], bool]) -> URL:
    """The redirect address. Raises Refused for one that is not listed, or is none."""
    try:
        url = URL(text)
        listed = is_listed(url)
    except ValueError:
        listed = False
    if not listed:
        raise oauth_error("invalid_request", "redirect_uri is not listed for this client")
    return url


def _check_query(query: Mapping[str, str], client_id: str) -> None:
    """Raises Refused for parameters that lack something."""
    demands = {
        "client_id": query.get("client_id") == client_id,
        "response_type": query.get("response_type") == "code",
        "code_challenge_method": query.get("code_challenge_method") == "S256",
        "code_challenge": len(query.get("code_challenge", "")) == 43,  # SHA-256 in base64url
        "scope": {"openid", "offline_access"} <= set(query.get("scope", "").split()),
        "state": bool(query.get("state")),
    }
    for name, met in demands.items():
        if not met:
            raise oauth_error("invalid_request", f"{name} is missing or wrong")


def challenge_of(verifier: str) -> str:
    return encode_base64url(hashlib.sha256(verifier.encode()).digest())
