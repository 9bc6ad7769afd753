"""The state of the running application, in one object under one key; and the followers of its monitor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from proxy.errors import PROGRAM, BusyError
from proxy.observe.history.queries import Queries
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.timings import Timings
from proxy.server.callers.callers import Callers
from proxy.server.request.accounts import Accounts, Sessions
from proxy.server.request.admission import Admission, Running
from proxy.server.request.cache_watch import CacheWatch
from proxy.server.request.families import ClientRoute
from proxy.server.request.picture_memory import PictureMemory
from proxy.server.request.search_memory import SearchMemory

if TYPE_CHECKING:
    from proxy.config import Config
    from proxy.core.routing import Catalog
    from proxy.observe.capture.contract import Captures
    from proxy.observe.lifecycle import Log
    from proxy.observe.metrics.counts import Metrics
    from proxy.observe.monitor.snapshot import Snapshot
    from proxy.observe.monitor.state import MonitorState
    from proxy.providers.accounts.allowance_store import AllowanceStore
    from proxy.providers.accounts.model_lists import ModelLists
    from proxy.providers.contract import Provider
    from proxy.providers.entry import Entry
    from proxy.server.request.allowance_questions import AllowanceQuestions

#: Maximum number of pages and programs that follow at the same time.
MAX_WATCHERS = 16
#: How often each of them gets something new, in seconds.
EVERY_S = 1.0


class Watchers:
    """The followers of one application's monitor."""

    def __init__(self) -> None:
        self._encoder = SnapshotEncoder()
        self._encoding = asyncio.Lock()
        self._closing = asyncio.Event()
        self._there = 0
        self._newest: tuple[int, bytes] = 0, b""
        self._made_at = 0.0
        self._mark: object = None

    @contextmanager
    def one(self, monitor: MonitorState) -> Iterator[None]:
        """Counts a follower while inside. Raises BusyError if there are too many."""
        if self._there >= MAX_WATCHERS:
            raise BusyError(f"{MAX_WATCHERS} pages or programs follow the monitor already; close one")
        self._there += 1
        try:
            with monitor.watch():
                yield
        finally:
            self._there -= 1

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    def close(self) -> None:
        """Ends all followers at once."""
        self._closing.set()

    async def pause(self) -> None:
        """Waits until there may be something new, or until the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S):
                await self._closing.wait()

    async def newest(self, monitor: MonitorState) -> tuple[int, bytes]:
        """A snapshot shared by all followers, at most as old as one of them waits, and its number, which changes with
        its content."""
        async with self._encoding:
            now = asyncio.get_running_loop().time()
            if not self._newest[0] or now - self._made_at >= 0.9 * EVERY_S:
                mark = monitor.mark()
                if mark != self._mark or not self._newest[0]:
                    self._mark = mark
                    self._newest = self._newest[0] + 1, await self._encode(monitor.snapshot())
                self._made_at = now
            return self._newest

    async def encoded(self, snapshot: Snapshot) -> bytes:
        async with self._encoding:
            return await self._encode(snapshot)

    async def _encode(self, snapshot: Snapshot) -> bytes:
        """The snapshot's bytes, made in a thread: a thousand sessions take some milliseconds."""
        return await asyncio.to_thread(self._encoder.encode, snapshot)


@dataclass(frozen=True, slots=True)
class StreamTimers:
    """The times of an answer that is being sent, in seconds.

    tick       how often a client's connection is checked
    keepalive  silence after which something is sent: middleboxes cut idle connections after a minute
    no_pings   silence after which something other than a ping is sent: older clients do not count pings as activity and
               hang up after 300 s
    stall      a reader that takes nothing for this long counts as gone
    judge      how long the reviewer of auto mode may take for the calls of an answer
    vision     how long another model may take to describe the pictures of a request, for all its candidates
    search     how long one search of the web may take
    judge_quiet  silence of an answer after which the reviewer is asked before its end
    """

    tick: float = 0.5
    keepalive: float = 15.0
    no_pings: float = 120.0
    stall: float = 300.0
    judge: float = 30.0
    judge_quiet: float = 0.25
    vision: float = 30.0
    search: float = 90.0


class Catalogs:
    """The catalogues of all providers, by the current settings and what the services offer.

    lists  the lists of the services
    """

    def __init__(self, entries: Sequence[Entry], lists: ModelLists) -> None:
        self._entries = entries
        self.lists = lists
        self._made: tuple[Config | None, int, tuple[Catalog, ...]] = (None, 0, ())

    def of(self, config: Config) -> tuple[Catalog, ...]:
        """The catalogues, made again only if the settings or the lists changed."""
        made = self._made
        if made[0] is not config or made[1] != self.lists.generation:
            known = self._entries
            found = tuple(one.offering(self.lists.of_label(one.label), known).catalog_now(config) for one in known)
            made = self._made = config, self.lists.generation, found
        return made[2]

    def labelled(self, label: str, config: Config) -> Catalog:
        """The catalogue of one provider."""
        return next(catalog for catalog in self.of(config) if catalog.label == label)


@dataclass(frozen=True)
class AppState:
    """The state shared by all requests of one application.

    config    returns the current settings
    monitor   the store that records every request
    catalogs  every catalogue, also of providers that are not served
    packed    whether the runner leaves bodies packed
    routes    the routes that are served, decided once, at the start
    off       the routes that a setting would turn on
    entries   the entries of all providers
    questions   asks the services for their allowances
    warmed    set when all that an ordinary request needs is imported
    metrics   the counts of `/metrics`; None if nothing is counted
    callers   callers with a key of their own
    history   the file of the history; None if none is kept
    queries   what is asked of it
    command   how the user starts the program, for texts with commands
    """

    config: Callable[[], Config]
    log: Log
    monitor: MonitorState
    captures: Captures
    catalogs: Catalogs
    sessions: Sessions
    admission: Admission
    clock: Callable[[], float]
    timers: StreamTimers
    entries: Sequence[Entry]
    questions: AllowanceQuestions
    packed: bool = False
    routes: dict[web.AbstractRoute, ClientRoute] = field(default_factory=dict)
    off: list[ClientRoute] = field(default_factory=list)
    running: Running = field(default_factory=Running)
    warmed: asyncio.Event = field(default_factory=asyncio.Event)
    cache: CacheWatch = field(default_factory=CacheWatch)
    watchers: Watchers = field(default_factory=Watchers)
    metrics: Metrics | None = None
    callers: Callers = field(default_factory=Callers)
    history: Path | None = None
    queries: Queries = field(default_factory=Queries)
    command: str = PROGRAM

    @cached_property
    def pictures(self) -> PictureMemory:
        """The descriptions of pictures."""
        return PictureMemory(self.clock)

    @cached_property
    def searches(self) -> SearchMemory:
        """What was searched beside calls of clients."""
        return SearchMemory(self.clock)

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of all providers."""
        return Accounts(self.entries, self.allowances, self.catalogs.lists, self.clock)

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers of the accounts without a name, by label."""
        return self.accounts.providers

    @property
    def allowances(self) -> AllowanceStore:
        """The known allowances of the accounts."""
        return self.questions.allowances

    @property
    def served(self) -> list[Catalog]:
        """Catalogues of the providers that are served."""
        return [catalog for catalog in self.catalogs.of(self.config()) if catalog.label in self.providers]


STATE: web.AppKey[AppState] = web.AppKey("state", AppState)

#: The id of a request: in its answer's headers, the log, the monitor.
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
#: The times of a request.
TIMINGS: web.RequestKey[Timings] = web.RequestKey("timings", Timings)
#: The row of the table of routes that a request found.
ROUTE: web.RequestKey[ClientRoute] = web.RequestKey("route", ClientRoute)


def header_values(request: web.BaseRequest) -> Mapping[str, list[str]]:
    """lower-case header name -> all its values. Bytes that are not UTF-8 are replaced: values go into JSON."""
    values: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        if not value.isascii():
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        values.setdefault(name.lower(), []).append(value)
    return values
