"""Starts sandbox and proxy, sends the blocks, measures behind each, says what grew."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from bench.process import Process
from soak.growth import Measured, growing_types, growth
from soak.traffic import TRANSPORTS, Client, script

TOGETHER = 8
#: How long what ends by itself may take before it counts: drained connections, closing runs.
SETTLE_S = 2.0
HELP = """Looks for leaks. To each transport --requests mixed requests on every route, with faults, leaving clients,
slow readers, tools whose results never come, and refusals. Behind each block of --block requests, once all have ended,
it prints tasks, sockets, open file descriptors and resident memory of the proxy, and its live objects after a
collection.

The first fifth of the blocks fills tables, pools and the allocator and is not judged: it has every conversation of the
run. Of the others the least value of the later half is compared with the least of the earlier half: a leak raises
both, while a block with more under way, or memory that the allocator has not given back yet, does not. More than 5 %
growth (and more than a handful of each) fails with 1, and the types of the objects that became more are named. So
does a run that the time ends before there are three blocks to judge."""


async def measured(proxy: Process, session: aiohttp.ClientSession, side: str) -> Measured:
    await asyncio.sleep(SETTLE_S)
    async with session.get(side) as answer:
        told = await answer.json()
    opened = [opened_as(path) for path in Path(f"/proc/{proxy.process.pid}/fd").iterdir()]
    values = {
        "tasks": told["tasks"],
        "sockets": sum(name.startswith("socket:") for name in opened),
        "descriptors": len(opened),
        "objects": told["objects"],
        "memory MB": proxy.resident_mb(),
    }
    return Measured(values, Counter(told["types"]))


def opened_as(path: Path) -> str:
    """What a descriptor leads to; nothing when it was closed meanwhile."""
    try:
        return str(path.readlink())
    except FileNotFoundError:
        return ""


async def block(client: Client, numbers: Sequence[int], until: float) -> None:
    """Eight at a time; none begins after `until`."""
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            if time.monotonic() > until:
                return
            await client.send(number)

    await asyncio.gather(*(worker() for _ in range(TOGETHER)))


async def soak(name: str, count: int, size: int, until: float) -> list[str]:
    """The requests over one transport; what is wrong."""
    transport, blocks, began = TRANSPORTS[name], [], time.monotonic()
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="model-proxy-soak-")))
        steps = root / "script.json"
        steps.write_text(json.dumps(script()))
        sandbox = await Process.start(stack, "-m", "proxy", "sandbox", "--script", str(steps))
        environment = {**json.loads(sandbox.first_line), **transport.settings, "XDG_STATE_HOME": str(root)}
        proxy = await Process.start(stack, "-m", "soak.served", environment=environment)
        url, side = json.loads(proxy.first_line)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        client = Client(session, url, transport, seed=count)
        for start in range(0, count, size):
            await block(client, range(start, min(start + size, count)), until)
            if time.monotonic() > until:
                break
            blocks.append(await measured(proxy, session, side))
            row = "".join(f"{value:>13.0f}" for value in blocks[-1].values.values())
            print(f"{name:14}{min(start + size, count):>8}{row}", flush=True)
    print(f"{name}: {time.monotonic() - began:.0f} s; {dict(sorted(client.seen.items()))}")
    return [f"{name}: {what}" for what in verdict(blocks, client.seen["no end"])]


def verdict(blocks: Sequence[Measured], endless: int) -> list[str]:
    """What is wrong; prints what became of each value."""
    found = growth(blocks)
    if not found:
        return [f"{len(blocks)} blocks are too few to judge"]
    print(f"    {', '.join(str(one) for one in found)}")
    wrong = [f"grew: {one}" for one in found if one.counts]
    if wrong:
        wrong.append(f"more objects: {', '.join(growing_types(blocks))}")
    return [*wrong, *([f"{endless} requests came to no end"] if endless else [])]


def arguments_of(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="soak", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000, help="to each transport (10,000)")
    parser.add_argument("--block", type=int, default=1_000, help="how many are sent between two measurements (1,000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="no request begins after that (60)")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="this alone; may be repeated")
    return parser.parse_args(given)


async def main() -> int:
    arguments = arguments_of()
    until = time.monotonic() + arguments.minutes * 60
    head = ("tasks", "sockets", "descriptors", "objects", "memory MB")
    print(f"{'transport':14}{'requests':>8}{''.join(f'{name:>13}' for name in head)}", flush=True)
    found = []
    for name in arguments.transport or TRANSPORTS:
        found += await soak(name, arguments.requests, arguments.block, until)
    print("\n".join(found) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
