"""The sandbox as one local server, for tests, for `serve --sandbox` and for running alone."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from proxy.sandbox.p1 import P1, P1Options
from proxy.sandbox.script import load_steps

HOST = "127.0.0.1"

#: As generous as the proxy's own limit, and a little more: the proxy wraps what it gets.
MAX_BODY_BYTES = 80 * 1024 * 1024

#: How long open answers may go on when the server stops. They are simulated: nobody loses anything.
SHUTDOWN_S = 0.1

Steps = Iterable[Mapping[str, Any]] | Path


class Sandbox:
    """Simulated upstreams on a loopback port; state and switches of P1 are in `p1`.

    >>> async def example() -> dict[str, str]:
    ...     async with Sandbox(script=[{"fault": "cut_text"}]) as sandbox:
    ...         return sandbox.settings()

    `script` is a list of steps or a JSON file of them (see `proxy.sandbox.script`). `port` 0 takes a free one, which is
    kept over stop and start. State lives as long as the object, so a restart looks like an outage.
    """

    def __init__(
        self,
        *,
        script: Steps = (),
        port: int = 0,
        options: P1Options | None = None,
        word_delay_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        steps = load_steps(script) if isinstance(script, Path) else script
        self.p1 = P1(options, steps, clock)
        if word_delay_s is not None:
            self.p1.options.word_delay_s = word_delay_s
        self.port = port
        self._runner: web.AppRunner | None = None

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Binds and serves. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        self.p1.add_routes(app)
        # a client that leaves must end its answer here, as it would in production
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, self.port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]
        self.p1.origin = self.origin

    async def stop(self) -> None:
        """Ends open answers and frees the port. A second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Sandbox:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy at this sandbox."""
        return self.p1.settings()

    def write_credentials(
        self, config_root: Path, *, lifetime_s: int | None = None, expires_ms: int | None = None
    ) -> Path:
        """Signs in and stores the credential as the proxy would; returns the file.

        A negative `lifetime_s` stores an expired token (with a refresh token that works); `expires_ms` only changes
        the time in the file.
        """
        record = self.p1.stored_credential(lifetime_s, expires_ms)
        return _write_private(config_root / "p1" / "auth.json", json.dumps(record, indent=2) + "\n")


def _write_private(path: Path, text: str) -> Path:
    """Writes the file for its owner only, at once or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)
    return path
