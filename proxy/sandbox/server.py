"""The simulated upstreams as one local server, for tests, for `serve --sandbox` and for running alone.

Adding an upstream is a folder and a line in SIMULATORS.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.p1.simulator import P1_SIMULATOR
from proxy.sandbox.p1.state import P1
from proxy.sandbox.p2.simulator import P2_SIMULATOR
from proxy.sandbox.p2.state import P2
from proxy.sandbox.p3.simulator import P3_SIMULATOR
from proxy.sandbox.p3.state import P3
from proxy.sandbox.p4.inference import P4_SIMULATOR
from proxy.sandbox.p4.state import P4
from proxy.sandbox.p5.simulator import P5_SIMULATOR
from proxy.sandbox.p5.state import P5
from proxy.sandbox.play.script import Tables, load_steps, read_steps
from proxy.sandbox.upstream import MAX_BODY_BYTES, Host, Options, Simulator, Upstream, answer_refusals

SIMULATORS: tuple[Simulator, ...] = (P1_SIMULATOR, P2_SIMULATOR, P3_SIMULATOR, P4_SIMULATOR, P5_SIMULATOR)

#: Every fault that a script's step may name, by place.
FAULTS: Tables = {place: table for simulator in SIMULATORS for place, table in simulator.tables.items()}


HOST = "127.0.0.1"

#: Seconds that open answers may go on when the server stops. They are simulated, so no data is lost.
SHUTDOWN_S = 0.1

Steps = Iterable[Mapping[str, Any]] | Path


class Sandbox:
    """Simulated upstreams on a loopback port; each one's state and switches are an attribute named by its label.

    >>> async def example() -> dict[str, str]:
    ...     async with Sandbox(script=[{"fault": "cut_text"}]) as sandbox:
    ...         return sandbox.settings()

    `script` is a list of steps or a JSON file of them (see `proxy.sandbox.play.script`). A step without a provider is
    used by the first one with a request for it; `p1.script` and the like hold each one's remaining steps. `options` are
    those of the upstreams that do not use the defaults. `port` 0 takes a free one, which is kept over stop and start.
    State lives as long as the object, so a restart looks like an outage.
    """

    p1: P1
    p2: P2
    p3: P3
    p4: P4
    p5: P5

    def __init__(
        self,
        *,
        script: Steps = (),
        port: int = 0,
        options: Iterable[Options] = (),
        word_delay_s: float | None = None,
        clock: Callable[[], float] = time.time,
        simulators: tuple[Simulator, ...] = SIMULATORS,
    ) -> None:
        self.port = port
        self.host = Host(clock)
        given = {type(one): one for one in options}
        self.upstreams = {
            one.label: one.upstream(self.host, given.pop(one.options, one.options()), one.tables) for one in simulators
        }
        if given:
            raise ValueError(f"no simulator has these options: {', '.join(one.__name__ for one in given)}")
        vars(self).update(self.upstreams)
        self._simulators = simulators
        tables = {place: table for one in simulators for place, table in one.tables.items()}
        steps = read_steps(load_steps(script) if isinstance(script, Path) else script, tables)
        for upstream in self.upstreams.values():
            upstream.script.share(steps)
            if word_delay_s is not None:
                upstream.options.word_delay_s = word_delay_s
        self._runner: web.AppRunner | None = None

    def __getitem__(self, label: str) -> Upstream:
        return self.upstreams[label]

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Binds and serves. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[answer_refusals])
        for one in self._simulators:
            app.add_routes(one.routes(self.upstreams[one.label]))
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
        self.host.origin = self.origin

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
        return {name: value for upstream in self.upstreams.values() for name, value in upstream.settings().items()}

    def write_credentials(
        self, config_root: Path, *, lifetime_s: int | None = None, expires_ms: int | None = None
    ) -> Path:
        """Signs in where needed and stores the credentials as the proxy would, in one folder for each label.

        A negative `lifetime_s` stores an expired token (with a refresh token that works); `expires_ms` only changes the
        time in the file. Returns the file of P1."""
        for label, upstream in self.upstreams.items():
            for name, text in upstream.credentials(lifetime_s, expires_ms).items():
                _write_private(config_root / label / name, text)
        return config_root / "p1" / "auth.json"


def _write_private(path: Path, text: str) -> None:
    """Writes the file for its owner only, at once or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


async def run_alone(
    port: int = 0,
    script: Path | None = None,
    *,
    credentials_dir: Path | None = None,
    word_delay_s: float = 0.0,
    out: TextIO | None = None,
) -> None:
    """Serves until cancelled. Raises OSError (port, files) or ScriptError before the line is printed.

    The line is a JSON object of variables for the proxy. PROXY_CONFIG_DIR is a folder with credentials that work here,
    `credentials_dir` or else a temporary one that disappears at the end; XDG_STATE_HOME is below it, so that nothing
    simulated is kept among what is known of real accounts.
    """
    with tempfile.TemporaryDirectory(prefix="sandbox-") as temporary:
        root = credentials_dir or Path(temporary)
        async with Sandbox(script=script or (), port=port, word_delay_s=word_delay_s) as sandbox:
            sandbox.write_credentials(root)
            settings = {**sandbox.settings(), "PROXY_CONFIG_DIR": str(root), "XDG_STATE_HOME": str(root / "state")}
            print(dump_json(settings), file=out or sys.stdout, flush=True)
            await asyncio.Event().wait()
