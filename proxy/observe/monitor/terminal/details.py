"""The details of one request or session: a label and a value in a line, errors first."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.observe.monitor.sheet import REQUEST, SESSION, Fact, Row, facts
from proxy.observe.monitor.snapshot import AgentRow, RequestRow, SessionRow, Snapshot
from proxy.observe.monitor.terminal.cells import Line, Span, clean, cut, fit, wrap
from proxy.observe.monitor.terminal.columns import STATUS_ROLES, code_role
from proxy.observe.monitor.terminal.rows import agents_of, is_tree
from proxy.observe.monitor.terminal.view import Detail
from proxy.observe.monitor.words import NONE, clock, model, session_name, share, tokens, took

LABEL_WIDTH = 16
#: Requests shown in the detail of a session.
MAX_REQUESTS = 20

#: Label, value, style. A long value goes on in further lines, but for those of a list: a line each, the first one with
#: the label.
Painted = tuple[str, str, str]
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


def _fact_lines(fact: Painted, width: int) -> Iterator[Line]:
    label, value, role = fact
    room = width - LABEL_WIDTH - 2
    if label in _LISTS or not label:
        value = cut(clean(value), max(1, room))
    if room < 8:  # too narrow for two columns
        yield (Span(f" {fit(label, max(0, width - 1))}", "label"),) if label else ()
        yield from ((Span(f" {part}", role),) for part in wrap(value, max(1, width - 1)))
        return
    for index, part in enumerate(wrap(value, room)):
        yield (Span(f"  {fit(label if index == 0 else '', LABEL_WIDTH)}", "label"), Span(part, role))


def _painted(fact: Fact, text: str, row: Row) -> Painted:
    if fact.role == "status":
        return fact.title, text, STATUS_ROLES.get(row.status, "")
    if fact.role == "code" and isinstance(row, RequestRow):
        return fact.title, text, code_role(row)
    return fact.title, text, "" if text == "0" else fact.role


def _gone(kind: str, id: str) -> tuple[Painted, ...]:
    return (kind, id, ""), ("status", f"no longer kept: newer {kind}s took its place", "dim")


def _request_facts(id: str | None, snapshot: Snapshot, now: float) -> Iterator[Painted]:
    row = request_of(id, snapshot)
    if row is None:
        yield from _gone("request", id or NONE)
        return
    yield from (_painted(fact, text, row) for fact, text in facts(REQUEST, row, now))


def _session_facts(id: str | None, snapshot: Snapshot, now: float) -> Iterator[Painted]:
    """The facts of a session, its agents and its last requests."""
    row = session_of(id, snapshot)
    if row is None:
        yield from _gone("session", id or session_name(None))
        return
    requests = [one for one in (*snapshot.active, *snapshot.recent) if one.session == id]
    known = [_painted(fact, text, row) for fact, text in facts(SESSION, row, now)]
    wrong = (one for one in requests if one.bad and one.error)
    errors = [("last error", f"{clock(one.finished_at)} {one.error}", "bad") for one in wrong][:1]
    yield from known[:1]
    yield from errors
    yield from known[1:]
    yield from _agent_facts(row)
    yield from _request_list(requests)


def _agent_facts(row: SessionRow) -> Iterator[Painted]:
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


def _request_list(requests: list[RequestRow]) -> Iterator[Painted]:
    for index, row in enumerate(requests[:MAX_REQUESTS]):
        code = NONE if row.http is None else str(row.http)
        spent = f"{tokens(row.input_tokens)} in, {tokens(row.output_tokens)} out"
        words = (
            clock(row.started_at),
            row.status,
            code,
            took(row.elapsed),
            spent,
            model(row.requested, row.resolved),
        )
        yield ("requests" if index == 0 else "", "  ".join(words), code_role(row) if row.bad else "")
