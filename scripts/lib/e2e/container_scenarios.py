"""The image in a sandbox: its user, its files, its health, its end, and what outlives it."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import suppress
from pathlib import Path

import aiohttp

from e2e.container import KEY, NOTHING, PROGRAM, USER, Box, Running, kind, running
from e2e.expecting import Scenarios, expect
from e2e.ports import free_port
from proxy.sandbox import Sandbox

VERSIONS = (kind(),)
SCENARIOS: Scenarios[Box] = Scenarios()
#: Kinder than what is measured on a quiet machine (docs/container.md).
HEALTHY_S = 5.0
QUIET_S = 1.0
#: Tries to write where nothing may be written, and where it may.
WRITES = """
import pathlib
for place in ("/", "/etc", "/opt/model-proxy", "/usr/bin", "/config", "/state", "/tmp"):
    try:
        path = pathlib.Path(place, "written")
        path.write_text("")
        path.unlink()
        print("yes", place)
    except OSError:
        print("no", place)
"""


async def _answer(proxy: Running, stream: bool = False, within: asyncio.Event | None = None) -> str:
    """The answer to a prompt. `within` is set as soon as a part of it is here."""
    body = {"model": "gpt-5.5", "max_tokens": 64, "stream": stream, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    told = b""
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{proxy.url}/v1/messages", json=body) as answer,
    ):
        async for piece in answer.content.iter_any():
            told += piece
            if within is not None and b"content_block_delta" in told:
                within.set()
        expect(answer.status == 200, "an answer", told)
    return told.decode()


if VERSIONS == (NOTHING,):

    @SCENARIOS.add
    async def nothing_is_tried(_box: Box, _folder: Path) -> None:
        """The name of the version says why."""

else:

    @SCENARIOS.add
    async def it_has_no_rights_and_writes_to_its_volumes_alone(box: Box, _folder: Path) -> None:
        python = str(Path(PROGRAM).with_name("python"))
        status, said = await box.finished("-c", WRITES, program=python)
        expect(status == 0, "a look around", said)
        writable = {line.split()[1] for line in said.splitlines() if line.startswith("yes")}
        expect(writable == {"/config", "/state", "/tmp"}, "what can be written to", said)
        port = free_port()
        async with Sandbox() as sandbox, running(box, port, sandbox.settings()) as proxy:
            print(f"  healthy after {proxy.healthy_s:.2f} s, {proxy.fact('VmRSS')} resident", flush=True)
            expect(proxy.healthy_s < HEALTHY_S, "a quick start", proxy.healthy_s)
            expect(int(proxy.fact("CapEff"), 16) == int(proxy.fact("CapBnd"), 16) == 0, "no capabilities")
            expect(proxy.fact("NoNewPrivs") == "1", "no new privileges")
            expect(str(USER) in proxy.fact("Uid").split() and "0" not in proxy.fact("Uid").split(), "its user")
            status, said = await box.finished("health", "--port", str(port))
            expect(status == 0 and "a proxy answers" in said, "health", said)
            expect(await proxy.ended(signal.SIGTERM) == 0, "a clean end")
        status, said = await box.finished("health", "--port", str(port))
        expect(status == 1, "health of nobody", said)

    @SCENARIOS.add
    async def sigterm_lets_a_stream_finish(box: Box, _folder: Path) -> None:
        async with Sandbox(script=[{"fault": "silence_mid_text", "seconds": QUIET_S}]) as sandbox:
            await _sign_in(box, sandbox)
            async with running(box, free_port(), sandbox.settings()) as proxy:
                within = asyncio.Event()
                stream = asyncio.ensure_future(_answer(proxy, stream=True, within=within))
                await asyncio.wait_for(within.wait(), 10)
                status = await proxy.ended(signal.SIGTERM)
                told = await stream
                expect(status == 0 and "message_stop" in told and '"error"' not in told, "a whole stream", told)

    @SCENARIOS.add
    async def a_sign_in_outlives_the_container(box: Box, _folder: Path) -> None:
        async with Sandbox() as sandbox:
            await _sign_in(box, sandbox)
            for _ in range(2):
                async with running(box, free_port(), sandbox.settings()) as proxy:
                    expect(json.loads(await _answer(proxy))["content"], "a turn")
                    expect(await proxy.ended(signal.SIGTERM) == 0, "a clean end")
            kept = {path.relative_to(box.folder).as_posix() for path in box.folder.rglob("*") if path.is_file()}
            expect({"config/p1/auth.json", "state/model-proxy/proxy.log"} <= kept, "what is kept", kept)

    @SCENARIOS.add
    async def a_browser_elsewhere_signs_in_by_pasting(box: Box, _folder: Path) -> None:
        async with Sandbox() as sandbox:
            command = box.command([PROGRAM, "auth", "login", "p1", "--paste"], sandbox.settings())
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
            try:
                page = b""
                while process.stdout and not page.startswith(b"http"):
                    page = await asyncio.wait_for(process.stdout.readline(), 20)
                    expect(page, "an address to open")
                address = page.strip().decode()
                async with aiohttp.ClientSession() as browser, browser.get(address, allow_redirects=False) as answer:
                    where = answer.headers["Location"]
                out, _ = await process.communicate(f"{where}\n".encode())
                expect(process.returncode == 0 and b"Auth saved in /config/p1/auth.json" in out, "a sign-in", out)
            finally:
                with suppress(ProcessLookupError):
                    process.kill()


async def _sign_in(box: Box, sandbox: Sandbox) -> None:
    """With a code, as on a machine without a browser."""
    sandbox.p1.options.device_pending_polls = 0
    status, said = await box.finished("auth", "login", "p1", "--device", variables=sandbox.settings())
    expect(status == 0 and "Auth saved in" in said, "a sign-in with a code", said)
