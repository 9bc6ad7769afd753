"""The proxy as a process of its own: what only shows there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import ask, parse_events, texts, until
from processes import Proxy, environment, run
from samples import Extent

from proxy.config import Config
from proxy.sandbox import Sandbox

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

PROMPT = "a-prompt-nobody-should-find"


@contextlib.asynccontextmanager
async def behind(sandbox: Sandbox, folder: Path, **options: Any) -> AsyncIterator[Proxy]:
    """A process in front of a sandbox of the test's, which says nothing of a bug to its end."""
    if not (folder / "config" / "p1").exists():
        sandbox.write_credentials(folder / "config")
    async with Proxy(folder, **{**sandbox.settings(), **options}) as proxy:
        yield proxy


@pytest.fixture
async def proxy(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with behind(sandbox, tmp_path) as running:
        yield running


def quiet(proxy: Proxy) -> None:
    """Nothing of a bug anywhere."""
    for text in (proxy.out.decode(), proxy.err.decode(), proxy.log):
        assert "Traceback" not in text and "internal_error" not in text and "never retrieved" not in text


async def send(proxy: Proxy, body: Any, status: int = 200, **headers: str) -> bytes:
    async with proxy.post(body, **headers) as response:
        received: bytes = await response.read()
        assert response.status == status, received
        return received


def silent(sandbox: Sandbox, seconds: float | None) -> None:
    sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": seconds}])


# -- the start


async def test_the_sandbox_serves_without_account_or_network(tmp_path: Path) -> None:
    async with Proxy(tmp_path, "--sandbox") as proxy:
        assert b"SANDBOX" in proxy.out
        async with proxy.post(ask(PROMPT, stream=True)) as response:
            assert PROMPT in texts(parse_events(await response.read()))
        proxy.signal(signal.SIGTERM)
        assert await proxy.ended() == 0
        quiet(proxy)
        assert not list((tmp_path / "config").rglob("*")) if (tmp_path / "config").exists() else True


async def test_the_start_is_quick_and_small(tmp_path: Path) -> None:
    started = time.monotonic()
    async with Proxy(tmp_path, fresh=True) as proxy:
        assert time.monotonic() - started < 15  # 0.6 on an idle machine
        assert proxy.memory < 80 * 1024 * 1024


WAYS_OUT = (
    *("--allow-remote-unauthenticated", "PROXY_ALLOW_REMOTE_UNAUTHENTICATED", "PROXY_API_KEY"),
    "server.allowRemoteUnauthenticated",
)
#: What stops the start: a variable, its value -> what is said about it. (A credential must not go in the clear.)
UNUSABLE = [
    *(("PROXY_BIND_ADDRESS", open, (f"refusing to listen on {open}", *WAYS_OUT)) for open in ("0.0.0.0", "::")),
    ("PROXY_BIND_ADDRESS", "not-an-ip", ("invalid proxy bind address", "not-an-ip")),
    ("PROXY_P1_BASE_URL", "http://example.com/responses", ("PROXY_P1_BASE_URL",)),
]


async def test_what_cannot_be_used_stops_the_start_and_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = ("--port", port, (f"failed to bind proxy listener 127.0.0.1:{port}",))
        for name, value, words in (*UNUSABLE, taken):
            arguments, variables = (("--port", value), {}) if name == "--port" else (("--port", "0"), {name: value})
            finished = await run(*arguments, env=environment(tmp_path, **variables))
            assert finished.status == 1 and "Traceback" not in finished.err
            assert not [word for word in words if word not in finished.err], finished.err


async def test_an_acknowledged_open_listener_starts_with_a_warning(tmp_path: Path) -> None:
    async with Proxy(tmp_path, "--allow-remote-unauthenticated", PROXY_BIND_ADDRESS="0.0.0.0") as proxy:
        async with proxy.client.get(f"http://127.0.0.1:{proxy.port}/healthz") as response:
            assert response.status == 200
        await until(lambda: "remoteUnauthenticated" in proxy.log and b"remoteUnauthenticated" in proxy.err)


async def test_a_listener_with_a_key_needs_no_acknowledgement(tmp_path: Path) -> None:
    async with Proxy(tmp_path, PROXY_BIND_ADDRESS="0.0.0.0", PROXY_API_KEY="k3y-nobody-sees") as proxy:
        async with proxy.client.get(f"{proxy.url}/v1/models") as response:
            assert response.status == 401
        async with proxy.client.get(f"{proxy.url}/v1/models", headers={"x-api-key": "k3y-nobody-sees"}) as response:
            assert response.status == 200
    assert "k3y-nobody-sees" not in proxy.log and b"k3y-nobody-sees" not in proxy.out + proxy.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"apiKey": "k3y-nobody-sees", "port": "secret-value"}', "port: expected whole number, 0 to 65535"),
        ('{"apiKey": "k3y-nobody-sees",}', "line 1, column"),
    ],
)
async def test_a_broken_settings_file_stops_the_start(tmp_path: Path, content: str, said: str) -> None:
    """It would run without its key otherwise."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text(content)
    finished = await run(env=environment(tmp_path))
    assert finished.status == 1 and f"config.json: {said}" in finished.err
    assert not [word for word in ("Traceback", "secret-value", "k3y") if word in finished.err + finished.out]


async def test_an_unknown_setting_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text('{"prot": 19000}')
    async with Proxy(tmp_path) as proxy:
        assert b"unknown key prot; did you mean port?" in proxy.out


# -- clients that leave, readers that are slow


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_releases_the_upstream(sandbox: Sandbox, proxy: Proxy, stream: bool) -> None:
    silent(sandbox, None)
    task = asyncio.ensure_future(send(proxy, ask(stream=stream)))
    await until(lambda: sandbox.p1.active, 5)
    await asyncio.sleep(0.1)
    task.cancel()
    await sandbox.p1.idle(1.0)
    await until(lambda: "the client left" in proxy.log)


async def test_a_reader_that_stops_stops_the_upstream_and_costs_no_memory(sandbox: Sandbox, proxy: Proxy) -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "x" * 1_000_000}
    step = {"events": [{"type": "response.created"}, *[delta] * 60], "events_per_write": 1}
    sandbox.p1.script.extend([step])
    await send(proxy, ask())  # breaks off unseen and is asked for again; loads what is loaded late
    sandbox.p1.script.extend([step])
    before = proxy.memory
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=1024)
    body = json.dumps(ask(stream=True)).encode()
    head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(1.0)
    assert sandbox.p1.active == 1  # the upstream waits as well
    assert proxy.memory - before < 25 * 1024 * 1024
    writer.transport.abort()
    await sandbox.p1.idle(1.5)


async def test_memory_stays_flat_over_thousands_of_requests(sandbox: Sandbox, proxy: Proxy) -> None:

    async def some(count: int) -> None:
        for _ in range(count):
            await send(proxy, ask(stream=True), **{"x-claude-code-session-id": "s"})

    await asyncio.gather(*(some(75) for _ in range(4)))
    before = proxy.memory
    await asyncio.gather(*(some(300 if Extent.everything else 100) for _ in range(4)))
    assert proxy.memory - before < 6 * 1024 * 1024


# -- requests that are none


def post(body: bytes, *headers: str, path: str = "/v1/messages", host: str = "localhost", length: bool = True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", *headers]
    if not any(header.lower().startswith("content-type") for header in headers):
        lines.append("Content-Type: application/json")
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


GOOD = json.dumps(ask()).encode()

#: name -> (bytes, status, whether the answer has our form; aiohttp itself refuses what is no HTTP)
REQUESTS: dict[str, tuple[bytes, int, bool]] = {
    "malformed JSON": (post(b"{"), 400, True),
    "empty": (post(b""), 400, True),
    "deep": (post(b'{"model":"gpt-5.5","messages":' + b"[" * 200 + b"]" * 200 + b"}"), 400, True),
    "deeper": (post(b"[" * 500_000), 400, True),
    "not UTF-8": (post(GOOD.replace(b"hello", b"\xff\xfe")), 400, True),
    "half a pair": (post(GOOD.replace(b"hello", b"\\ud800")), 400, True),
    "foreign host": (post(GOOD, host="evil.example"), 403, True),
    "foreign origin": (post(GOOD, "Origin: https://evil.example"), 403, True),
    "text": (post(GOOD, "Content-Type: text/plain"), 415, True),
    "a form": (post(GOOD, "Content-Type: application/x-www-form-urlencoded"), 415, True),
    "two origins": (post(GOOD, "Origin: a://b", "Origin: c://d"), 400, True),
    "two encodings": (post(GOOD, "Content-Encoding: gzip", "Content-Encoding: identity"), 400, True),
    "two types": (post(GOOD, "Content-Type: application/json", "Content-Type: text/plain"), 400, False),
    "two hosts": (post(GOOD, "Host: evil.example"), 400, False),
    "two lengths": (post(GOOD, "Content-Length: 7"), 400, False),
    "length and chunks": (post(GOOD, "Transfer-Encoding: chunked"), 400, False),
    "a bad chunk": (post(b"zz\r\n{}\r\n", "Transfer-Encoding: chunked", length=False), 400, False),
    "brotli": (post(GOOD, "Content-Encoding: br"), 415, True),
    "zstd": (post(GOOD, "Content-Encoding: zstd"), 415, True),
    "no gzip": (post(GOOD, "Content-Encoding: gzip"), 400, True),
    "a long header": (post(GOOD, "X-Long: " + "x" * 20_000), 400, False),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n", 400, False),
    "noise": (b"\x00\xff\x80 noise \r\n\r\n", 400, False),
    "a future version": (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 400, False),
}


async def test_what_is_no_request_is_refused_and_leaves_no_trace_of_a_bug(sandbox: Sandbox, proxy: Proxy) -> None:
    for name, (data, status, ours) in REQUESTS.items():
        received = await proxy.raw(data)
        head, _, body = received.partition(b"\r\n\r\n")
        assert int(head.split()[1]) == status, (name, received[:300])
        assert b"Traceback" not in body
        if ours:
            error = json.loads(body)
            assert error["type"] == "error" and error["error"]["message"] and error["request_id"], name
    await send(proxy, GOOD)
    assert sandbox.p1.total_requests == 1


# -- the end

DRAIN_S = Config.drain_timeout_ms / 1000


async def test_a_balancer_is_told_before_nobody_listens(sandbox: Sandbox, tmp_path: Path) -> None:
    """As long as the setting says, what still comes is served, over connections that end with it."""
    async with behind(sandbox, tmp_path, PROXY_STOP_NOTICE_MS="600000") as proxy:

        async def ready() -> tuple[int, str | None]:
            async with proxy.client.get(f"{proxy.url}/readyz") as response:
                return response.status, response.headers.get("Retry-After")

        async with proxy.post(ask(stream=True)) as early:
            assert await ready() == (200, None)
            proxy.signal(signal.SIGTERM)
            async with asyncio.timeout(10):
                while await ready() != (503, "1"):
                    await asyncio.sleep(0.01)
            assert parse_events(await early.read())[-1]["type"] == "message_stop"
        for stream in (True, False):
            async with proxy.post(ask(stream=stream)) as late:
                assert late.status == 200 and late.headers["Connection"] == "close"
                assert await late.read()
        async with proxy.client.get(f"{proxy.url}/healthz") as alive:
            assert (alive.status, alive.headers["Connection"]) == (200, "close")
        proxy.signal(signal.SIGTERM)
        assert await proxy.ended() == 143


def refuses(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as other:
        return other.connect_ex(("127.0.0.1", port)) != 0


async def test_a_signal_lets_a_running_stream_finish(sandbox: Sandbox, proxy: Proxy) -> None:
    silent(sandbox, 2.5)
    async with proxy.post(ask(stream=True)) as response:
        proxy.signal(signal.SIGTERM)
        await until(lambda: refuses(proxy.port))  # gives up before the silence is over
        events = parse_events(await response.read())
    assert events[-1]["type"] == "message_stop"
    assert await proxy.ended() == 0
    assert refuses(proxy.port)


async def test_a_stream_that_does_not_finish_is_cut_at_the_limit(sandbox: Sandbox, tmp_path: Path) -> None:
    silent(sandbox, 60)
    async with behind(sandbox, tmp_path, PROXY_DRAIN_TIMEOUT_MS="1000") as proxy:
        async with proxy.post(ask(stream=True)) as response:
            await response.content.readany()
            started = time.monotonic()
            proxy.signal(signal.SIGINT)
            assert await proxy.ended() == 1
        assert 0.9 < time.monotonic() - started < DRAIN_S
        assert '"cutAnswers":1' in proxy.log.replace(" ", "")


async def test_a_second_signal_ends_at_once(sandbox: Sandbox, tmp_path: Path) -> None:
    silent(sandbox, 60)
    async with behind(sandbox, tmp_path) as proxy, proxy.post(ask(stream=True)) as response:
        await response.content.readany()
        proxy.signal(signal.SIGTERM)
        await until(lambda: refuses(proxy.port))  # until then the two would be one
        proxy.signal(signal.SIGTERM)
        assert await proxy.ended(DRAIN_S - 1) == 143


async def test_idle_connections_do_not_hold_up_the_end(sandbox: Sandbox, proxy: Proxy) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    async with proxy.client.get(f"{proxy.url}/healthz") as response:
        assert response.status == 200
    started = time.monotonic()
    proxy.signal(signal.SIGTERM)
    assert await proxy.ended() == 0
    assert time.monotonic() - started < DRAIN_S
    writer.close()


# -- the sign-in


async def test_two_processes_renew_an_expired_token_once(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_credentials(tmp_path / "config", lifetime_s=-60)
    sandbox.p1.issuer.delay_s = 0.2
    async with behind(sandbox, tmp_path) as first, behind(sandbox, tmp_path) as second:
        asked = [(proxy, ask(stream=n % 2 == 0)) for proxy in (first, second) for n in range(10)]
        answers = await asyncio.gather(*(send(*one) for one in asked))
        assert all(b'"type":"error"' not in answer for answer in answers)
        assert sandbox.p1.issuer.refresh_requests == 1


# -- the log


async def test_the_log_knows_neither_prompts_nor_tokens(sandbox: Sandbox, tmp_path: Path) -> None:
    stored = sandbox.write_credentials(tmp_path / "config")
    sandbox.p1.script.extend([{"fault": "server_error"}, {"fault": "forbidden"}, {"fault": "cut_text"}])
    tokens = json.loads(stored.read_text())
    async with behind(sandbox, tmp_path, PROXY_LOG_VERBOSE="1", PROXY_LOG_STDERR="1") as proxy:
        bodies = (ask(PROMPT), ask(PROMPT, stream=True), ask(PROMPT, stream=True), ask(PROMPT, model="nobody"))
        for body, status in zip(bodies, (403, 200, 200, 400), strict=True):
            await send(proxy, body, status, Authorization="Bearer caller-secret")
        sandbox.p1.revoke_access()
        await send(proxy, ask(PROMPT))
        renewed = json.loads(stored.read_text())
        proxy.signal(signal.SIGTERM)
        assert await proxy.ended() == 0
        written = "".join(
            path.read_text(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()
        )
        said = written + proxy.out.decode() + proxy.err.decode()
    secrets = [record[key] for record in (tokens, renewed) for key in ("access", "refresh")]
    assert not [secret for secret in (PROMPT, "caller-secret", *secrets) if secret in said]
    records = [json.loads(line) for line in proxy.log.splitlines()]
    failures = [record["fields"] for record in records if record["msg"] == "request_failed"]
    assert [fields["status"] for fields in failures] == [403, 200, 400]
    captures = [fields["errorFile"] for fields in failures if "errorFile" in fields]
    assert len(captures) == 2
    for path in captures:
        kept = json.loads(Path(path).read_text())
        assert kept["response"]["json"]["type"] == "error" and kept["reqId"]


async def test_a_small_body_that_unpacks_to_much_is_refused_and_holds_nobody_up(sandbox: Sandbox, proxy: Proxy) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(300)) + packer.flush()
    received = await proxy.raw(post(bomb, "Content-Encoding: gzip", "Connection: close"))
    assert received.startswith(b"HTTP/1.1 413")
    started = time.monotonic()
    answer = await proxy.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b'{"ok":true}')
    assert time.monotonic() - started < 5
    quiet(proxy)
