"""`sandbox`: the simulated upstreams alone; also beside a proxy, for `serve --sandbox`."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from proxy.cli.command import APP, Context
from proxy.cli.signals import stop_event
from proxy.config import ConfigError


async def start_sandbox(stack: AsyncExitStack, script: Path | None) -> Mapping[str, str]:
    """Starts simulated upstreams in this process, with throw-away credentials, until the stack ends; returns the
    variables that lead there. Raises ConfigError."""
    from proxy.sandbox import Sandbox, ScriptError

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{APP}-sandbox-")))
    try:
        sandbox = await stack.enter_async_context(Sandbox(script=script or ()))
    except (OSError, ScriptError) as error:
        raise ConfigError(f"--sandbox-script: {error}") from None
    sandbox.write_credentials(folder)
    return sandbox.settings() | {"PROXY_CONFIG_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, metavar="FILE")


async def run(arguments: argparse.Namespace, _context: Context) -> int:
    from proxy.sandbox import ScriptError, run_alone

    stop = stop_event()
    served = asyncio.ensure_future(run_alone(arguments.port, arguments.script))
    waiting = asyncio.ensure_future(stop.wait())
    await asyncio.wait({served, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (served, waiting):
        task.cancel()
    await asyncio.wait({served, waiting})
    if not served.cancelled() and isinstance(error := served.exception(), OSError | ScriptError):
        raise ConfigError(str(error))
    return 0
