"""The command line behind an outgoing proxy: where the variables are read, and what is shown of them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from connect_proxy import Authority, Company, company
from harness import ask, until
from processes import Proxy, environment, finished, run, start

from proxy.sandbox import Sandbox


@pytest.fixture
async def office(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Company]:
    """Its authority is trusted by the variable that OpenSSL knows."""
    authority = Authority()
    file = tmp_path / "ca.pem"
    authority.authority.cert_pem.write_to_path(file)
    async with company(sandbox, authority) as found:
        found.variables["SSL_CERT_FILE"] = str(file)
        yield found


async def test_serve_shows_the_address_of_its_proxy_only(sandbox: Sandbox, office: Company, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path / "config")
    async with Proxy(tmp_path, fresh=True, **office.settings, **office.variables) as proxy:
        for model in ("gpt-5.5", "kimi-for-coding"):
            async with proxy.post(ask(model=model)) as response:
                assert response.status == 200, await response.text()
        assert f"outgoing proxy for https: 127.0.0.1:{office.proxy.port}\n" in proxy.out.decode()
        await until(lambda: "outgoing proxies are used" in proxy.log)
        said = proxy.out.decode() + proxy.err.decode() + proxy.log
        assert "p@ss" not in said and "p%40ss" not in said
        (record,) = [line for line in proxy.log.splitlines() if "outgoing proxies are used" in line]
        assert f"127.0.0.1:{office.proxy.port}" in json.dumps(json.loads(record))
    assert office.only_tunnels


async def test_the_sandbox_needs_no_proxy(tmp_path: Path, office: Company) -> None:
    address = f"http://127.0.0.1:{office.proxy.port}"
    async with Proxy(tmp_path, "--sandbox", HTTP_PROXY=address, ALL_PROXY="socks5://127.0.0.1:9") as proxy:
        async with proxy.post(ask()) as response:
            assert response.status == 200
        assert b"outgoing proxy" not in proxy.out
    assert office.proxy.connections == 0


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("HTTPS_PROXY", "ftp://SECRET", "begins with http:// or https://"),
        ("all_proxy", "socks5h://me:SECRET@127.0.0.1:1080", "SOCKS proxies are not supported"),
        ("http_proxy", "http://me:SECRET@:x", "expected a URL"),
    ],
)
async def test_an_unusable_proxy_stops_the_start(tmp_path: Path, variable: str, value: str, why: str) -> None:
    env = environment(tmp_path, **{variable: value})
    for arguments, status in (("serve", "--port", "0"), 1), (("auth", "login", "p2"), 2), (("usage", "p4"), 1):
        ended = await run(*arguments, env={**env, "PROXY_P4_API_KEY": "k"})
        assert ended.status == status and ended.out == ""
        assert ended.err.startswith(f"model-proxy: {variable} cannot be used: ") and why in ended.err
        assert "SECRET" not in ended.err and "Traceback" not in ended.err


async def test_what_needs_no_network_works_with_an_unusable_proxy(sandbox: Sandbox, tmp_path: Path) -> None:
    """Each in a process of its own, where nothing was imported before."""
    sandbox.write_credentials(tmp_path / "config")
    env = environment(tmp_path, ALL_PROXY="socks5://127.0.0.1:1080")
    for arguments in ("auth status p1", "auth logout p1", "models", "version", "config show", "keys list"):
        process = await start(sys.executable, "-m", "proxy", *arguments.split(), env=env)
        assert (await finished(process)).status == 0, arguments


async def test_usage_takes_the_same_way_with_its_renewal(sandbox: Sandbox, office: Company, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path / "config", lifetime_s=-1)
    env = environment(tmp_path, **office.settings, **office.variables)
    for label, calls in (("p2", 2), ("p4", 1)):
        ended = await finished(await start(sys.executable, "-m", "proxy", "usage", label, env=env))
        assert ended.status == 0, ended.err
        assert office.only_tunnels and len(office.proxy.asked) == office.front.connections == calls
        office.proxy.asked.clear()
        office.front.connections = 0


async def test_a_sign_in_through_a_proxy_that_refuses_says_so(office: Company, tmp_path: Path) -> None:
    variables = {**office.variables, "HTTPS_PROXY": f"http://127.0.0.1:{office.proxy.port}"}
    ended = await run("auth", "login", "p1", "--device", env=environment(tmp_path, **office.settings, **variables))
    assert ended.status == 2 and "check the user and password in HTTPS_PROXY" in ended.err
    assert len(office.proxy.asked) == 1 and office.front.connections == 0
