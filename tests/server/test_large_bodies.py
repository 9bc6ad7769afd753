"""A large body keeps nobody else waiting, and one that would become millions of values is refused before it is read."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from typing import Any

import pytest
from harness import Live, ask, with_live

from proxy.core.bodies.decode import MAX_VALUES
from proxy.server.serving import prepare

PATHS = ["/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses"]


async def longest_wait(work: asyncio.Task[Any]) -> float:
    """Seconds of the processor for which nothing else ran while it was done."""
    worst = 0.0
    while not work.done():
        before = time.process_time()
        await asyncio.sleep(0)
        worst = max(worst, time.process_time() - before)
    return worst


@with_live(openai_routes=True)
@pytest.mark.parametrize("path", PATHS)
async def test_too_many_values_are_refused_in_the_form_of_the_caller(live: Live, path: str) -> None:
    body = json.dumps({"model": "gpt-5.5"}).encode()[:-1] + b',"messages":[' + b"[]," * MAX_VALUES + b"[]]}"
    answer = await live.post(body, path)
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert f"more than {MAX_VALUES} values; start a new conversation" in answer.json["error"]["message"]


async def test_millions_of_values_hold_nobody_up(live: Live) -> None:
    body = b'{"model":"gpt-5.5","messages":[' + b"[]," * 10_000_000 + b"[]]}"
    work = asyncio.create_task(
        live.request("POST", PATHS[0], data=io.BytesIO(body), headers={"content-type": "application/json"})
    )
    assert await longest_wait(work) < 1  # parsed at once it was 3.6 seconds
    assert work.result().status == 400


async def test_a_large_body_is_parsed_in_a_thread(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    decode = prepare.decode_large_body

    def noted(raw: bytes | bytearray) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return decode(raw)

    monkeypatch.setattr(prepare, "decode_large_body", noted)
    assert (await live.post(ask("hello"))).status == 200
    assert threads == []
    assert (await live.post(ask("word " * 40_000))).status == 200
    assert threads and threading.main_thread() not in threads
