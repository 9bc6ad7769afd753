"""`create_app`: the application with all its routes, to run alone or to be mounted under a prefix of another one."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aiohttp import ClientSession, web

from proxy.auth.store import remove_leftovers
from proxy.config import Config
from proxy.core.invalid import cut
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.errors import PROGRAM, as_typed
from proxy.fallbacks import check_fallbacks
from proxy.later import Later
from proxy.observe.capture.contract import Captures, NullCaptures
from proxy.observe.history.retention import HistoryBounds
from proxy.observe.history.schema import FILE_NAME as HISTORY
from proxy.observe.history.writer import HistoryWriter
from proxy.observe.lifecycle import Log, NullLog, Recorder
from proxy.observe.monitor.state import MonitorState
from proxy.off_loop import imported
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.accounts.model_lists import ListTimers, ModelLists
from proxy.providers.accounts.named import credential_folders
from proxy.providers.contract import Provider, Services, Tuning
from proxy.providers.entry import Entry, check_searcher, check_seeing_model
from proxy.providers.registry import PROVIDERS
from proxy.providers.upstream.client import client_session
from proxy.providers.upstream.outgoing_proxy import TunnelTimers
from proxy.providers.upstream.tokenizer import Tokenizer, TokenizerLimits
from proxy.retention import DAY_S, Retention
from proxy.server.callers.callers import Callers, Meter, used_today
from proxy.server.callers.keys import KeyFile
from proxy.server.edge import edge
from proxy.server.request.accounts import Sessions
from proxy.server.request.admission import Admission
from proxy.server.request.allowance_questions import AllowanceQuestions
from proxy.server.request.families import Handler
from proxy.server.request.state import STATE, AppState, Catalogs, StreamTimers
from proxy.server.routes.table import ROUTES
from proxy.server.serving.allowances import rows_of, watched_rows
from proxy.server.serving.body import answer_expectation_later
from proxy.server.warming import warming
from proxy.settings import UnfitValue, check_model
from proxy.version import __version__

if TYPE_CHECKING:
    from proxy.observe.metrics.counts import Metrics

#: Nothing of ours reads a body with aiohttp's own methods, which this would limit; ours is `Config.max_body_bytes`.
_NO_LIMIT = 0

_DEFAULT_TIMES = Tuning()
T = TypeVar("T")


def create_app(
    config: Config | Callable[[], Config],
    *,
    config_dir: Path,
    log: Log | None = None,
    recorder: Recorder | None = None,
    captures: Captures | None = None,
    proxies: OutboundProxies | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
    tuning: Tuning = _DEFAULT_TIMES,
    entries: Sequence[Entry] = PROVIDERS,
    packed_bodies: bool = False,
    state_dir: Path | None = None,
    caller_keys: Path | None = None,
    command: str = PROGRAM,
) -> web.Application:
    """The proxy as an aiohttp application.

    config      the settings, or a function that returns the current ones (the command line re-reads its file)
    config_dir  where credentials live: `<config_dir>/p1/auth.json`
    log         where records go; nowhere by default
    recorder    an observer of requests beside the monitor; none by default
    captures    where requests and answers are kept for debugging; nowhere by default
    proxies     the outgoing proxies of all calls, `OutboundProxies.from_environment(os.environ)` for those of the
                process; none by default
    clock, sleep, chance  time and randomness, for tests
    tuning      timers and limits other than the defaults
    entries     the providers, those of the registry by default; raises UnfitValue if settings name others
    state_dir   where the allowances of the accounts, their lists of models, what callers used today, and the history
                of requests, are kept over restarts; by default only in memory, and no history
    caller_keys  the file of the keys of callers, which `keys add` writes; by default callers have no keys
    command     how the user starts the program, for texts with commands: `scripts/start auth login p1`
    packed_bodies  whether the runner has `auto_decompress=False`, so that bodies are unpacked here, with bounds

    Nothing is opened here: connections and threads begin when the application starts and end when it is cleaned up. It
    reads no settings from the environment and installs no signal handler.
    """
    current = _checked(config if callable(config) else lambda: config, entries)
    observers = (log or NullLog(), _monitor(recorder, clock, command), captures or NullCaptures())
    lists = ModelLists(observers[0], clock, folder=state_dir, timers=tuning.of(ListTimers))
    state = AppState(
        current,
        *observers,
        catalogs=Catalogs(entries, lists),
        sessions=Sessions(clock, frozenset(entry.label for entry in entries if entry.catalog.followed)),
        admission=Admission(current),
        clock=clock,
        timers=tuning.of(StreamTimers),
        packed=packed_bodies,
        entries=entries,
        questions=_questions(observers[0], clock, state_dir, current()),
        metrics=_metrics(entries) if current().metrics else None,
        callers=_callers(caller_keys, Meter(clock), observers[0]),
        history=state_dir / HISTORY if state_dir is not None and current().history else None,
        command=command,
    )

    lent = partial(Services, current, config_dir, log=state.log, clock=clock, sleep=sleep, random=chance, tuning=tuning)
    return _application(state, partial(_serving, state, state_dir, proxies or OutboundProxies(), tuning, lent))


async def _serving(
    state: AppState,
    state_dir: Path | None,
    proxies: OutboundProxies,
    tuning: Tuning,
    lent: Callable[..., Services],
    _app: web.Application,
) -> AsyncIterator[None]:
    """Runs everything that lives as long as the application."""
    async with _connections(proxies, tuning, state.clock) as (http, direct, tokenizer):
        more = {"allowances": state.allowances, "happened": state.monitor.happened, "models": state.catalogs.lists}
        services = lent(http=http, direct=direct, tokenizer=tokenizer, **more)
        async with (
            _counting(state),
            _remembering(state),
            _history(state, state_dir),
            _running(state, state.entries, services),
            warming(state),
        ):
            yield


def _callers(keys: Path | None, meter: Meter, log: Log) -> Callers:
    def tell(problem: str) -> None:
        log.write("error", "callers", "keys_not_used", file=str(keys), reason=problem)

    return Callers(None if keys is None else KeyFile(keys, tell=tell), meter)


def _tidy(folders: Iterable[Path]) -> None:
    for folder in folders:
        remove_leftovers(folder)


def _questions(log: Log, clock: Callable[[], float], folder: Path | None, config: Config) -> AllowanceQuestions:
    age_s = config.section(Retention).allowance_days * DAY_S
    return AllowanceQuestions(AllowanceStore(log, clock, folder=folder, age_s=age_s), log, clock)


def _monitor(recorder: Recorder | None, clock: Callable[[], float], command: str) -> MonitorState:
    return MonitorState(beside=recorder, wall=clock, program=f"{PROGRAM} {__version__}", command=command)


def _checked(current: Callable[[], Config], entries: Sequence[Entry]) -> Callable[[], Config]:
    """Checks names that `Config` cannot check: of providers, and of their models. Raises UnfitValue."""
    config = current()
    labels = [entry.label for entry in entries]
    if config.alias_provider not in (Config.alias_provider, *labels):
        raise UnfitValue(f"alias_provider: expected {' or '.join(labels)}")
    catalogs = [entry.catalog_now(config) for entry in entries]
    for name, check in (
        ("auto_review_model", partial(check_model, config.auto_review_model or "", catalogs)),
        ("vision_model", partial(check_seeing_model, config.vision_model or "", entries, config)),
        ("fallback", partial(check_fallbacks, config.fallback, catalogs)),
        ("search", partial(check_searcher, config.search, entries, config)),
    ):
        try:
            check()
        except UnfitValue as error:
            raise UnfitValue(f"{name}: {error}") from None
    for caller, key in config.account_callers:
        if key.partition("/")[0] not in labels:
            raise UnfitValue(f"account_callers: {cut(caller)} has an account of {' or '.join(labels)}, not {cut(key)}")
    return current


@asynccontextmanager
async def _connections(
    proxies: OutboundProxies, tuning: Tuning, clock: Callable[[], float]
) -> AsyncIterator[tuple[ClientSession, ClientSession, Tokenizer]]:
    """Opens what all providers share: a client with the outgoing proxies, one without, and the token vocabulary."""
    async with (
        client_session(proxies, clock=clock, timers=tuning.of(TunnelTimers)) as http,
        client_session(OutboundProxies()) as direct,
    ):
        with closing(Tokenizer(tuning.of(TokenizerLimits))) as tokenizer:
            yield http, direct, tokenizer


def _metrics(entries: Sequence[Entry]) -> Metrics:
    from proxy.observe.metrics.counts import Metrics  # most do without

    return Metrics(__version__, [entry.label for entry in entries])


@asynccontextmanager
async def _counting(state: AppState) -> AsyncIterator[None]:
    """Feeds the metrics, if they are on."""
    if state.metrics is None:
        yield
        return
    from proxy.observe.metrics.counts import watch_loop

    state.monitor.finished(state.metrics.finished)
    state.monitor.happening(state.metrics.happened)
    lag = asyncio.create_task(watch_loop(state.metrics.lagged))
    try:
        yield
    finally:
        lag.cancel()
        await asyncio.wait({lag})


@asynccontextmanager
async def _remembering(state: AppState) -> AsyncIterator[None]:
    """Loads what was known of allowances, callers and models at the last end, and saves it at this one."""
    state.allowances.notice = lambda level, message, label: state.monitor.notice(level, message, provider=label)
    state.monitor.allowances = lambda: watched_rows(state)
    state.monitor.finished(state.callers.finished)
    await state.allowances.load()
    await asyncio.to_thread(state.catalogs.lists.read)
    try:
        yield
    finally:
        await state.allowances.close()


@asynccontextmanager
async def _history(state: AppState, folder: Path | None) -> AsyncIterator[None]:
    """Writes the history, if it is kept, and what callers use."""
    if folder is None or (state.history is None and state.callers.file is None):
        yield
        return
    meter, keep = state.callers.meter, state.config().section(Retention)
    later = partial(_later, asyncio.get_running_loop())
    writer = HistoryWriter(
        folder / HISTORY,
        state.log,
        HistoryBounds(keep.history_days, keep.history_bytes),
        wall=state.clock,
        used=partial(later, meter.told),
        tell=partial(later, partial(_tell_history, state)),
    )
    meter.keep = writer.put
    if state.callers.file is not None:
        used = await asyncio.to_thread(used_today, writer.path, state.clock())
        if used is None:
            state.log.write("warn", "callers", "callers_not_read", file=str(writer.path))
        meter.told(used or {})
    if state.history is not None:
        state.monitor.finished(writer.put)
        state.monitor.remembers = True
        state.allowances.reported = lambda label, known: writer.reported(rows_of(label, known, state.clock()))
    writer.start()
    try:
        yield
    finally:
        await asyncio.to_thread(writer.close)


def _later(loop: asyncio.AbstractEventLoop, call: Callable[[T], None], value: T) -> None:
    """Calls something on the loop, from a thread that may outlive it."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, value)


def _tell_history(state: AppState, problem: str) -> None:
    level, words = ("warn", f"the history is not kept: {problem}") if problem else ("info", "the history is kept again")
    state.monitor.notice(level, as_typed(words, state.command))


@asynccontextmanager
async def _running(state: AppState, entries: Sequence[Entry], services: Services) -> AsyncIterator[None]:
    """Runs all providers, from the start of the application to its end. Each that was made is closed even if others
    fail; the first error is raised in the end."""
    errors: list[Exception] = []
    folders = (folder for entry in entries for folder in credential_folders(services.config_dir, entry.label))
    await asyncio.to_thread(_tidy, folders)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_close_providers, state, errors)
        state.questions.providers = state.accounts.watched
        state.accounts.begin(services)
        stack.push_async_callback(state.questions.close)  # before what it asks
        stack.push_async_callback(state.catalogs.lists.close)
        yield
    if errors:
        raise errors[0]


async def _close_providers(state: AppState, errors: list[Exception]) -> None:
    for provider in state.accounts.end():
        await _close(provider, errors, state.log)


async def _close(provider: Provider, errors: list[Exception], log: Log) -> None:
    try:
        await provider.close()
    except Exception as error:
        errors.append(error)
        log.write("error", "server", "provider_not_closed", provider=provider.label, error=type(error).__name__)


def _application(state: AppState, while_running: Callable[[web.Application], AsyncIterator[None]]) -> web.Application:
    app = web.Application(middlewares=[edge], client_max_size=_NO_LIMIT)
    app[STATE], config = state, state.config()
    app.cleanup_ctx.append(while_running)
    app.on_shutdown.append(_drain)
    for row in ROUTES:
        if row.needs and not getattr(config, row.needs):
            app[STATE].off.append(row)
        else:
            path = row.path.replace("{id}", "{id:.+}")
            for method in row.methods:
                route = app.router.add_route(
                    method, path, _awaited(row.handler), expect_handler=answer_expectation_later
                )
                app[STATE].routes[route] = row
    return app


def _awaited(handler: Handler) -> Handler:
    """The handler as the coroutine function that aiohttp wants: one that is imported later is none before."""
    if not isinstance(handler, Later):
        return handler

    async def handle(request: web.Request) -> web.StreamResponse:
        function: Handler = await imported(handler)
        return await function(request)

    return handle


def announce_end(app: web.Application) -> None:
    """Makes `/readyz` answer 503, so that a balancer sends nothing new, and each answer end its connection. Requests
    are still served until the application shuts down. For a program that mounts it: call this, wait as long as the
    balancer takes to notice, then stop the runner."""
    app[STATE].running.draining = True


async def _drain(app: web.Application) -> None:
    state = app[STATE]
    state.watchers.close()
    await state.running.drain(state.config().drain_timeout_ms / 1000)
