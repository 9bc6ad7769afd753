"""Captures of the program itself: what `serve` says of them, what is in the folder, what is not, and the end."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from harness import ask
from pictures import png
from processes import Proxy

from proxy.sandbox import Sandbox

ANSWERED = {"000", "010", "016", "020", "021", "022", "030", "032", "033", "061"}
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    (model, path, extra)
    for model in ("gpt-5.5", "gpt-5.6-sol", "kimi-k2.6", "grok-4.5", "opencode-go/glm-5.1", "cursor-plan:gpt-5.5")
    for path, extra in (("/v1/messages", {"stream": True}), ("/v1/messages", {}))
]


def traffic(folder: Path) -> Path:
    return folder / "state" / "model-proxy" / "traffic"


def environment(sandbox: Sandbox, folder: Path, **variables: str) -> dict[str, str]:
    sandbox.write_credentials(folder / "config")
    return {**sandbox.settings(), "PROXY_TRAFFIC_LOG": "1", **variables}


async def stopped(proxy: Proxy, captures: int) -> int:
    """The exit status of a proxy that is stopped once that many captures are whole; they are written last of all."""
    async with asyncio.timeout(60):
        while len([*traffic(proxy.folder).glob("*/*/*-061-*")]) < captures:
            await asyncio.sleep(0.05)
    proxy.signal(signal.SIGTERM)
    return await proxy.ended()


async def post(proxy: Proxy, path: str, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    sent = {"content-type": "application/json", "x-claude-code-session-id": "../../x", **headers}
    async with proxy.client.post(proxy.url + path, data=json.dumps(body), headers=sent) as answer:
        return answer.status, await answer.read()


async def test_captures_of_every_provider(sandbox: Sandbox, tmp_path: Path) -> None:
    picture = png()
    seen = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    result = json.dumps({"screenshot": f"data:image/png;base64,{picture}"})
    messages = [{"role": "user", "content": [seen, {"type": "text", "text": f"hello {result}"}]}]
    switches = {"PROXY_P1_RESPONSES_API": "1", "PROXY_P1_IMAGES_API": "1"}
    async with Proxy(tmp_path, **environment(sandbox, tmp_path, **switches)) as proxy:
        for model, path, extra in REQUESTS:
            body = {**ask(messages, model=model), **extra}
            status, raw = await post(proxy, path, body, Authorization="Bearer caller-secret-12")
            assert status == 200, (model, raw)
        for model in ("gpt-5.5", "kimi-k2.6"):
            parts = [{"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}]
            body = {"model": model, "input": [{"role": "user", "content": parts}]}
            assert (await post(proxy, "/v1/responses", body))[0] == 200
        assert (await post(proxy, "/v1/messages/count_tokens", ask(messages)))[0] == 200
        before = 1 + len(REQUESTS) + 2
        assert (await post(proxy, "/v1/messages", ask(model="nobody")))[0] == 400
        status, raw = await post(proxy, "/v1/images/generations", {"model": "gpt-image-2", "prompt": "a cat"})
        assert status == 200 and json.loads(raw)["data"], raw
        assert await stopped(proxy, before) == 0
        said = proxy.out.decode()
    folders = [path for path in traffic(tmp_path).glob("*/*") if path.is_dir()]
    assert len(folders) == before and {path.parent.name for path in folders} == {".._.._x"}
    for folder in folders:
        stations = {path.name.split("-")[1] for path in folder.iterdir() if path.is_file()}
        events = {path.name.split("-")[1] for path in folder.glob("events/*")}
        metadata = json.loads((folder / "001-000-metadata.json").read_text())
        if metadata["kind"] == "count_tokens":
            assert stations == {"000", "010", "016", "051", "061"}
            continue
        streamed = "050" in events
        assert stations >= ANSWERED and ("051" in stations) is not streamed, folder
        assert "040" in events
    written = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    everything = "".join(path.read_text(errors="replace") for path in written)
    stored = [path.read_text() for path in (tmp_path / "config").rglob("*") if path.is_file()]
    tokens = [value for text in stored for value in _values(text) if len(value) >= 12 and "://" not in value]
    assert tokens and not [one for one in (*tokens, "caller-secret-12", picture[20:60]) if one in everything]
    assert str(traffic(tmp_path)) in said and "sensitive" in said


def _values(text: str) -> list[str]:
    """What is quoted in a credential file, or all of a file that is no JSON."""
    return text.split('"')[1::2] or [text.strip()]


async def test_only_the_owner_may_look(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Proxy(tmp_path, **environment(sandbox, tmp_path)) as proxy:
        assert (await post(proxy, "/v1/messages", ask(stream=True)))[0] == 200
        assert await stopped(proxy, 1) == 0
    found = [traffic(tmp_path), *traffic(tmp_path).rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}


async def test_a_failed_answer_names_its_capture(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.p1.script.extend([{"fault": "forbidden"}])
    async with Proxy(tmp_path, **environment(sandbox, tmp_path)) as proxy:
        status, raw = await post(proxy, "/v1/messages", ask())
        assert status == 403 and b"traffic" not in raw
        assert await stopped(proxy, 1) == 0
        failures = [json.loads(line) for line in proxy.log.splitlines() if '"request_failed"' in line]
    (folder,) = traffic(tmp_path).glob("*/*")
    fields = failures[0]["fields"]
    assert fields["capture"] == str(folder)
    assert json.loads(Path(fields["errorFile"]).read_text())["capture"] == str(folder)
    names = {path.name.partition("-")[2] for path in folder.iterdir()}
    assert {"031-upstream-error-body.json", "051-downstream-response.json"} <= names


async def test_nothing_is_kept_unless_asked(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Proxy(tmp_path, **environment(sandbox, tmp_path, PROXY_TRAFFIC_LOG="0")) as proxy:
        assert (await post(proxy, "/v1/messages", ask()))[0] == 200
        assert b"captures" not in proxy.out
    assert not traffic(tmp_path).exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
async def test_the_process_that_writes_ends_with_the_proxy(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    async with Proxy(tmp_path, **environment(sandbox, tmp_path)) as proxy:
        assert (await post(proxy, "/v1/messages", ask()))[0] == 200
        async with asyncio.timeout(20):
            while not (writers := _children(proxy.process.pid)):
                await asyncio.sleep(0.01)
        proxy.signal(signal.Signals[name])
        await proxy.ended()
        async with asyncio.timeout(20):
            while any(Path(f"/proc/{pid}").exists() for pid in writers):
                await asyncio.sleep(0.01)


def _children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
