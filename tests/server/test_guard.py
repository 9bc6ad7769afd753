"""Who may ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from harness import Live, ask

from proxy.core.secret import Secret
from proxy.sandbox import Sandbox


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:18765", 200),
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("LocalHost", 200),
        ("localhost.", 200),
        ("proxy.localhost:80", 200),
        ("[::1]:18765", 200),
        ("192.0.2.7", 200),
        ("host.docker.internal:18765", 200),
        ("host.containers.internal", 200),
        ("evil.example", 403),
        ("evil.example:18765", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("evillocalhost", 403),
        ("127.0.0.1@evil.example", 403),
        ("evil.example@127.0.0.1", 403),
    ],
)
async def test_the_host_must_be_one_of_ours(live: Live, host: str, status: int) -> None:
    answer = await live.get("/v1/models", Host=host)
    assert answer.status == status
    assert status == 200 or answer.error["type"] == "permission_error"


async def test_further_hosts_can_be_allowed(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, allowed_hosts=("mine.example",)) as live:
        assert (await live.get("/v1/models", Host="Mine.Example:80")).status == 200
        assert (await live.get("/v1/models", Host="x.mine.example")).status == 403
    async with Live(sandbox, tmp_path, allowed_hosts=("*",)) as live:
        assert (await live.get("/v1/models", Host="evil.example")).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[broken"}, 403),
        ({"Origin": "vscode-webview://x"}, 200),
        ({"Origin": "chrome-extension://abc"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "Same-Site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
async def test_other_web_sites_are_not_served(live: Live, headers: dict[str, str], status: int) -> None:
    answer = await live.get("/v1/models", **headers)
    assert answer.status == status
    assert status == 200 or answer.error["type"] == "permission_error"
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_page_of_our_own_may_ask(live: Live) -> None:
    assert (await live.get("/v1/models", Origin=f"http://127.0.0.1:{live.port}")).status == 200


async def test_a_request_without_host_is_served(live: Live) -> None:
    """HTTP/1.0 knows none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"GET /v1/models?limit=1 HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 200")


@pytest.mark.parametrize("name", ["Origin", "Content-Encoding"])
async def test_a_header_that_two_readers_may_understand_differently_is_refused(live: Live, name: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    head = (
        f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{name}: gzip\r\n{name}: identity\r\n\r\n"
    )
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400") and b"more than once" in answer


async def test_the_guard_stands_before_errors_too(live: Live) -> None:
    assert (await live.get("/nope", Host="evil.example")).status == 403
    assert (await live.request("GET", "/v1/messages", headers={"Host": "evil.example"})).status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer k3y"}, 200),
        ({"authorization": "bearer  k3y "}, 200),
        ({"x-api-key": "k3y"}, 200),
        ({"x-api-key": "k3y", "Authorization": "Bearer other"}, 200),
        ({"Authorization": "Basic k3y"}, 401),
        ({"Authorization": "Bearer k3"}, 401),
        ({"Authorization": "k3y"}, 401),
        ({"x-api-key": "\xff"}, 401),
    ],
)
async def test_a_key_is_asked_for_when_one_is_set(
    sandbox: Sandbox, tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with Live(sandbox, tmp_path, api_key=Secret("k3y")) as live:
        answer = await live.get("/v1/models", **headers)
        assert answer.status == status
        if status == 401:
            assert answer.error["type"] == "authentication_error" and "k3y" not in answer.raw.decode()
            assert answer.headers["x-should-retry"] == "false"
        assert (await live.get("/healthz")).status == 200


async def test_without_a_key_credentials_of_callers_are_ignored_and_stay_here(live: Live) -> None:
    answer = await live.post(ask(), headers={"Authorization": "Bearer mine", "x-api-key": "mine", "Cookie": "a=b"})
    assert answer.status == 200
    sent = live.sandbox.p1.requests[-1].headers
    assert "mine" not in str(sent) and "Cookie" not in sent and "x-api-key" not in sent


async def test_forwarding_headers_are_not_believed(live: Live) -> None:
    answer = await live.get(
        "/v1/models", Host="evil.example", **{"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    )
    assert answer.status == 403
