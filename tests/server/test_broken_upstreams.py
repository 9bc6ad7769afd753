"""What callers are told of an upstream whose answer is hardly HTTP, over every route and every wire: never a fault of
the proxy, never a status that HTTP does not know, and at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from harness import Live
from raw_upstream import head, saying
from wires import WIRES

from proxy.sandbox import Sandbox

NO_MOMENT = "Fri, 31 Dec 9999 23:59:59 -9999"
BROKEN = head("transfer-encoding: chunked") + b"zz\r\nabc\r\n"

#: What the upstream says -> the status for the client, None for any of an upstream that failed.
SAID: dict[str, tuple[list[bytes], int | None]] = {
    "101": ([head(status="101 X")], 502),
    "101 as asked": ([head("connection: upgrade", "upgrade: websocket", status="101 X")], 502),
    "999": ([head("content-length: 0", status="999 X")], 502),
    "600": ([head("content-length: 0", status="600 X")], 502),
    "204": ([head(status="204 X")], 502),
    "304": ([head(status="304 X")], 502),
    "a date without a moment": (
        [head("connection: close", "content-length: 0", f"retry-after: {NO_MOMENT}", status="503 X")],
        None,
    ),
    "chunks": ([BROKEN[:-10], BROKEN[-10:]], 502),
    "no HTTP": ([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"], 502),
}
MODELS = ["gpt-5.5", *(wire.model for wire in WIRES)]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
}


@pytest.mark.parametrize("name", SAID)
async def test_every_route_tells_of_it_as_the_upstreams_failure(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    pieces, expected = SAID[name]
    async with saying(pieces) as url:
        settings = (
            sandbox.settings()
            | {f"PROXY_P{number}_BASE_URL": url for number in range(1, 6)}
            | {"PROXY_P1_RESPONSES_API": "1"}
        )
        async with Live(sandbox, tmp_path, settings=settings) as live, asyncio.timeout(20):

            async def told(path: str, model: str, stream: bool) -> None:
                answer = await live.post({**ROUTES[path], "model": model, "stream": stream}, path)
                where = f"{path} {model} {stream}: {answer.status} {answer.raw[:300]!r}"
                assert b"internal" not in answer.raw.lower(), where
                if answer.status != 200:
                    assert answer.status == expected or (expected is None and 502 <= answer.status <= 503), where
                else:
                    assert stream and b"error" in answer.raw, where

            await asyncio.gather(
                *(told(path, model, stream) for path in ROUTES for model in MODELS for stream in (True, False))
            )
