"""What many streams at a time cost: `python -m bench.streams [STREAMS…]`, 1, 50, 200 and 500 by default.

Each stream has 400 words at 40 events a second, some ten seconds, after an agent's request of 86 kB, and no two are in
step. All begin at once, which is the worst case for the first word; upstream and clients are processes of their own.
CPU is the account of the proxy's process, so other work on the machine changes it little; the delays are those that a
client sees, of all processes together, on cores that they share.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.process import Process
from bench.rows import Row
from bench.run import LIMITS, SERVE

EVENTS_A_SECOND = 40
WORDS = 400
STREAMS = (1, 50, 200, 500)
IDLE_SESSIONS = 2000
#: Short requests, so that the sessions are what grows.
IDLE_AT_A_TIME = 20


@dataclass
class Seen:
    """Of one stream: seconds until the first word, and the longest silence behind it."""

    first_s: float = 0.0
    silence_s: float = 0.0
    events: int = 0


async def watch(session: aiohttp.ClientSession, url: str, body: bytes, name: str) -> Seen:
    seen, begun, last = Seen(), time.perf_counter(), 0.0
    headers = {"content-type": "application/json", "x-claude-code-session-id": name}
    async with session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 200, (answer.status, await answer.text())
        async for line in answer.content:
            if not line.startswith(b"event: content_block_delta"):
                continue
            now = time.perf_counter()
            seen.events += 1
            if last:
                seen.silence_s = max(seen.silence_s, now - last)
            else:
                seen.first_s = now - begun
            last = now
    return seen


async def peak(process: Process, done: asyncio.Event) -> tuple[float, int]:
    """The most resident MB, and the most descriptors, until it is done."""
    most, descriptors = 0.0, 0
    while not done.is_set():
        most = max(most, process.resident_mb())
        descriptors = max(descriptors, len([*Path(f"/proc/{process.process.pid}/fd").iterdir()]))
        await asyncio.sleep(0.2)
    return most, descriptors


async def measured(proxy: Process, url: str, body: bytes, streams: int) -> str:
    """A row of the table."""
    done = asyncio.Event()
    resident, cpu, begun = proxy.resident_mb(), proxy.cpu_s(), time.perf_counter()
    watched = asyncio.create_task(peak(proxy, done))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=300)) as session:
        seen = await asyncio.gather(*(watch(session, url, body, f"s{number}") for number in range(streams)))
    took, spent = time.perf_counter() - begun, proxy.cpu_s() - cpu
    done.set()
    most, descriptors = await watched
    assert all(one.events == seen[0].events for one in seen), "a stream is not whole"
    first = sorted(one.first_s * 1000 for one in seen)
    silence = max(one.silence_s for one in seen) * 1000
    return (
        f"{streams:>7}{took:>8.1f} s{spent / streams * 1000:>9.1f} ms{spent / took * 100:>8.1f} %"
        f"{(most - resident) / streams * 1000:>9.0f} kB{most:>7.0f} MB{descriptors:>6}"
        f"{statistics.median(first):>9.0f} ms{first[int(len(first) * 0.99)]:>8.0f} ms{silence:>8.0f} ms"
    )


async def idle_sessions(proxy: Process, url: str, body: bytes) -> float:
    """kB of a session that is only remembered."""
    async with aiohttp.ClientSession() as session:
        limit = asyncio.Semaphore(IDLE_AT_A_TIME)

        async def one(name: str) -> None:
            async with limit:
                await watch(session, url, body, name)

        await asyncio.gather(*(one(f"warm-{number}") for number in range(IDLE_SESSIONS // 4)))
        before = proxy.resident_mb()
        await asyncio.gather(*(one(f"idle-{number}") for number in range(IDLE_SESSIONS)))
    return (proxy.resident_mb() - before) * 1000 / IDLE_SESSIONS


async def main(counts: list[int]) -> None:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        sandbox = await Process.start(stack, "-m", "proxy", "sandbox")
        upstream = await Process.start(stack, "-m", "bench.upstream")
        settings = json.loads(sandbox.first_line)
        environment = {
            **settings,
            **LIMITS,
            "PROXY_P1_BASE_URL": f"{upstream.first_line.strip()}/responses",
            "XDG_STATE_HOME": folder,
        }
        print(
            f"{os.cpu_count()} cores, {EVENTS_A_SECOND} events a second and stream; CPU and memory of the proxy alone\n"
        )
        print("streams    took   CPU each   of core   RSS each   peak    fd   first, median, 99 %   longest silence")
        many = Row("p1", agent=True, texts=WORDS, every_ms=1000 // EVENTS_A_SECOND).body()
        proxy = await Process.start(stack, *SERVE, environment=environment)
        url = f"{re.findall(r'http://[^ ]+', proxy.first_line.strip())[0]}/v1/messages"
        await measured(proxy, url, many, 1)  # the vocabulary is loaded
        for streams in counts:
            print(await measured(proxy, url, many, streams), flush=True)
        proxy = await Process.start(stack, *SERVE, environment=environment)
        url = f"{re.findall(r'http://[^ ]+', proxy.first_line.strip())[0]}/v1/messages"
        kb = await idle_sessions(proxy, url, Row("p1").body())
        print(f"\nan idle session: {kb:.1f} kB ({IDLE_SESSIONS} of them)")


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or list(STREAMS)))
