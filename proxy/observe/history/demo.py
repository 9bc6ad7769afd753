"""Forty days of simulated requests, so that the history can be seen without an account. They follow from the moment
alone: the same moment always gives the same ones. The clients and the allowances are those of the monitor's demo, and
the newest samples are what that one shows now.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from proxy.observe import lifecycle
from proxy.observe.history.allowance_samples import Sample
from proxy.observe.history.past_request import COUNTING, PastRequest
from proxy.observe.history.schema import Names, connect, transaction
from proxy.observe.history.writer import write_requests, write_samples
from proxy.observe.monitor.demo import tables

DAYS = 40
#: A provider was overloaded on a working day about as many days ago.
BAD_DAY, BAD_PROVIDER = 9, "p2"
#: Seconds before now in which everybody works, whatever the time of day: the monitor's demo does so, too.
BUSY_S = 2 * 3600
#: Client of the monitor's demo -> the turns of a conversation.
_TURNS = {
    "shop": 34,
    "search": 12,
    "review": 14,
    "dashboard": 24,
    "mobile": 18,
    "billing": 20,
    "layout": 16,
    "codex": 26,
    "chat": 8,
    "nobody": 6,
    "pictures": 2,
    "unknown": 1,
}
#: Those that work at the weekend.
_WEEKEND = ("shop", "mobile", "codex")
#: Callers besides those of the monitor's demo.
_CALLERS = {"dashboard": "ben", "billing": "ben", "chat": "clara"}
#: Account -> usual milliseconds to the first token.
_FIRST_MS = {"p1": 900, "p2": 1500, "p3": 1100, "p4": 1900, "p5": 2600}
#: Endpoints whose answer has no first token.
_WHOLE = frozenset({COUNTING, "images"})
#: Days of a window, by its name.
_LENGTHS = {"Weekly": 7, "Monthly": 30}
#: Seconds between two samples of a window.
_SAMPLE_S = 900


@dataclass(frozen=True, slots=True)
class _Client:
    """A program that asks; the fields are those of `PastRequest`."""

    endpoint: str
    account: str | None
    asked: str | None
    served: str | None
    project: str | None
    session: str | None
    agent: str | None
    caller: str | None


@dataclass(frozen=True, slots=True)
class _Fate:
    """How a request ended."""

    outcome: str = "completed"
    http: int | None = 200
    kind: str | None = None
    retries: int = 0
    fallback: str | None = None


#: Of so many requests the one with this number ends so; the first row that fits.
_FATES = (
    (53, 7, _Fate("failed", 529, "overloaded", 2)),
    (97, 11, _Fate("failed", 429, "rate_limit")),
    (89, 5, _Fate("abandoned", None)),
    (71, 3, _Fate(retries=1)),
    (1, 0, _Fate()),
)
#: As `_FATES`, of the provider on its bad day.
_BAD_FATES = (
    (5, 0, _Fate(retries=2, fallback="kimi-for-coding: overloaded")),
    (2, 0, _Fate("failed", 529, "overloaded", 3)),
    (1, 0, _Fate(retries=1)),
)


def write_demo(path: Path, now: float) -> None:
    """Writes the requests and samples before `now` (seconds since 1970) into a new file. Takes about 0.3 s."""
    past = requests(now)
    with closing(connect(path)) as db, transaction(db):
        names = Names(db)
        write_requests(db, past, names)
        write_samples(db, samples(past, now), names)


# Requests.


def requests(now: float) -> list[PastRequest]:
    """The requests of the days until now, in the order of their ends."""
    clients = {name: _client(name, *events) for name, events in tables()["clients"].items()}
    today = datetime.fromtimestamp(now).date()
    found: list[PastRequest] = []
    for ago in range(DAYS):
        day = today - timedelta(days=ago)
        found += _day(clients, day, bad=day == _bad_day(today))
    for place, (name, client) in enumerate(clients.items()):
        found += _conversation(client, _TURNS[name], now - BUSY_S + 480 * place, place, today, False)
    until = 1000 * now
    return sorted((one for one in found if one.ended <= until), key=lambda one: one.ended)


def _client(name: str, began: Iterable[Sequence[Any]], chosen: Iterable[Sequence[Any]]) -> _Client:
    told: dict[str, Any] = {event: getattr(lifecycle, event)(*values) for event, *values in (*began, *chosen)}
    started, project, model = told["Started"], told.get("ProjectResolved"), told.get("ModelResolved")
    return _Client(
        endpoint="images" if name == "pictures" else started.endpoint,
        account=told["ProviderSelected"].provider if model else None,
        asked=model.requested if model else "gpt-9",
        served=model.resolved if model else None,
        project=project.project if project else None,
        session=started.session,
        agent=started.agent,
        caller=started.caller or _CALLERS.get(name),
    )


def _bad_day(today: date) -> date:
    day = today - timedelta(days=BAD_DAY)
    return day - timedelta(days=max(0, day.weekday() - 4))


def _day(clients: Mapping[str, _Client], day: date, bad: bool) -> Iterator[PastRequest]:
    """The requests of a day, in the working hours of this machine's time zone."""
    morning = datetime.combine(day, time(8, 30)).timestamp()
    for place, (name, client) in enumerate(clients.items()):
        if day.weekday() > 4 and name not in _WEEKEND:
            continue
        number = 40 * day.toordinal() + place
        turns = _TURNS[name] * (20 + _varied(number, 60) + _varied(day.toordinal(), 60)) // 100
        start = morning + 600 * _varied(number, 48)
        hurt = bad and client.account == BAD_PROVIDER
        yield from _conversation(client, 2 * _TURNS[name] if hurt else turns, start, number, day, hurt)


def _conversation(
    client: _Client, turns: int, start: float, number: int, day: date, bad: bool
) -> Iterator[PastRequest]:
    at = start
    for turn in range(max(1, turns)):
        one = _request(client, at, 1000 * number + turn, turn, day, bad)
        yield one
        at += one.total_ms / 1000 + 20 + _varied(1000 * number + turn, 240)


def _request(client: _Client, at: float, number: int, turn: int, day: date, bad: bool) -> PastRequest:
    size, fate = _varied(number, 1000), _fate(client, number, bad)
    failed, counts, at_once = fate.outcome == "failed", client.endpoint == COUNTING, client.endpoint in _WHOLE
    sent = size if at_once else 14_000 + 60 * size % 9_000 + 2_300 * (turn % 60)
    cached, lost = _cached(sent, number, turn)
    known = not failed and not at_once and client.account != "p5"  # p5 does not report its cache
    output = 80 + 2 * size
    first = _FIRST_MS.get(client.account or "", 0) * (60 + size * size // 9_000) // 100 * (4 if bad else 1)
    total = first + 22 * output if not failed else 400 + size
    moved = fate.fallback is not None
    return PastRequest(
        request=f"demo-{number}",
        ended=round(1000 * at) + total,
        first_ms=None if failed or at_once else first,
        total_ms=total,
        endpoint=client.endpoint,
        account="p1" if moved else client.account,
        asked=client.asked,
        served="gpt-5.5" if moved else client.served,
        project=client.project,
        session=client.session and str(uuid.uuid5(uuid.NAMESPACE_OID, f"{client.session} {day}")),
        agent=client.agent,
        caller=client.caller,
        input=None if failed else sent,
        cached=cached if known else None,
        output=None if failed or counts else output,
        thinking=output * 2 // 5 if client.account == "p1" and not failed else None,
        aside=1_100 if number % 31 == 4 and not failed else 0,
        searches=int(number % 37 == 9 and not failed),
        outcome=fate.outcome,
        http=fate.http,
        kind=fate.kind,
        retries=fate.retries,
        fallback=fate.fallback,
        stop=None if failed or counts else "end_turn" if number % 5 == 0 else "tool_use",
        expected=960 if known and turn else None,
        lost=lost if known else None,
    )


def _cached(sent: int, number: int, turn: int) -> tuple[int, str | None]:
    """How much of the input the cache had, and why it was not more."""
    if turn == 0:
        return 0, None
    return (sent * 28 // 100, "the system text changed") if number % 67 == 13 else (sent * 95 // 100, None)


def _fate(client: _Client, number: int, bad: bool) -> _Fate:
    if client.account is None:
        return _Fate("failed", 400, "invalid_request")
    return next(fate for every, at, fate in (_BAD_FATES if bad else _FATES) if number % every == at)


def _varied(number: int, most: int) -> int:
    """A number below `most` that looks like chance: the bits of a product (Knuth, 6.4)."""
    return (number * 2_654_435_761 % 2**32) * most >> 32


# Allowances.


def samples(past: Sequence[PastRequest], now: float) -> list[Sample]:
    """The windows of the monitor's demo. They fill with the requests of their provider, until today's use."""
    ends: dict[str, list[float]] = {}
    for one in past:
        ends.setdefault(one.account or "", []).append(one.ended / 1000)
    return [
        sample
        for provider, window, used, age, resets, limit in tables()["allowances"]
        for sample in _window(
            Sample(provider, window, limit, 0, used, None),
            [at for at in ends[provider] if at <= now - age],
            now + resets,
        )
    ]


def _window(form: Sample, ends: Sequence[float], last: float) -> Iterator[Sample]:
    """The samples of a window whose present period ends at `last`."""
    length = _LENGTHS[form.window] * 86_400.0 if form.window in _LENGTHS else 5 * 3600.0
    periods: dict[int, list[float]] = {}
    for at in ends:
        periods.setdefault(int((last - at) // length), []).append(at)
    for back, times in periods.items():
        peak = form.used * (1.0 if back == 0 else (55 + _varied(back, 60)) / 100)
        yield from _period(form, times, min(peak, 100.0), last - back * length)


def _period(form: Sample, times: Sequence[float], peak: float, end: float) -> Iterator[Sample]:
    said, used = 0.0, -1.0
    for number, at in enumerate(times, 1):
        newest = number == len(times)
        share = peak if newest else float(round(peak * number / len(times)))
        if share != used and (newest or at - said >= _SAMPLE_S):
            said, used = at, share
            yield form._replace(at=round(1000 * at), used=share, resets=round(1000 * end))
