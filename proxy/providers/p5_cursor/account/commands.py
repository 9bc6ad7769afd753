"""What the command line can do with a P5 account."""

from __future__ import annotations

from proxy.errors import PROGRAM, RequestError, SignInError
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.contract import AccountContext, Say
from proxy.providers.p5_cursor.account import signin
from proxy.providers.p5_cursor.catalog import LABEL
from proxy.providers.p5_cursor.settings import CursorSettings

#: The first variable of a token that the user has set.
_TOKEN = "PROXY_P5_AUTH_TOKEN"  # noqa: S105  a name


class CursorAccount:
    """Sign-in with a browser, on this machine or another."""

    def __init__(self, context: AccountContext) -> None:
        self._root = context.config_root
        self._settings = context.config.section(CursorSettings)
        self._place = context.source(_TOKEN) or _TOKEN
        self._connect = context.connect

    async def login(self, *, device: bool, say: Say) -> None:
        if device:
            raise SignInError(
                f"{LABEL} has no sign-in with a code (--device is unsupported): `{PROGRAM} auth login {LABEL}` prints"
                " an address that can be opened on any device",
                provider=LABEL,
            )
        async with self._connect(self._settings.base_url) as http:
            await signin.login(self._root, self._settings, say=say, session=http)
        self._tell_of_token(say)

    def status(self, *, say: Say) -> bool:
        return signin.status(self._root, self._settings, self._place, say=say)

    async def logout(self, *, say: Say) -> None:
        await signin.logout(self._root, say=say)
        self._tell_of_token(say)

    def _tell_of_token(self, say: Say) -> None:
        """A token that the user has set is theirs: it goes first, and no command changes it."""
        if self._settings.auth_token is not None:
            say(f"{self._place} is set and goes on being used in place of a stored sign-in: unset it to stop that")

    async def usage(self) -> UsageReport:
        raise RequestError(
            f"{LABEL} has no usage report: none is known that a program could ask for. "
            f"{self._settings.website_url} shows it to whoever is signed in there.",
            provider=LABEL,
        )
