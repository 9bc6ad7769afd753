"""Sign-in with a code that the user confirms in any browser: RFC 8628, and what issuers with their own protocols share
with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from proxy.auth.device import Poll, is_typable, poll
from proxy.auth.grant import first_text, number
from proxy.auth.http import TokenResponse
from proxy.auth.store import Credential
from proxy.auth.text import printable
from proxy.core.hiding.secret import Secret
from proxy.core.upstream_failures import passes
from proxy.errors import SignInError
from proxy.providers.accounts.account import Ports, Say
from proxy.providers.accounts.token_endpoint import TokenEndpoint
from proxy.settings import is_loopback

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

#: Longest time for the user to confirm, whatever the issuer allows.
DEVICE_LIMIT_S = 15 * 60.0
DEVICE_INTERVAL_S = 5.0

#: OAuth error words of a poll that mean "ask again" (RFC 8628, section 3.5).
WAITING = {"authorization_pending": Poll.PENDING, "slow_down": Poll.SLOW_DOWN}

#: OAuth error words that end the sign-in, in words for the user.
ENDS = {
    "expired_token": "The code has expired; start the sign-in again.",
    "access_denied": "The sign-in was refused in the browser.",
}


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """The differences between issuers of RFC 8628.

    margin_s    see `poll_interval`
    wait_first  the first poll comes an interval after the code
    limit_s     lifetime of a code without `expires_in`
    longest_s   longest lifetime of any other code
    page        shown for a code without a page; None: the code must bring a page that contains it
    patient     a poll that fails with a status that may pass is repeated; False: it ends the sign-in
    """

    margin_s: float = 0.0
    wait_first: bool = False
    limit_s: float = DEVICE_LIMIT_S
    longest_s: float = DEVICE_LIMIT_S
    page: str | None = None
    patient: bool = True


@dataclass(frozen=True, slots=True)
class DeviceSignIn:
    """The device sign-in of one RFC 8628 issuer. `request` asks for a device code."""

    endpoint: TokenEndpoint
    request: Callable[[], Awaitable[TokenResponse]]
    rules: DeviceRules
    ports: Ports

    async def run(self, *, say: Say) -> Credential:
        """Prints page and code and polls until the user has confirmed. Raises ProxyError."""
        label = self.endpoint.label
        code = read_code(code_answer(await self.request(), label=label), self.rules, label=label)
        say("Open this address in a browser on any device to sign in:")
        say(code.page)
        say(f"and {'check that it shows' if code.in_page else 'enter'} this code: {code.user}")
        body = await poll(
            partial(ask_token, self.endpoint, code.device, patient=self.rules.patient),
            label=label,
            interval_s=code.interval_s,
            limit_s=code.limit_s,
            wait_first=self.rules.wait_first,
            monotonic=self.ports.monotonic,
            sleep=self.ports.sleep,
        )
        return self.endpoint.credential(body)


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code that the user is to confirm.

    device   the code that polls send
    user     the code that the user compares or types
    in_page  whether the address of the page contains it
    """

    device: Secret
    user: str
    page: str
    in_page: bool
    interval_s: float
    limit_s: float


def poll_interval(value: object, *, margin_s: float) -> float:
    """Seconds between two polls, from the issuer's `interval`, a number or a string of digits.

    margin_s  added to it, so that no poll comes early by the issuer's clock
    """
    return max(1.0, number(value) or DEVICE_INTERVAL_S) + margin_s


def code_answer(answer: TokenResponse, *, label: str) -> Mapping[str, Any]:
    """The members of an answer to a request for a code. Raises SignInError."""
    if answer.status == 404:
        raise SignInError("Device sign-in is not enabled for this issuer.", provider=label)
    if not answer.ok:
        raise SignInError(f"The sign-in service gave no device code: {answer.reason()}.", provider=label)
    return answer.data


def unusable_code(label: str) -> SignInError:
    """The error for a code that lacks something, or that a terminal must not show."""
    return SignInError("The sign-in service sent an unusable device code.", provider=label)


def read_code(body: Mapping[str, Any], rules: DeviceRules, *, label: str) -> DeviceCode:
    """{"user_code":"ABCD-1234","device_code":"…","verification_uri_complete":"https://…","expires_in":900,"interval":5}

    Raises SignInError. Code and address are shown in a terminal, so they must be what they seem.
    """
    user, device = first_text(body, "user_code"), first_text(body, "device_code")
    complete = first_text(body, "verification_uri_complete")
    page = complete
    if not page and rules.page is not None:
        page = first_text(body, "verification_uri") or rules.page
    if not (is_typable(user) and device and _is_page(page)):
        raise unusable_code(label)
    expires = number(body.get("expires_in"))
    return DeviceCode(
        device=Secret(device),
        user=user,
        page=page,
        in_page=bool(complete),
        interval_s=poll_interval(body.get("interval"), margin_s=rules.margin_s),
        limit_s=min(expires, rules.longest_s) if expires and expires > 0 else rules.limit_s,
    )


def _is_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    return safe and bool(parts.netloc) and url.isascii() and url == printable(url, 2000)


async def ask_token(endpoint: TokenEndpoint, code: Secret, *, patient: bool) -> Mapping[str, Any] | Poll:
    """Polls the token endpoint once. The body decides, not the status: some pending answers have status 200."""
    answer = await endpoint.send({"grant_type": DEVICE_GRANT, "device_code": code.reveal()})
    if answer.code in WAITING:
        return WAITING[answer.code]
    if answer.code in ENDS:
        raise SignInError(ENDS[answer.code], provider=endpoint.label)
    waiting = passing(answer) if patient else None
    if waiting is not None:
        return waiting
    if answer.ok and not answer.code:
        return answer.data
    raise failed(answer, code, label=endpoint.label)


def passing(answer: TokenResponse) -> Poll | None:
    """How to go on after a failure that passes by itself, since the user is busy in the browser; None for any other
    answer."""
    if answer.status == 429:
        return Poll.SLOW_DOWN
    return Poll.PENDING if passes(answer.status) else None


def failed(answer: TokenResponse, *hide: Secret, label: str) -> SignInError:
    """The error for a refused poll."""
    return SignInError(f"The device sign-in failed: {answer.reason(*hide)}.", provider=label)
