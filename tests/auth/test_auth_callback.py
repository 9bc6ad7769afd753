"""The loopback listener: what each request means, and that nothing stray ends the wait."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable

import pytest
from samples import rows

from proxy.auth.callback import CallbackListener, judge
from proxy.errors import SignInError

PATH = "/auth/callback"


@rows(
    "method, target, status, code, refused",
    [
        ("GET", "/favicon.ico", 404, None, None),
        *(("GET", f"{path}?state=S&code=C", 404, None, None) for path in ("/favicon.ico", "/auth/callback/")),
        *((method, "/auth/callback?state=S&code=C", 405, None, None) for method in ("HEAD", "POST")),
        # The state is looked at before anything else.
        ("GET", "/auth/callback", 400, None, None),
        *(
            ("GET", f"/auth/callback?{state}code=C", 400, None, None)
            for state in ("", "state=&", "state=T&", "state=%C3%A9&")
        ),
        ("GET", "/auth/callback?state=T&error=access_denied", 400, None, None),
        # Then the error, even beside a code.
        ("GET", "/auth/callback?state=S&error=access_denied&code=C", 400, None, "access_denied"),
        ("GET", "/auth/callback?state=S&error=a&error_description=b%0Ac", 400, None, "a: b c"),
        ("GET", "/auth/callback?state=S&error=", 400, None, "no reason given"),
        *(("GET", f"{PATH}?state=S{code}", 400, None, "the callback brought no code") for code in ("", "&code=")),
        ("GET", "/auth/callback?state=S&code=C%2F1&scope=x", None, "C/1", None),
        ("GET", "/auth/callback?" + "a=1&" * 60, 400, None, None),
        ("GET", "http://[/auth/callback?state=S&code=C", 400, None, None),
    ],
)
def test_judge(method: str, target: str, status: int | None, code: str | None, refused: str | None) -> None:
    verdict = judge(method, target, path=PATH, state="S")
    assert (verdict.page.status if verdict.page else None) == status
    assert (verdict.code, verdict.refused) == (code, refused)


def test_error_is_escaped_in_the_page() -> None:
    page = judge("GET", f"{PATH}?state=S&error=%3Cscript%3E", path=PATH, state="S").page
    assert page is not None and "<script>" not in page.text and "&lt;script&gt;" in page.text


async def ask(port: int, request: str | bytes) -> tuple[str, dict[str, str], str]:
    """Status line, headers and body of one raw exchange."""
    if isinstance(request, str):
        request = f"GET {request} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    if not answer:
        return "", {}, ""
    head, _, body = answer.partition("\r\n\r\n")
    line, *rest = head.split("\r\n")
    return line, dict(item.split(": ", 1) for item in rest), body


def listening(**changes: object) -> CallbackListener:
    options: dict[str, object] = {"path": PATH, "state": "S", "ports": (0,), **changes}
    return CallbackListener("p1", **options)  # type: ignore[arg-type]


async def double(code: str) -> str:
    return code * 2


async def begun(listener: CallbackListener, exchange: Callable[[str], Awaitable[str]] = double) -> asyncio.Task[str]:
    task = asyncio.ensure_future(listener.run(exchange))
    await asyncio.sleep(0)
    return task


async def test_stray_requests_do_not_end_the_wait() -> None:
    async with listening() as listener:
        task = await begun(listener)
        for request in ("/favicon.ico", f"{PATH}?state=wrong&code=C", b"garbage\r\n\r\n", b"\x16\x03\x01 \x00\r\n\r\n"):
            line, headers, body = await ask(listener.port, request)
            assert line.split()[1] == ("404" if request == "/favicon.ico" else "400")
            assert headers["Connection"] == "close"
            assert int(headers["Content-Length"]) == len(body.encode())
        with contextlib.suppress(ConnectionResetError):  # closed with half of it unread
            assert (await ask(listener.port, b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000))[0].split()[1] == "400"
        _, silent = await asyncio.open_connection("127.0.0.1", listener.port)  # never says a word
        line, headers, body = await ask(listener.port, f"{PATH}?state=S&code=C")
        assert line == "HTTP/1.1 200 OK" and headers["Content-Type"].startswith("text/html")
        assert "close this page" in body and int(headers["Content-Length"]) == len(body.encode())
        assert await task == "CC"
        silent.close()


@pytest.mark.parametrize("error", [SignInError("the <code> is stale"), RuntimeError("inner detail")])
async def test_failed_exchange_is_shown_and_raised(error: Exception) -> None:
    async def fail(_code: str) -> str:
        raise error

    async with listening() as listener:
        task = await begun(listener, fail)
        line, _, body = await ask(listener.port, f"{PATH}?state=S&code=C")
        assert line.split()[1] == "500"
        assert ("the &lt;code&gt; is stale" in body) == isinstance(error, SignInError)
        assert "inner detail" not in body
        with pytest.raises(type(error)):
            await task


async def test_reload_of_the_page_does_not_exchange_twice() -> None:
    codes, go = [], asyncio.Event()

    async def slow(code: str) -> str:
        codes.append(code)
        await go.wait()
        return code

    async with listening() as listener:
        task = await begun(listener, slow)
        pages = [asyncio.create_task(ask(listener.port, f"{PATH}?state=S&code={n}")) for n in "AB"]
        while len(listener._answering) < 2:
            await asyncio.sleep(0.001)
        go.set()
        assert [(await page)[0] for page in pages] == ["HTTP/1.1 200 OK"] * 2
        assert codes == [await task]


async def test_slow_and_surplus_connections_are_dropped() -> None:
    async with listening(read_timeout_s=0.05, max_connections=1) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET /auth")
        await asyncio.sleep(0.01)
        assert (await ask(listener.port, b""))[0] == ""  # no room
        assert await asyncio.wait_for(reader.read(), 10) == b""  # too slow
        writer.close()
        await asyncio.sleep(0)
        assert (await ask(listener.port, "/"))[0].split()[1] == "404"  # and there is room again


async def test_second_port_when_the_first_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        ports = taken.getsockname()[1], free.getsockname()[1]
        with pytest.raises(SignInError, match=f"{ports[0]} and {ports[1]}"):
            async with listening(ports=ports):
                raise AssertionError("both are taken")
        free.close()
        async with listening(ports=ports) as listener:
            assert listener.port == ports[1]


async def test_leaving_early_frees_the_port_and_warns_about_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as listener:
        port = listener.port
        await ask(port, f"{PATH}?state=S&error=x")
    del listener
    gc.collect()
    assert caplog.records == []  # no "exception was never retrieved"
    async with listening(ports=(port,)) as listener:
        assert listener.port == port


CALLER = "https://accounts.example"
ASKED = f"{PATH}?state=S&code=C"
PREFLIGHT = {"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Private-Network": "true", "Vary": "Origin"}


@rows(
    "caller, origin, method, target, status, allowed",
    [
        (CALLER, CALLER, "OPTIONS", PATH, "200", True),
        (CALLER, CALLER, "OPTIONS", f"{PATH}?state=wrong", "200", True),
        (CALLER, CALLER, "OPTIONS", "/else", "404", True),
        (CALLER, CALLER, "GET", f"{PATH}?state=T&code=C", "400", True),
        (CALLER, CALLER, "GET", ASKED, "200", True),
        (CALLER, "", "GET", ASKED, "200", False),
        (CALLER, "https://evil.example", "GET", ASKED, "200", False),
        *((CALLER, origin, "OPTIONS", PATH, "405", False) for origin in ("", "null", "https://evil.example", "*")),
        *((caller, origin, "OPTIONS", PATH, "405", False) for caller, origin in (("", CALLER), ("", ""))),
    ],
)
async def test_a_page_of_one_origin_may_ask_by_script(
    caller: str, origin: str, method: str, target: str, status: str, allowed: bool
) -> None:
    async with listening(caller=caller) as listener:
        task = await begun(listener)
        sent = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{f'origin: {origin}' if origin else 'X: y'}\r\n\r\n"
        line, headers, _ = await ask(listener.port, sent.encode())
        assert line.split()[1] == status
        expected = {**PREFLIGHT, "Access-Control-Allow-Origin": CALLER} if allowed else {}
        assert {name: value for name, value in headers.items() if name in PREFLIGHT or "Access" in name} == expected
        await ask(listener.port, ASKED)
        assert await task == "CC"
