"""What is remembered of a client session: how many requests it made, and which provider it works with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from proxy.core.identity import MAX_ID_BYTES

IDLE_S = 30 * 60.0
MAX_SESSIONS = 10_000


@dataclass(slots=True)
class _Session:
    seen: float
    sequence: int = 0
    affinity: str | None = None


class Sessions:
    """Bounded table: an entry expires 30 minutes after its last request, and the oldest goes when the table is full.

    Affinity serves one purpose: a conversation on P2 sends its background requests under names like `haiku`, and
    those must follow it there. Only explicit models of providers that can serve aliases set it.

    followed  the labels of those providers
    """

    def __init__(
        self, clock: Callable[[], float], followed: Collection[str], *, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._clock = clock
        self._followed = followed
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def affinity(self, session: str | None) -> str | None:
        """The provider that this session's aliases follow."""
        entry = self._alive(session)
        return entry.affinity if entry else None

    def routed(self, session: str | None, label: str, *, explicit: bool) -> int | None:
        """Notes a routed request; its number within the session, None without one. An id that no client has would only
        fill the table.

        explicit  the client named a model of the provider: not an alias, not a model that we chose
        """
        if session is None or len(session) > MAX_ID_BYTES:
            return None
        entry = self._alive(session)
        if entry is None:
            entry = self._sessions[session] = _Session(self._clock())
            if len(self._sessions) > self._max_sessions:
                self._sessions.popitem(last=False)
        entry.seen = self._clock()
        entry.sequence += 1
        if explicit and label in self._followed:
            entry.affinity = label
        return entry.sequence

    def _alive(self, session: str | None) -> _Session | None:
        entry = self._sessions.get(session) if session is not None else None
        if entry is not None and session is not None and self._clock() - entry.seen > IDLE_S:
            del self._sessions[session]
            return None
        return entry
