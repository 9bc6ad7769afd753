"""The state of the monitor at one moment, as plain data: for the terminal, the page, and a dashboard attached to a
running proxy.

Times are epoch seconds, lengths of time are seconds, unless a name says otherwise. Nothing here holds a prompt.
A row is never changed once it is part of a snapshot; the store extends rows with what it counts (`tracked.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.observe.from_json import made

#: Version of the JSON form. A reader refuses another one, and fills missing members with the defaults below.
VERSION = 1

#: Statuses of a request that is under way, and of one that is over.
UNDER_WAY = ("started", "selected", "compacting", "upstream", "streaming")
OVER = ("completed", "failed", "abandoned")


#: Endpoints whose answer comes at once, at its end: a rate of it would say nothing.
UNRATED = frozenset({"images", "transcriptions"})

#: An answer that came within less, in seconds, came at once as well, whoever served it.
SHORTEST_S = 0.05


@dataclass(frozen=True, slots=True)
class Throughput:
    """Output and its duration: of a request, or of all requests of a session that have both.

    tokens   output tokens since the model began
    seconds  from its first output to its newest
    """

    tokens: int = 0
    seconds: float = 0.0
    bytes: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class CacheView:
    """The use of the upstream's cache. Shares are 0 to 1 of the input; None: not known. `reason`: why less than
    expected, in words."""

    cached: float | None = None
    expected: float | None = None
    reason: str = ""


@dataclass(slots=True)
class RequestRow:
    """A request, under way or over.

    number     within its session, from 1
    requested  the client's name of the model; `resolved`: the upstream's
    status     one of UNDER_WAY or OVER; `http`: the status that was answered
    elapsed    until it was over, or until now
    timings    span -> milliseconds, as in `observe.lifecycle.SPANS`
    estimate   our own count of the input, None without one
    input_tokens  our own estimate until the upstream reports them
    thinking_tokens  of the output, None if the upstream does not report them
    stop       why the model stopped, in the word of the Messages API; "" if unknown
    judge      outcomes of auto mode's judge: outcome -> calls; `judge_input_tokens`, `judge_output_tokens`: its cost
    pictures   pictures that another model described: ok, or the reason why not -> number; `describer`: the model;
               `vision_input_tokens`, `vision_output_tokens`: what it cost
    searches   web searches for the model: the account that made them, with the reason if they failed -> number;
               `hosted_searches`: those that its own service reports
    kind       the kind of the error, as in `errors.KINDS`; "" without one
    fallback   the model that could not serve, and why: then another one served; "" otherwise
    caller     the owner of its key, where callers have keys of their own
    capture    where the captured request is kept, "" where none is
    """

    id: str
    endpoint: str
    status: str
    started_at: float
    elapsed: float = 0.0
    finished_at: float | None = None
    session: str | None = None
    agent: str | None = None
    parent: str | None = None
    number: int | None = None
    project: str | None = None
    provider: str | None = None
    requested: str | None = None
    resolved: str | None = None
    effort: str | None = None
    http: int | None = None
    error: str = ""
    kind: str = ""
    attempts: int = 0
    estimate: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    thinking_tokens: int | None = None
    stop: str = ""
    throughput: Throughput = field(default_factory=Throughput)
    timings: Mapping[str, float] = field(default_factory=dict)
    cache: CacheView = field(default_factory=CacheView)
    judge: Mapping[str, int] = field(default_factory=dict)
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0
    pictures: Mapping[str, int] = field(default_factory=dict)
    describer: str = ""
    vision_input_tokens: int = 0
    vision_output_tokens: int = 0
    searches: Mapping[str, int] = field(default_factory=dict)
    hosted_searches: int | None = None
    client_id: str | None = None
    caller: str | None = None
    fallback: str = ""
    upstream_id: str | None = None
    capture: str = ""

    @property
    def bad(self) -> bool:
        """Whether it is listed among the events."""
        return self.status in ("failed", "abandoned") or bool(self.error) or (self.http or 0) >= 400


@dataclass(slots=True)
class TotalsRow:
    """The common fields of sessions and agents. Counts are of the whole life; provider, model, effort and status are
    those of the last request. `cache`: of the newest request that reported it."""

    id: str | None
    last_seen: float
    active: int = 0
    requests: int = 0
    failures: int = 0
    provider: str | None = None
    requested: str | None = None
    resolved: str | None = None
    effort: str | None = None
    status: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    throughput: Throughput = field(default_factory=Throughput)
    cache: CacheView = field(default_factory=CacheView)


@dataclass(slots=True)
class AgentRow(TotalsRow):
    """The main conversation of a session (`id` None), or one of its sub-agents."""

    parent: str | None = None


@dataclass(slots=True)
class SessionRow(TotalsRow):
    """A client session; `id` None is the row of requests without one.

    history  output tokens in steps of `Series.step`, the newest last, without leading zeros
    agents   the main conversation first; () while there is no other
    """

    project: str | None = None
    history: tuple[int, ...] = ()
    agents: tuple[AgentRow, ...] = ()


@dataclass(frozen=True, slots=True)
class AllowanceRow:
    """A window of a provider's allowance.

    limit      the limited model or feature, "" for everything
    window     the length in words: `5 hours`, `Weekly`
    used       per cent, may pass 100
    resets_at  the time of its reset, None when unknown
    as_of      the time of the provider's report
    reset      it was reset since: its use is unknown, and `used` is 0
    """

    provider: str
    window: str
    used: float
    as_of: float
    limit: str = ""
    resets_at: float | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the user that is no request: an allowance that runs out, a lost cache. `level` is info, warn or
    error."""

    at: float
    level: str
    message: str
    provider: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Counts over the last hour, in steps of `step` seconds; the newest is last and not over yet. `end` is its end.
    Requests and failures count where they ended."""

    step: float = 10.0
    end: float = 0.0
    tokens: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()
    failures: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows. `active` oldest first, `recent` and `notices` newest first, `sessions` by id. `sandbox`: the upstreams
    are simulated."""

    started_at: float
    snapshot_at: float
    uptime: float
    sessions: tuple[SessionRow, ...] = ()
    active: tuple[RequestRow, ...] = ()
    recent: tuple[RequestRow, ...] = ()
    allowances: tuple[AllowanceRow, ...] = ()
    notices: tuple[Notice, ...] = ()
    series: Series = field(default_factory=Series)
    program: str = ""
    command: str = ""
    url: str = ""
    sandbox: bool = False


def of_json(value: Any) -> Snapshot:
    """Reads another proxy's snapshot: missing members have their defaults, unknown ones are left out. Raises ValueError
    for what is no snapshot, and for another version."""
    if not isinstance(value, Mapping) or not isinstance(value.get("snapshot"), Mapping):
        raise ValueError("that is no snapshot of a monitor")
    if value.get("version") != VERSION:
        raise ValueError(
            f"that proxy reports version {value.get('version')!r} of the monitor, this program reads {VERSION}"
        )
    return made(Snapshot, value["snapshot"])
