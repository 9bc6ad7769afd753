"""Codes of sign-in services: authorization codes with PKCE, and device codes (RFC 8628). Each is good once, for its
requester."""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.jwt import encode_base64url
from proxy.sandbox.oauth.tokens import oauth_error, remember
from proxy.sandbox.upstream import Options

#: Pending codes and device sign-ins; older ones are dropped.
MAX_PENDING = 100

#: Letters of a code that a person types: no lookalikes, and no vowels, hence no words.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(slots=True)
class _AuthorizationCode:
    """A code waiting for its exchange."""

    challenge: str
    redirect_uri: str
    nonce: str | None


class AuthorizationCodes:
    """The codes of one issuer, for one program. `deny` makes the authorize page return that error."""

    def __init__(self, client_id: str) -> None:
        self.deny: str | None = None
        self._client_id = client_id
        self._codes: dict[str, _AuthorizationCode] = {}

    def authorize(self, query: Mapping[str, str], is_listed: Callable[[URL], bool]) -> web.Response:
        """Answers for the authorize page: redirects straight to the program. Raises Refused.

        is_listed  whether an address is a registered redirect of this program
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
        """Checks the fields of an exchange and returns the `nonce` of the authorization, for the identity token. Raises
        Refused. The code is used up in any case."""
        code = self._codes.pop(str(fields.get("code")), None)
        if code is None:
            raise oauth_error("invalid_grant", "the code is unknown or was used")
        if fields.get("redirect_uri") != code.redirect_uri:
            raise oauth_error("invalid_grant", "redirect_uri differs from that of the authorization")
        if challenge_of(str(fields.get("code_verifier", ""))) != code.challenge:
            raise oauth_error("invalid_grant", "code_verifier does not match the challenge")
        return code.nonce


def _checked_redirect(text: str, is_listed: Callable[[URL], bool]) -> URL:
    """The redirect address. Raises Refused for an invalid or unlisted one."""
    try:
        url = URL(text)
        listed = is_listed(url)
    except ValueError:
        listed = False
    if not listed:
        raise oauth_error("invalid_request", "redirect_uri is not listed for this client")
    return url


def _check_query(query: Mapping[str, str], client_id: str) -> None:
    """Raises Refused for incomplete parameters."""
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


DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

#: Descriptions of errors that a poll without a token gets.
_DESCRIPTIONS = {
    "authorization_pending": "The authorization request is still pending.",
    "slow_down": "Polling too fast.",
    "expired_token": "The device code has expired.",
    "access_denied": "The user denied the request.",
}

#: Errors that end a sign-in.
_FINAL = ("expired_token", "access_denied")


@dataclass(slots=True)
class DeviceOptions(Options):
    """Switches of the device flow. `device_answers` are the OAuth errors for the first polls of a sign-in,
    `pending_status` the HTTP status of those that do not end it (some say 200 occurs). With `watch_interval` a poll
    that comes too early gets a `slow_down`; without `device_enabled` there are no device codes (404)."""

    device_answers: tuple[str, ...] = ("authorization_pending",)
    device_interval_s: int = 1
    device_lifetime_s: int = 900
    device_enabled: bool = True
    pending_status: int = 400
    watch_interval: bool = False


@dataclass(slots=True)
class _DeviceAuthorization:
    holder: str
    ends: float  # epoch seconds
    answers: deque[str]  # for the next polls, before the approval
    interval_s: float
    last_poll: float | None = None


class DeviceCodes:
    """The device codes of one issuer. A code is good for the `holder` who requested it; `deny` makes the user
    refuse."""

    def __init__(self, options: DeviceOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self.deny = False
        self._pending: dict[str, _DeviceAuthorization] = {}

    def new(self, page: str, holder: str = "") -> dict[str, Any]:
        """The answer to a request for a code; `page` is where the user would enter it."""
        options = self._options
        code, user_code = f"dc_{secrets.token_urlsafe(24)}", new_user_code()
        ends = self._clock() + options.device_lifetime_s
        device = _DeviceAuthorization(holder, ends, deque(options.device_answers), options.device_interval_s)
        remember(self._pending, code, device, MAX_PENDING)
        return {
            "user_code": user_code,
            "device_code": code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={user_code}",
            "expires_in": options.device_lifetime_s,
            "interval": options.device_interval_s,
        }

    def redeem(self, fields: Mapping[str, Any], holder: str = "") -> None:
        """Handles one poll: returns when the user has approved, raises Refused before that and for a wrong code."""
        code = str(fields.get("device_code"))
        device = self._pending.get(code)
        if device is None:
            raise oauth_error("invalid_grant", "The device code is unknown or was used.")
        if device.holder != holder:
            raise oauth_error("invalid_grant", "The device code belongs to another device.")
        answer = self._answer(device)
        if answer in _FINAL or answer is None:
            del self._pending[code]
        if answer is not None:
            status = 400 if answer in _FINAL else self._options.pending_status
            raise oauth_error(answer, _DESCRIPTIONS.get(answer, answer), status)

    def _answer(self, device: _DeviceAuthorization) -> str | None:
        """The error for this poll; None once the user has approved."""
        now, last = self._clock(), device.last_poll
        device.last_poll = now
        if now >= device.ends:
            return "expired_token"
        if self.deny:
            return "access_denied"
        if self._options.watch_interval and last is not None and now - last < device.interval_s:
            device.interval_s += 5
            return "slow_down"
        return device.answers.popleft() if device.answers else None


def new_user_code() -> str:
    """A code such as `BCDF-GHJK`."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
