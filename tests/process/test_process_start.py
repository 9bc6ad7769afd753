"""What a start does without: modules that only rare requests, other commands or other accounts need."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import Proxy, environment, finished, start

#: `serve`, which prints its modules when it listens, and when it has warmed up, after a second for a slow machine.
CODE = """
import gc, sys
from proxy.cli import main, serve
from proxy.server import warming
from proxy.server.listener import Listener

listen, spare, warming.START_S = Listener.start, serve._spare_collections, 1.0

async def listening(listener):
    port = await listen(listener)
    print("listening", *sys.modules, flush=True)
    return port

async def warmed(event):
    assert not gc.isenabled()
    await spare(event)
    assert gc.isenabled() and gc.get_freeze_count()
    print("warm", *sys.modules, flush=True)

Listener.start, serve._spare_collections = listening, warmed
sys.exit(main(["serve", "--port", "0", "--no-monitor"]))
"""

#: What is imported after the start, or when somebody signs in: the first request needs it.
SOON = {"proxy.server.routes.messages", "proxy.server.serving.stream", "proxy.server.serving.serve"}
#: What nobody needs who has no account, asks nothing rare and runs no other command.
RARE = {
    *("proxy.server.routes.media", "proxy.server.routes.openai", "proxy.server.routes.watching"),
    *("proxy.server.routes.history", "proxy.server.serving.judge", "proxy.core.auto_mode.own_words"),
    *("proxy.providers.p2_kimi.provider", "proxy.providers.p3_grok.provider", "proxy.providers.p4_opencode.provider"),
    *("proxy.providers.p5_cursor.provider", "proxy.providers.p5_cursor.wire", "proxy.providers.p5_cursor.bridge"),
    *("proxy.observe.metrics.counts", "proxy.observe.capture.writing", "proxy.observe.capture.reading"),
    *("proxy.observe.monitor.terminal.display", "proxy.sandbox", "proxy.cli.doctor.checks", "proxy.cli.service"),
    *("proxy.cli.captures", "proxy.cli.history", "tiktoken", "curses", "ctypes", "multiprocessing"),
}
P1 = "proxy.providers.p1_codex.provider"


async def modules(proxy: Proxy, moment: str) -> set[str]:
    """The modules of a process at a moment that it tells."""
    async with asyncio.timeout(15):
        while not (found := re.search(rf"^{moment} (.*)\n".encode(), proxy.out, re.MULTILINE)):
            await asyncio.sleep(0.02)
    return set(found[1].decode().split())


def test_all_of_these_exist() -> None:
    assert all(find_spec(name) for name in (*SOON, *RARE, P1))


async def test_a_start_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    async with Proxy(tmp_path, code=CODE, fresh=True) as proxy:
        first, later = await modules(proxy, "listening"), await modules(proxy, "warm")
    assert "proxy.server.app" in first
    assert first & (SOON | RARE | {P1}) == set()
    assert later & (SOON | RARE | {P1}) == SOON


async def test_a_provider_with_an_account_is_ready_for_the_first_request(tmp_path: Path) -> None:
    (tmp_path / "config" / "p1").mkdir(parents=True)
    async with Proxy(tmp_path, code=CODE, fresh=True) as proxy:
        assert P1 not in await modules(proxy, "listening")
        assert await modules(proxy, "warm") & {*RARE, P1} == {P1}


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], {"asyncio", "aiohttp", "proxy.cli.serve", "proxy.server"}),
        (["--help"], {"asyncio", "aiohttp", "proxy.cli.serve", "proxy.server"}),
        (["models"], {"aiohttp", "proxy.cli.serve", "proxy.server.app"}),
    ],
)
async def test_a_command_imports_what_it_is_about(arguments: list[str], absent: set[str], tmp_path: Path) -> None:
    code = f"""
import atexit, sys
from proxy.cli import main
atexit.register(lambda: print("modules", *sys.modules))
sys.exit(main({arguments}))
"""
    done = await finished(await start(sys.executable, "-c", code, env=environment(tmp_path)))
    loaded = set(done.out.rpartition("modules ")[2].split())
    assert done.status == 0 and "proxy.cli.main" in loaded
    assert loaded & absent == set()
