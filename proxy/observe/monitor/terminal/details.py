"""All that is known of one request, or of one session: a label and a value in a line, what went wrong first."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.observe.monitor.snapshot import AgentRow, CacheView, RequestRow, SessionRow, Snapshot
from proxy.observe.monitor.terminal.cells import Line, Run, clean, cut, fit, wrap
from proxy.observe.monitor.terminal.columns import STATUS_ROLES, cached_share, code_role
from proxy.observe.monitor.terminal.rows import agents_of, is_tree
from proxy.observe.monitor.terminal.view import Detail
from proxy.observe.monitor.terminal.words import (
    NONE,
    clock,
    duration,
    listed,
    model,
    moment,
    rate,
    session_name,
    share,
    tokens,
)

LABEL_WIDTH = 16
#: Of a session's requests so many are shown in its detail.
MAX_REQUESTS = 20

#: Label, value, style. A long value goes on in further lines, but for those of a list: a line each, the first one with
#: the label.
Fact = tuple[str, str, str]
_LISTS = frozenset({"agents", "requests"})


def title_of(detail: Detail) -> str:
    return f"{detail.kind.capitalize()} detail"


def detail_lines(detail: Detail, snapshot: Snapshot, width: int, now: float) -> list[Line]:
    """All lines, each at most `width` wide."""
    if detail.kind == "session":
        facts = _session_facts(detail.id, snapshot, now)
    else:
        facts = _request_facts(detail.id, snapshot, now)
    return [line for fact in facts for line in _fact_lines(fact, width)]


def request_of(id: str | None, snapshot: Snapshot) -> RequestRow | None:
    return next((row for rows in (snapshot.active, snapshot.recent) for row in rows if row.id == id), None)


def session_of(id: str | None, snapshot: Snapshot) -> SessionRow | None:
    return next((row for row in snapshot.sessions if row.id == id), None)


def _fact_lines(fact: Fact, width: int) -> Iterator[Line]:
    label, value, role = fact
    room = width - LABEL_WIDTH - 2
    if label in _LISTS or not label:
        value = cut(clean(value), max(1, room))
    if room < 8:  # too narrow for two columns
        yield (Run(f" {fit(label, max(0, width - 1))}", "label"),) if label else ()
        yield from ((Run(f" {part}", role),) for part in wrap(value, max(1, width - 1)))
        return
    for index, part in enumerate(wrap(value, room)):
        yield (Run(f"  {fit(label if index == 0 else '', LABEL_WIDTH)}", "label"), Run(part, role))


# A request.


def _request_facts(id: str | None, snapshot: Snapshot, now: float) -> Iterator[Fact]:
    row = request_of(id, snapshot)
    if row is None:
        yield ("request", id or NONE, "")
        yield ("status", "no longer kept: newer requests took its place", "dim")
        return
    yield ("status", row.status, STATUS_ROLES.get(row.status, ""))
    if row.http is not None:
        yield ("http status", str(row.http), code_role(row))
    if row.error:
        yield ("error", row.error, "bad")
    yield from _whose(row, now)
    yield from _what(row)
    yield from _numbers(row)
    if row.capture:
        yield ("capture", row.capture, "")


def _whose(row: RequestRow, now: float) -> Iterator[Fact]:
    yield ("request", row.id, "")
    yield ("session", row.session or "no-session", "")
    if row.agent:
        yield ("agent", row.agent + (f" of {row.parent}" if row.parent else ""), "")
    if row.number is not None:
        yield ("session seq", str(row.number), "")
    yield ("project", row.project or NONE, "")
    yield ("endpoint", row.endpoint, "")
    yield ("started", moment(row.started_at, now), "")
    if row.finished_at is not None:
        yield ("finished", moment(row.finished_at, now), "")


def _what(row: RequestRow) -> Iterator[Fact]:
    yield ("provider", row.provider or NONE, "")
    yield ("model", model(row.requested, row.resolved), "")
    yield ("effort", row.effort or NONE, "")
    if row.attempts > 1:
        yield ("attempts", str(row.attempts), "wait")
    if row.caller:
        yield ("caller", row.caller, "")
    if row.client_id:
        yield ("client id", row.client_id, "")
    if row.upstream_id:
        yield ("upstream id", row.upstream_id, "")


def _numbers(row: RequestRow) -> Iterator[Fact]:
    over = row.finished_at is not None
    yield ("latency" if over else "elapsed", f"{row.elapsed:.2f} s" if row.elapsed < 60 else duration(row.elapsed), "")
    if row.timings:
        yield ("timing", ", ".join(f"{name.replace('_', ' ')} {ms:.0f} ms" for name, ms in row.timings.items()), "")
    yield ("rate", rate(row.throughput, row.endpoint), "")
    yield ("tokens", f"{_exact(row.input_tokens)} in, {_exact(row.output_tokens)} out", "")
    yield from _cache_facts(row.cache, cached_share(row), row.cached_tokens)
    yield ("bytes", f"{row.throughput.bytes:,}", "")
    yield ("chunks", f"{row.throughput.chunks:,}", "")
    if row.judge:
        yield ("auto mode", listed(row.judge), "")


def _exact(count: int | None) -> str:
    return NONE if count is None else f"{count:,}"


def _cache_facts(cache: CacheView, part: float | None, cached_tokens: int | None) -> Iterator[Fact]:
    if part is not None or cached_tokens:
        expected = "" if cache.expected is None else f", {share(cache.expected)} expected"
        yield ("cached", f"{_exact(cached_tokens)} tokens, {share(part)} of the input{expected}", "")
    if cache.reason:
        yield ("cache lost", cache.reason, "compact")


# A session, with its agents and its last requests.


def _session_facts(id: str | None, snapshot: Snapshot, now: float) -> Iterator[Fact]:
    row = session_of(id, snapshot)
    if row is None:
        yield ("session", id or session_name(None), "")
        yield ("status", "no longer kept: newer sessions took its place", "dim")
        return
    requests = [one for one in (*snapshot.active, *snapshot.recent) if one.session == id]
    yield ("last status", row.status or NONE, STATUS_ROLES.get(row.status, ""))
    last_error = next((one for one in requests if one.bad and one.error), None)
    if last_error is not None:
        yield ("last error", f"{clock(last_error.finished_at)} {last_error.error}", "bad")
    yield ("session", row.id or session_name(None), "")
    yield ("project", row.project or NONE, "")
    yield ("last seen", f"{moment(row.last_seen, now)}, {duration(now - row.last_seen)} ago", "")
    yield from _counted(row)
    yield ("provider", row.provider or NONE, "")
    yield ("model", model(row.requested, row.resolved), "")
    yield ("effort", row.effort or NONE, "")
    yield from _spent(row)
    yield from _agent_facts(row)
    yield from _request_list(requests)


def _counted(row: SessionRow) -> Iterator[Fact]:
    yield ("active requests", str(row.active), "live" if row.active else "")
    yield ("total requests", str(row.requests), "")
    yield ("failures", str(row.failures), "bad" if row.failures else "")


def _spent(row: SessionRow) -> Iterator[Fact]:
    total = row.input_tokens + row.output_tokens
    yield ("tokens", f"{row.input_tokens:,} in, {row.output_tokens:,} out, {total:,} in all", "")
    part = row.cached_tokens / row.input_tokens if row.input_tokens and row.cached_tokens else row.cache.cached
    yield from _cache_facts(row.cache, part, row.cached_tokens)
    yield ("rate", rate(row.throughput), "")


def _agent_facts(row: SessionRow) -> Iterator[Fact]:
    if not is_tree(row):
        return
    for index, (agent, sign) in enumerate(agents_of(row)):
        yield ("agents" if index == 0 else "", sign + _agent_words(agent), STATUS_ROLES.get(agent.status, ""))


def _agent_words(agent: AgentRow) -> str:
    name = agent.id or "main"
    counts = f"{agent.active}/{agent.requests}/{agent.failures}"
    spent = f"{tokens(agent.input_tokens)} in, {tokens(agent.output_tokens)} out"
    words = [name, agent.status, counts, model(agent.requested, agent.resolved), spent]
    part = agent.cached_tokens / agent.input_tokens if agent.input_tokens and agent.cached_tokens else None
    return "  ".join(word for word in (*words, f"{share(part)} cached" if part is not None else "") if word)


def _request_list(requests: list[RequestRow]) -> Iterator[Fact]:
    for index, row in enumerate(requests[:MAX_REQUESTS]):
        code = NONE if row.http is None else str(row.http)
        spent = f"{tokens(row.input_tokens)} in, {tokens(row.output_tokens)} out"
        words = (
            clock(row.started_at),
            row.status,
            code,
            duration(row.elapsed),
            spent,
            model(row.requested, row.resolved),
        )
        yield ("requests" if index == 0 else "", "  ".join(words), code_role(row) if row.bad else "")
