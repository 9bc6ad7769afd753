"""Finds the place that serves the account's workspace: some are bound to a region, with their own backend or mark.

The vendor's own client asks for this first, and sends nothing without an answer. Here a failed question only means that
the configured address is used.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from proxy.auth.store import Credential
from proxy.core.hiding.secret import Secret
from proxy.core.sse import load_json
from proxy.providers.contract import Services
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.request import account_headers, with_credential
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.upstream.client import read_error
from proxy.settings import UnfitValue, is_loopback, url

OVERRIDE_HEADER = "x-openai-account-routing-override"

#: Addresses with this ending are known to answer the question.
_RESPONSES = "/codex/responses"
_QUESTION = "/wham/accounts/check"
_MEMBERS = ("workspace_backend_origin", "account_routing_override")
#: The word for a workspace that is served anywhere.
_ANYWHERE = "NO_CONSTRAINT"
_OVERRIDE = re.compile(r"[a-z0-9_-]{1,40}")

MAX_ANSWER_BYTES = 256 * 1024
#: Short, since the first request waits for the answer.
TIMEOUT_S = 5.0
#: Seconds for which an answer is kept, and for which a failed question is not repeated.
KEPT_S, FAILED_S = 3600.0, 300.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """The place where an account is served. `origin` replaces that of the configured address, `override` is sent with
    each request."""

    origin: str | None = None
    override: str | None = None

    def url(self, configured: str) -> str:
        """
        >>> Workspace("https://eu.host").url("https://host/codex/responses")
        'https://eu.host/codex/responses'
        """
        return configured if self.origin is None else self.origin + urlsplit(configured).path

    def headers(self, others: dict[str, str]) -> dict[str, str]:
        """The headers of a request with the workspace's own."""
        return others if self.override is None else {**others, OVERRIDE_HEADER: self.override}


@dataclass(frozen=True, slots=True)
class _KnownWorkspace:
    """A known workspace and its expiry; `failed` is the token for which the question failed."""

    workspace: Workspace
    until: float
    failed: Secret | None = None


class Workspaces:
    """Asks once for each account, and again when the answer has expired."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asking: asyncio.Event | None = None  # while one request asks for all
        self._known: dict[tuple[str, str], _KnownWorkspace] = {}  # one entry: by account and address

    async def of(self, credential: Credential) -> Workspace:
        """The workspace of the account; one without constraints when the answer is missing or strange. Raises
        UpstreamError when an outgoing proxy fails."""
        codex = self._services.config().section(CodexSettings)
        account, base = credential.account_id, codex.base_url
        if not codex.workspace_routing or account is None or not base.endswith(_RESPONSES):
            return Workspace()
        while (known := self._fresh(account, base, credential)) is None:
            if self._asking is not None:
                await self._asking.wait()
                continue
            self._asking = asked = asyncio.Event()
            try:
                known = await self._learn(account, base, credential)
                break
            finally:
                self._asking = None
                asked.set()  # all at once: a queue would spread out a burst of requests
        return known.workspace

    def _fresh(self, account: str, base: str, credential: Credential) -> _KnownWorkspace | None:
        known = self._known.get((account, base))
        if known is None or known.until <= self._services.clock():
            return None
        return known if known.failed in (None, credential.access) else None

    async def _learn(self, account: str, base: str, credential: Credential) -> _KnownWorkspace:
        now, old = self._services.clock(), self._known.get((account, base))
        try:
            workspace = workspace_of(await self._ask(base, credential), account, base)
            known = _KnownWorkspace(workspace, now + KEPT_S)
            if workspace != Workspace():
                self._log("info", "workspace_routing", origin=workspace.origin, override=workspace.override)
        except UnfitValue as error:
            known = _KnownWorkspace(old.workspace if old else Workspace(), now + FAILED_S, credential.access)
            self._log("warn", "workspace_routing_unknown", reason=str(error))
        self._known = {(account, base): known}
        return known

    async def _ask(self, base: str, credential: Credential) -> Mapping[str, Any]:
        """Asks over a connection that the request can then use. Raises UnfitValue; UpstreamError when an outgoing proxy
        fails, which the request would meet as well."""
        headers = with_credential(account_headers(self._services.config()), credential)
        address, timeout = base.removesuffix(_RESPONSES) + _QUESTION, aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            ask = self._services.http.get(address, headers=headers, timeout=timeout, allow_redirects=False)
            async with ask as response:
                body = await read_error(response, MAX_ANSWER_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnfitValue(type(error).__name__) from None
        if response.status != 200:
            raise UnfitValue(f"status {response.status}")
        try:
            answer = load_json(body.decode())
        except (ValueError, RecursionError):
            answer = None
        return answer if isinstance(answer, Mapping) else {}

    def _log(self, level: str, msg: str, **fields: Any) -> None:
        self._services.log.write(level, LABEL, msg, **fields)


def workspace_of(answer: Mapping[str, Any], account: str, base: str) -> Workspace:
    """Reads the workspace of an account. Raises UnfitValue when it is missing, or its origin is not https."""
    accounts = answer.get("accounts")
    rows = [row for row in accounts if isinstance(row, Mapping)] if isinstance(accounts, list) else []
    row = next((row for row in rows if row.get("id") == account), None)
    if row is None:
        raise UnfitValue("the account is not listed")
    origin, override = (_constraint(row.get(name)) for name in _MEMBERS)
    if override is not None and not _OVERRIDE.fullmatch(override):
        raise UnfitValue("an unknown routing override")
    return Workspace(None if origin is None else _checked_origin(origin, base), override)


def _constraint(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in ("", _ANYWHERE) else None


def _checked_origin(origin: str, base: str) -> str:
    parts = urlsplit(url(origin))
    local = is_loopback(parts.hostname or "")
    if parts.path or (local and not is_loopback(urlsplit(base).hostname or "")):
        raise UnfitValue("the backend of the workspace is not an https origin")
    return f"{parts.scheme}://{parts.netloc}"
