"""The proxy on a real loopback port in front of a sandbox: what server and provider tests talk to.

Time is the test's: retries do not sleep, they are written down in `Live.sleeps`; `chance` is a half, so that waits are
1.5, 3 and 6 seconds. The runner is built as in production unless a test says otherwise, because aiohttp's own test
server differs from it in the one thing that matters here: what happens when a client leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from proxy import create_app
from proxy.config import Config
from proxy.core.ingress import IngressRules
from proxy.core.messages import MessageStream
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.core.tokens.usage import usage_of
from proxy.errors import PROGRAM
from proxy.loading import SETTINGS, load, settings_of
from proxy.observe.capture.contract import Captures
from proxy.observe.lifecycle import CacheChecked, Event, Progress, ServiceEvent, Timed, UpstreamAnswered
from proxy.providers.accounts.model_lists import ListTimers
from proxy.providers.accounts.named import root_of
from proxy.providers.contract import Call, Target, Tuning
from proxy.providers.entry import Entry
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import Sandbox
from proxy.sandbox.model.prompt_cache import PromptCache
from proxy.server.request.state import STATE, StreamTimers


def ask(prompt: str | list[dict[str, Any]] = "hello", **members: Any) -> dict[str, Any]:
    """A Messages request."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return {"model": "gpt-5.5", "max_tokens": 100, "messages": messages, **members}


def tool(name: str = "Bash", parameter: str = "command") -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"name": name, "description": f"{name} does things.", "input_schema": schema}


def parse_events(raw: bytes) -> list[dict[str, Any]]:
    """The events of an SSE body, whose `event:` line must agree with the type in the data."""
    events = []
    for frame in raw.decode().split("\n\n"):
        if not frame:
            continue
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def texts(events: list[dict[str, Any]]) -> str:
    """The visible text of a stream."""
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta")


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def events(self) -> list[dict[str, Any]]:
        return parse_events(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        """The inner error object of a Messages envelope, whose form is checked."""
        body = self.json
        assert body["type"] == "error" and body["request_id"] == self.headers["request-id"]
        error: dict[str, Any] = body["error"]
        assert isinstance(error["type"], str) and error["message"]
        return error


class Watcher:
    """A recorder that keeps what it is told, request by request."""

    wants_project = False

    def __init__(self) -> None:
        self.told: dict[str, list[Event]] = {}
        self.beside: list[ServiceEvent] = []

    def record(self, request_id: str, event: Event) -> None:
        self.told.setdefault(request_id, []).append(event)

    def happened(self, event: ServiceEvent) -> None:
        self.beside.append(event)

    @property
    def last(self) -> list[Event]:
        """Of the newest request, without progress and what is told beside every answer."""
        beside = Progress, Timed, UpstreamAnswered, CacheChecked
        return [event for event in list(self.told.values())[-1] if not isinstance(event, beside)]

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.last]


class Notes:
    """A log that keeps its records."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, str, dict[str, Any]]] = []
        self.captures: list[dict[str, Any]] = []

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        self.records.append((level, service, msg, fields))

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        self.captures.append(record)
        return f"/errors/{name}.json"

    def all(self, msg: str) -> list[dict[str, Any]]:
        """The fields of the records with this message."""
        return [fields for _, _, found, fields in self.records if found == msg]


def configured(config: Config, **values: Any) -> Config:
    """Other settings: `p1_transport` is the field `transport` of P1's section, other names are general ones."""
    sections = {entry.label: entry.settings for entry in PROVIDERS if entry.settings is not None}
    for name, value in values.items():
        label, _, field = name.partition("_")
        section: type[Any] | None = sections.get(label)
        config = config.changed(section, **{field: value}) if section else config.changed(Config, **{name: value})
    return config


#: No service is asked for its models, which would be one more request beside those that a test counts.
NO_LISTS = ListTimers(first=float("inf"))


class Live:
    """A running proxy. `config` members replace those that lead to the sandbox, see `configured`. P1 is asked over
    HTTP unless a test says otherwise."""

    def __init__(
        self,
        sandbox: Sandbox,
        root: Path,
        *,
        signed_in: bool = True,
        handler_cancellation: bool = True,
        mount: str = "",
        proxies: OutboundProxies | None = None,
        captures: Captures | None = None,
        sleep: Callable[[float], Any] | None = None,
        clock: Callable[[], float] = time.time,
        tuning: tuple[object, ...] = (),
        entries: Sequence[Entry] = PROVIDERS,
        settings: Mapping[str, str] | None = None,
        state_dir: Path | None = None,
        caller_keys: Path | None = None,
        command: str = PROGRAM,
        **config: Any,
    ) -> None:
        self.sandbox = sandbox
        self.root = root
        self.watcher, self.notes = Watcher(), Notes()
        self.sleeps: list[float] = []
        self.url = ""
        self.mount = mount
        known = SETTINGS if entries is PROVIDERS else settings_of(entries)
        found, _ = load(settings or sandbox.settings(), settings=known)
        self.config = configured(found, **{"p1_transport": "http", **config})
        if signed_in:
            sandbox.write_credentials(root)
        self.app = create_app(
            lambda: self.config,
            config_dir=root,
            log=self.notes,
            recorder=self.watcher,
            captures=captures,
            proxies=proxies,
            sleep=sleep or self._sleep,
            chance=lambda: 0.5,
            clock=clock,
            tuning=Tuning((*tuning, NO_LISTS)),
            entries=entries,
            packed_bodies=True,
            state_dir=state_dir,
            caller_keys=caller_keys,
            command=command,
        )
        self._cancellation = handler_cancellation

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)

    async def __aenter__(self) -> Live:
        app = self.app
        if self.mount:
            app = web.Application()
            app.add_subapp(self.mount, self.app)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=self._cancellation,
            auto_decompress=False,
            shutdown_timeout=0.5,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}{self.mount}"
        self.client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self._runner.cleanup()

    async def request(self, method: str, path: str, **options: Any) -> Answer:
        async with self.client.request(method, self.url + path, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.request("GET", path, headers=headers)

    async def post(self, body: Any, path: str = "/v1/messages", headers: Mapping[str, str] | None = None) -> Answer:
        """`body`: what becomes JSON, or bytes sent as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **(headers or {})}
        return await self.request("POST", path, data=data, headers=headers)

    async def stream(self, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        return await self.post({**body, "stream": True}, headers=headers)

    @contextlib.asynccontextmanager
    async def open(self, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> AsyncIterator[Any]:
        """A request whose answer is not read yet; leaving closes the connection at once."""
        response = await self.client.post(self.url + "/v1/messages", json=body, headers=headers)
        try:
            yield response
        finally:
            response.close()

    async def raw(self, data: bytes) -> bytes:
        """What comes back for these bytes, until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    def forget(self) -> None:
        """Has the next row of a test find nothing of the last one: what was noted, what the proxy learnt of accounts,
        and what the upstreams saw, know, and have yet to play."""
        self.sleeps.clear()
        self.notes.records.clear()
        self.watcher.told.clear()
        self.watcher.beside.clear()
        self.app[STATE].allowances._known.clear()
        for upstream in self.sandbox.upstreams.values():
            upstream.requests.clear()
            upstream.total_requests = 0
            upstream.prompts = PromptCache(upstream.clock)
            upstream.script.replace([])

    @property
    def upstream(self) -> int:
        """How many requests for an answer reached the upstream."""
        return self.sandbox.p1.total_requests


def raw_request(line: str, *headers: str, body: bytes | None = None) -> bytes:
    """An HTTP/1.1 request as bytes; `body` declares itself JSON."""
    lines = [f"{line} HTTP/1.1", "Host: 127.0.0.1", *headers]
    if body is not None:
        lines += ["Content-Type: application/json"]
        if not any(header.startswith(("Content-Length", "Transfer-Encoding")) for header in headers):
            lines += [f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def with_live(**options: Any) -> pytest.MarkDecorator:
    """Decorates a test whose `live` is made with these arguments."""
    return pytest.mark.parametrize("live_options", [options], ids=[""])


def watch_often(**seconds: float) -> StreamTimers:
    """Times of a stream for tests: the watch looks a hundred times a second."""
    return StreamTimers(**{"tick": 0.01, **seconds})


async def until(condition: Callable[[], Any], timeout_s: float = 2.0) -> None:
    """Waits for something that another task brings about. Time is counted in turns of the loop, so that a machine which
    stands still for seconds does not use up what is left."""
    turn_s = 0.005
    for _ in range(round(timeout_s / turn_s)):
        if condition():
            return
        await asyncio.sleep(turn_s)
    raise TimeoutError(f"not within {timeout_s} s")


class Fake:
    """A provider whose answers a test writes: `stream` is an async generator function of the call."""

    def ingress(self, model: str) -> IngressRules:
        return IngressRules()

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset()

    def __init__(
        self, label: str = "p2", stream: Callable[[Call], AsyncGenerator[list[Any], None]] | None = None
    ) -> None:
        self.label = label
        self.calls: list[Call] = []
        self.closed = 0
        self._stream = stream or said

    def signed_in(self) -> bool:
        return True

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        return Target(model)

    async def count_tokens(self, call: Call) -> int:
        self.calls.append(call)
        return 7

    async def stream(self, call: Call) -> AsyncGenerator[list[Any], None]:
        self.calls.append(call)
        try:
            async with contextlib.aclosing(self._stream(call)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self.closed += 1

    async def close(self) -> None:
        return None


def played(*steps: Any) -> Callable[[Call], AsyncGenerator[list[Any], None]]:
    """A provider that yields these batches, raises these errors, waits for these events and sleeps these seconds."""

    async def stream(_call: Call) -> AsyncGenerator[list[Any], None]:
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    return stream


async def said(call: Call, text: str = "fine") -> AsyncGenerator[list[Any], None]:
    """A whole answer in one batch."""
    yield whole_message(call.model, text)


def whole_message(model: str, text: str) -> list[dict[str, Any]]:
    stream = MessageStream("msg_1", model, input_tokens=3)
    stream.open("t", {"type": "text", "text": ""})
    stream.delta("t", {"type": "text_delta", "text": text})
    stream.close("t")
    stream.finish("end_turn", usage_of(3, 1))
    return stream.take()


def store_account(root: Path, label: str, files: Mapping[str, str] | None = None, name: str = "work") -> Path:
    """The folder of another account of a provider, with the files of its sign-in."""
    folder = root_of(root, label, name) / label
    folder.mkdir(parents=True)
    for file, text in (files or {"auth.json": "{}"}).items():
        (folder / file).write_text(text)
    return folder


def use(live: Live, provider: Fake) -> Fake:
    """Lets the proxy serve this provider, instead of the real one if there is one of its label."""
    live.app[STATE].accounts.providers.made[provider.label] = provider
    return provider
