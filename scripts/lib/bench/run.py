"""Starts upstream, pipe and proxy as processes of their own, asks each for every row, prints a table of Markdown.

Another program is measured with the same requests when the upstream of its providers is ours: its address stands in
the first line, and `--upstream-port` makes it known beforehand. With `--peers` all programs are asked in turns, again
and again, and the table has medians: the speed of a machine moves within minutes, and so do ratios of rows that were
measured one after another.

The wires that are a conversation (p1 over WebSocket, p5) are played by the sandbox, which works harder for an answer
than a service's edge does: there CPU and memory of the proxy are worth something, delays are not, and there is no pipe.
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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench import calls, history, transports
from bench.load import Seen
from bench.process import Account, Process
from bench.rows import PACED, ROWS, WIRES, Row

#: The name of the program that passes bytes on.
PIPE = "pipe"
R = TypeVar("R", Row, calls.Kind)

WARM = 40
#: Seconds of a slice; the fewest and the most requests in it. A row that is played slowly is one slice as a whole.
SLICE_S, FEWEST, MOST = 2.0, 20, 5_000
IDLE_SESSIONS = 2000
#: After a start, imports go on in the background.
SETTLED_S = 10.0
#: Beyond every number of streams that is measured.
LIMITS = {
    "PROXY_P1_TRANSPORT": "http",
    "PROXY_MAX_CONCURRENT_REQUESTS": "5000",
    "PROXY_MAX_CONCURRENT_PER_PROVIDER": "5000",
    "PROXY_MAX_CONNECTIONS": "6000",
}
#: The sandbox's answers of so many words come one by one.
SLOW = [{"match": {"contains": f"PLAY {PACED} TEXTS EVERY 20 MS"}, "word_delay_s": 0.02, "times": None}]
#: How another program is put beside ours.
BESIDE = """\
Put another program beside ours:
1. Let it ask {base} in place of its services: for chat completions, Messages and Responses the paths are those of the
   services' own, below that address. Any key will do.
2. Let it serve the models that the rows ask for: {models}.
3. Run this again with --upstream-port {port} --other NAME URL PID for each of them: where it listens, and its process,
   whose children count too."""
HEAD = (
    "| request | program | CPU a request | / pipe | a text | first text: median, 99 % | whole: median, 99 % |"
    " silence, lag | resident | a stream | descriptors |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A program that is measured; `path`: where it is asked, "" for where the upstream is."""

    name: str
    url: str
    account: Account
    path: str = "/v1/messages"

    async def asked(self, row: Row, file: Path, requests: int, connections: int, sessions: str = "kept") -> Seen:
        file.write_bytes(row.body())
        url = f"{self.url}{self.path or WIRES[row.wire].path}"
        arguments = ("-m", "bench.load", url, file, requests, connections, row.texts, sessions, row.apart_ms)
        process = await asyncio.create_subprocess_exec(
            sys.executable, *map(str, arguments), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{row.name}: {self.name} failed")
        return Seen(**json.loads(out))


@dataclass(frozen=True, slots=True)
class Result:
    """
    cpu_ms       of a request; `text_us` of one of its texts
    resident_mb  at most, and `stream_kb` of each stream beyond what was there before
    descriptors  at most
    """

    row: str
    program: str
    cpu_ms: float
    text_us: float
    seen: Seen
    resident_mb: float
    stream_kb: float
    descriptors: int

    def line(self, pipe_ms: float | None) -> str:
        """A row of the table. `pipe_ms`: CPU of the pipe for a request, None without one."""
        seen, many = self.seen, not self.row.endswith("at once")
        return (
            f"| {self.row} | {self.program} | {self.cpu_ms:.2f} ms"
            f" | {f'{self.cpu_ms / pipe_ms:.1f}' if pipe_ms else ''} | {self.text_us:.0f} µs"
            f" | {seen.first_median:.1f}, {seen.first_99:.1f} ms | {seen.whole_median:.1f}, {seen.whole_99:.1f} ms"
            f" | {seen.silence:.0f}, {seen.lag:.0f} ms | {self.resident_mb:.0f} MB"
            f" | {f'{self.stream_kb:.0f} kB' if many else ''} | {self.descriptors:.0f} |"
        )


async def in_turns(
    targets: Sequence[Target], row: Row, file: Path, requests: int, slices: int
) -> Mapping[str, Sequence[Result]]:
    """name of a program -> the results of its slices, of which a first one says how many requests one takes."""
    counts = dict.fromkeys((target.name for target in targets), requests)
    found: dict[str, list[Result]] = {target.name: [] for target in targets}
    for target in targets:
        await target.asked(row.at_once(), file, WARM, 1)
        if slices > 1 and not row.every_ms:
            first = await measured(target, row, file, FEWEST)
            counts[target.name] = min(MOST, max(FEWEST, round(1000 * SLICE_S / first.seen.whole_median)))
    for number in range(slices):
        for target in targets[:: -1 if number % 2 else 1]:
            found[target.name].append(await measured(target, row, file, counts[target.name]))
    return found


def together(results: Sequence[Result]) -> Result:
    """The medians of the slices of a program; of the 99th percentiles, too."""
    seen = Seen(*map(median, zip(*(astuple(one.seen) for one in results), strict=True)))
    middle = {
        name: median(getattr(one, name) for one in results)
        for name in ("cpu_ms", "text_us", "resident_mb", "stream_kb", "descriptors")
    }
    return replace(results[0], seen=seen, **middle)


async def measured(target: Target, row: Row, file: Path, requests: int) -> Result:
    count = row.streams if row.every_ms else requests
    before, cpu = target.account.resident_mb(), target.account.cpu_s()
    watch = asyncio.create_task(_most(target.account))
    seen = await target.asked(row, file, count, row.streams)
    spent = target.account.cpu_s() - cpu
    watch.cancel()
    most_mb, descriptors = await watch
    grown_kb = max(0.0, most_mb - before) * 1000 / row.streams
    each = spent / count
    return Result(
        *(row.name, target.name, each * 1000, each / row.texts * 1e6, seen, most_mb, grown_kb), descriptors=descriptors
    )


async def _most(account: Account) -> tuple[float, int]:
    """Resident MB and descriptors until it is cancelled."""
    resident, descriptors = account.resident_mb(), account.descriptors()
    try:
        while True:
            await asyncio.sleep(0.1)
            resident = max(resident, account.resident_mb())
            descriptors = max(descriptors, account.descriptors())
    except asyncio.CancelledError:
        return resident, descriptors


async def cold_start_s(environment: Mapping[str, str]) -> float:
    """From process start to the first good `/healthz`; the best of five."""
    best = 99.0
    for _ in range(5):
        started = time.perf_counter()
        async with _serving(environment) as target:
            with urllib.request.urlopen(f"{target.url}/healthz") as answer:
                assert answer.status == 200
            best = min(best, time.perf_counter() - started)
    return best


def _address(process: Process) -> str:
    found = re.search(r"http://[^\s/]+", process.first_line)
    assert found, process.first_line
    return found[0]


@asynccontextmanager
async def _serving(environment: Mapping[str, str]) -> AsyncIterator[Target]:
    async with AsyncExitStack() as stack:
        process = await Process.start(stack, "-m", "proxy", "serve", "--port", "0", environment=environment)
        yield Target("proxy", _address(process), process)


async def _environments(stack: AsyncExitStack, base: str, root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Of a proxy before our upstream, and of one before the sandbox."""
    script = root / "script.json"
    script.write_text(json.dumps(SLOW))
    sandbox = await Process.start(stack, "-m", "proxy", "sandbox", "--script", str(script))
    played = {**json.loads(sandbox.first_line), **LIMITS, "XDG_STATE_HOME": str(root)}
    bases = {f"PROXY_{label.upper()}_BASE_URL": base for label in ("p2", "p3", "p4")}
    return {**played, **bases, "PROXY_P1_BASE_URL": f"{base}{WIRES['p1'].path}"}, played


async def table(options: argparse.Namespace, rows: list[Row], stack: AsyncExitStack) -> None:
    root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="model-proxy-bench-")))
    upstream = await Process.start(stack, "-m", "bench.upstream", str(options.upstream_port))
    base = upstream.first_line.strip()
    environment, played = await _environments(stack, base, root)
    print(f"Upstream: {base}; {_conditions()}\n\n{HEAD}", file=sys.stderr if options.json else sys.stdout)
    if options.slices > 1 and not options.other:
        models = sorted({WIRES[row.wire].model for row in rows})
        print(BESIDE.format(base=base, models=", ".join(models), port=base.rpartition(":")[2]), file=sys.stderr)
    file = root / "body.json"
    pipe = await Process.start(stack, "-m", "bench.pipe", base)
    others = [Target(PIPE, _address(pipe), pipe, "")]
    others += [Target(name, url, Account(int(pid))) for name, url, pid in options.other]
    for row in rows:
        wire = WIRES[row.wire]
        settings = {**(environment if wire.path else played), **wire.settings}
        async with _serving(settings) as proxy:  # a new one, so that no row finds the memory of another
            targets = [*(others if wire.path else ()), proxy]
            slices = await in_turns(targets, row, file, options.requests, options.slices)
        results = [together(each) for each in slices.values()]
        pipe_ms = next((one.cpu_ms for one in results if one.program == PIPE), None)
        for result in results:
            print(json.dumps(asdict(result)) if options.json else result.line(pipe_ms), flush=True)
    if rows == [*ROWS]:
        print(await _idle(environment, file))


async def _idle(environment: Mapping[str, str], file: Path) -> str:
    start_s = await cold_start_s(environment)
    async with _serving(environment) as proxy:
        await asyncio.sleep(SETTLED_S)
        idle_mb, row = proxy.account.resident_mb(), Row("p2")
        await proxy.asked(row, file, IDLE_SESSIONS // 4, 4, "new")
        before = proxy.account.resident_mb()
        await proxy.asked(row, file, IDLE_SESSIONS, 4, "new")
        kb = (proxy.account.resident_mb() - before) * 1000 / IDLE_SESSIONS
    return f"\nStart to a good /healthz: {start_s:.2f} s. Idle: {idle_mb:.0f} MB. A session that is over: {kb:.1f} kB."


def _conditions() -> str:
    system, version = platform.uname(), platform.python_version()
    load_now = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {system.system} {system.release}, Python {version}, load before {load_now:.1f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="CPU, delays and memory beside a pipe of bytes.")
    parser.add_argument("--rows", action="append", metavar="TEXT", help="only rows with this text in their name")
    parser.add_argument("--requests", type=int, default=300, help="of each row that is not played slowly")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each result")
    parser.add_argument("--upstream-port", type=int, default=0, help="where the upstream listens")
    parser.add_argument("--transports", action="store_true", help="what p1's transports upload, in place of the rows")
    parser.add_argument(
        "--history", type=int, nargs="?", const=1_000_000, help="a history of so many requests, in place of the rows"
    )
    parser.add_argument("--calls", action="store_true", help="Python calls of a tiny request, in place of the rows")
    parser.add_argument("--functions", action="store_true", help="with --calls: how often each function is called")
    parser.add_argument(
        "--peers",
        type=int,
        nargs="?",
        const=10,
        default=1,
        dest="slices",
        metavar="SLICES",
        help="all programs in turns, two seconds at a time: medians; without --other, how to put others beside ours",
    )
    parser.add_argument(
        "--other", nargs=3, action="append", default=[], metavar=("NAME", "URL", "PID"), help="another program"
    )
    options = parser.parse_args()
    known: Sequence[Row | calls.Kind] = calls.KINDS if options.calls else ROWS
    if not chosen_rows(options.rows, known):
        parser.error("no row has that in its name; these are: " + "; ".join(row.name for row in known))
    return options


def chosen_rows(texts: list[str] | None, rows: Sequence[R] = ROWS) -> list[R]:
    """Those whose name has one of the texts; all without any."""
    return [row for row in rows if not texts or any(text in row.name for text in texts)]


async def main(options: argparse.Namespace) -> None:
    if options.history:
        history.table(options.history)
        return
    if options.calls:
        await calls.table(chosen_rows(options.rows, calls.KINDS), by_function=options.functions)
        return
    async with AsyncExitStack() as stack:
        await (transports.table() if options.transports else table(options, chosen_rows(options.rows), stack))


if __name__ == "__main__":
    asyncio.run(main(arguments()))
