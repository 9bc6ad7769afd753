"""`monitor`: a running proxy's requests, on the whole terminal or as text; `demo`: the monitor with simulated
traffic."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from typing import TYPE_CHECKING

from proxy.cli.banner import claude_code_lines, reachable
from proxy.cli.command import APP, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.launch.client_environment import served_model
from proxy.cli.models import offering
from proxy.cli.monitor.full_screen import full_screen, obstacle
from proxy.cli.monitor.histories import of_demo
from proxy.cli.monitor.running_proxy import RunningProxies, add_url, running_proxies
from proxy.cli.paths import config_root, state_root
from proxy.cli.signals import Stop, stop_event
from proxy.config import Config, ConfigError
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import Snapshot
    from proxy.observe.monitor.terminal.watcher import ShownSnapshot


#: Seconds between two questions to the proxy.
POLL_S = 1.0
#: Width and height as text, where unknown.
PLAIN_SIZE = (160, 50)


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    add_url(parser)
    parser.add_argument("--plain", action="store_true", help="one look, as text")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    async with running_proxies(context, arguments.url) as proxy:
        if arguments.plain or not sys.stdout.isatty():
            _print(await proxy.snapshot())
            return 0
        if why := obstacle(context.environment):
            raise ProxyError(
                f"{why}: `{context.program} monitor --plain` prints one look; with monitor.page the proxy serves"
                f" a page at {proxy.url}"
            )
        return await _attached(proxy, context)


def _print(snapshot: Snapshot) -> None:
    from proxy.observe.monitor.terminal.screen import plain_lines

    columns = shutil.get_terminal_size(PLAIN_SIZE).columns
    for line in plain_lines(snapshot, columns, time.time()):
        say(line)


async def _attached(proxy: RunningProxies, context: Context) -> int:
    """Shows the monitor until the user leaves."""
    from proxy.observe.monitor.terminal.view import View

    stop = stop_event()
    watch = Watch(proxy)
    await watch.ask()
    if watch.unfit is not None:
        raise watch.unfit
    setup = (f"Attached to {proxy.url}", "q leaves; the proxy goes on.")
    view = View(setup=setup, attached=True)
    async with full_screen(context.environment, watch.look, proxy.history, view, stop) as watcher:
        polling = asyncio.create_task(watch.poll(stop))
        await stop.wait()
        polling.cancel()
    if watcher.error is not None:
        raise ProxyError(f"the monitor failed: {watcher.error}")
    return 0


class Watch:
    """The last snapshot of a proxy, and since when it is out of date.

    unfit  no monitor answers, or one of another version: waiting does not help
    """

    def __init__(self, proxy: RunningProxies) -> None:
        self._proxy = proxy
        self._last: Snapshot | None = None
        self._at = time.time()
        self._error = ""
        self.unfit: ProxyError | None = None

    async def poll(self, stop: Stop) -> None:
        while not stop.is_set():
            await asyncio.sleep(POLL_S)
            await self.ask()

    async def ask(self) -> None:
        try:
            self._last = await self._proxy.snapshot()
        except ProxyError as error:
            self._error = error.message
            self.unfit = error if error.kind == "bad_answer" else None
        else:
            self._at, self._error = time.time(), ""

    def look(self) -> ShownSnapshot:
        from proxy.observe.monitor.snapshot import Snapshot
        from proxy.observe.monitor.terminal.watcher import ShownSnapshot
        from proxy.observe.monitor.words import duration

        now = time.time()
        age = duration(now - self._at)
        if self._last is None:
            return ShownSnapshot(Snapshot(now, now, 0.0, program=APP, url=self._proxy.url), self._error)
        return ShownSnapshot(self._last, f"{age} old: {self._error}" if self._error else "")


async def run_demo(_arguments: argparse.Namespace, context: Context) -> int:
    if why := obstacle(context.environment):
        raise ProxyError(
            f"{why}: the demo needs a full terminal. `{context.program} serve --sandbox` with"
            " PROXY_MONITOR_PAGE=1 shows simulated traffic on a page"
        )
    from proxy.observe.monitor.demo import Demo
    from proxy.observe.monitor.terminal.view import View
    from proxy.observe.monitor.terminal.watcher import ShownSnapshot

    demo, stop = Demo(), stop_event()
    view = View(setup=tuple(_setup(context)))
    async with (
        of_demo() as history,
        full_screen(context.environment, lambda: ShownSnapshot(demo.snapshot()), history, view, stop) as watcher,
    ):
        await stop.wait()
    if watcher.error is not None:
        raise ProxyError(f"the monitor failed: {watcher.error!r}")
    return 0


def _setup(context: Context) -> list[str]:
    """Returns the lines that `serve` shows, for the demo, in which no proxy runs."""
    config = _config(context)
    url = reachable(config.bind_address, config.port)
    catalogs = {entry.label: entry.catalog_now(config) for entry in offering(context)}
    counts = (f"{label}: {len(one.shown) + len(one.prefixed)} models" for label, one in catalogs.items())
    return [
        "The demo shows simulated traffic; the same moment always shows the same.",
        "No proxy is listening.",
        f"`{context.program} serve` starts one.",
        "",
        f"log: {state_root(context.environment) / 'proxy.log'}",
        f"config: {config_root(context.environment)}",
        "providers: " + "  ".join(counts),
        "",
        *claude_code_lines(served_model(url, config, context.providers, context.providers[0], None)),
    ]


def _config(context: Context) -> Config:
    """The settings, or the defaults where they cannot be read: nothing of the demo depends on them."""
    try:
        return ConfigFile(context, new=True).config
    except ConfigError:
        return Config()
