"""The loopback listener that receives the browser at the end of a sign-in.

One request a connection, parsed by hand: the listener lives for minutes, may be reached by anything on the machine, and
must survive garbage, slow peers, favicon requests and stray callbacks. Only the right `state` ends it.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import html
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

from proxy.auth.text import printable
from proxy.errors import ProxyError, SignInError

#: Time from the printed address to the callback.
CALLBACK_TIMEOUT_S = 300.0

#: One connection may take this long to send its request line and headers.
READ_TIMEOUT_S = 10.0

MAX_HEAD_BYTES = 32 * 1024
MAX_CONNECTIONS = 32

T = TypeVar("T")

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}

_SUCCESS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title></head>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 30em">
<h1>Signed in</h1><p>You can close this page and go back to the terminal.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class BrowserPage:
    """A page for the browser."""

    status: int
    text: str
    content_type: str = "text/plain"

    def encode(self, headers: Mapping[str, str] = {}) -> bytes:
        body = self.text.encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {self.status} {_REASONS[self.status]}\r\n"
            f"Content-Type: {self.content_type}; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            f"{more}"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + body


#: The answer to a browser's preflight for a page of another origin, which needs only the headers.
ALLOWED = BrowserPage(200, "")

SUCCESS = BrowserPage(200, _SUCCESS, "text/html")


@dataclass(frozen=True, slots=True)
class CallbackVerdict:
    """The meaning of a request. At most one of `code` and `refused` is set; with neither the listener keeps waiting."""

    page: BrowserPage | None = None
    code: str | None = None
    refused: str | None = None


def judge(method: str, target: str, *, path: str, state: str) -> CallbackVerdict:
    """Checks one request; the order of the checks matters.

    The state comes before the outcome, so that a page that only knows the port can neither end nor hijack a sign-in.
    """
    try:
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return CallbackVerdict(BrowserPage(400, "Bad request\n"))
    if parts.path != path:
        return CallbackVerdict(BrowserPage(404, "Not found\n"))
    if method != "GET":  # link previews ask with HEAD; they must not use up the code
        return CallbackVerdict(BrowserPage(405, "Method not allowed\n"))
    values = {name: found[0] for name, found in query.items()}
    if not hmac.compare_digest(values.get("state", "").encode(), state.encode()):
        return CallbackVerdict(BrowserPage(400, "This address does not belong to the sign-in that is waiting.\n"))
    if "error" in values:
        reasons = [printable(values[name]) for name in ("error", "error_description") if values.get(name)]
        reason = ": ".join(reasons) or "no reason given"
        return CallbackVerdict(BrowserPage(400, f"Sign-in failed: {html.escape(reason)}\n"), refused=reason)
    if not values.get("code"):
        reason = "the callback brought no code"
        return CallbackVerdict(BrowserPage(400, f"Sign-in failed: {reason}\n"), refused=reason)
    return CallbackVerdict(code=values["code"])


class CallbackListener:
    """Waits on 127.0.0.1 for one sign-in: `async with CallbackListener(…) as listener: await listener.run(exchange)`.

    label   the provider's, for errors
    ports   tried in this order; 0 lets the system choose
    caller  the origin whose page may call by script and see the answer, "" for none: some issuers do so instead of
            sending the browser here
    """

    def __init__(
        self,
        label: str,
        *,
        path: str,
        state: str,
        ports: tuple[int, ...],
        caller: str = "",
        timeout_s: float = CALLBACK_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self.port = 0
        self._label = label
        self._path = path
        self._state = state
        self._ports = ports
        self._caller = caller
        self._timeout_s = timeout_s
        self._read_timeout_s = read_timeout_s
        self._max_connections = max_connections
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()  # connections whose request was read
        self._code: asyncio.Future[str]
        self._outcome: asyncio.Future[BrowserPage]

    async def __aenter__(self) -> CallbackListener:
        loop = asyncio.get_running_loop()
        self._code, self._outcome = loop.create_future(), loop.create_future()
        for port in self._ports:
            try:
                self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=MAX_HEAD_BYTES)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
            self.port = self._server.sockets[0].getsockname()[1]
            return self
        taken = " and ".join(str(port) for port in self._ports)
        raise SignInError(
            f"The sign-in needs local port {taken}, which another program uses. Stop that program, or sign in with "
            "--device or --paste.",
            provider=self._label,
        )

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None  # noqa: S101  __aenter__ returned
        self._server.close()
        if self._code.done() and not self._code.cancelled():
            self._code.exception()  # marks it as retrieved, even if `run` was never called
            if self._answering:  # lets the browser get its page
                await asyncio.wait(self._answering, timeout=1.0)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def run(self, exchange: Callable[[str], Awaitable[T]]) -> T:
        """Waits for the code and returns the result of `exchange(code)`; the browser is shown the outcome.

        Raises SignInError if the user refused or was too late, and what `exchange` raises.
        """
        try:
            code = await asyncio.wait_for(self._code, self._timeout_s)
        except TimeoutError:
            raise SignInError(
                f"No sign-in arrived within {self._timeout_s:g} s; start it again.", provider=self._label
            ) from None
        try:
            result = await exchange(code)
        except ProxyError as error:
            self._outcome.set_result(BrowserPage(500, f"Sign-in failed: {html.escape(error.message)}\n"))
            raise
        except BaseException:
            self._outcome.set_result(BrowserPage(500, "Sign-in failed\n"))
            raise
        self._outcome.set_result(SUCCESS)
        return result

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._max_connections:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        task.add_done_callback(self._answering.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await self._head(reader)
            page = await self._answer(head) if head is not None else None
            if page is not None:
                writer.write(page.encode(self._for_caller(head)))
                await asyncio.wait_for(writer.drain(), self._read_timeout_s)
        except (OSError, TimeoutError):
            pass  # this peer is gone; the next one may be the browser
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes | None:
        """Request line and headers; b"" if they are too long, None if the peer left without a request."""
        try:
            return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self._read_timeout_s)
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            return b""

    def _for_caller(self, head: bytes | None) -> dict[str, str]:
        """Headers of the answer to a page of the one origin that may call by script; {} for all others."""
        if not head or not self._caller or _header(head, "origin") != self._caller:
            return {}
        return {
            "Access-Control-Allow-Origin": self._caller,
            "Access-Control-Allow-Methods": "GET",
            "Access-Control-Allow-Private-Network": "true",
            "Vary": "Origin",
        }

    async def _answer(self, head: bytes) -> BrowserPage:
        """The page for one request."""
        task: asyncio.Task[None] | None = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
        line = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            return BrowserPage(400, "Bad request\n")
        if line[0] == "OPTIONS" and line[1].partition("?")[0] == self._path and self._for_caller(head):
            return ALLOWED
        verdict = judge(line[0], line[1], path=self._path, state=self._state)
        if verdict.refused is not None and not self._code.done():
            self._code.set_exception(SignInError(f"The sign-in was refused: {verdict.refused}.", provider=self._label))
        if verdict.page is not None:
            return verdict.page
        assert verdict.code is not None  # noqa: S101  a verdict without page has a code
        if not self._code.done():
            self._code.set_result(verdict.code)
        # A second callback (a reload of the page) sees the same outcome; the code is exchanged once.
        return await asyncio.shield(self._outcome)


def _header(head: bytes, name: str) -> str:
    """The value of a header, "" if it is missing."""
    for line in head.decode("latin-1").split("\r\n")[1:]:
        found, _, value = line.partition(":")
        if found.lower() == name:
            return value.strip()
    return ""
