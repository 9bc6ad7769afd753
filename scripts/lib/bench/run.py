"""Starts upstream, pipe and proxy as processes of their own, sends the requests one after another, prints the table."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from bench import requests, transports
from bench.process import Process

COUNT = int(os.environ.get("BENCH_REQUESTS", "300"))
WARM = 30

#: name -> the request, and whether its last message changes each time
REQUESTS = {
    "tiny": (requests.tiny(), True),
    "agent, 86 kB": (requests.agent(), True),
    "answer of 400 events": (requests.many_events(), False),
}


async def cost_ms(
    session: aiohttp.ClientSession, target: Process, url: str, body: Callable[[int], bytes]
) -> tuple[float, float]:
    """`(CPU ms a request, median wall ms)` of a process, requests one after another."""
    walls, before = [], 0.0
    for number in range(WARM + COUNT):
        if number == WARM:
            before = target.cpu_s()
        started = time.perf_counter()
        async with session.post(url, data=body(number), headers={"content-type": "application/json"}) as answer:
            assert answer.status == 200, (answer.status, await answer.text())
            async for _ in answer.content.iter_any():
                pass
        walls.append((time.perf_counter() - started) * 1000)
    return (target.cpu_s() - before) * 1000 / COUNT, statistics.median(walls[WARM:])


def cold_start_s(environment: Mapping[str, str]) -> float:
    """From process start to the first good `/healthz`; the best of five."""
    import subprocess

    best = 99.0
    for _ in range(5):
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "proxy", "serve", "--port", "0"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        url = re.findall(r"http://\S+", process.stdout.readline())[0]
        with urllib.request.urlopen(f"{url}/healthz") as answer:
            assert answer.status == 200
        best = min(best, time.perf_counter() - started)
        process.terminate()
        process.wait()
        process.stdout.close()
    return best


async def main() -> None:
    async with AsyncExitStack() as stack:
        sandbox = await Process.start(stack, "-m", "proxy", "sandbox")
        settings = json.loads(sandbox.first_line)
        credential = json.loads((Path(settings["PROXY_CONFIG_DIR"]) / "p1" / "auth.json").read_text())
        environment = {**settings, "XDG_STATE_HOME": settings["PROXY_CONFIG_DIR"]}
        start_s = cold_start_s(environment)
        pipe = await Process.start(
            stack, "-m", "bench.pipe", settings["PROXY_P1_BASE_URL"], credential["access"], credential["accountId"]
        )
        proxy = await Process.start(stack, "-m", "proxy", "serve", "--port", "0", environment=environment)
        url = re.findall(r"http://\S+", proxy.first_line)[0]
        idle_mb = proxy.resident_mb()
        session = await stack.enter_async_context(aiohttp.ClientSession())
        print(
            f"{COUNT} requests each, one after another, on {os.cpu_count()} cores; CPU of the process in the middle\n"
        )
        print(f"{'request':26}{'pipe CPU':>10}{'proxy CPU':>11}{'ratio':>7}{'pipe wall':>11}{'proxy wall':>12}")
        cpu = {}
        for name, (body, varied) in REQUESTS.items():
            ready = [json.dumps(requests.newest(body, n) if varied else body).encode() for n in range(WARM + COUNT)]
            piped = json.dumps(requests.upstream_form(body)).encode()
            pipe_cpu, pipe_wall = await cost_ms(session, pipe, pipe.first_line.strip(), lambda _, piped=piped: piped)
            own_cpu, own_wall = await cost_ms(session, proxy, f"{url}/v1/messages", lambda n, ready=ready: ready[n])
            cpu[name] = own_cpu
            print(
                f"{name:26}{pipe_cpu:>7.2f} ms{own_cpu:>8.2f} ms{own_cpu / max(pipe_cpu, 0.01):>7.1f}"
                f"{pipe_wall:>8.2f} ms{own_wall:>9.2f} ms"
            )
        events_us = (cpu["answer of 400 events"] - cpu["tiny"]) / 400 * 1000
        print(f"\nCPU a streamed event: {events_us:.1f} µs (aim 10)")
        print(f"start to a good /healthz: {start_s:.2f} s (aim 0.6)")
        print(f"resident, idle: {idle_mb:.0f} MB (aim 60); with the vocabulary loaded: {proxy.resident_mb():.0f} MB")


if __name__ == "__main__":
    asyncio.run(main())
    asyncio.run(transports.table())
