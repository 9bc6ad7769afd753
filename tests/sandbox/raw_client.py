"""A raw client of a simulated upstream: requests as a correct proxy would send them, to be spoilt by a test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import aiohttp

from proxy.sandbox import Sandbox
from proxy.sandbox.wires.refusal import Refused


@dataclass
class RawReply:
    """`broken` is the error with which the body ended, if it did not end well."""

    status: int
    headers: Any
    data: bytes
    broken: Exception | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


R = TypeVar("R", bound=RawReply)


class RawClient(Generic[R]):
    """One session, one address."""

    reply: type[R]

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession, url: str) -> None:
        self.sandbox = sandbox
        self.session = session
        self.url = url

    def headers(self, body: Any = None) -> dict[str, str]:
        raise NotImplementedError

    def address(self, body: Any) -> str:
        return self.url

    def post(self, body: Any, headers: dict[str, str | None] | None = None) -> Any:
        """The request as a context manager. A header of None is left out."""
        merged = {**self.headers(body), **(headers or {})}
        sent = {name: value for name, value in merged.items() if value is not None}
        left_out = [name for name, value in merged.items() if value is None]
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self.session.post(
            self.address(body), data=data, headers=sent, skip_auto_headers=left_out, allow_redirects=False
        )

    async def ask(self, body: Any, headers: dict[str, str | None] | None = None) -> R:
        """The whole answer, however it ends."""
        async with self.post(body, headers) as response:
            data, broken = b"", None
            try:
                async for chunk in response.content.iter_any():
                    data += chunk
            except (aiohttp.ClientError, ConnectionError) as error:
                broken = error
            reply = self.reply(response.status, response.headers, data, broken)
        if response.content_type == "text/event-stream":
            reply.events = list(parse(data))
        return reply


def parse(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of whole, well-formed frames."""
    for block in data.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
        try:
            event = json.loads(fields[b"data"])
        except (KeyError, ValueError):
            continue
        assert fields.get(b"event", b"").decode() in (event.get("type", ""), "")
        yield event


JUNK: list[Any] = [None, True, 1, "x", "", [], {}, [1], [None], {"type": "x"}, {"type": []}, [[]], [{}]]


def never_crashes(body: dict[str, Any], serve: Callable[[dict[str, Any]], object]) -> None:
    """Junk in any place of the body is refused or served."""
    for path, junk in itertools.product(places(body), JUNK):
        try:
            assert serve(spoilt(body, path, junk)), (path, junk)
        except Refused:
            continue


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside of `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*path, step)
        yield from places(one, (*path, step))


def spoilt(body: dict[str, Any], path: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(body))
    target = copy
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = junk
    return copy
