"""What the command line can do with a P1 account."""

from __future__ import annotations

from proxy.providers.base import AccountContext, Say
from proxy.providers.p1_codex import signin, usage
from proxy.providers.p1_codex.request import PRODUCT


class CodexAccount:
    """Sign-in with a browser or a code."""

    def __init__(self, context: AccountContext) -> None:
        self._root = context.config_root
        self._config = context.config

    async def login(self, *, device: bool, say: Say) -> None:
        issuer = self._config.p1_issuer
        if device:
            await signin.login_device(self._root, issuer, say=say)
        else:
            await signin.login(self._root, issuer, say=say, originator=self._config.p1_originator or PRODUCT)

    def status(self, *, say: Say) -> bool:
        return signin.status(self._root, say=say)

    async def logout(self, *, say: Say) -> None:
        await signin.logout(self._root, say=say)

    async def usage(self, *, as_json: bool, say: Say) -> None:
        await usage.show(self._root, self._config, say=say, as_json=as_json)
