"""The sessions that are known, and their agents: both tables are bounded."""

from __future__ import annotations

from collections import OrderedDict

from proxy.observe.monitor.texts import short
from proxy.observe.monitor.tracked import TrackedAgent, TrackedSession

#: Sessions, and agents of one. The least recently seen goes first, an active one never.
MAX_SESSIONS, MAX_AGENTS = 1_000, 64
#: What stands for a missing session id where sessions are sorted and shown.
NO_SESSION = "no-session"


class SessionTable:
    """Every session by its id; those without an active request also in the order in which they were last seen."""

    def __init__(self) -> None:
        self._all: dict[str | None, TrackedSession] = {}
        self._idle: OrderedDict[str | None, None] = OrderedDict()

    def of(self, name: str | None, wall: float) -> TrackedSession:
        """Made where it is not known. `wall`: epoch seconds."""
        key = name and short(name)
        session = self._all.get(key)
        if session is None:
            session = self._all[key] = TrackedSession(wall, id=key)
            self._idle[key] = None
            if len(self._all) > MAX_SESSIONS:
                self._forget()
        return session

    def busy(self, session: TrackedSession) -> None:
        """It has an active request."""
        self._idle.pop(session.id, None)

    def left(self, session: TrackedSession) -> None:
        """A request of it is over, or turned out to be of another one."""
        if session.active or self._all.get(session.id) is not session:
            return
        if not session.requests:
            del self._all[session.id]
            return
        self._idle[session.id] = None
        self._idle.move_to_end(session.id)
        if len(self._all) > MAX_SESSIONS:
            self._forget()

    def known(self) -> list[TrackedSession]:
        """By the text of their ids, so that rows stay where they are."""
        return sorted(self._all.values(), key=lambda session: session.id or NO_SESSION)

    def _forget(self) -> None:
        """Those that were idle for longest; the last of them was seen just now."""
        while len(self._all) > MAX_SESSIONS and len(self._idle) > 1:
            oldest, _ = self._idle.popitem(last=False)
            del self._all[oldest]


def agent_of(session: TrackedSession, name: str | None, parent: str | None, wall: float) -> TrackedAgent:
    """An agent of a session, made where it is not known; None is the main conversation."""
    key = name and short(name)
    agent = session.agents.get(key)
    if agent is None:
        _forget_agents(session)
        agent = session.agents[key] = TrackedAgent(wall)
    if parent and not agent.parent:
        agent.parent = short(parent)
    return agent


def _forget_agents(session: TrackedSession) -> None:
    """The sub-agents that were seen least recently, so that there is room for one more; their counts stay in those of
    the session."""
    over = len(session.agents) - MAX_AGENTS + 1
    if over <= 0:
        return
    idle = sorted((agent.last_seen, name) for name, agent in session.agents.items() if name and not agent.active)
    for _, name in idle[:over]:
        del session.agents[name]
