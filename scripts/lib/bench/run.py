"""Starts upstream, pipe and proxy as processes of their own, asks each for every row, prints a table of Markdown.

`python -m bench.run [--rows TEXT] [--requests N] [--transports] [--upstream-port N] [--other NAME URL PID]`

Another program is measured with the same requests when the upstream of its providers is ours: its address stands in
the first line, and `--upstream-port` makes it known beforehand. Not measured: p1 over WebSocket and p5, whose upstream
is a conversation; the two other wires of p4.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import transports
from bench.load import Seen
from bench.process import Account, Process
from bench.rows import PROVIDERS, ROWS, Row
from proxy.sandbox import Sandbox

WARM = 40
#: Beyond every number of streams that is measured.
LIMITS = {
    "PROXY_P1_TRANSPORT": "http",
    "PROXY_MAX_CONCURRENT_REQUESTS": "5000",
    "PROXY_MAX_CONCURRENT_PER_PROVIDER": "5000",
    "PROXY_MAX_CONNECTIONS": "6000",
}
HEAD = (
    "| request | program | CPU a request | a text | first text: median, 99 % | whole: median, 99 % | resident |"
    " a stream |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A program that is measured; `path`: where it is asked, "" for where the upstream is."""

    name: str
    url: str
    account: Account
    path: str = "/v1/messages"

    def address(self, row: Row) -> str:
        return f"{self.url}{self.path or PROVIDERS[row.provider][1]}"


async def load(url: str, file: Path, requests: int, connections: int) -> Seen:
    arguments = ("-m", "bench.load", url, str(file), str(requests), str(connections))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{url}: the load failed")
    return Seen(*json.loads(out))


async def measured(target: Target, row: Row, file: Path, requests: int) -> str:
    """A line of the table."""
    url, count = target.address(row), row.streams if row.every_ms else requests
    if not row.every_ms:  # the others are warm from these
        await load(url, file, WARM, 1)
    before, cpu = target.account.resident_mb(), target.account.cpu_s()
    peak = asyncio.create_task(_peak(target.account))
    seen = await load(url, file, count, row.streams)
    spent = target.account.cpu_s() - cpu
    peak.cancel()
    most = max(await asyncio.gather(peak), default=before)
    stream = f"{max(0.0, most - before) / row.streams * 1000:.0f} kB" if row.streams > 1 else ""
    return (
        f"| {row.name} | {target.name} | {spent / count * 1000:.2f} ms | {spent / count / row.texts * 1e6:.0f} µs"
        f" | {seen.first_median:.1f}, {seen.first_99:.1f} ms | {seen.whole_median:.1f}, {seen.whole_99:.1f} ms"
        f" | {most:.0f} MB | {stream} |"
    )


async def _peak(account: Account) -> float:
    """The most resident MB until it is cancelled."""
    most = account.resident_mb()
    try:
        while True:
            most = max(most, account.resident_mb())
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        return most


async def cold_start_s(environment: Mapping[str, str]) -> float:
    """From process start to the first good `/healthz`; the best of five."""
    best = 99.0
    for _ in range(5):
        async with AsyncExitStack() as stack:
            started = time.perf_counter()
            process = await Process.start(stack, *SERVE, environment=environment)
            with urllib.request.urlopen(f"{_address(process)}/healthz") as answer:
                assert answer.status == 200
            best = min(best, time.perf_counter() - started)
    return best


SERVE = ("-m", "proxy", "serve", "--port", "0")


def _address(process: Process) -> str:
    return re.findall(r"http://[^\s/]+", process.first_line)[0]


async def main(options: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="model-proxy-bench-"))
        sandbox = await stack.enter_async_context(Sandbox())  # signs in; nobody asks it for an answer
        sandbox.write_credentials(Path(root))
        upstream = await Process.start(stack, "-m", "bench.upstream", str(options.upstream_port))
        base = upstream.first_line.strip()
        bases = {f"PROXY_{label.upper()}_BASE_URL": base for label in PROVIDERS}
        environment = {**sandbox.settings(), **LIMITS, **bases, "PROXY_CONFIG_DIR": root, "XDG_STATE_HOME": root}
        environment["PROXY_P1_BASE_URL"] = f"{base}{PROVIDERS['p1'][1]}"
        print(f"Upstream: {base}; {_conditions()}\n")
        start_s = await cold_start_s(environment)
        pipe = await Process.start(stack, "-m", "bench.pipe", base)
        proxy = await Process.start(stack, *SERVE, environment=environment)
        idle_mb = proxy.resident_mb()
        targets = [Target("pipe", _address(pipe), pipe, ""), Target("proxy", _address(proxy), proxy)]
        targets += [Target(name, url, Account(int(pid))) for name, url, pid in options.other]
        print(HEAD)
        for row in ROWS:
            if options.rows in row.name:
                file = Path(root) / "body.json"
                file.write_bytes(row.body())
                for target in targets:
                    print(await measured(target, row, file, options.requests), flush=True)
        print(f"\nStart to a good /healthz: {start_s:.2f} s. Idle: {idle_mb:.0f} MB.")


def _conditions() -> str:
    system, version = platform.uname(), platform.python_version()
    load_now = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {system.system} {system.release}, Python {version}, load before {load_now:.1f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="CPU, delays and memory beside a pipe of bytes.")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows with this text in their name")
    parser.add_argument("--requests", type=int, default=300, help="of each row that is not played slowly")
    parser.add_argument("--upstream-port", type=int, default=0, help="where the upstream listens")
    parser.add_argument("--transports", action="store_true", help="what p1's transports upload, in place of the rows")
    parser.add_argument(
        "--other", nargs=3, action="append", default=[], metavar=("NAME", "URL", "PID"), help="another program"
    )
    return parser.parse_args()


if __name__ == "__main__":
    chosen = arguments()
    asyncio.run(transports.table() if chosen.transports else main(chosen))
