"""`demo`: the monitor with simulated traffic. Nothing listens, nobody is asked, no account is needed."""

from __future__ import annotations

import argparse

from proxy.cli.banner import claude_code_lines, reachable
from proxy.cli.command import Command, Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.launch.choosing import served_model
from proxy.cli.monitor.full_screen import full_screen, obstacle
from proxy.cli.paths import config_root, state_root
from proxy.cli.signals import stop_event
from proxy.config import Config, ConfigError
from proxy.errors import ProxyError


async def _run(_arguments: argparse.Namespace, context: Context) -> int:
    if why := obstacle(context.environment):
        raise ProxyError(
            f"{why}: the demo draws on the whole of one. `{context.program} serve --sandbox` with"
            " PROXY_MONITOR_PAGE=1 shows simulated traffic on a page"
        )
    from proxy.observe.monitor.demo import Demo
    from proxy.observe.monitor.terminal.view import View
    from proxy.observe.monitor.terminal.watcher import Seen

    demo, stop = Demo(), stop_event()
    view = View(setup=tuple(_setup(context)))
    async with full_screen(context.environment, lambda: Seen(demo.snapshot()), view, stop) as watcher:
        await stop.wait()
    if watcher.error is not None:
        raise ProxyError(f"the monitor failed: {watcher.error!r}")
    return 0


def _setup(context: Context) -> list[str]:
    """As that of `serve`, for a proxy that does not run."""
    config = _config(context)
    url = reachable(config.bind_address, config.port)
    catalogs = {entry.label: entry.catalog_now(config) for entry in context.providers}
    counts = (f"{label}: {len(one.models) + len(one.prefixed)} models" for label, one in catalogs.items())
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


DEMO = Command("demo", "the monitor with simulated traffic", _run)
