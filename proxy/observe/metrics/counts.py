"""Counts requests and other events (`Metrics`), measures the lag of the event loop, and reads the system's values of
this process, where there is /proc."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proxy.observe.lifecycle import ServiceEvent, SignInRenewed, SocketsOpen
from proxy.observe.metrics import table
from proxy.observe.metrics.registry import OTHER, Labels, Metric, Registry
from proxy.observe.metrics.table import CPU, MAX_FDS, MEMORY, OPEN_FDS, STARTED
from proxy.observe.monitor.snapshot import AllowanceRow, RequestRow

#: Seconds between two measurements.
EVERY_S = 0.5


async def watch_loop(tell: Callable[[float], None], every_s: float = EVERY_S) -> None:
    """Reports the lag in seconds, again and again, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + every_s
        await asyncio.sleep(every_s)
        tell(max(0.0, loop.time() - due))


_PROC = Path("/proc")
#: Fields of `/proc/self/stat` after the name of the program, which may hold anything: man 5 proc counts them from 3.
_USER, _SYSTEM, _START, _PAGES = 14 - 3, 15 - 3, 22 - 3, 24 - 3
_NO_LIMIT = "unlimited"


def process_values(proc: Path = _PROC) -> dict[Metric, float]:
    """metric -> its value; empty where the system does not say."""
    try:
        stat = (proc / "self/stat").read_text().rpartition(")")[2].split()
        boot = next(int(line.split()[1]) for line in _lines(proc / "stat") if line.startswith("btime"))
        ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        values = {
            MEMORY: float(int(stat[_PAGES]) * page),
            CPU: (int(stat[_USER]) + int(stat[_SYSTEM])) / ticks,
            STARTED: boot + int(stat[_START]) / ticks,
            OPEN_FDS: float(sum(1 for _ in (proc / "self/fd").iterdir())),
        }
        limit = next(line for line in _lines(proc / "self/limits") if line.startswith("Max open files")).split()[3]
        return values if limit == _NO_LIMIT else values | {MAX_FDS: float(limit)}
    except (OSError, ValueError, IndexError, StopIteration):
        return {}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


#: Most values of a label, besides OTHER: clients can name any model; the rest is few anyway.
MAX_MODELS, MAX_VALUES, MAX_CALLERS = 64, 32, 256
#: Replaces a provider, a status or a word that a request does not have.
NONE = "none"
#: Outcomes of a renewal.
RENEWED, NOT_RENEWED = "ok", "failed"


#: Counters of a provider, with their other labels.
_FROM_THE_BEGINNING = (
    (table.ATTEMPTS,),
    (table.RETRIES,),
    (table.RENEWALS, RENEWED),
    (table.RENEWALS, NOT_RENEWED),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """Values that are read on demand instead of counted.

    active    provider -> requests under way, "" for those that have none yet
    buffered  bytes of request bodies that are held
    refusals  limit -> number of requests it refused since the start
    """

    active: Mapping[str, int] = field(default_factory=dict)
    buffered: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)
    allowances: Sequence[AllowanceRow] = ()


class _Values:
    """The values of one label: the first `most` are kept apart."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(value)
        return value


class Metrics:
    """The metrics of one application.

    version    of this program
    providers  all of them: their counters begin with 0, so that the first event is an increase
    """

    def __init__(self, version: str, providers: Sequence[str] = ()) -> None:
        self._registry = Registry(table.ALL)
        self._registry.replace(table.BUILD, {(version, sys.version.split()[0]): 1})
        self._sockets: dict[Labels, float] = {}
        self._models = _Values(MAX_MODELS)
        self._callers = _Values(MAX_CALLERS)
        self._providers, self._endpoints, self._words = _Values(MAX_VALUES), _Values(MAX_VALUES), _Values(MAX_VALUES)
        self._idle = dict.fromkeys(map(self._provider, providers), 0)
        for provider in self._idle:
            for metric, *words in _FROM_THE_BEGINNING:
                self._registry.add(metric, 0, provider, *words)

    def finished(self, row: RequestRow) -> None:
        """Counts a finished request."""
        provider = self._provider(row.provider)
        model = self._models.of(row.resolved or row.requested or NONE)
        endpoint = self._endpoints.of(row.endpoint or NONE)
        status = f"{row.http // 100}xx" if row.http else NONE
        add = self._registry.add
        add(table.REQUESTS, 1, provider, model, endpoint, row.status, status)
        if row.status == "failed":
            add(table.FAILURES, 1, provider, self._words.of(row.kind or NONE))
        if row.status == "completed":
            self._registry.observe(table.DURATION, row.elapsed, provider, endpoint)
        self._time(row, provider)
        if row.provider is not None:
            self._cost(row, provider, model)
        if row.fallback:
            add(table.FALLBACKS, 1, provider)
        if row.caller:
            self._caller(row, self._callers.of(row.caller))
        for outcome, calls in row.judge.items():
            add(table.JUDGED, calls, self._words.of(outcome))
        add(table.JUDGE_INPUT, row.judge_input_tokens)
        add(table.JUDGE_OUTPUT, row.judge_output_tokens)
        for outcome, pictures in row.pictures.items():
            add(table.PICTURES, pictures, self._words.of(outcome))
        add(table.VISION_INPUT, row.vision_input_tokens)
        add(table.VISION_OUTPUT, row.vision_output_tokens)

    def _time(self, row: RequestRow, provider: str) -> None:
        for span, ms in row.timings.items():
            self._registry.observe(table.SPANS, ms / 1000, provider, span)
        if "first_token" in row.timings:
            self._registry.observe(table.FIRST_TOKEN, sum(row.timings.values()) / 1000, provider)

    def _cost(self, row: RequestRow, provider: str, model: str) -> None:
        add = self._registry.add
        add(table.INPUT_TOKENS, row.input_tokens or 0, provider, model)
        add(table.CACHED_TOKENS, row.cached_tokens or 0, provider, model)
        add(table.OUTPUT_TOKENS, row.output_tokens or 0, provider, model)
        add(table.RESPONSE_BYTES, row.throughput.bytes, provider)
        add(table.ATTEMPTS, row.attempts, provider)
        add(table.RETRIES, max(0, row.attempts - 1), provider)

    def _caller(self, row: RequestRow, caller: str) -> None:
        self._registry.add(table.CALLER_REQUESTS, 1, caller, row.status)
        self._registry.add(table.CALLER_TOKENS, row.input_tokens or 0, caller, "input")
        self._registry.add(table.CALLER_TOKENS, row.output_tokens or 0, caller, "output")

    def happened(self, event: ServiceEvent) -> None:
        """Counts an event that belongs to no request."""
        provider = self._provider(event.provider)
        match event:
            case SignInRenewed():
                self._registry.add(table.RENEWALS, 1, provider, RENEWED if event.ok else NOT_RENEWED)
            case SocketsOpen():
                self._sockets[(provider,)] = event.count
                self._registry.replace(table.SOCKETS, self._sockets)

    def lagged(self, seconds: float) -> None:
        """Counts a lag of the event loop."""
        self._registry.observe(table.LAG, seconds)

    def text(self, moment: Moment) -> str:
        """All metrics as text, now."""
        replace = self._registry.replace
        active = {**self._idle, **{provider or NONE: count for provider, count in moment.active.items()}}
        replace(table.ACTIVE, {(provider,): count for provider, count in active.items()})
        replace(table.BUFFERED, {(): moment.buffered})
        replace(table.REFUSALS, {(limit,): count for limit, count in moment.refusals.items()})
        rows = {(row.provider, row.window, row.limit): row for row in moment.allowances}
        replace(table.ALLOWANCE_USED, {labels: row.used / 100 for labels, row in rows.items()})
        resets: dict[Labels, float] = {at: row.resets_at for at, row in rows.items() if row.resets_at is not None}
        replace(table.ALLOWANCE_RESET, resets)
        for metric, value in process_values().items():
            replace(metric, {(): value})
        return self._registry.text()

    def _provider(self, label: str | None) -> str:
        return self._providers.of(label or NONE)
