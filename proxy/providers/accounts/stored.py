"""The stored credential on the command line: saved after a sign-in, shown, deleted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from proxy.auth.jwt import NO_END_MS
from proxy.auth.refresh import Lent, sign_in_hint
from proxy.auth.store import Credential, CredentialFile
from proxy.providers.accounts.account import AccountContext, Say


class StoredAccount:
    """An account with a credential that its sign-in stores. A provider adds the ways in and the lines of `status`.

    services  where all its calls go, see `AccountContext.connect`
    """

    def __init__(self, context: AccountContext, file: CredentialFile, *services: str) -> None:
        self._ports = context.ports
        self._lent = Lent(context.config_root, context.ports.clock, context.ports.sleep)
        self._connect = partial(context.connect, *services)
        self._file = file

    def _lines(self, credential: Credential, left_s: int) -> Iterable[str]:
        """The lines of `auth status` for a credential that expires in so many seconds."""
        raise NotImplementedError

    def _unfit(self, _credential: Credential) -> str:
        """Why the provider cannot use this credential, "" when it can; as in `Renewal`."""
        return ""

    async def _save(self, credential: Credential, *lines: str, say: Say) -> Credential:
        """Stores a new sign-in, and prints that and these lines. Raises ProxyError."""
        await self._file.put(credential)
        for line in (f"Auth saved in {self._file.path}", *lines):
            say(line)
        return credential

    def status(self, *, say: Say) -> bool:
        """Prints the stored credential without asking the issuer; False, for exit code 1, when no usable one is
        stored."""
        file = self._file
        credential = file.load()
        if credential is None:
            say("Not authenticated")
            if file.is_unreadable:
                say(f"{file.path} cannot be read as a credential; {sign_in_hint(file.label)}")
            return False
        why = self._unfit(credential)
        if why:
            say("Not authenticated")
            say(f"The sign-in in {file.path} {why}; {sign_in_hint(file.label)}")
            return False
        for line in self._lines(credential, (credential.expires_ms - int(self._ports.clock() * 1000)) // 1000):
            say(line)
        return True

    async def logout(self, *, say: Say) -> None:
        """Deletes the stored credential; succeeds when there is none. The issuer is not asked. Raises ProxyError."""
        await self._file.discard()
        say("Logged out")


def expiry(credential: Credential, left_s: int) -> str:
    """`Expires: 2027-01-15T08:00:00.007Z (in 90s)`, or that the end of the access token is unknown."""
    if credential.expires_ms == NO_END_MS:
        return "Expires: unknown"
    return f"Expires: {moment(credential.expires_ms)} (in {left_s}s)"


def moment(epoch_ms: int) -> str:
    """UTC, ISO 8601 with milliseconds; the bare number beyond the calendar's end.

    >>> moment(1_800_000_000_007)
    '2027-01-15T08:00:00.007Z'
    """
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return found.strftime("%Y-%m-%dT%H:%M:%S.") + f"{epoch_ms % 1000:03d}Z"
