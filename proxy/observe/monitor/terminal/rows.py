"""Selects and sorts the rows of each pane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from proxy.observe.monitor.sheet import SOUGHT
from proxy.observe.monitor.snapshot import AgentRow, Notice, RequestRow, SessionRow, Snapshot, Throughput
from proxy.observe.monitor.terminal.cells import clean, fit
from proxy.observe.monitor.terminal.view import Key, Pane, Selection, View
from proxy.observe.monitor.words import NAME_WIDTH, NO_SESSION, session_name, share

#: Levels of agents of agents that are shown.
MAX_DEPTH = 4
#: The code column of an event that is no request.
_LEVELS = {"info": ("info", "busy"), "warn": ("warn", "wait"), "error": ("err", "bad")}


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session, or an agent of it. `sign`: its prefix in the tree."""

    session: SessionRow
    agent: AgentRow | None = None
    sign: str = " "

    @property
    def shown(self) -> SessionRow | AgentRow:
        return self.agent or self.session

    @property
    def key(self) -> Key:
        return (self.session.id,) if self.agent is None else (self.session.id, self.agent.id)


@dataclass(frozen=True, slots=True)
class EventLine:
    """A failed request, a cache that was lost, or a notice. `request`: its id, to open it."""

    at: float
    code: str
    role: str
    message: str
    request: str | None = None
    project: str | None = None
    session: str | None = None
    provider: str | None = None
    requested: str | None = None
    resolved: str | None = None

    @property
    def key(self) -> Key:
        return (self.request, self.code, str(self.at), self.message)


Row = SessionLine | RequestRow | EventLine


def key_of(row: Row) -> Key:
    return (row.id,) if isinstance(row, RequestRow) else row.key


def rows_of(pane: Pane, snapshot: Snapshot, view: View) -> list[Any]:
    return _ROWS[pane](snapshot, view)


def sort_of(pane: Pane, view: View) -> str:
    """The name of the order; "" for a pane that has only one."""
    return view.sorts.get(pane, next(iter(SORTS.get(pane, {})), ""))


def selected(rows: Sequence[Row], place: Selection) -> int:
    """The index of the selected row; 0 without one."""
    if place.key is None or not rows:
        return 0
    found = next((index for index, row in enumerate(rows) if key_of(row) == place.key), None)
    return min(place.index, len(rows) - 1) if found is None else found


def is_tree(session: SessionRow) -> bool:
    """Whether there is more than the main conversation."""
    return any(agent.id is not None for agent in session.agents)


def name_width(snapshot: Snapshot) -> int:
    """The number of cells that distinguish the sessions; NAME_WIDTH where that is enough."""
    ids = sorted(clean(row.id) for row in snapshot.sessions if row.id is not None)
    shown = Counter(fit(session_name(each), NAME_WIDTH) for each in ids)
    alike = [each for each in ids if shown[fit(session_name(each), NAME_WIDTH)] > 1]
    needed = [min(_common(*pair) + len("?…"), max(map(len, pair))) for pair in pairwise(alike)]
    return max([NAME_WIDTH, *needed])


def _common(one: str, other: str) -> int:
    """The length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


# The filter.


def _wanted(words: str) -> Callable[[Any], bool]:
    wanted = words.casefold().split()

    def test(row: Any) -> bool:
        if not wanted:
            return True
        rows = (row, *getattr(row, "agents", ()))
        texts = (str(text) for each in rows for text in _texts(each) if text)
        whole = " ".join((NO_SESSION if _whose(row) is None else "", *texts)).casefold()
        return all(word in whole for word in wanted)

    return test


def _whose(row: Any) -> str | None:
    session: str | None = row.id if isinstance(row, SessionRow) else row.session
    return session


def _texts(row: Any) -> Iterator[object]:
    for path in SOUGHT:
        value = row
        for name in path.split("."):
            value = getattr(value, name, None)
        yield value


# Sessions, each with its agents below it when they are open.


def _sessions(snapshot: Snapshot, view: View) -> list[SessionLine]:
    test = _wanted(view.words)
    order = SORTS["sessions"][sort_of("sessions", view)]
    rows = sorted(snapshot.sessions, key=lambda row: session_name(row.id))
    rows = sorted((row for row in rows if test(row)), key=order)
    return [line for row in rows for line in _with_agents(row, row.id in view.opened)]


def _with_agents(row: SessionRow, opened: bool) -> Iterator[SessionLine]:
    tree = is_tree(row)
    yield SessionLine(row, None, ("▾" if opened else "▸") if tree else " ")
    if tree and opened:
        yield from (SessionLine(row, agent, sign) for agent, sign in agents_of(row))


def agents_of(row: SessionRow) -> list[tuple[AgentRow, str]]:
    """The agents of a session as a tree, each with its prefix. An agent whose parent is unknown, or is itself below it,
    comes below the session."""
    below: dict[str | None, list[AgentRow]] = {}
    known = {agent.id for agent in row.agents}
    for agent in row.agents:
        below.setdefault(agent.parent if agent.parent in known and agent.parent is not None else "", []).append(agent)
    found: list[tuple[AgentRow, str]] = []
    _descend(below, "", "", found)
    placed = {agent.id for agent, _ in found}
    return found + [(agent, "└ ") for agent in row.agents if agent.id not in placed]


def _descend(
    below: Mapping[str | None, list[AgentRow]], parent: str | None, before: str, found: list[tuple[AgentRow, str]]
) -> None:
    agents = below.get(parent, ())
    for index, agent in enumerate(agents):
        last = index == len(agents) - 1
        found.append((agent, before + ("└ " if last else "├ ")))
        if agent.id is not None and len(before) < 2 * MAX_DEPTH:
            _descend(below, agent.id, before + ("  " if last else "│ "), found)


def _rate(throughput: Throughput) -> float:
    return throughput.tokens / throughput.seconds if throughput.seconds > 0 else 0.0


#: Pane -> name of an order -> its key; the first is the one at the start. Rows of one key keep their order.
SORTS: Mapping[str, Mapping[str, Callable[[Any], float]]] = {
    "sessions": {
        "id": lambda _row: 0,
        "last seen": lambda row: -row.last_seen,
        "active": lambda row: -row.active,
        "tokens": lambda row: -(row.input_tokens + row.output_tokens),
        "rate": lambda row: -_rate(row.throughput),
        "failures": lambda row: -row.failures,
        "least cached": lambda row: 2.0 if row.cache.cached is None else row.cache.cached,
    },
    "recent": {
        "newest": lambda _row: 0,
        "latency": lambda row: -row.elapsed,
        "tokens": lambda row: -((row.input_tokens or 0) + (row.output_tokens or 0)),
        "rate": lambda row: -_rate(row.throughput),
        "failures": lambda row: not row.bad,
    },
}


# Requests.


def _active(snapshot: Snapshot, view: View) -> list[RequestRow]:
    return list(filter(_wanted(view.words), snapshot.active))


def _recent(snapshot: Snapshot, view: View) -> list[RequestRow]:
    return sorted(filter(_wanted(view.words), snapshot.recent), key=SORTS["recent"][sort_of("recent", view)])


# Events: failures and notices, the newest first.


def _events(snapshot: Snapshot, view: View) -> list[EventLine]:
    test = _wanted(view.words)
    projects = {row.id: row.project for row in snapshot.sessions}
    found = [_failure(row) for row in snapshot.recent if row.bad]
    lost = [row for row in snapshot.recent if row.cache.reason]
    shown = {(row.session, row.cache.reason) for row in lost}
    found += [_cache_event(row) for row in lost]
    found += [_notice(row, projects) for row in snapshot.notices if (row.session, _reason(row)) not in shown]
    return sorted((row for row in found if test(row)), key=lambda row: -row.at)


def _failure(row: RequestRow) -> EventLine:
    role = "wait" if row.http is not None and 400 <= row.http < 500 else "bad"
    message = row.error or (f"HTTP {row.http}" if row.http else row.status)
    return _of_request(row, "-" if row.http is None else str(row.http), role, message)


def _reason(row: Notice) -> str:
    """The reason in the notice of a lost cache; its request shows it as well, and can be opened."""
    return row.message.partition(": ")[2]


def _cache_event(row: RequestRow) -> EventLine:
    cached, wanted = row.cache.cached, row.cache.expected
    shares = f"{share(cached)} of the input" if cached is not None else "less than expected"
    expected = "" if wanted is None or wanted <= (cached or 0.0) else f", {share(wanted)} expected"
    return _of_request(row, "cache", "compact", f"{shares} from the cache{expected}: {row.cache.reason}")


def _of_request(row: RequestRow, code: str, role: str, message: str) -> EventLine:
    at = row.started_at + row.elapsed if row.finished_at is None else row.finished_at
    names = row.provider, row.requested, row.resolved
    return EventLine(at, code, role, message, row.id, row.project, row.session, *names)


def _notice(row: Notice, projects: Mapping[str | None, str | None]) -> EventLine:
    code, role = _LEVELS.get(row.level, (row.level, ""))
    project = projects.get(row.session) if row.session is not None else None
    return EventLine(row.at, code, role, row.message, None, project, row.session, row.provider)


_ROWS: Mapping[Pane, Callable[[Snapshot, View], list[Any]]] = {
    "sessions": _sessions,
    "active": _active,
    "recent": _recent,
    "events": _events,
}
