"""The monitor's store: it receives every event of every request, and makes snapshots on demand.

It belongs to the event loop: everything here is called on it, and returns at once. Nothing is prepared in advance; an
event costs a look-up and a few additions.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from proxy.core.hiding.secret import blanked
from proxy.observe.lifecycle import (
    Abandoned,
    CacheChecked,
    Captured,
    CompactionStarted,
    Completed,
    Event,
    Failed,
    FellBack,
    GenerationStarted,
    InputEstimated,
    Judged,
    ModelResolved,
    NullRecorder,
    PicturesDescribed,
    Progress,
    ProjectResolved,
    ProviderSelected,
    Recorder,
    Searched,
    Sequenced,
    ServiceEvent,
    SessionFound,
    Started,
    Timed,
    UpstreamAnswered,
    UpstreamStarted,
    UsageUpdated,
)
from proxy.observe.monitor.snapshot import UNRATED, AllowanceRow, CacheView, Notice, RequestRow, Series, Snapshot
from proxy.observe.monitor.tracked import (
    HOUR,
    NONE,
    STEP_S,
    SessionTable,
    StepCounts,
    TrackedRequest,
    added,
    agent_of,
    described,
    judged,
    live_of,
    one_line,
    raised,
    rated,
    searched,
    session_row,
    short,
    step_at,
)

#: Finished requests that are shown, and known requests under way; the admission lets far fewer in.
MAX_RECENT, MAX_ACTIVE = 200, 10_000
MAX_NOTICES = 50
#: Seconds after a snapshot during which the monitor counts as watched.
LOOKING_S = 60.0

#: endpoint of a route -> its name here
_SHOWN = {"generation": "images", "edit": "images"}
#: Shown in place of the model, for services without a choice of models.
_ONLY_MODEL = {"transcriptions": "transcribe"}


class MonitorState:
    """A `Recorder`. Forwards every event to `beside`, the embedding program's recorder.

    clock       seconds that only go forward; `wall`: epoch seconds
    allowances  returns the providers' allowances, called when a snapshot is made
    program     its name in snapshots; `command`: how the user starts it; `url`: where it listens, set by the listener,
                as is `sandbox`: the upstreams are simulated
    remembers   whether rows are kept by a `finished` listener that wants their projects
    changes     grows with every change of a snapshot, except data of active requests
    """

    def __init__(
        self,
        *,
        beside: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        allowances: Callable[[], Sequence[AllowanceRow]] = tuple,
        program: str = "",
        command: str = "",
    ) -> None:
        self._beside = beside or NullRecorder()
        self._tell_beside = None if beside is None else beside.record
        self._clock, self._wall = clock, wall
        self.allowances = allowances
        self.program, self.command, self.url = program, command, ""
        self.sandbox = self.remembers = False
        self.changes = 0
        self._mono_started, self._started_at = clock(), wall()
        self._known: dict[str, TrackedRequest] = {}
        self._active: dict[str, TrackedRequest] = {}
        self._recent: deque[TrackedRequest] = deque()
        self._sessions = SessionTable()
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._tokens, self._requests, self._failures = StepCounts(HOUR), StepCounts(HOUR), StepCounts(HOUR)
        self._listeners: list[Callable[[RequestRow], None]] = []
        self._service_listeners: list[Callable[[ServiceEvent], None]] = []
        self._watching = 0
        self._looked_at = -LOOKING_S

    # -- events

    def record(self, request_id: str, event: Event) -> None:
        request = self._known.get(request_id)
        if type(event) is Progress:  # most events by far
            if request is not None:
                self._progressed(request, event)
        elif request is not None:
            request.row = request.owner.row = None
            _EFFECTS[type(event)](self, request, event)
            self.changes += 1
        elif isinstance(event, Started | Failed):
            self._unknown(request_id, event)
            self.changes += 1
        if self._tell_beside is not None:
            self._tell_beside(request_id, event)

    def happened(self, event: ServiceEvent) -> None:
        for listener in self._service_listeners:
            listener(event)
        self._beside.happened(event)

    def notice(self, level: str, message: str, *, provider: str | None = None, session: str | None = None) -> None:
        """Shows a message that is no request. `level` is info, warn or error."""
        self._notices.appendleft(Notice(self._wall(), level, one_line(blanked(message)), provider, session))
        self.changes += 1

    def finished(self, listener: Callable[[RequestRow], None]) -> None:
        """Calls `listener` with every request that ends from now on, once, on the event loop."""
        self._listeners.append(listener)

    def happening(self, listener: Callable[[ServiceEvent], None]) -> None:
        """Calls `listener` with every event of no request from now on; it must return at once and never raise."""
        self._service_listeners.append(listener)

    # -- watching

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Counts as watched while inside."""
        self._watching += 1
        try:
            yield
        finally:
            self._watching -= 1

    @property
    def wants_project(self) -> bool:
        looking = self._watching > 0 or self._clock() - self._looked_at < LOOKING_S
        return looking or self.remembers or self._beside.wants_project

    def known_project(self, request_id: str) -> str | None:
        """The project of the request's session, if that was found lately."""
        request = self._known.get(request_id)
        return None if request is None or request.session is None else request.owner.known_project(self._clock())

    def mark(self) -> object:
        """A value that changes when a snapshot would show something else."""
        now = self._clock()
        if self._active:
            return now
        step = step_at(now)
        moves = self._tokens.until(step) or self._requests.until(step)
        return self.changes, tuple(self.allowances()), step if moves else None

    def snapshot(self) -> Snapshot:
        now, wall = self._clock(), self._wall()
        self._looked_at = now
        step = step_at(now)
        live = live_of(self._active.values())
        return Snapshot(
            started_at=self._started_at,
            snapshot_at=wall,
            uptime=now - self._mono_started,
            sessions=tuple(session_row(session, live, wall, step) for session in self._sessions.known()),
            active=tuple(request.as_row(now) for request in self._active.values()),
            recent=tuple(request.as_row(now) for request in self._recent),
            allowances=tuple(self.allowances()),
            notices=tuple(self._notices),
            series=Series(
                step=STEP_S,
                end=wall + (step + 1) * STEP_S - now,
                tokens=self._tokens.whole(step),
                requests=self._requests.whole(step),
                failures=self._failures.whole(step),
            ),
            program=self.program,
            command=self.command,
            url=self.url,
            sandbox=self.sandbox,
        )

    def active(self) -> Counter[str]:
        """provider -> number of requests under way; "" for those that have none yet."""
        return Counter(request.provider or "" for request in self._active.values())

    # -- the life of a request

    def _unknown(self, request_id: str, event: Started | Failed) -> None:
        """Starts tracking a request. A failure for an unknown id is shown too."""
        if len(self._active) >= MAX_ACTIVE:
            return
        start = event if isinstance(event, Started) else Started("", None)
        now, wall = self._clock(), self._wall()
        session = self._sessions.of(start.session, wall)
        request = TrackedRequest(
            id=request_id,
            endpoint=_SHOWN.get(start.endpoint, start.endpoint),
            status="started",
            started_at=wall,
            mono_started=now,
            owner=session,
            talk=agent_of(session, start.agent, start.parent, wall),
            session=session.id,
            agent=start.agent and short(start.agent),
            parent=start.parent and short(start.parent),
            client_id=start.client_id and short(start.client_id),
            caller=start.caller,
        )
        self._known[request_id] = self._active[request_id] = request
        self._join(request)
        if isinstance(event, Failed):
            self._failed(request, event)

    def _join(self, request: TrackedRequest) -> None:
        self._sessions.busy(request.owner)
        for totals in (request.owner, request.talk):
            totals.count(request)
            totals.last_seen = request.started_at
            totals.status = request.status

    def _leave(self, request: TrackedRequest) -> None:
        """Takes a request out of its session: it belongs to another."""
        for totals in (request.owner, request.talk):
            totals.count(request, -1)
        self._sessions.left(request.owner)

    def _end(self, request: TrackedRequest, status: str, http: int | None, error: str) -> bool:
        """Ends a request, once; whether this is its first end."""
        if request.over:
            return False
        now, wall = self._clock(), self._wall()
        request.status, request.http, request.error = status, http, one_line(error)
        request.over, request.mono_ended, request.finished_at = True, now, wall
        del self._active[request.id]
        self._recent.appendleft(request)
        request.counted, failed = rated(request.measured), request.failed
        for totals in (request.owner, request.talk):
            totals.active -= 1
            totals.failures += failed
            totals.last_seen = wall
            totals.status = status
            if request.counted is not NONE:
                totals.throughput = added(totals.throughput, request.counted)
        self._sessions.left(request.owner)
        step = step_at(now)
        self._requests.add(step, 1)
        if failed:
            self._failures.add(step, 1)
        if len(self._recent) > MAX_RECENT:
            del self._known[self._recent.pop().id]
        self._tell_finished(request.as_row(now) if self._listeners else None)
        return True

    def _tell_finished(self, row: RequestRow | None) -> None:
        if row is None:
            return
        for listener in self._listeners:
            try:
                listener(row)
            except Exception as error:  # a listener's fault must not reach the request
                self.notice("error", f"a listener of finished requests failed: {type(error).__name__}")

    # -- effects of events on a known request

    def _progressed(self, request: TrackedRequest, event: Progress) -> None:
        request.bytes += event.bytes
        request.chunks += event.chunks
        if request.over:
            request.row = request.owner.row = None
            self._recount(request)
            self.changes += 1
            return
        request.status = "streaming"
        now = self._clock()
        if request.mono_first is None:
            request.mono_first = now
        request.mono_newest = now

    def _recount(self, request: TrackedRequest) -> None:
        """Corrects the throughput of its totals after a late report."""
        before, request.counted = request.counted, rated(request.measured)
        for totals in (request.owner, request.talk):
            totals.throughput = added(added(totals.throughput, before, -1), request.counted)

    def _session_found(self, request: TrackedRequest, event: SessionFound) -> None:
        if request.session is not None or request.over:
            return
        self._leave(request)
        wall = self._wall()
        request.owner = self._sessions.of(event.session, wall)
        request.session = request.owner.id
        request.talk = agent_of(request.owner, request.agent, request.parent, wall)
        self._join(request)
        request.name_owners()
        request.owner.project = request.project or request.owner.project

    def _project(self, request: TrackedRequest, event: ProjectResolved) -> None:
        request.project = request.owner.project = short(event.project)
        request.owner.project_at = self._clock()

    def _number(self, request: TrackedRequest, event: Sequenced) -> None:
        request.number = event.number

    def _selected(self, request: TrackedRequest, event: ProviderSelected) -> None:
        request.provider, request.effort = event.provider, event.effort
        request.requested = short(event.model) or _ONLY_MODEL.get(request.endpoint)
        self._moved(request, "selected")
        request.name_owners()

    def _resolved(self, request: TrackedRequest, event: ModelResolved) -> None:
        request.requested, request.resolved = short(event.requested), short(event.resolved)
        request.name_owners()

    def _compacting(self, request: TrackedRequest, _event: CompactionStarted) -> None:
        self._moved(request, "compacting")

    def _asked(self, request: TrackedRequest, event: UpstreamStarted) -> None:
        request.attempts = max(request.attempts, event.attempt)
        self._moved(request, "upstream")

    def _moved(self, request: TrackedRequest, status: str) -> None:
        if not request.over:
            request.status = status

    def _generating(self, request: TrackedRequest, _event: GenerationStarted) -> None:
        if request.generating or request.over:
            return
        request.generating = True
        request.mono_first = request.mono_newest = self._clock()
        request.baseline = request.output_tokens or 0

    def _estimated(self, request: TrackedRequest, event: InputEstimated) -> None:
        request.estimate = event.tokens

    def _used(self, request: TrackedRequest, event: UsageUpdated) -> None:
        """Raises the counts of a request, which never go down, and adds the difference to the totals, which outlive the
        request."""
        request.input_tokens, read = raised(request.input_tokens, event.input_tokens)
        request.output_tokens, written = raised(request.output_tokens, event.output_tokens)
        request.cached_tokens, cached = raised(request.cached_tokens, event.cached_tokens)
        request.thinking_tokens, _ = raised(request.thinking_tokens, event.thinking_tokens)
        request.hosted_searches, _ = raised(request.hosted_searches, event.searches)
        for totals in (request.owner, request.talk):
            totals.input_tokens += read
            totals.output_tokens += written
            totals.cached_tokens += cached
        now = request.mono_ended if request.over else self._clock()
        if event.output_tokens is not None and request.mono_first is not None:
            request.mono_newest = now
        if written and request.endpoint not in UNRATED:
            step = step_at(self._clock())
            request.owner.history.add(step, written)
            self._tokens.add(step, written)
        if request.over:
            self._recount(request)

    def _timed(self, request: TrackedRequest, event: Timed) -> None:
        request.timings = event.spans

    def _cache(self, request: TrackedRequest, event: CacheChecked) -> None:
        view = CacheView(event.cached, event.expected, one_line(event.reason))
        request.cache = request.owner.cache = request.talk.cache = view

    def _answered(self, request: TrackedRequest, event: UpstreamAnswered) -> None:
        request.upstream_id = short(event.upstream_id)

    def _captured(self, request: TrackedRequest, event: Captured) -> None:
        request.capture = event.place

    def _fell_back(self, request: TrackedRequest, event: FellBack) -> None:
        request.fallback = f"{event.before}: {event.kind}"

    def _completed(self, request: TrackedRequest, event: Completed) -> None:
        if not request.over:
            request.stop = short(event.stop) or ""
        self._end(request, "completed", event.status, "")

    def _failed(self, request: TrackedRequest, event: Failed) -> None:
        if request.status == "completed":
            self._failed_late(request, event)
        elif not request.over:
            request.kind = event.kind
            self._end(request, "failed", event.status, event.error)

    def _failed_late(self, request: TrackedRequest, event: Failed) -> None:
        """Marks a completed request as failed."""
        before = request.failed
        request.status, request.error, request.kind = "failed", one_line(event.error), event.kind
        request.http = event.status or request.http
        for totals in (request.owner, request.talk):
            totals.failures += not before
        self._failures.add(step_at(self._clock()), int(not before))

    def _abandoned(self, request: TrackedRequest, event: Abandoned) -> None:
        self._end(request, "abandoned", None, event.error)


_EFFECTS: dict[type[Any], Callable[[MonitorState, TrackedRequest, Any], None]] = {
    Started: lambda _state, _request, _event: None,  # a second one
    SessionFound: MonitorState._session_found,
    ProjectResolved: MonitorState._project,
    Sequenced: MonitorState._number,
    ProviderSelected: MonitorState._selected,
    ModelResolved: MonitorState._resolved,
    CompactionStarted: MonitorState._compacting,
    UpstreamStarted: MonitorState._asked,
    GenerationStarted: MonitorState._generating,
    InputEstimated: MonitorState._estimated,
    UsageUpdated: MonitorState._used,
    Judged: lambda _state, request, event: judged(request, event),
    PicturesDescribed: lambda _state, request, event: described(request, event),
    Searched: lambda _state, request, event: searched(request, event),
    Timed: MonitorState._timed,
    CacheChecked: MonitorState._cache,
    UpstreamAnswered: MonitorState._answered,
    Captured: MonitorState._captured,
    FellBack: MonitorState._fell_back,
    Completed: MonitorState._completed,
    Failed: MonitorState._failed,
    Abandoned: MonitorState._abandoned,
}
