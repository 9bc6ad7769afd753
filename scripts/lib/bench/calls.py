"""Counts what one tiny streamed request costs in Python calls: in this process, before the sandbox, the third request
of its kind. Only frames of the product count; each resumption of a coroutine or generator is a call.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
from aiohttp import web

import proxy
from proxy import create_app
from proxy.loading import load
from proxy.sandbox import Sandbox

_PRODUCT = f"{Path(proxy.__file__).parent}/"
#: Requests before the one that is counted.
_BEFORE = 2
_SANDBOX = f"{_PRODUCT}sandbox/"
HEAD = "| request | calls | functions | files | deepest stack |\n|---|--:|--:|--:|--:|"

Body = dict[str, Any]
_TAIL_S = 0.1
_HELLO = [{"role": "user", "content": "hello"}]


@dataclass(frozen=True, slots=True)
class Kind:
    """A request whose calls are counted."""

    name: str
    path: str
    body: Body
    settings: Mapping[str, str] = field(default_factory=dict)


_HTTP = {"PROXY_P1_TRANSPORT": "http"}
_ASKED = {"max_tokens": 64, "stream": True, "messages": _HELLO}
KINDS = (
    Kind("p2 Messages", "/v1/messages", {"model": "kimi-k3", **_ASKED}),
    Kind("p1 Messages over HTTP", "/v1/messages", {"model": "gpt-5.5", **_ASKED}, _HTTP),
    Kind("p3 Messages", "/v1/messages", {"model": "grok-4.5", **_ASKED}),
    Kind("p5 Messages", "/v1/messages", {"model": "cursor:auto", **_ASKED}),
    Kind("p2 chat", "/v1/chat/completions", {"model": "kimi-k3", **_ASKED}, {"PROXY_P1_RESPONSES_API": "1"}),
    Kind(
        "p2 Responses",
        "/v1/responses",
        {"model": "kimi-k3", "input": "hello", "stream": True},
        {"PROXY_P1_RESPONSES_API": "1"},
    ),
    Kind("p1 count_tokens", "/v1/messages/count_tokens", {"model": "gpt-5.5", "messages": _HELLO}, _HTTP),
)


class Calls:
    """What was called while inside, in this thread."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        self.deepest = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _value: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(_PRODUCT):
            return
        depth, above = 0, frame
        while above is not None:
            file = above.f_code.co_filename
            if file.startswith(_SANDBOX):  # it uses a module of ours
                return
            depth += file.startswith(_PRODUCT)
            above = above.f_back  # type: ignore[assignment]
        self.functions[code.co_filename.removeprefix(_PRODUCT), code.co_qualname] += 1
        self.deepest = max(self.deepest, depth)

    def line(self, name: str) -> str:
        """A row of the table."""
        files = len({file for file, _ in self.functions})
        return f"| {name} | {self.functions.total()} | {len(self.functions)} | {files} | {self.deepest} |"


async def counted(kind: Kind) -> Calls:
    """The calls of the second of two equal requests."""
    with tempfile.TemporaryDirectory(prefix="model-proxy-calls-") as folder:
        async with Sandbox() as sandbox:
            sandbox.write_credentials(Path(folder))
            config, _ = load({**sandbox.settings(), **kind.settings})
            app = create_app(lambda: config, config_dir=Path(folder), state_dir=Path(folder))
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            try:
                url = f"http://127.0.0.1:{runner.addresses[0][1]}{kind.path}"
                async with aiohttp.ClientSession() as client:
                    for _ in range(_BEFORE):
                        await _asked(client, url, kind)
                        await asyncio.sleep(_TAIL_S)  # the list of models comes beside the first one
                    with Calls() as calls:
                        await _asked(client, url, kind)
                        await asyncio.sleep(_TAIL_S)  # what is done after the last byte
            finally:
                await runner.cleanup()
    return calls


async def _asked(client: aiohttp.ClientSession, url: str, kind: Kind) -> None:
    async with client.post(url, data=json.dumps(kind.body), headers={"Content-Type": "application/json"}) as answer:
        said = await answer.text()
        if answer.status != 200 or '"error":{' in said:
            raise RuntimeError(f"{kind.name}: {answer.status} {said}")


async def table(kinds: Iterable[Kind], *, by_function: bool) -> None:
    """Prints a row for each request; with `by_function`, before it how often each function was called."""
    print(HEAD)
    for kind in kinds:
        calls = await counted(kind)
        if by_function:
            for (file, name), count in sorted(calls.functions.items()):
                print(f"{count:6d} {file}:{name}")
        print(calls.line(kind.name), flush=True)
