"""Asks running proxies for their monitor's snapshots, and for their history, with the caller key of this machine's
settings, and directly, whatever outgoing proxies the environment names."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from proxy.cli.banner import reachable
from proxy.cli.command import APP, Context
from proxy.cli.config_file import ConfigFile
from proxy.config import ConfigError
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from proxy.observe.monitor.snapshot import Snapshot

#: Seconds for an answer: milliseconds on this machine, longer over a network.
TIMEOUT_S = 5.0
#: A longer answer is not ours: the tables of the monitor are bounded.
MAX_ANSWER_BYTES = 16 * 1024 * 1024

_PATH = "/monitor"


class RunningProxy:
    """A proxy that is asked repeatedly over one connection.

    url  of its monitor, without a password: for messages
    """

    def __init__(self, session: ClientSession, url: str, key: str, program: str) -> None:
        self.url = url
        self._session = session
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._program = program

    async def snapshot(self) -> Snapshot:
        """Its monitor's current snapshot. Raises ProxyError, with what to do next."""
        from proxy.observe.monitor.snapshot import of_json

        status, raw = await self._get(self.url)
        if status != 200:
            raise ProxyError(self._refused(status, raw))
        try:
            return of_json(json.loads(raw))
        except (ValueError, RecursionError) as error:
            raise ProxyError(f"{self.url} answers something else than a monitor: {error}", kind="bad_answer") from None

    async def history(self, edges: Sequence[float]) -> Any:
        """Its history between these times, as plain data. Raises ProxyError."""
        status, raw = await self._get(f"{self.url}/history?edges={','.join(f'{edge:.0f}' for edge in edges)}")
        if status != 200:
            raise ProxyError(_message(raw) or self._refused(status, raw))
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ProxyError(f"{self.url}/history answers something else than a history: {error}") from None

    async def _get(self, url: str) -> tuple[int, bytes]:
        """The status and the body; a longer one is cut, and so no JSON. Raises ProxyError."""
        from aiohttp import ClientError

        try:
            async with self._session.get(url, headers=self._headers, allow_redirects=False) as answer:
                read = bytearray()
                async for chunk in answer.content.iter_any():
                    read += chunk
                    if len(read) > MAX_ANSWER_BYTES:
                        break
                return answer.status, bytes(read)
        except (ClientError, TimeoutError, OSError) as error:
            raise ProxyError(f"no proxy answers at {self.url}{_why(error)}. {self._cure()}") from None

    def _cure(self) -> str:
        return f"Start one with `{self._program}`, or name the address of another with --url"

    def _refused(self, status: int, raw: bytes) -> str:
        if status in (401, 403):
            return f"{self.url} refuses: {_message(raw) or f'status {status}'}"
        if status == 404:
            return f"{self.url} is not there: what answers is no {APP}, or an older one. {self._cure()}"
        return f"{self.url} answers with status {status}"


class RunningProxies:
    """Proxies that are shown as one, mostly a single one."""

    def __init__(self, proxies: Sequence[RunningProxy]) -> None:
        self._proxies = proxies
        self.url = ", ".join(one.url for one in proxies)

    async def snapshot(self) -> Snapshot:
        """Their current snapshots as one. One of several that cannot be asked becomes an event. Raises ProxyError for a
        single one, and for the first where none answers."""
        from proxy.observe.monitor.snapshot import Notice
        from proxy.observe.monitor.together import together

        answers = await asyncio.gather(*(self._asked(one) for one in self._proxies))
        failures = [answer for answer in answers if isinstance(answer, ProxyError)]
        if len(failures) == len(answers):
            raise failures[0]
        whole = together([answer for answer in answers if not isinstance(answer, ProxyError)])
        missing = (Notice(time.time(), "error", failure.message) for failure in failures)
        return replace(whole, notices=(*missing, *whole.notices)) if failures else whole

    async def _asked(self, proxy: RunningProxy) -> Snapshot | ProxyError:
        try:
            return await proxy.snapshot()
        except ProxyError as error:
            return error

    async def history(self, edges: Sequence[float]) -> Any:
        """The history of the first that answers: processes with one state folder have one. Raises ProxyError."""
        for proxy in self._proxies[:-1]:
            with suppress(ProxyError):
                return await proxy.history(edges)
        return await self._proxies[-1].history(edges)


def add_url(parser: argparse.ArgumentParser) -> None:
    words = "of the proxy, by default the one that the settings name; several times: of several that are shown as one"
    parser.add_argument("--url", action="append", default=[], help=words)


@asynccontextmanager
async def running_proxies(context: Context, urls: Sequence[str]) -> AsyncIterator[RunningProxies]:
    """The proxies at these URLs, without any that of this machine's settings. Raises ConfigError."""
    from aiohttp import ClientSession, ClientTimeout

    config = ConfigFile(context, new=True).config
    parts = [_parts(url) for url in urls or [reachable(config.bind_address, config.port)]]
    key = config.api_key.reveal() if config.api_key else ""
    async with ClientSession(timeout=ClientTimeout(total=TIMEOUT_S), trust_env=False) as session:
        yield RunningProxies(
            [RunningProxy(session, _plain(one), one.password or key, context.program) for one in parts]
        )


def _plain(parts: SplitResult) -> str:
    """The URL without a password."""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


async def fetch_snapshot(context: Context, urls: Sequence[str] = ()) -> Snapshot:
    """Asks running proxies once. Raises ProxyError."""
    async with running_proxies(context, urls) as proxies:
        return await proxies.snapshot()


def _parts(url: str) -> SplitResult:
    """Parses a typed URL: the scheme and the path of the monitor may be missing. Raises ConfigError."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"--url: {url!r} is no address of a proxy, such as http://127.0.0.1:18765")
    path = parts.path.rstrip("/")
    return SplitResult(parts.scheme, parts.netloc, path if path.endswith(_PATH) else path + _PATH, "", "")


def _why(error: Exception) -> str:
    """The system's reason, after a colon; the client's own words repeat the address."""
    cause = getattr(error, "os_error", error)
    number = getattr(cause, "errno", None) or 0
    words = os.strerror(number) if number > 0 else getattr(cause, "strerror", None) or str(cause)
    return f": {words}" if words else ""


def _message(raw: bytes) -> str:
    """The message of an error of ours, "" for anything else."""
    try:
        found = json.loads(raw)["error"]["message"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return "".join(char for char in found if char.isprintable())[:500] if isinstance(found, str) else ""
