"""The shown facts of a request, a session and an agent, as data: the terminal (`terminal/details.py`) and the page
(`page/details.js`) paint facts that they do not understand. The page is given the tables once, as the module
`sheet.js`; the values are those of the rows that it has anyway, so that a snapshot costs nothing more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from proxy.observe.monitor.snapshot import AgentRow, RequestRow, SessionRow
from proxy.observe.monitor.words import (
    NO_SESSION,
    NONE,
    age,
    data,
    listed,
    milliseconds,
    model,
    moment,
    rate,
    share,
    took,
    whole,
)

Row = RequestRow | SessionRow | AgentRow


class Fact(NamedTuple):
    """text  parts with ` | ` in between, each with the path of a value, and the kind of it. A part without a value is
             left out, and a fact without a part
    role  how the terminal colours it: `status` and `code` depend on the row, others show unless the value is 0
    page  `copy`: the page has a button for it; `drawn`: the page shows it in another way
    """

    title: str
    text: str
    role: str = ""
    page: Literal["", "copy", "drawn"] = ""


REQUEST = (
    Fact("status", "{status}", "status", "drawn"),
    Fact("HTTP status", "{http}", "code"),
    Fact("error", "{error}", "bad", "drawn"),
    Fact("request", "{id}", page="copy"),
    Fact("session", "{session:session}", page="copy"),
    Fact("agent", "{agent}"),
    Fact("agent above", "{parent}"),
    Fact("session number", "{number}"),
    Fact("project", "{project}"),
    Fact("endpoint", "{endpoint}"),
    Fact("started", "{started_at:moment}"),
    Fact("finished", "{finished_at:moment}"),
    Fact("provider", "{provider}"),
    Fact("model", "{:model}"),
    Fact("effort", "{effort}"),
    Fact("in place of", "{fallback}", "wait"),
    Fact("attempts", "{attempts:more}", "wait"),
    Fact("caller", "{caller}"),
    Fact("client id", "{client_id}", page="copy"),
    Fact("upstream id", "{upstream_id}", page="copy"),
    Fact("elapsed", "{elapsed:took}"),
    Fact("timing", "{timings:spans}", page="drawn"),
    Fact("rate", "{throughput:rate}"),
    Fact("tokens", "{input_tokens:whole} in | {output_tokens:whole} out"),
    Fact("cached", "{cached_tokens:some} tokens | {:newest} of the input | {cache.expected:share} expected"),
    Fact("cache lost", "{cache.reason}", "compact", "drawn"),
    Fact("received", "{throughput.bytes:data} | {throughput.chunks:some} events"),
    Fact("auto mode", "{judge:listed}"),
    Fact("pictures", "{describer} | {pictures:listed}"),
    Fact("web search", "{searches:listed}"),
    Fact("capture", "{capture}", page="copy"),
)

_TOTALS = (
    Fact("last seen", "{last_seen:moment} | {last_seen:age}"),
    Fact("active requests", "{active:whole}", "live"),
    Fact("total requests", "{requests:whole}"),
    Fact("failures", "{failures:whole}", "bad"),
    Fact("provider", "{provider}"),
    Fact("model", "{:model}"),
    Fact("effort", "{effort}"),
    Fact("tokens", "{input_tokens:whole} in | {output_tokens:whole} out | {:sum} in all"),
    Fact("cached", "{cached_tokens:some} tokens | {:life} of the input | {cache.expected:share} expected"),
    Fact("cache lost", "{cache.reason}", "compact", "drawn"),
    Fact("rate", "{throughput:rate}"),
)
_STATUS = Fact("last status", "{status}", "status", "drawn")

SESSION = (_STATUS, Fact("session", "{id:session}", page="copy"), Fact("project", "{project}"), *_TOTALS)
AGENT = (_STATUS, Fact("agent", "{id}", page="copy"), Fact("agent above", "{parent}"), *_TOTALS)

#: Members that a filter searches, in rows, in events, and in the agents of a session.
SOUGHT = (
    *("id", "session", "agent", "project", "provider", "requested", "resolved", "effort", "status", "endpoint"),
    *("http", "error", "cache.reason", "code", "level", "message"),
)


def newest_share(row: Row) -> float | None:
    """The cached share of the input: the one measured last, else that of all input."""
    return row.cache.cached if row.cache.cached is not None else _ratio(row)


def life_share(row: Row) -> float | None:
    """The cached share of all input, else the share that was measured last."""
    ratio = _ratio(row)
    return row.cache.cached if ratio is None else ratio


def _ratio(row: Row) -> float | None:
    return row.cached_tokens / row.input_tokens if row.cached_tokens and row.input_tokens else None


#: Kind -> the text of a value at a time; "" or `NONE` where there is none.
_KINDS: Mapping[str, Callable[[Any, float], str]] = {
    "": lambda value, _now: "" if value is None else str(value),
    "session": lambda value, _now: value or NO_SESSION,
    "whole": lambda value, _now: whole(value),
    "some": lambda value, _now: whole(value) if value else "",
    "more": lambda value, _now: whole(value) if value > 1 else "",
    "data": lambda value, _now: data(value) if value else "",
    "took": lambda value, _now: took(value),
    "moment": moment,
    "age": lambda value, now: age(now - value),
    "share": lambda value, _now: share(value),
    "rate": lambda value, _now: rate(value),
    "listed": lambda value, _now: listed(value),
    "spans": lambda value, _now: listed({name.replace("_", " "): milliseconds(ms) for name, ms in value.items()}),
    "model": lambda row, _now: model(row.requested, row.resolved),
    "newest": lambda row, _now: share(newest_share(row)),
    "life": lambda row, _now: share(life_share(row)),
    "sum": lambda row, _now: whole(row.input_tokens + row.output_tokens),
}
_PART = re.compile(r"(.*)\{([\w.]*):?(\w*)\}(.*)")


def facts(table: tuple[Fact, ...], row: Row, now: float) -> Iterator[tuple[Fact, str]]:
    """The facts that there are, with their texts."""
    for fact in table:
        parts = (_part(part, row, now) for part in fact.text.split(" | "))
        if text := ", ".join(part for part in parts if part):
            yield fact, text


def _part(part: str, row: Row, now: float) -> str:
    before, path, kind, after = _PART.findall(part)[0]
    text = _KINDS[kind](attrgetter(path)(row) if path else row, now)
    return f"{before}{text}{after}" if text not in ("", NONE) else ""


def as_module() -> str:
    """The tables for the page as a script, without facts that it draws itself."""
    tables = {"request": REQUEST, "session": SESSION, "agent": AGENT}
    shown = {name: [each._asdict() for each in table if each.page != "drawn"] for name, table in tables.items()}
    return f"export const SHEET = {json.dumps(shown | {'sought': SOUGHT})};\n"
