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

from proxy.sandbox.p1.responses import WIRE as P1_WIRE
from proxy.sandbox.p1.simulator import P1, P1Options
from proxy.sandbox.p1.socket.faults import WIRE as P1_SOCKET_WIRE
from proxy.sandbox.p1.socket.upgrade import UPGRADE
from proxy.sandbox.p1.socket.upgrade_faults import UPGRADE_FAULTS
from proxy.sandbox.p2.simulator import P2, P2Options
from proxy.sandbox.p2.simulator import WIRES as P2_WIRES
from proxy.sandbox.p4.simulator import P4, P4Options
from proxy.sandbox.p4.simulator import WIRES as P4_WIRES
from proxy.sandbox.play.script import Tables, load_steps, read_steps
from proxy.sandbox.upstream import MAX_BODY_BYTES

HOST = "127.0.0.1"

#: How long open answers may go on when the server stops. They are simulated: nobody loses anything.
SHUTDOWN_S = 0.1

#: Every fault that a step of a script may name, by the place where it can be played.
FAULTS: Tables = {
    **{wire.place: wire.table for wire in (P1_WIRE, P1_SOCKET_WIRE, *P2_WIRES, *P4_WIRES)},
    UPGRADE: UPGRADE_FAULTS,
}

Steps = Iterable[Mapping[str, Any]] | Path


class Sandbox:
    """Simulated upstreams on a loopback port; the state and the switches of each are in `p1`, `p2` and `p4`.

    >>> async def example() -> dict[str, str]:
    ...     async with Sandbox(script=[{"fault": "cut_text"}]) as sandbox:
    ...         return sandbox.settings()

    `script` is a list of steps or a JSON file of them (see `proxy.sandbox.play.script`): a step that names no
    provider is used by whichever gets a request for it; `p1.script` and its like hold what each may still play. `port`
    0 takes a free one, which is kept over stop and start. State lives as long as the object, so a restart looks like an
    outage.
    """

    def __init__(
        self,
        *,
        script: Steps = (),
        port: int = 0,
        options: P1Options | None = None,
        p2_options: P2Options | None = None,
        p4_options: P4Options | None = None,
        word_delay_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.p1 = P1(options, clock)
        self.p2 = P2(p2_options, clock)
        self.p4 = P4(p4_options, clock)
        self._upstreams = (self.p1, self.p2, self.p4)
        steps = read_steps(load_steps(script) if isinstance(script, Path) else script, FAULTS)
        for upstream in self._upstreams:
            upstream.script.share(steps)
            if word_delay_s is not None:
                upstream.options.word_delay_s = word_delay_s
        self.port = port
        self._runner: web.AppRunner | None = None

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Binds and serves. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        for upstream in self._upstreams:
            upstream.add_routes(app)
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
        for upstream in self._upstreams:
            upstream.origin = self.origin

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
        return {name: value for upstream in self._upstreams for name, value in upstream.settings().items()}

    def write_credentials(
        self, config_root: Path, *, lifetime_s: int | None = None, expires_ms: int | None = None
    ) -> Path:
        """Signs in at P1 and P2 and stores the credentials as the proxy would; returns the file of P1.

        P2's stands in `p2/auth.json` beside the `device_id` that it is bound to; P4 has a key only, see `settings`.
        A negative `lifetime_s` stores an expired token (with a refresh token that works); `expires_ms` only changes
        the time in the file.
        """
        records = {
            "p1": self.p1.stored_credential(lifetime_s, expires_ms),
            "p2": self.p2.stored_credential(lifetime_s, expires_ms),
        }
        for label, record in records.items():
            _write_private(config_root / label / "auth.json", json.dumps(record, indent=2) + "\n")
        _write_private(config_root / "p2" / "device_id", self.p2.options.device_id)
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
