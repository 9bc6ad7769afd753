"""Starts sandbox and proxy, sends the blocks, measures behind each, says what grew."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench.process import Process
from soak.traffic import Client, script

#: P1's transports; the blocks take them in halves.
TRANSPORTS = {
    "http": {"PROXY_P1_TRANSPORT": "http"},
    "websocket": {"PROXY_P1_TRANSPORT": "websocket", "PROXY_P1_PREVIOUS_RESPONSE_ID": "1"},
}
TOGETHER = 8
#: How long what ends by itself may take before it counts: drained connections, closing runs.
SETTLE_S = 2.0
GROWTH = 0.05
#: Growth below this is none, whatever its share: a pool with one connection more, a cache that fills a little later.
SLACK = {"tasks": 5, "sockets": 5, "objects": 3_000, "memory MB": 3}
HELP = """Mixed requests on every route and transport, with faults, leaving clients, slow readers and refusals.
Behind each block of --block requests, once all have ended, it prints tasks and live objects (after a collection),
open file descriptors and resident memory. The first third of the blocks fills tables, pools and the allocator and
is not judged. Of the others the least value of the later half is compared with the least of the earlier half: a leak
raises both, while a block with more under way, or memory that the allocator has not given back yet, does not. More
than 5 % growth (and more than a handful of each) fails with 1."""


class Measured(NamedTuple):
    tasks: int
    objects: int
    sockets: int
    memory: float

    def named(self) -> dict[str, float]:
        return {"tasks": self.tasks, "sockets": self.sockets, "objects": self.objects, "memory MB": self.memory}


def grown(blocks: Sequence[Measured]) -> list[str]:
    """What grew, with its values.

    >>> grown([Measured(9, 9, 9, 60.0)] * 6)
    []
    """
    judged = [one.named() for one in blocks[max(1, len(blocks) // 3) :]]
    half = len(judged) // 2
    found = []
    for name, slack in SLACK.items() if half else ():
        early, late = (min(one[name] for one in part) for part in (judged[:half], judged[half:]))
        if late - early > max(slack, early * GROWTH):
            found.append(f"{name} grew from {early:.0f} to {late:.0f}")
    return found


async def measured(proxy: Process, session: aiohttp.ClientSession, side: str) -> Measured:
    await asyncio.sleep(SETTLE_S)
    async with session.get(side) as answer:
        told = await answer.json()
    sockets = len(list(Path(f"/proc/{proxy.process.pid}/fd").iterdir()))
    return Measured(told["tasks"], told["objects"], sockets, proxy.resident_mb())


async def block(client: Client, numbers: Sequence[int], until: float) -> None:
    """Eight at a time; none begins after `until`."""
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            if time.monotonic() > until:
                return
            await client.send(number)

    await asyncio.gather(*(worker() for _ in range(TOGETHER)))


async def soak(transport: str, count: int, size: int, until: float) -> list[str]:
    """The requests over one transport of P1; what grew."""
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="model-proxy-soak-")))
        steps = root / "script.json"
        steps.write_text(json.dumps(script()))
        sandbox = await Process.start(stack, "-m", "proxy", "sandbox", "--script", str(steps))
        environment = {**json.loads(sandbox.first_line), **TRANSPORTS[transport], "XDG_STATE_HOME": str(root)}
        proxy = await Process.start(stack, "-m", "soak.served", environment=environment)
        url, side = json.loads(proxy.first_line)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        client, blocks = Client(session, url, seed=count), []
        for start in range(0, count, size):
            await block(client, range(start, min(start + size, count)), until)
            if time.monotonic() > until:
                print("the time is over")
                break
            blocks.append(await measured(proxy, session, side))
            row = "".join(f"{name} {value:>9.0f}   " for name, value in blocks[-1].named().items())
            print(f"{transport:10}{start + size:>7}   {row}", flush=True)
        print(f"{transport}: {dict(sorted(client.seen.items()))}")
        odd = [f"{times} times {name}" for name, times in client.seen.items() if name == "no end"]
        return [f"{transport}: {what}" for what in [*grown(blocks), *odd]]


async def main() -> int:
    parser = argparse.ArgumentParser(
        prog="soak", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--block", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=30.0, help="no request begins after that")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.minutes * 60
    found = []
    for transport in TRANSPORTS:
        found += await soak(transport, arguments.requests // len(TRANSPORTS), arguments.block, until)
    print("\n".join(found) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
