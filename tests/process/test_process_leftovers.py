"""What a process finds at its start: leftovers of one that was killed, sign-ins that are none, a state folder that
cannot be written."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import ask, until
from processes import Proxy, environment, run

from proxy.sandbox import Sandbox

MODELS = {"p1": "gpt-5.5", "p2": "kimi-for-coding", "p3": "grok-4.6", "p5": "cursor:gpt-5.5"}


def signed_in(sandbox: Sandbox, folder: Path, **options: Any) -> Path:
    """The folder of the settings."""
    root = folder / "config"
    root.mkdir(exist_ok=True)
    sandbox.write_credentials(root, **options)
    return root


def no_trace(proxy: Proxy) -> None:
    for text in (proxy.out.decode(), proxy.err.decode(), proxy.log):
        assert "Traceback" not in text and "internal_error" not in text and "\x1b" not in text


async def answered(proxy: Proxy, model: str = "gpt-5.5") -> tuple[int, dict[str, Any]]:
    async with proxy.post(ask(model=model)) as response:
        return response.status, json.loads(await response.read())


async def test_a_start_behind_a_killed_process_cleans_up_and_works(sandbox: Sandbox, tmp_path: Path) -> None:
    root, state = signed_in(sandbox, tmp_path, lifetime_s=-60), tmp_path / "state" / "model-proxy"
    options = {**sandbox.settings(), "PROXY_TRAFFIC_LOG": "1"}
    sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": 60}])
    async with Proxy(tmp_path, **options) as first, first.post(ask(stream=True)) as response:
        await response.content.readany()
        first.signal(signal.SIGKILL)
        assert await first.ended() == -signal.SIGKILL
    left = [root / "p1" / ".auth.json.00ff.tmp", state / ".allowances.json.00ff.tmp"]
    for path in left:
        path.write_text("half of a record")
    async with Proxy(tmp_path, **options) as second:
        assert not any(path.exists() for path in left)
        assert (await answered(second))[0] == 200
        no_trace(second)
        second.signal(signal.SIGTERM)
        assert await second.ended() == 0
    assert {path.name for path in (root / "p1").iterdir()} == {"auth.json", "auth.json.refresh.lock"}


async def test_a_process_that_was_killed_while_it_renewed_a_sign_in(sandbox: Sandbox, tmp_path: Path) -> None:
    pending = signed_in(sandbox, tmp_path, lifetime_s=-60) / "p1" / "auth.json.refresh-pending.json"
    sandbox.p1.issuer.delay_s = 60
    async with Proxy(tmp_path, **sandbox.settings()) as first:
        renewing = asyncio.ensure_future(answered(first))
        await until(pending.exists, 10)
        first.signal(signal.SIGKILL)
        await first.ended()
        await asyncio.gather(renewing, return_exceptions=True)
    sandbox.p1.issuer.delay_s = 0
    async with Proxy(tmp_path, **sandbox.settings()) as second:
        status, told = await answered(second)
        assert status == 401 and "when a process died" in told["error"]["message"]
        signed_in(sandbox, tmp_path, lifetime_s=-60)
        assert (await answered(second))[0] == 200
        no_trace(second)
    assert not pending.exists()


def _texts_as(change: Callable[[str], Any]) -> Callable[[bytes], bytes]:
    """The same record with other texts."""

    def damaged(data: bytes) -> bytes:
        record = json.loads(data)
        return json.dumps({n: change(v) if isinstance(v, str) else v for n, v in record.items()}).encode()

    return damaged


@pytest.mark.parametrize(
    "damaged",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'": "', b'": "\x07'),
        _texts_as(lambda text: f"\x1b[31m{text}\n"),
        _texts_as(lambda text: {"value": [text]}),
        lambda data: b"[" + data + b"]",
    ],
    ids=["truncated", "raw control characters", "control characters", "other types", "a list"],
)
async def test_a_sign_in_that_cannot_be_read_says_what_to_do(
    sandbox: Sandbox, tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    root = signed_in(sandbox, tmp_path)
    for label in MODELS:
        path = root / label / "auth.json"
        path.write_bytes(damaged(path.read_bytes()))
    async with Proxy(tmp_path, **sandbox.settings()) as proxy:
        for label, model in MODELS.items():
            status, told = await answered(proxy, model)
            assert status == 401 and f"auth login {label}" in told["error"]["message"]
            assert str(root / label / "auth.json") in told["error"]["message"]
        no_trace(proxy)
    shown = await run("auth", "status", env=environment(tmp_path, **sandbox.settings()))
    assert shown.out.count("unusable sign-in") == len(MODELS) and "Traceback" not in shown.err
    assert "\x1b" not in shown.out + shown.err


async def test_a_state_folder_that_cannot_be_written_is_one_warning(sandbox: Sandbox, tmp_path: Path) -> None:
    signed_in(sandbox, tmp_path)
    (tmp_path / "state").write_text("a file in its place")
    async with Proxy(tmp_path, **sandbox.settings()) as proxy:
        warnings = [json.loads(line) for line in proxy.err.decode().splitlines()]
        assert [warning["msg"] for warning in warnings] == ["log_write_failed"]
        assert (await answered(proxy))[0] == 200
        assert (await answered(proxy, "nobody"))[0] == 400
        await until(lambda: b"request_failed" in proxy.err)
        assert proxy.err.count(b"log_write_failed") == 1 and b"errorFile" not in proxy.err
        no_trace(proxy)
        proxy.signal(signal.SIGTERM)
        assert await proxy.ended() == 0
    assert (tmp_path / "state").read_text() == "a file in its place"
