"""`serve`: runs the proxy, until a signal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import errno
import gc
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from proxy.cli.banner import CAPTURES_NOTICE, OPEN_NOTICE, address, banner, local_host, reachable
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile, check_exposure, is_open, proxies_of
from proxy.cli.health import is_proxy
from proxy.cli.monitor.full_screen import LogNotices, obstacle, watched
from proxy.cli.paths import state_root
from proxy.cli.sandbox import start_sandbox
from proxy.cli.signals import Stop, stop_event
from proxy.config import Config, ConfigError
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.errors import PROGRAM
from proxy.observe.capture.layout import TRAFFIC
from proxy.providers.upstream.certificates import import_aiohttp
from proxy.retention import DAY_S, Retention
from proxy.server.callers.keys import FILE_NAME as KEYS

if TYPE_CHECKING:
    from aiohttp import web

    from proxy.observe.capture.writing.queued import FolderCaptures
    from proxy.observe.log.file_log import FileLog
    from proxy.observe.monitor.state import MonitorState
    from proxy.server.listener import Listener

#: Seconds that the runner may take after the time for answers to finish.
CUT_S = 1.0
LOG_FLUSH_S = 2.0
#: New objects before a garbage collection; with Python's own 700 a single request would cause some.
GARBAGE = 10_000
CAPTURE_FLUSH_S = 2.0
#: Seconds for the owner of our port to identify itself as a proxy.
TAKEN_S = 1.0


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--port", type=int, help="port to listen on; 0 picks a free one")
    parser.add_argument("--sandbox", action="store_true", help="use simulated upstreams: no account, no network")
    parser.add_argument(
        "--sandbox-script", type=Path, metavar="FILE", help="faults for the simulated upstreams to play"
    )
    parser.add_argument("--no-monitor", action="store_true", help="plain output even on a terminal")
    # for the launcher: the file with the users of this proxy
    parser.add_argument("--until-unused", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--unused-after", type=float, metavar="S", help=argparse.SUPPRESS)
    parser.add_argument("--allow-remote-unauthenticated", action="store_true", help="allow an open listener")


@dataclass(frozen=True, slots=True)
class _Unused:
    """Ends a proxy that was started for other processes: their file, and the seconds that it may have none."""

    users: Path
    after: float


@dataclass(frozen=True, slots=True)
class _Start:
    """The decisions before the listener opens. `screen`: shows the log's warnings while the monitor is on the terminal,
    None when it will not be."""

    context: Context
    file: ConfigFile
    proxies: OutboundProxies
    log: FileLog
    captures: FolderCaptures | None
    stop: Stop
    sandbox: bool
    screen: LogNotices | None
    unused: _Unused | None

    @property
    def state_root(self) -> Path:
        return state_root(self.context.environment)


async def run(arguments: argparse.Namespace, context: Context) -> int:
    gc.disable()  # until `_spare_collections`: imports leave no garbage to speak of, and looking for it takes a tenth
    import_aiohttp()
    stop = stop_event()
    async with AsyncExitStack() as stack:
        sandbox = bool(arguments.sandbox or arguments.sandbox_script)
        if sandbox:
            simulated = await start_sandbox(stack, arguments.sandbox_script)
            context = dataclasses.replace(context, environment={**context.environment, **simulated})
        file = ConfigFile(context)
        _override(file, arguments)
        check_exposure(file.config, file.root)
        # The simulated upstreams are inside this process: no outgoing proxy could reach them.
        proxies = OutboundProxies() if sandbox else proxies_of(context.environment)
        screen = None if arguments.no_monitor or obstacle(context.environment) else LogNotices(sys.stderr)
        log = _open_log(file.config, context.environment, screen)
        captures = _open_captures(file.config, context.environment, log)
        try:
            unused = _Unused(arguments.until_unused, arguments.unused_after) if arguments.until_unused else None
            return await _serve(_Start(context, file, proxies, log, captures, stop, sandbox, screen, unused))
        finally:
            if captures is not None:
                await asyncio.to_thread(captures.close, CAPTURE_FLUSH_S)
            await asyncio.to_thread(log.close, LOG_FLUSH_S)


def _override(file: ConfigFile, arguments: argparse.Namespace) -> None:
    if arguments.port is not None:
        if not 0 <= arguments.port <= 65535:
            raise ConfigError("--port must be a number from 0 to 65535")
        file.override(port=arguments.port)
    if arguments.allow_remote_unauthenticated:
        file.override(allow_remote_unauthenticated=True)


def _open_log(config: Config, environment: Mapping[str, str], screen: LogNotices | None) -> FileLog:
    from proxy.observe.log.file_log import FileLog
    from proxy.observe.log.storage import KEPT_LOGS, Bounds

    keep = config.section(Retention)
    terminal = _terminal(config) if screen is None else cast("TextIO", screen)
    return FileLog(
        state_root(environment),
        stderr=config.log_stderr and screen is None,
        plain=terminal is not None,
        verbose=config.log_verbose,
        stream=terminal,
        file_bytes=keep.log_file_bytes,
        kept=Bounds(KEPT_LOGS.files, keep.log_bytes, keep.log_days * DAY_S),
        kept_errors=Bounds(keep.error_files, keep.error_bytes, keep.error_days * DAY_S),
    )


def _terminal(config: Config) -> TextIO | None:
    """A terminal for the user; None when the whole log is shown."""
    if config.log_stderr:
        return None
    return next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)


def _open_captures(config: Config, environment: Mapping[str, str], log: FileLog) -> FolderCaptures | None:
    if not config.captures:
        return None
    from proxy.observe.capture.writing.files import CaptureLimits
    from proxy.observe.capture.writing.queued import FolderCaptures

    limits = CaptureLimits(
        config.captures_max_bytes,
        config.captures_max_files,
        config.capture_max_bytes,
        config.capture_max_files,
        config.section(Retention).capture_days * DAY_S,
    )
    return FolderCaptures(state_root(environment), limits, log)


async def _serve(start: _Start) -> int:
    """Listens until the signal; returns the exit status."""
    from proxy.observe.request_lines import RequestLines
    from proxy.server.app import create_app
    from proxy.server.listener import Listener
    from proxy.server.request.state import STATE

    log, file = start.log, start.file
    terminal = start.screen is None and _terminal(file.config) is not None
    file.warn = lambda warning: log.write("warn", "config", warning)
    logging.getLogger().addHandler(_LibraryRecords(log))
    app = create_app(
        file.current,
        config_dir=file.root,
        log=log,
        captures=start.captures,
        proxies=start.proxies,
        entries=start.context.providers,
        packed_bodies=True,
        state_dir=start.state_root,
        caller_keys=file.root / KEYS,
        command=start.context.program,
    )
    listener = Listener(app, file.config, CUT_S)
    port = await _listen(listener, file.config)
    if terminal:
        app[STATE].monitor.finished(RequestLines(log.tell).ended)
    app[STATE].monitor.url = reachable(file.config.bind_address, port)
    app[STATE].monitor.sandbox = start.sandbox
    with log.quiet() if terminal or start.screen else contextlib.nullcontext():  # the banner says all of it
        _log_start(start, port)
        await asyncio.to_thread(log.flush)
    said = banner(file, start.context, start.proxies, port, sandbox=start.sandbox)
    if log.failing and (terminal or start.screen):  # elsewhere its record was visible
        warning = f"the log below {start.state_root} cannot be written: the proxy runs without a log file"
        app[STATE].monitor.notice("warn", warning)
        said += f"\n{warning}\n"
    print(said, flush=True)
    async with _sparing(app[STATE].warmed):
        await _until_stopped(start, app, listener, said)
    return _stopped(app, log)


@contextlib.asynccontextmanager
async def _sparing(warmed: asyncio.Event) -> AsyncIterator[None]:
    task = asyncio.create_task(_spare_collections(warmed))
    try:
        yield
    finally:
        task.cancel()


async def _spare_collections(warmed: asyncio.Event) -> None:
    """Exempts objects that live as long as the process from collections, one of which took 40 ms, once all are there.
    Makes collections rarer, too: a request leaves almost nothing for them."""
    await warmed.wait()
    gc.freeze()
    gc.enable()
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


async def _until_stopped(start: _Start, app: web.Application, listener: Listener, said: str) -> None:
    """Waits for the signal, then ends: announces it, stops accepting, lets answers finish, cuts what is left after the
    limit."""
    from proxy.server.request.state import STATE

    if start.screen is None:
        async with _unused(start, listener):
            await start.stop.wait()
        await _end(app, listener)
        return
    _tell(app[STATE].monitor, start)
    await watched(start.context.environment, start.stop, app[STATE], start.screen, said, partial(_end, app, listener))


async def _end(app: web.Application, listener: Listener) -> None:
    """Announces the end, and goes on accepting for as long as a load balancer may take to notice."""
    from proxy.server.app import announce_end
    from proxy.server.request.state import STATE

    announce_end(app)
    await asyncio.sleep(app[STATE].config().stop_notice_ms / 1000)
    await listener.close()


def _tell(monitor: MonitorState, start: _Start) -> None:
    """Shows the banner's warnings in the monitor, which hides the banner on the terminal."""
    for warning in start.file.warnings:
        monitor.notice("warn", warning)
    if start.captures is not None:
        monitor.notice("warn", CAPTURES_NOTICE)
    if is_open(start.file.config, start.file.root):
        monitor.notice("warn", OPEN_NOTICE)


@contextlib.asynccontextmanager
async def _unused(start: _Start, listener: Listener) -> AsyncIterator[None]:
    """Stops a proxy that was started for others when it has no users. Its output is an unbounded file, so it writes
    only to the log."""
    if start.unused is None:
        yield
        return
    from proxy.cli.launch.users import Users, stop_when_unused

    users = Users(start.unused.users)
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(stop_when_unused(users, listener.server, start.stop, start.unused.after))
        with start.log.quiet():
            yield
        watch.cancel()
    users.forget()


async def _listen(listener: Listener, config: Config) -> int:
    """Opens the listener; returns the port. Raises ConfigError when it is taken."""
    try:
        return await listener.start()
    except OSError as error:
        why = await _taken(config) if error.errno == errno.EADDRINUSE else error.strerror or error
        where = address(config.bind_address, config.port)
        raise ConfigError(f"failed to bind proxy listener {where}: {why}") from None


async def _taken(config: Config) -> str:
    """Which program has the port, and what to do."""
    other = "take another port with --port, PROXY_PORT or `port` in config.json"
    host = local_host(config.bind_address)
    if await is_proxy(host, config.port, TAKEN_S):
        shown = f"`{PROGRAM} monitor --url http://{address(host, config.port)}` shows it"
        return f"a model-proxy answers there already. Use that one ({shown}), end it, or {other}"
    return f"another program uses it. End that, or {other}"


def _log_start(start: _Start, port: int) -> None:
    log, config = start.log, start.file.config
    for warning in start.file.warnings:
        log.write("warn", "config", warning)
    listening = {"port": port, "bindAddress": config.bind_address, "logDir": str(start.state_root)}
    log.write("info", "server", "server listening", **listening)
    if start.proxies.addresses:
        log.write("info", "server", "outgoing proxies are used", **start.proxies.addresses)
    if start.captures is not None:
        log.write("warn", "captures", CAPTURES_NOTICE, folder=str(start.state_root / TRAFFIC))
    if is_open(config, start.file.root):
        fields = {"remoteUnauthenticated": True, "bindAddress": config.bind_address, "port": port}
        log.write("warn", "server", OPEN_NOTICE, **fields)


class _LibraryRecords(logging.Handler):
    """Writes reports of aiohttp and asyncio to our log, by kind: their own form is a traceback on stderr for every
    malformed request to the port."""

    def __init__(self, log: FileLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        garbage = type(error).__module__.startswith("aiohttp.")  # a request that is not HTTP
        level = "error" if record.levelno >= logging.ERROR and not garbage else "warn"
        said = record.getMessage().partition("\n")[0]
        self._log.write(level, record.name, said, error=type(error).__name__ if error else None)


def _stopped(app: web.Application, log: FileLog) -> int:
    """Logs the stop; the exit status shows whether answers were cut."""
    from proxy.server.request.state import STATE

    cut = app[STATE].running.cut
    log.write("warn" if cut else "info", "server", "server stopped", cutAnswers=cut)
    return 1 if cut else 0
