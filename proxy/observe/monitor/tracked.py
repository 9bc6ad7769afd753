"""The store's requests, sessions and agents, in bounded tables, and the rows made of them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from proxy.observe.lifecycle import Judged, PicturesDescribed, Searched
from proxy.observe.monitor.snapshot import (
    SHORTEST_S,
    UNRATED,
    AgentRow,
    RequestRow,
    SessionRow,
    Throughput,
    TotalsRow,
)

#: Seconds of a step.
STEP_S = 10.0
#: Seconds until the project of a session is looked for again.
PROJECT_S = 60.0
#: Steps of the proxy's last hour, and of a session's last ten minutes.
HOUR, TREND = 360, 60


def step_at(now: float) -> int:
    """The step of a moment. `now`: seconds of a clock that only goes forward."""
    return int(now // STEP_S)


class StepCounts:
    """The newest `size` counts. Moments before the newest step count in it."""

    __slots__ = ("_counts", "_newest", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: deque[int] = deque(maxlen=size)
        self._newest = 0

    def add(self, step: int, count: int) -> None:
        if step > self._newest or (self._counts and not self._counts[0]):
            self._go_on(step)
        if self._counts:
            self._counts[-1] += count
        elif count:
            self._counts.append(count)

    def until(self, step: int) -> tuple[int, ...]:
        """The counts up to this step, without the zeros at the beginning."""
        self._go_on(step)
        return tuple(self._counts)

    def whole(self, step: int) -> tuple[int, ...]:
        """The counts up to this step with the zeros: always of one length."""
        counts = self.until(step)
        return (0,) * (self._size - len(counts)) + counts

    def _go_on(self, step: int) -> None:
        counts, missing = self._counts, step - self._newest
        if missing > 0:
            self._newest = step
            if counts:
                counts.extend([0] * min(missing, self._size))
        while counts and not counts[0]:
            counts.popleft()


#: Characters of an id or a name, and of a message.
MAX_ID, MAX_MESSAGE = 512, 500


def short(text: str | None) -> str | None:
    """An id or a name, cut to a bound and made safe for a terminal."""
    if text is None or (len(text) <= MAX_ID and text.isprintable()):
        return text
    return _printable(text[:MAX_ID])


def one_line(text: str) -> str:
    """A message as one line, safe for a terminal."""
    if not text:
        return ""
    line = " ".join(text[: 4 * MAX_MESSAGE].split())
    clean = line if line.isprintable() else _printable(line)
    return clean if len(clean) <= MAX_MESSAGE else f"{clean[: MAX_MESSAGE - 1]}…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


NONE = Throughput()


@dataclass(slots=True, eq=False)
class Totals(TotalsRow):
    """The totals of a session or an agent. The counts are of the whole life, `throughput` of the requests that are over
    and have both tokens and a duration."""

    def count(self, request: TrackedRequest, sign: int = 1) -> None:
        """Adds the counts of a request, or subtracts them again."""
        self.requests += sign
        if request.over:
            self.failures += sign * request.failed
        else:
            self.active += sign
        self.input_tokens += sign * (request.input_tokens or 0)
        self.output_tokens += sign * (request.output_tokens or 0)
        self.cached_tokens += sign * (request.cached_tokens or 0)
        if request.counted is not NONE:
            self.throughput = added(self.throughput, request.counted, sign)


@dataclass(slots=True, eq=False)
class TrackedAgent(Totals):
    """The main conversation of a session (`id` None), or a sub-agent."""

    parent: str | None = None


@dataclass(slots=True, eq=False)
class TrackedSession(Totals):
    """`row` is its row of the step `row_step`, when it had no active request. `project_at`: when its project was found,
    by the clock that only goes forward."""

    project: str | None = None
    project_at: float = -PROJECT_S
    agents: dict[str | None, TrackedAgent] = field(default_factory=dict)
    history: StepCounts = field(default_factory=lambda: StepCounts(TREND))
    row: SessionRow | None = None
    row_step: int = 0

    def known_project(self, now: float) -> str | None:
        """Its project, if that was found lately."""
        return self.project if now - self.project_at < PROJECT_S else None


@dataclass(slots=True, eq=False, kw_only=True)
class TrackedRequest(RequestRow):
    """Times that begin with `mono` are of the clock that only goes forward.

    input_tokens  the upstream's count
    owner         its session; `talk`: its agent there
    counted       its throughput that its session has counted
    row           its row, once it is over
    """

    mono_started: float
    owner: TrackedSession
    talk: TrackedAgent
    over: bool = False
    mono_ended: float = 0.0
    bytes: int = 0
    chunks: int = 0
    generating: bool = False
    mono_first: float | None = None
    mono_newest: float = 0.0
    baseline: int = 0
    counted: Throughput = NONE
    row: RequestRow | None = None

    @property
    def failed(self) -> bool:
        """Whether its end is listed among the events."""
        return self.over and (self.status != "completed" or (self.http or 0) >= 400)

    @property
    def measured(self) -> Throughput:
        if self.endpoint in UNRATED:
            return NONE
        seconds = 0.0 if self.mono_first is None else self.mono_newest - self.mono_first
        seconds = seconds if seconds >= SHORTEST_S else 0.0
        return Throughput(max((self.output_tokens or 0) - self.baseline, 0), seconds, self.bytes, self.chunks)

    def name_owners(self) -> None:
        """Copies provider, model and effort to its session and its agent, which show those of their last request."""
        if self.provider is None:
            return
        for totals in (self.owner, self.talk):
            totals.provider, totals.effort = self.provider, self.effort
            totals.requested, totals.resolved = self.requested, self.resolved

    def as_row(self, now: float) -> RequestRow:
        """Its row. `now`: of the clock that only goes forward."""
        if self.row is not None:
            return self.row
        self.elapsed = max((self.mono_ended if self.over else now) - self.mono_started, 0.0)
        self.throughput = self.measured
        row = RequestRow(*_shown_of(self))
        if row.input_tokens is None and not self.over:
            row.input_tokens = self.estimate
        self.row = row if self.over else None
        return row


#: The fields of a request's row.
_shown_of = attrgetter(*(each.name for each in fields(RequestRow)))


def judged(request: TrackedRequest, event: Judged) -> None:
    """Adds judged calls: a request may be judged in several steps."""
    request.judge = _summed(request.judge, event.outcomes)
    request.judge_input_tokens += event.input_tokens
    request.judge_output_tokens += event.output_tokens


def described(request: TrackedRequest, event: PicturesDescribed) -> None:
    """Adds described pictures: they may be described again for another model."""
    request.describer = f"{event.provider} {event.model}"
    request.pictures = _summed(request.pictures, event.outcomes)
    request.vision_input_tokens += event.input_tokens
    request.vision_output_tokens += event.output_tokens


def searched(request: TrackedRequest, event: Searched) -> None:
    """Adds a search of the web."""
    by = event.provider if event.outcome == "ok" else f"{event.provider} {event.outcome}"
    request.searches = _summed(request.searches, {by: 1})


def _summed(known: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {one: known.get(one, 0) + more.get(one, 0) for one in (*known, *more)}


def raised(known: int | None, reported: int | None) -> tuple[int | None, int]:
    """The count after another report, and its increase: it never goes down."""
    if reported is None:
        return known, 0
    before = known or 0
    return max(reported, before), max(reported - before, 0)


def rated(one: Throughput) -> Throughput:
    """The throughput that a session counts: none unless the request has both tokens and a duration."""
    return one if one.tokens and one.seconds > 0 else NONE


def added(total: Throughput, one: Throughput, sign: int = 1) -> Throughput:
    if one is NONE:
        return total
    return Throughput(
        total.tokens + sign * one.tokens,
        total.seconds + sign * one.seconds,
        total.bytes + sign * one.bytes,
        total.chunks + sign * one.chunks,
    )


@dataclass(slots=True)
class LiveTotals:
    """The sums over the active requests of a session or an agent; the newest determines the status."""

    status: str
    throughput: Throughput = NONE

    def add(self, request: TrackedRequest) -> None:
        self.status = request.status
        self.throughput = added(self.throughput, rated(request.measured))


def live_of(active: Iterable[TrackedRequest]) -> dict[int, LiveTotals]:
    """The `LiveTotals` of sessions and agents, by identity."""
    live: dict[int, LiveTotals] = {}
    for request in active:
        for totals in (request.owner, request.talk):
            live.setdefault(id(totals), LiveTotals("")).add(request)
    return live


def session_row(session: TrackedSession, live: Mapping[int, LiveTotals], now: float, step: int) -> SessionRow:
    """`live`: by the identity of a session or an agent; `now`: epoch seconds."""
    row = session.row
    if not session.active and row is not None and (session.row_step == step or not row.history):
        return row
    made = SessionRow(
        project=session.project,
        history=session.history.until(step),
        agents=row.agents if row is not None and not session.active else _agent_rows(session, live, now),
        **_shared(session, live, now),
    )
    session.row, session.row_step = (None if session.active else made), step
    return made


def _agent_rows(session: TrackedSession, live: Mapping[int, LiveTotals], now: float) -> tuple[AgentRow, ...]:
    """Rows of the main conversation and then the others as they came; none where it is alone."""
    if session.agents.keys() <= {None}:
        return ()
    known = sorted(session.agents.values(), key=lambda agent: agent.id is not None)
    return tuple(AgentRow(parent=agent.parent, **_shared(agent, live, now)) for agent in known)


#: The fields that sessions and agents have in common.
TOTALS = tuple(each.name for each in fields(TotalsRow))


def _shared(totals: Totals, live: Mapping[int, LiveTotals], now: float) -> dict[str, Any]:
    """The members of a `TotalsRow`; some depend on requests under way."""
    members: dict[str, Any] = {name: getattr(totals, name) for name in TOTALS}
    extra = live.get(id(totals))
    if extra is not None:
        members |= {"status": extra.status, "throughput": added(totals.throughput, extra.throughput), "last_seen": now}
    return members


#: Sessions, and agents of one. The least recently seen goes first, an active one never.
MAX_SESSIONS, MAX_AGENTS = 1_000, 64
#: Replaces a missing session id where sessions are sorted and shown.
NO_SESSION = "no-session"


class SessionTable:
    """Every session by its id; those without an active request also in the order in which they were last seen."""

    def __init__(self) -> None:
        self._all: dict[str | None, TrackedSession] = {}
        self._idle: OrderedDict[str | None, None] = OrderedDict()

    def of(self, name: str | None, wall: float) -> TrackedSession:
        """The session, created if unknown. `wall`: epoch seconds."""
        key = name and short(name)
        session = self._all.get(key)
        if session is None:
            session = self._all[key] = TrackedSession(key, wall)
            self._idle[key] = None
            if len(self._all) > MAX_SESSIONS:
                self._forget()
        return session

    def busy(self, session: TrackedSession) -> None:
        """Marks a session as active."""
        self._idle.pop(session.id, None)

    def left(self, session: TrackedSession) -> None:
        """Lists a session without active requests as idle; removes one without any request."""
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
        """All sessions, by the text of their ids, so that rows keep their places."""
        return sorted(self._all.values(), key=lambda session: session.id or NO_SESSION)

    def _forget(self) -> None:
        """Removes the sessions that were idle for longest; the last one was seen just now."""
        while len(self._all) > MAX_SESSIONS and len(self._idle) > 1:
            oldest, _ = self._idle.popitem(last=False)
            del self._all[oldest]


def agent_of(session: TrackedSession, name: str | None, parent: str | None, wall: float) -> TrackedAgent:
    """An agent of a session, created if unknown; None is the main conversation."""
    key = name and short(name)
    agent = session.agents.get(key)
    if agent is None:
        _forget_agents(session)
        agent = session.agents[key] = TrackedAgent(key, wall)
    if parent and not agent.parent:
        agent.parent = short(parent)
    return agent


def _forget_agents(session: TrackedSession) -> None:
    """Removes the least recently seen sub-agents, so that there is room for one more; the session keeps their
    counts."""
    over = len(session.agents) - MAX_AGENTS + 1
    if over <= 0:
        return
    idle = sorted((agent.last_seen, name) for name, agent in session.agents.items() if name and not agent.active)
    for _, name in idle[:over]:
        del session.agents[name]
