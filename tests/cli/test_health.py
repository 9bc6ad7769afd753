"""`health`: by the settings, and with a limit."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from processes import Proxy, environment, run

from proxy.cli.command import Context
from proxy.cli.health import is_proxy
from proxy.cli.main import main


async def test_a_proxy_that_runs_is_healthy(tmp_path: Path) -> None:
    async with Proxy(tmp_path) as proxy:
        env = environment(tmp_path, PROXY_PORT=str(proxy.port))
        found = await run("health", env=env)
        assert (found.status, found.out) == (0, f"a proxy answers on 127.0.0.1:{proxy.port}\n")
        everywhere = environment(tmp_path, PROXY_BIND_ADDRESS="0.0.0.0", PROXY_API_KEY="k" * 32)
        assert (await run("health", "--port", str(proxy.port), env=everywhere)).status == 0
    assert (await run("health", env=env)).status == 1


async def test_whoever_listens_and_says_nothing_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert not await is_proxy("127.0.0.1", silent.getsockname()[1], 0.01)


@pytest.mark.parametrize("arguments", [["--port", "0"], ["--port", "65536"], []])
def test_a_port_that_is_not_known_is_asked_for(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    context = Context(environment(tmp_path, PROXY_PORT="0"))
    assert main(["health", *arguments], context) == 1
    assert "--port" in capsys.readouterr().err
