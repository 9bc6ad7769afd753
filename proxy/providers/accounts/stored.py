"""The stored credential on the command line: saved after a sign-in, shown, deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from proxy.auth.jwt import NO_END_MS
from proxy.auth.refresh import sign_in_hint
from proxy.auth.store import Credential, CredentialFile
from proxy.providers.contract import Say

#: (file, credential, seconds until it expires) -> the lines of `auth status`.
Describe = Callable[[CredentialFile, Credential, int], Iterable[str]]


async def save(file: CredentialFile, credential: Credential, *lines: str, say: Say) -> Credential:
    """Stores a new sign-in and says so, then these lines. Raises ProxyError."""
    await file.put(credential)
    for line in (f"Auth saved in {file.path}", *lines):
        say(line)
    return credential


def show(
    file: CredentialFile,
    describe: Describe,
    *,
    say: Say,
    clock: Callable[[], float],
    unfit: Callable[[Credential], str] = lambda _credential: "",
) -> bool:
    """Prints what is stored, without asking the issuer; False when nothing is that can be used (then the exit code
    is 1). `unfit` as in `Renewal`."""
    credential = file.load()
    if credential is None:
        say("Not authenticated")
        if file.is_unreadable:
            say(f"{file.path} cannot be read as a credential; {sign_in_hint(file.label)}")
        return False
    why = unfit(credential)
    if why:
        say("Not authenticated")
        say(f"The sign-in in {file.path} {why}; {sign_in_hint(file.label)}")
        return False
    for line in describe(file, credential, (credential.expires_ms - int(clock() * 1000)) // 1000):
        say(line)
    return True


async def delete(file: CredentialFile, *, say: Say) -> None:
    """Deletes the stored credential; succeeds when there is none. The issuer is not told. Raises ProxyError."""
    await file.discard()
    say("Logged out")


def expiry(credential: Credential, left_s: int) -> str:
    """The end of the access token: `Expires: 2027-01-15T08:00:00.007Z (in 90s)`, or that it is not known."""
    if credential.expires_ms == NO_END_MS:
        return "Expires: unknown"
    return f"Expires: {moment(credential.expires_ms)} (in {left_s}s)"


def moment(epoch_ms: int) -> str:
    """UTC, ISO 8601 with milliseconds; the bare number where the calendar ends.

    >>> moment(1_800_000_000_007)
    '2027-01-15T08:00:00.007Z'
    """
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return found.strftime("%Y-%m-%dT%H:%M:%S.") + f"{epoch_ms % 1000:03d}Z"
