"""The common part of simulated upstreams: a host, a script, the handling of a request, and records for tests."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from proxy.sandbox.model.prompt_cache import PromptCache
from proxy.sandbox.model.reply import last_prompt
from proxy.sandbox.play.actions import Action, HttpFault, Pace, Reply
from proxy.sandbox.play.player import EVENT_STREAM, play
from proxy.sandbox.play.script import Place, Script, Step, Tables
from proxy.sandbox.wires.answer import Ids, Playable
from proxy.sandbox.wires.refusal import Refused, plain_reply

#: Requests kept for inspection, each with its body, and sockets: enough for a test, bounded for a benchmark.
KEPT_REQUESTS = 128


@dataclass(slots=True)
class Received:
    """A request. `status` is 0 until the answer begins; `body` is None when it was not JSON. Header names in any case.

    `size` counts the bytes of the body or frame; `socket` is the number of the socket it came over, None for HTTP; with
    a socket the headers are those of the upgrade."""

    path: str
    headers: Mapping[str, str]
    body: Any
    status: int = 0
    size: int = 0
    socket: int | None = None


@dataclass(slots=True)
class Socket:
    """An upgrade and its traffic. `status` is 101, that of the refusal, or 0 without an answer.

    `frames` are the last text and binary frames, oldest first; `pings` and `pongs` count those of the client;
    `close_code` is None before the end, and 1006 after an end without a close frame."""

    number: int
    headers: Mapping[str, str]
    status: int = 0
    frames: deque[Received] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))
    pings: int = 0
    pongs: int = 0
    close_code: int | None = None


async def receive(request: web.Request) -> Received:
    """Reads the request to its end."""
    data = await request.read()
    return Received(request.path, request.headers, read_json(data), size=len(data))


def read_json(data: bytes) -> Any:
    """The JSON value, None for anything else."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


#: The proxy's own limit and a little more, since the proxy wraps what it gets.
MAX_BODY_BYTES = 80 * 1024 * 1024


@dataclass(slots=True)
class Host:
    """The server of the simulated upstreams. `origin` is known once it has its port."""

    clock: Callable[[], float] = time.time
    origin: str = ""


@dataclass(slots=True)
class Options:
    """The pace of answers, and the fault of the list of models: one of `JSON_FAULTS`, `refused`, or "" for none."""

    word_delay_s: float = 0.0
    events_per_write: int | None = None
    list_fault: str = ""


class ServedWire(NamedTuple):
    """A wire, and its faults."""

    place: Place
    http_faults: Mapping[str, HttpFault]
    faults: Mapping[str, Callable[..., Iterable[Action]]]

    @property
    def table(self) -> dict[str, Callable[..., Any]]:
        return {**self.http_faults, **self.faults}

    def play(self, answer: Playable, fault: str, params: Mapping[str, Any]) -> Reply | Iterable[Action]:
        """The answer with a fault."""
        if fault in self.http_faults:
            return self.http_faults[fault](**params)
        return answer.finished(self.faults[fault](answer, **params))


class CheckedRequest(NamedTuple):
    """A request that passed the checks. `instead` is the fault that applies without a step of the script."""

    wire: ServedWire
    answer: Playable
    headers: Mapping[str, str] = {}  # of a stream
    instead: tuple[str, Mapping[str, Any]] | None = None


#: Checks a request and prepares its answer. Raises Refused.
Prepare = Callable[[web.Request, Any], CheckedRequest]


class Upstream:
    """A simulated upstream. `requests` holds the last KEPT_REQUESTS requests for an answer, oldest first, refused ones
    too."""

    options: Options

    def __init__(self, host: Host, options: Options, tables: Tables) -> None:
        """`tables`: the faults of each place of this upstream, see `Script`."""
        self.host = host
        self.options = options
        self.script = Script(tables)
        self.ids = Ids()
        self.requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.total_requests = 0  # counts all requests
        self.active = 0  # requests being answered right now
        self._idle = asyncio.Event()
        self._idle.set()
        self.prompts = PromptCache(self.clock)

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy to this upstream."""
        raise NotImplementedError

    def credentials(self, lifetime_s: int | None, expires_ms: int | None) -> dict[str, str]:
        """A fresh sign-in in a client's form: file name -> text, see `Tokens.stored`. Empty without a sign-in."""
        return {}

    def encrypted(self, item_id: str, model: str) -> str:
        """Encrypted content that this account could have got for an item of this id, by this model: for a test's own
        request. "" when thoughts are not encrypted."""
        return ""

    def trace_headers(self) -> dict[str, str]:
        """Headers of every answer except a refusal."""
        return {"x-request-id": self.ids.new("req")}

    def clock(self) -> float:
        """Now, in epoch seconds."""
        return self.host.clock()

    def cached_tokens(
        self, key: str | None, model: str, parts: Iterable[Any], tokens: int, *, account: str = ""
    ) -> int:
        """The number of a prompt's tokens that the account's cache had under the key, see `PromptCache`; 0 without a
        key."""
        return self.prompts.cached((account, key, model), parts, tokens) if key else 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Counts a request as active until its answer ends in any way."""
        self.active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.active -= 1
            if not self.active:
                self._idle.set()

    async def idle(self, timeout_s: float = 2.0) -> None:
        """Waits until no request is being answered. Raises TimeoutError if a client keeps one open."""
        async with asyncio.timeout(timeout_s):
            await self._idle.wait()

    async def serve(self, prepare: Prepare, request: web.Request) -> web.StreamResponse:
        """Serves one request for an answer: the checks, then the script's step for it or the model's normal answer."""
        with self.at_work():
            seen = await receive(request)
            self.note(seen)
            with refusals_noted(seen):
                prepared = prepare(request, seen.body)
            outcome, pace = self.decide(prepared, seen.body)
            if isinstance(outcome, Reply):
                seen.status = outcome.status
                headers = {**self.trace_headers(), **(outcome.headers or {})}
                return plain_reply(outcome.status, outcome.body, headers)
            seen.status = 200
            kind = EVENT_STREAM if prepared.wire.place.stream else {"content-type": "application/json"}
            headers = {**self.trace_headers(), **kind, **prepared.headers}
            return await play(request, headers, outcome, pace, prepared.answer.framing)

    def note(self, seen: Received) -> None:
        """Counts and records a request."""
        self.total_requests += 1
        self.requests.append(seen)

    def decide(self, prepared: CheckedRequest, body: Mapping[str, Any]) -> tuple[Reply | Iterable[Action], Pace]:
        """The actions and their pace, by the script's step for this request if there is one."""
        step = self.script.take(prepared.wire.place, body, last_prompt(prepared.answer.ask))
        return self._outcome(prepared, step), self._pace(step)

    def _outcome(self, prepared: CheckedRequest, step: Step | None) -> Reply | Iterable[Action]:
        wire, answer = prepared.wire, prepared.answer
        if step is not None and step.outcome is not None:
            return step.outcome
        if step is not None and step.fault is not None:
            return wire.play(answer, step.fault, step.params)
        if prepared.instead is not None:
            return wire.play(answer, *prepared.instead)
        return answer.finished(answer.stream()) if wire.place.stream else Reply(200, answer.whole())

    def _pace(self, step: Step | None) -> Pace:
        delay, batch = self.options.word_delay_s, self.options.events_per_write
        if step is not None:
            delay = delay if step.word_delay_s is None else step.word_delay_s
            batch = step.events_per_write or batch
        return Pace(delay, batch)


@contextmanager
def refusals_noted(seen: Received) -> Iterator[None]:
    """Records a refusal's status as that of the request."""
    try:
        yield
    except Refused as refused:
        seen.status = refused.status
        raise


@web.middleware
async def answer_refusals(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Turns a refusal into the answer."""
    try:
        response: web.StreamResponse = await handler(request)
    except Refused as refused:
        return refused.response()
    return response


@dataclass(frozen=True, slots=True)
class Simulator:
    """Describes one simulated upstream to the sandbox.

    `upstream` is the class of its state, which gets a host, `options` and the tables of faults, and makes the variables
    and credentials that lead to it; `routes` returns the routes of such a state. `more` are the faults of places
    without requests for answers."""

    label: str
    upstream: Callable[[Host, Any, Tables], Upstream]
    options: type[Options]
    wires: tuple[ServedWire, ...]
    routes: Callable[[Any], Iterable[web.RouteDef]]
    more: Tables = field(default_factory=dict)

    @property
    def tables(self) -> Tables:
        """The faults of each place."""
        return {**{wire.place: wire.table for wire in self.wires}, **self.more}
