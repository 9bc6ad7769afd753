"""P1's transports: what an agent's session uploads, and how long the first event takes.

The upstream is the sandbox in this process, which counts the bytes it gets; the proxy is a process of its own. The
sandbox reads a whole conversation for each answer, so the wait is taken from a small one, where its work is small. All
of it is on loopback: what a reused connection saves of TLS and of the way to the upstream does not show here.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp

from bench import requests
from bench.process import Process
from proxy.sandbox import Sandbox

TURNS = int(os.environ.get("BENCH_TURNS", "60"))
SESSION = {"x-claude-code-session-id": "bench", "content-type": "application/json"}

#: name -> settings of the proxy
TRANSPORTS: Mapping[str, Mapping[str, str]] = {
    "http": {"PROXY_P1_TRANSPORT": "http"},
    "websocket": {"PROXY_P1_TRANSPORT": "websocket"},
    "websocket, continuation": {"PROXY_P1_TRANSPORT": "websocket", "PROXY_P1_PREVIOUS_RESPONSE_ID": "1"},
}


#: One of each lane: the first has instructions and tools in every request, the other as items of its input, which a
#: continuation need not repeat.
MODELS = ("gpt-5.5", "gpt-5.6-sol")

#: What a turn adds, about 2 kB beside the answer: a question, or the result of a tool.
WORDS_A_TURN = 400


async def table() -> None:
    """Prints a line for each model and transport. The first turn, whose socket is new, counts for the upload only."""
    print(f"\nAn agent's session of {TURNS} turns, beginning at 86 kB\n")
    print(f"{'model and transport':37}{'upload a turn':>15}{'last turn':>12}{'first event':>14}")
    for model in MODELS:
        for name, settings in TRANSPORTS.items():
            async with AsyncExitStack() as stack:
                sizes, _ = await _session(stack, {**requests.agent(), "model": model}, settings)
            async with AsyncExitStack() as stack:
                _, waits = await _session(stack, {**requests.tiny(), "model": model}, settings)
            mean, last, wait = statistics.mean(sizes) / 1000, sizes[-1] / 1000, statistics.median(waits[1:]) * 1000
            print(f"{f'{model} {name}':37}{mean:>12.1f} kB{last:>9.1f} kB{wait:>11.2f} ms")


async def _session(
    stack: AsyncExitStack, body: requests.Body, settings: Mapping[str, str]
) -> tuple[list[int], list[float]]:
    """Bytes of each request that reached the upstream, and seconds to the first event with content."""
    root = stack.enter_context(tempfile.TemporaryDirectory(prefix="model-proxy-bench-"))
    sandbox = await stack.enter_async_context(Sandbox())
    sandbox.write_credentials(Path(root))
    own = {"PROXY_CONFIG_DIR": root, "XDG_STATE_HOME": root}
    arguments = ("-m", "proxy", "serve", "--port", "0")
    proxy = await Process.start(stack, *arguments, environment={**sandbox.settings(), **own, **settings})
    url = re.findall(r"http://\S+", proxy.first_line)[0]
    client = await stack.enter_async_context(aiohttp.ClientSession())
    waits = []
    for number in range(TURNS):
        started = time.perf_counter()
        text, first = await _turn(client, url, body)
        waits.append(first - started)
        messages = [*body["messages"], {"role": "assistant", "content": [{"type": "text", "text": text}]}]
        body = {**body, "messages": [*messages, {"role": "user", "content": requests.prose(WORDS_A_TURN, number)}]}
    return [received.size for received in sandbox.p1.requests], waits


async def _turn(client: aiohttp.ClientSession, url: str, body: Mapping[str, Any]) -> tuple[str, float]:
    """The text of an answer, and when its first piece came."""
    first, pieces = 0.0, []
    async with client.post(f"{url}/v1/messages", data=json.dumps(body), headers=SESSION) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            if line.startswith(b'data: {"type":"content_block_delta"'):
                first = first or time.perf_counter()
                pieces.append(json.loads(line[6:])["delta"].get("text", ""))
    return "".join(pieces), first
