"""The simulators as a process of their own, without the proxy: what a vendor's own client is pointed at."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trustme

START_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Simulators:
    """Where they are, and the folder with credentials that work there, one folder a label."""

    origin: str
    credentials: Path

    def credential(self, label: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.credentials / label / "auth.json").read_text())
        return found


@asynccontextmanager
async def simulators(folder: Path, script: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Simulators]:
    """`python -m proxy sandbox` on a free port; ends it by pid."""
    path = folder / "script.json"
    path.write_text(json.dumps(list(script)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "sandbox", "--port", "0", "--script", str(path)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the sandbox has no stdout")
        settings = json.loads(await asyncio.wait_for(process.stdout.readline(), START_LIMIT_S))
        place = urlsplit(settings["PROXY_P1_BASE_URL"])
        yield Simulators(f"{place.scheme}://{place.netloc}", Path(settings["PROXY_CONFIG_DIR"]))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def behind_tls(origin: str, folder: Path) -> AsyncIterator[tuple[str, Path]]:
    """The same over https, for a client that takes nothing else: the origin, and the certificate to be trusted."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(certificate := folder / "authority.pem"))
    place = urlsplit(origin)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            back_reader, back_writer = await asyncio.open_connection(place.hostname, place.port)
            await asyncio.gather(_copy(reader, back_writer), _copy(back_reader, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", certificate
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
