"""The proxy as a process, alone or in front of a sandbox of ours whose upstream side can be looked at."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from aiohttp import web

import forked
from e2e.searching import SEARCH, Watched
from proxy import create_app
from proxy.loading import load
from proxy.providers.contract import Tuning
from proxy.sandbox import Sandbox

START_LIMIT_S = 60.0
#: The transport of p1 for the scenario under way; None leaves the proxy its default.
TRANSPORT: ContextVar[str | None] = ContextVar("transport", default=None)
#: Every route is on.
_SWITCHES = ("PROXY_P1_RESPONSES_API", "PROXY_P1_IMAGES_API", "PROXY_P1_TRANSCRIPTIONS_API")
#: Settings for clients that always send what some upstream does not take, and for those that speak Messages: not even
#: the other routes.
LENIENT, MESSAGES_ONLY = {"PROXY_OPENAI_MODE": "lenient"}, {"PROXY_P1_RESPONSES_API": "0"}
CAPTURES = "PROXY_TRAFFIC_LOG"
LISTENS = re.compile(r"listens on (http://\S+)")


@asynccontextmanager
async def proxy_process(
    arguments: Sequence[str], environment: Mapping[str, str], sandbox: Sandbox | None = None
) -> AsyncIterator[str]:
    """`serve …` as a process on a free port, with every route; yields its address and ends it by pid.

    With captures on it then searches what it left behind, also for the tokens of the sandbox.
    """
    transport, search = TRANSPORT.get(), SEARCH.get()
    switches = _SWITCHES if search is None else (*_SWITCHES, CAPTURES)
    chosen = {"PROXY_P1_TRANSPORT": transport} if transport else {}
    environment = {**os.environ, **dict.fromkeys(switches, "1"), **chosen, **environment}
    watched = None if search is None else Watched(search, environment, sandbox)
    process = await forked.start("-m", "proxy", "serve", "--port", "0", *arguments, env=environment, stderr=None)
    try:
        address = await asyncio.wait_for(_address(process.stdout), START_LIMIT_S)
        if watched is not None:
            watched.learn()
        yield address
    finally:
        process.terminate()
        await process.communicate()
    if watched is not None:
        await watched.check()


async def _address(stdout: asyncio.StreamReader) -> str:
    async for line in stdout:
        match = LISTENS.search(line.decode())
        if match:
            return match[1]
    raise RuntimeError("the proxy ended before it listened")


@asynccontextmanager
async def sandboxed_proxy(folder: Path, script: Sequence[Mapping[str, Any]]) -> AsyncIterator[str]:
    """What a newcomer runs: `serve --sandbox`, with a script of faults. Its captures would go with it, so with these on
    it is the proxy before a sandbox of ours."""
    if SEARCH.get() is not None:
        async with watched_proxy(folder, script, {"HOME": str(folder)}) as (url, _sandbox):
            yield url
        return
    path = folder / "script.json"
    path.write_text(json.dumps(list(script)))
    async with proxy_process(["--sandbox", "--sandbox-script", str(path)], {"HOME": str(folder)}) as url:
        yield url


@asynccontextmanager
async def watched_proxy(
    folder: Path, script: Sequence[Mapping[str, Any]], settings: Mapping[str, str]
) -> AsyncIterator[tuple[str, Sandbox]]:
    """The proxy in front of a sandbox in this process: what reached the upstream can be looked at."""
    async with Sandbox(script=script) as sandbox:
        root = folder / "config"
        sandbox.write_credentials(root)
        environment = {
            **sandbox.settings(),
            "PROXY_CONFIG_DIR": str(root),
            "XDG_STATE_HOME": str(folder / "state"),
            **settings,
        }
        async with proxy_process([], environment, sandbox) as url:
            yield url, sandbox


@asynccontextmanager
async def tuned_proxy(
    folder: Path, script: Sequence[Mapping[str, Any]], *values: object
) -> AsyncIterator[tuple[str, Sandbox]]:
    """The same in this process, with timers other than the defaults, which no setting changes."""
    async with Sandbox(script=script) as sandbox:
        root = folder / "config"
        sandbox.write_credentials(root)
        config, _ = load(sandbox.settings())
        runner = web.AppRunner(
            create_app(config, config_dir=root, tuning=Tuning(values)), access_log=None, handler_cancellation=True
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}", sandbox
        finally:
            await runner.cleanup()
