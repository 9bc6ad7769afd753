"""`Credentials`: a usable token for every request, renewed once for all tasks and processes that ask for one.

Refresh tokens are single-use, which decides the shape of this file:
 - one renewal at a time in this process (a task that all callers await) and on this machine (a file lock), each after
   reading the disk again, so that the second caller finds the work done;
 - the renewal outlives the request that began it: a client that leaves must not take a rotated token along;
 - a new token that cannot be saved is used from memory, and no second one is fetched before it is on disk;
 - a marker file is on disk while the outcome is open. Every exit from this code removes it, so a marker of the current
   credential means that a process died between sending and saving: then the token is not tried again.

A passing failure (network, 429, 5xx, a full disk) never costs the credential; only a refusal by the issuer does. Nor
does it cost a request as long as the old token lives: a renewal begins some minutes before its end. An interrupted call
of a living process counts as a passing failure: if the token was used up after all, the issuer refuses the next call,
and nothing is lost.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from proxy.auth.http import TokenResponse
from proxy.auth.store import Credential, CredentialFile, account_digest
from proxy.auth.text import printable
from proxy.core.hiding.secret import Secret
from proxy.errors import PROGRAM, ProxyError, SignInError, UpstreamError
from proxy.observe.lifecycle import Happened, Log, NullLog, SignInRenewed, unheard

#: Includes `Credential`, so that users of credentials import from one place.
__all__ = ["Credential", "Credentials", "Renewal", "is_refused", "sign_in_hint"]

#: A token with this much left or less is renewed before use, since an answer may stream for minutes. The vendors' own
#: clients use the same margin.
MARGIN_MS = 5 * 60 * 1000

#: A token with this much left or less is not sent.
END_MS = 5 * 1000

#: How long a request whose token still lives waits for a renewal. An issuer answers within a second or two.
PATIENCE_S = 5.0

#: After a renewal that failed or takes longer, requests use a token that still lives without waiting for this long.
PAUSE_S = 10.0

#: How long `close` waits for a running renewal: an issuer answers within a second or two.
CLOSE_WAIT_S = 5.0

#: Code words that mean "sign in again", whatever the status.
REFUSAL_CODES = {
    "invalid_grant",
    "refresh_token_expired",
    "refresh_token_invalidated",
    "refresh_token_reused",
}


def is_refused(answer: TokenResponse) -> bool:
    """Whether the issuer refused the refresh token for good.

    A 403 with a web page comes from something in between (a bot check, a company's filter), not from the issuer's token
    endpoint, which answers with JSON or plain text; it means nothing for the token.
    """
    if answer.status == 403 and answer.content_type == "text/html":
        return False
    return answer.status in (401, 403) or (answer.status == 400 and answer.code in REFUSAL_CODES)


@dataclass(frozen=True, slots=True)
class Renewal:
    """The renewal of one provider.

    send            posts the refresh token of this credential; raises UpstreamError `unavailable`
    parse           (answer's JSON, old credential, now in ms) -> new credential; ValueError if it is not usable
    delete_refused  whether a refused credential is removed from disk; False keeps it and only remembers the refusal, so
                    a token that a dead process may have used up is tried again
    refused_for_s   how long a refusal is remembered; then the token is tried again
    unfit           why a stored credential cannot be used at all, as the end of "The sign-in …"; "" if it can
    peer_wait_s     wait before reading the disk after a refusal: a peer without our lock may have the next token and
                    not have written it yet
    margin_ms       see MARGIN_MS
    end_ms          see END_MS
    ends            whether any renewal without a longer-lived token ends the sign-in (SignInError); False: passing
                    reasons raise UpstreamError
    renewable       whether a credential holds what a renewal needs
    """

    label: str
    send: Callable[[Credential], Awaitable[TokenResponse]]
    parse: Callable[[Mapping[str, Any], Credential, int], Credential]
    is_refused: Callable[[TokenResponse], bool] = is_refused
    delete_refused: bool = True
    refused_for_s: float = math.inf
    unfit: Callable[[Credential], str] = lambda _credential: ""
    peer_wait_s: float = 0.0
    margin_ms: int = MARGIN_MS
    end_ms: int = END_MS
    ends: bool = False
    renewable: Callable[[Credential], bool] = lambda credential: bool(credential.refresh)


class _Unsaved(NamedTuple):
    """A renewal that is not saved yet: the credential on disk, and the one that should be there."""

    old: Credential
    new: Credential


class _Refusal(NamedTuple):
    """A credential that the issuer refused to renew, the error message, and until when (epoch) it is not tried."""

    credential: Credential
    message: str
    until_s: float

    def concerns(self, other: Credential) -> bool:
        """Whether the other would send the same to the issuer, which may be more than the refresh token."""
        return (other.refresh, other.extra) == (self.credential.refresh, self.credential.extra)


def sign_in_hint(label: str) -> str:
    """The command that cures a missing sign-in."""
    return f"run `{PROGRAM} auth login {label}`"


@dataclass(frozen=True, slots=True)
class Lent:
    """The environment of credentials: the config root, time, and the recipients of renewals.

    clock     epoch seconds
    happened  gets every call to the issuer, and whether it brought a token
    """

    config_root: Path
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    log: Log = field(default_factory=NullLog)
    happened: Happened = unheard


class Credentials:
    """The credential of one provider, ready for use. One object an application; `close` it at the end.

    patience_s  see PATIENCE_S

    `get` and `renew` raise SignInError (sign in again) or UpstreamError (the credential is fine): `unavailable` if
    trying later helps, or what the session raised about an outgoing proxy.
    """

    def __init__(self, file: CredentialFile, renewal: Renewal, lent: Lent, *, patience_s: float = PATIENCE_S) -> None:
        self._file = file
        self._renewal = renewal
        self._clock, self._sleep = lent.clock, lent.sleep
        self._log, self._happened = lent.log, lent.happened
        self._patience_s = patience_s
        self._paused_until = -math.inf
        self._flight: asyncio.Task[Credential] | None = None
        self._unsaved: _Unsaved | None = None
        self._refused: _Refusal | None = None
        self._closed = False

    @property
    def present(self) -> bool:
        """Whether there is a credential to try; costs a stat of the file."""
        return self._current(self._file.load()) is not None

    @property
    def account(self) -> int | None:
        """The `account_digest` of the credential that was loaded last."""
        return account_digest(self._current(self._file.seen))

    async def get(self) -> Credential:
        """The stored credential, renewed first if it is about to end. While it lives, it is returned when a renewal
        fails or takes long."""
        record = self._current(self._file.load())
        if record is None:
            raise self._missing()
        if not self._lives_on(record, self._renewal.end_ms):
            return self._living(await self._outcome(self._running() or self._start(None)))
        if not self._is_fresh(record):
            return await self._renewed_or(record)
        if self._unsaved is not None and self._running() is None and not self._closed:
            self._start(None)  # tries to save again, without making this request wait
        return record

    async def renew(self, rejected: Secret) -> Credential:
        """A credential whose access token is not `rejected`, which the upstream answered with 401."""
        record = self._current(self._file.load())
        if record is not None and record.access != rejected:
            return record
        while True:
            running = self._running()
            record = await self._outcome(running or self._start(rejected))
            # A flight that `get` began may have found the rejected token fresh.
            if running is None or record.access != rejected:
                return record

    async def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Waits for a running renewal, then cancels it. No new one begins afterwards."""
        self._closed = True
        flight = self._running()
        if flight is None:
            return
        await asyncio.wait({flight}, timeout=wait_s)
        flight.cancel()
        await asyncio.wait({flight})

    # One flight at a time.

    def _running(self) -> asyncio.Task[Credential] | None:
        return self._flight if self._flight is not None and not self._flight.done() else None

    def _start(self, rejected: Secret | None) -> asyncio.Task[Credential]:
        if self._closed:
            raise self._temporary("the proxy is shutting down")
        self._flight = asyncio.get_running_loop().create_task(self._renewed(rejected))
        self._flight.add_done_callback(self._landed)
        return self._flight

    def _landed(self, flight: asyncio.Task[Credential]) -> None:
        """Releases the flight and its result: an error's traceback holds the request that got it."""
        if self._flight is flight:
            self._flight = None
        if not flight.cancelled():
            flight.exception()  # marks it as retrieved

    async def _renewed_or(self, old: Credential) -> Credential:
        """A new credential, or the old one if there is none yet. Raises SignInError for a refused one."""
        if self._closed or self._clock() < self._paused_until:
            return old
        flight = self._running() or self._start(None)
        await asyncio.wait({flight}, timeout=self._patience_s)
        if not flight.done():
            self._pause(f"no answer within {self._patience_s:g} s")
        elif not flight.cancelled():
            error = flight.exception()
            if error is None:
                return flight.result()
            if not isinstance(error, ProxyError) or (self._refused is not None and self._refused.concerns(old)):
                raise error
            self._pause(error.message)
        return old

    def _pause(self, reason: str) -> None:
        """Only the first waiter starts the pause, and logs it."""
        if self._clock() >= self._paused_until:
            self._paused_until = self._clock() + PAUSE_S
            self._log.write("warn", "auth", "sign-in not renewed", provider=self._renewal.label, error=reason)

    async def _outcome(self, flight: asyncio.Task[Credential]) -> Credential:
        """The result of the flight. `wait` does not cancel it when the waiting request is cancelled."""
        await asyncio.wait({flight})
        if flight.cancelled():
            raise self._temporary("the proxy is shutting down")
        error = flight.exception()
        if self._renewal.ends and isinstance(error, UpstreamError) and error.kind == "unavailable":
            raise self._sign_in(f"{error.message} {self._message('cannot be used any longer')}") from error
        return flight.result()

    def _living(self, renewed: Credential) -> Credential:
        """Returns `renewed`. Raises SignInError if it has ended and `Renewal.ends` is set."""
        if self._renewal.ends and not self._lives_on(renewed, self._renewal.end_ms):
            raise self._sign_in(self._message("was renewed and has ended all the same"))
        return renewed

    # Inside the flight.

    async def _renewed(self, rejected: Secret | None) -> Credential:
        try:
            async with self._file.locked():
                return await self._renewed_alone(rejected)
        except OSError as error:
            raise self._disk_failure(error) from error

    async def _renewed_alone(self, rejected: Secret | None) -> Credential:
        """Reads the disk again under the lock, then decides whether to renew."""
        record = self._current(self._file.reload())
        if record is None:
            raise self._missing()
        failure = await self._save_unsaved()
        if self._is_fresh(record) if rejected is None else record.access != rejected:
            return record
        if failure is not None:
            raise self._disk_failure(failure)
        if self._refused is not None and self._clock() < self._refused.until_s:
            raise self._sign_in(self._refused.message)
        if not self._renewal.renewable(record):
            raise self._sign_in(self._message("has no refresh token and must be made anew"))
        if self._renewal.delete_refused and self._file.is_pending(record):
            raise self._sign_in(self._message("was being renewed when a process died, and may be used up"))
        return await self._rotate(record)

    async def _rotate(self, old: Credential, *, from_peer: bool = False) -> Credential:
        """Makes the one call. Writes the marker before it, which also proves that the folder can be written.

        from_peer  whether `old` was stored by a peer meanwhile; no further peer is followed then
        """
        await self._file.mark_pending(old)
        try:
            answer = await self._renewal.send(old)
            if self._renewal.is_refused(answer):  # first, since some issuers refuse with status 200
                return await self._after_refusal(old, answer, from_peer=from_peer)
            if answer.ok:
                new = self._parsed(answer, old)
                self._happened(SignInRenewed(self._renewal.label, ok=True))
                await self._keep(old, new)
                return new
            raise self._temporary(
                f"it answered {answer.reason(old.access, old.refresh)}", retry_after=answer.retry_after
            )
        except ProxyError:
            self._happened(SignInRenewed(self._renewal.label, ok=False))
            raise
        finally:
            # An unsaved renewal keeps it: the token on disk is used up, and other processes must know.
            if self._unsaved is None:
                self._file.clear_pending()

    def _parsed(self, answer: TokenResponse, old: Credential) -> Credential:
        try:
            return self._renewal.parse(answer.data, old, int(self._clock() * 1000))
        except ValueError as error:
            raise self._temporary(f"its answer was not usable: {error}") from error

    async def _keep(self, old: Credential, new: Credential) -> None:
        self._unsaved = _Unsaved(old, new)
        failure = await self._save_unsaved()
        if failure is None:
            self._log.write("info", "auth", "sign-in renewed", provider=self._renewal.label)

    async def _save_unsaved(self) -> OSError | None:
        """Saves an unsaved renewal, if any; returns the error if that failed."""
        if self._unsaved is None:
            return None
        try:
            await self._file.save(self._unsaved.new)
        except OSError as error:
            self._log.write(
                "error", "auth", "renewed sign-in not saved", provider=self._renewal.label, error=str(error)
            )
            return error
        self._unsaved = None
        self._file.clear_pending()
        return None

    async def _after_refusal(self, old: Credential, answer: TokenResponse, *, from_peer: bool) -> Credential:
        """The credential of a peer that does not use our lock and was faster; else raises SignInError."""
        if self._renewal.peer_wait_s:
            await self._sleep(self._renewal.peer_wait_s)
        stored = self._file.reload()
        if stored is not None and stored != old and (from_peer or self._is_fresh(stored)):
            return stored
        if stored is not None and stored.refresh and stored.refresh != old.refresh:
            return await self._rotate(stored, from_peer=True)
        message = self._message(f"was refused ({answer.reason(old.access, old.refresh)})")
        self._refused = _Refusal(old, message, self._clock() + self._renewal.refused_for_s)
        self._log.write("warn", "auth", "sign-in refused", provider=self._renewal.label, code=answer.code)
        if self._renewal.delete_refused:
            try:
                await self._file.delete()
            except OSError as error:  # `_refused` keeps the issuer from being asked again
                self._log.write("warn", "auth", "not deleted", provider=self._renewal.label, error=str(error))
        raise self._sign_in(message)

    # State and messages.

    def _current(self, stored: Credential | None) -> Credential | None:
        """The stored credential, or the unsaved one that replaces it. A sign-in by another process drops what we
        remember. Raises SignInError for an unfit one."""
        if stored is None:
            return None
        unfit = self._renewal.unfit(stored)
        if unfit:
            raise self._sign_in(self._message(unfit))
        if self._refused is not None and not self._refused.concerns(stored):
            self._refused = None
        if self._unsaved is None:
            return stored
        if stored == self._unsaved.old:
            return self._unsaved.new
        self._unsaved = None
        return stored

    def _is_fresh(self, record: Credential) -> bool:
        return self._lives_on(record, self._renewal.margin_ms)

    def _lives_on(self, record: Credential, for_ms: int) -> bool:
        return record.expires_ms > self._clock() * 1000 + for_ms

    def _message(self, what: str) -> str:
        return f"The {self._renewal.label} sign-in in {self._file.path} {what}; {sign_in_hint(self._renewal.label)}."

    def _sign_in(self, message: str) -> SignInError:
        return SignInError(message, provider=self._renewal.label)

    def _missing(self) -> SignInError:
        if self._refused is not None and self._renewal.delete_refused:  # that is why there is no credential
            return self._sign_in(self._refused.message)
        label = self._renewal.label
        if self._file.is_unreadable:
            return self._sign_in(self._message("cannot be read"))
        return self._sign_in(f"{label} is not signed in; {sign_in_hint(label)}.")

    def _temporary(self, why: str, retry_after: float | None = None) -> UpstreamError:
        return UpstreamError(
            f"The {self._renewal.label} sign-in could not be renewed now: {why}. Try again later.",
            kind="unavailable",
            provider=self._renewal.label,
            retry_after=retry_after,
        )

    def _disk_failure(self, error: OSError) -> UpstreamError:
        self._log.write(
            "error",
            "auth",
            "credential folder not usable",
            provider=self._renewal.label,
            folder=str(self._file.path.parent),
            error=str(error),
        )
        reason = printable(error.strerror or type(error).__name__)
        return self._temporary(f"{self._file.path.parent} cannot be written ({reason})")
