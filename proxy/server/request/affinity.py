"""Which account a session began with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from proxy.core.identity import MAX_ID_BYTES

#: A session that pauses for longer may begin anew: caches of prompts are long gone then.
IDLE_S = 24 * 3600.0
MAX_SESSIONS = 10_000

#: label of the provider, name of the caller's key, session
SessionKey = tuple[str, str, str]


def session_key(label: str, caller: str | None, session: str | None) -> SessionKey:
    """Requests without a session are those of one: what an account encrypted for them comes back to it. So are those
    with an id that no client has."""
    known = session if session is not None and len(session) <= MAX_ID_BYTES else None
    return label, caller or "", known or ""


class Affinity:
    """Bounded table: an entry expires some time after its last request, and the oldest goes when the table is full."""

    def __init__(self, clock: Callable[[], float], *, max_sessions: int = MAX_SESSIONS) -> None:
        self._clock = clock
        self._max = max_sessions
        self._began: OrderedDict[SessionKey, tuple[str, float]] = OrderedDict()

    def of(self, key: SessionKey) -> str | None:
        """The name of the account, None for a session that nobody knows."""
        name, seen = self._began.get(key, (None, 0.0))
        return name if name is not None and self._clock() - seen <= IDLE_S else None

    def note(self, key: SessionKey, name: str) -> None:
        """This account serves it now."""
        self._began[key] = name, self._clock()
        self._began.move_to_end(key)
        if len(self._began) > self._max:
            self._began.popitem(last=False)
