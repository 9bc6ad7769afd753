"""A request that is over, as the history keeps it."""

from __future__ import annotations

from typing import NamedTuple

from proxy.observe.monitor.snapshot import UNRATED, RequestRow


class PastRequest(NamedTuple):
    """Texts are those of `RequestRow`. `ended`: milliseconds since 1970.

    request   its id, as in the log
    first_ms  from its arrival to the first token, None without one; `total_ms`: to its end
    account   the key of the account that answered: p1, or p1/work
    asked     the client's name of the model; `served`: the upstream's
    aside     input and output tokens of other models that it needed: judge, pictures
    outcome   completed, failed, abandoned
    retries   attempts after the first
    fallback  the model that could not serve, and why
    expected  the share of the input that the upstream's cache could have had, in thousandths; `lost`: why it was less
    """

    request: str
    ended: int
    first_ms: int | None
    total_ms: int
    endpoint: str
    account: str | None
    asked: str | None
    served: str | None
    project: str | None
    session: str | None
    agent: str | None
    caller: str | None
    input: int | None
    cached: int | None
    output: int | None
    thinking: int | None
    aside: int
    searches: int
    outcome: str
    http: int | None
    kind: str | None
    retries: int
    fallback: str | None
    stop: str | None
    expected: int | None
    lost: str | None


COLUMNS = PastRequest._fields
#: Columns whose texts are in the table of names.
NAMED = frozenset(
    {"endpoint", "account", "asked", "served", "project", "session", "agent", "caller"}
    | {"outcome", "kind", "fallback", "stop", "lost"}
)


def text_of(column: str) -> str:
    """A column with a text, as SQL of a query that reads the table of requests."""
    return f"(SELECT text FROM names WHERE names.id = requests.{column})"


#: All columns, as SQL of such a query.
AS_WRITTEN = ", ".join(text_of(name) if name in NAMED else name for name in COLUMNS)
#: The endpoint of requests that count tokens, which no model answers.
COUNTING = "count_tokens"


def past_request(row: RequestRow) -> PastRequest:
    """The request of a row of the monitor that is over."""
    known, timings = row.cache, row.timings
    rated = "first_token" in timings and row.endpoint not in UNRATED
    first_ms = round(sum(timings.values())) if rated else None
    return PastRequest(
        request=row.id,
        ended=round(1000 * (row.finished_at or row.started_at)),
        first_ms=first_ms,
        total_ms=max(round(1000 * row.elapsed), first_ms or 0),  # their clocks begin at slightly different moments
        endpoint=row.endpoint,
        account=row.provider,
        asked=row.requested,
        served=row.resolved or row.requested,
        project=row.project,
        session=row.session,
        agent=row.agent,
        caller=row.caller,
        input=row.input_tokens,
        cached=row.cached_tokens,
        output=row.output_tokens,
        thinking=row.thinking_tokens,
        aside=row.judge_input_tokens + row.judge_output_tokens + row.vision_input_tokens + row.vision_output_tokens,
        searches=max(sum(row.searches.values()), row.hosted_searches or 0),  # a usage has ours, too
        outcome=row.status,
        http=row.http,
        kind=row.kind or None,
        retries=max(0, row.attempts - 1),
        fallback=row.fallback or None,
        stop=row.stop or None,
        expected=None if known.expected is None else round(1000 * known.expected),
        lost=known.reason or None,
    )
