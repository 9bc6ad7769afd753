"""The callers of one application."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiohttp import web

from proxy.errors import ProxyError
from proxy.observe.monitor.snapshot import RequestRow
from proxy.server.callers.key_file import KeyFile
from proxy.server.callers.keys import CallerKey, digest_of
from proxy.server.callers.meter import Meter

#: The key that a request came with; not there for the one of the settings, and where none is needed.
CALLER: web.RequestKey[CallerKey] = web.RequestKey("caller", CallerKey)

_SESSIONS = uuid.UUID("9f0ad9c9-6a5c-4d0e-8f5e-0c6f1d9a2b47")


@dataclass(frozen=True, slots=True)
class Callers:
    """file  None where nobody has a key of his own"""

    file: KeyFile | None = None
    meter: Meter = field(default_factory=Meter)

    @property
    def guard(self) -> bool:
        """Whether a key is needed, beside the one of the settings."""
        return self.file is not None and self.file.guards

    def find(self, keys: Iterable[bytes]) -> CallerKey | None:
        """Whose key is among those that a request brings. Raises ProxyError when the file is damaged."""
        if self.file is None:
            return None
        known = self.file.keys
        found = (known.get(digest_of(key)) for key in keys if key)
        caller = next((key for key in found if key is not None), None)
        if caller is None and self.file.problem:
            message = f"no key can be checked, since the file of the keys cannot be used: {self.file.problem}"
            raise ProxyError(f"{message}; tell whoever runs this proxy", kind="sign_in")
        return caller

    def finished(self, row: RequestRow) -> None:
        """A request is over."""
        if row.caller:
            self.meter.spent(row.caller, (row.input_tokens or 0) + (row.output_tokens or 0))


def own_session(caller: CallerKey | None, session: str) -> str:
    """The session of a caller as this proxy and the services know it: two callers that name the same one share nothing.

    >>> own_session(None, "s")
    's'
    """
    return session if caller is None else str(uuid.uuid5(_SESSIONS, f"{caller.name}\n{session}"))
