"""Device codes (RFC 8628) as simulated sign-in services give them. Nobody is asked: a code is approved after the polls
that the options list."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from proxy.sandbox.oauth.endpoint import MAX_PENDING, new_user_code, oauth_error
from proxy.sandbox.oauth.tokens import remember

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

#: What a poll that gives no token is answered with, beside the code itself.
_DESCRIPTIONS = {
    "authorization_pending": "The authorization request is still pending.",
    "slow_down": "Polling too fast.",
    "expired_token": "The device code has expired.",
    "access_denied": "The user denied the request.",
}

#: These end a sign-in.
_FINAL = ("expired_token", "access_denied")


class DeviceOptions(Protocol):
    """`device_answers` are the OAuth errors with which the first polls of a sign-in are answered; with `watch_interval`
    a poll that comes too early is told to slow down."""

    device_answers: tuple[str, ...]
    device_interval_s: int
    device_lifetime_s: int
    watch_interval: bool


@dataclass(slots=True)
class _DeviceAuthorization:
    holder: str
    ends: float  # epoch seconds
    answers: deque[str]  # to the next polls, before the approval
    interval_s: float
    last_poll: float | None = None


class DeviceCodes:
    """Those of one issuer. A code is good for the `holder` who asked for it; `deny` makes the user refuse."""

    def __init__(self, options: DeviceOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self.deny = False
        self._pending: dict[str, _DeviceAuthorization] = {}

    def new(self, page: str, holder: str = "") -> dict[str, Any]:
        """The answer to a request for a code; `page` is where the user would type it in."""
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

    def redeem(self, fields: Mapping[str, Any], holder: str = "", *, pending_status: int = 400) -> None:
        """One poll: returns when the user has approved, raises Refused before that and for a wrong code.

        pending_status  of an answer that does not end the sign-in
        """
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
            status = 400 if answer in _FINAL else pending_status
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
