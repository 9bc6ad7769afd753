"""What every simulated upstream has: what tests may look at, a script, and the way a request takes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.sandbox.ids import Ids
from proxy.sandbox.model.reply import last_prompt
from proxy.sandbox.play.actions import Action, Pace, Reply
from proxy.sandbox.play.http_faults import HttpFault
from proxy.sandbox.play.player import EVENT_STREAM, play
from proxy.sandbox.play.script import Place, Script, Step, Tables
from proxy.sandbox.play.stream_faults import Fault
from proxy.sandbox.recorder import KEPT_REQUESTS, Received, receive
from proxy.sandbox.wires.answer import Answer
from proxy.sandbox.wires.refusal import Refused, plain_reply

#: As generous as the proxy's own limit, and a little more: the proxy wraps what it gets.
MAX_BODY_BYTES = 80 * 1024 * 1024

#: Conversations of which the prompt cache remembers a size.
MAX_CACHE_KEYS = 1_000

#: The cache counts in blocks of this many tokens.
CACHE_BLOCK = 128


@dataclass(slots=True)
class Options:
    """The pace of answers."""

    word_delay_s: float = 0.0
    events_per_write: int | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to be answered, and the faults that it knows."""

    place: Place
    http_faults: Mapping[str, HttpFault]
    faults: Mapping[str, Fault]

    @property
    def table(self) -> dict[str, Callable[..., Any]]:
        return {**self.http_faults, **self.faults}

    def play(self, answer: Answer, fault: str, params: Mapping[str, Any]) -> Reply | list[Action]:
        """What the fault makes of the answer."""
        if fault in self.http_faults:
            return self.http_faults[fault](**params)
        return answer.finished(self.faults[fault](answer, **params))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that passed the checks. `instead` is the fault that comes when no step of the script does."""

    wire: Wire
    answer: Answer
    headers: Mapping[str, str] = field(default_factory=dict)  # of a stream
    instead: tuple[str, Mapping[str, Any]] | None = None


#: Checks a request and prepares its answer. Raises Refused.
Prepare = Callable[[web.Request, Any], Prepared]


class Upstream:
    """`requests` holds the last KEPT_REQUESTS for an answer, oldest first; refused ones are among them."""

    options: Options

    def __init__(self, wires: tuple[Wire, ...], clock: Callable[[], float], more: Tables | None = None) -> None:
        """`more`: the faults of places where no answer is asked for."""
        self.clock = clock
        self.origin = ""  # set when the server knows its port
        self.script = Script({**{wire.place: wire.table for wire in wires}, **(more or {})})
        self.ids = Ids()
        self.requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.total_requests = 0  # all of them ever
        self.active = 0  # requests being answered right now
        self._idle = asyncio.Event()
        self._idle.set()
        self._cached: OrderedDict[str, int] = OrderedDict()

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy here."""
        raise NotImplementedError

    def add_routes(self, app: web.Application) -> None:
        raise NotImplementedError

    def trace_headers(self) -> dict[str, str]:
        """Headers of every answer but a refusal."""
        return {"x-request-id": self.ids.new("req")}

    def cached_tokens(self, key: str | None, tokens: int) -> int:
        """How much of a prompt of `tokens` the cache knew under the key, which now remembers this size."""
        if not key:
            return 0
        known = min(self._cached.pop(key, 0), tokens) // CACHE_BLOCK * CACHE_BLOCK
        self._cached[key] = tokens
        if len(self._cached) > MAX_CACHE_KEYS:
            self._cached.popitem(last=False)
        return known

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Counts a request as active for as long as it is answered, however that ends."""
        self.active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.active -= 1
            if not self.active:
                self._idle.set()

    async def idle(self, timeout_s: float = 2.0) -> None:
        """Returns when no request is being answered. Raises TimeoutError: somebody did not let go."""
        async with asyncio.timeout(timeout_s):
            await self._idle.wait()

    async def serve(self, request: web.Request, prepare: Prepare) -> web.StreamResponse:
        """One request for an answer: the checks, then the script's step for it or the model's normal answer."""
        with self.at_work():
            seen = await receive(request)
            self.note(seen)
            try:
                prepared = prepare(request, seen.body)
            except Refused as refused:
                seen.status = refused.status
                return refused.response()
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
        """Counts and keeps a request."""
        self.total_requests += 1
        self.requests.append(seen)

    def decide(self, prepared: Prepared, body: Mapping[str, Any]) -> tuple[Reply | list[Action], Pace]:
        """What to do and how fast, by the script's step for this request if there is one."""
        step = self.script.take(prepared.wire.place, body, last_prompt(prepared.answer.ask))
        return self._outcome(prepared, step), self._pace(step)

    def _outcome(self, prepared: Prepared, step: Step | None) -> Reply | list[Action]:
        wire, answer = prepared.wire, prepared.answer
        if step is not None and step.reply is not None:
            return step.reply
        if step is not None and step.actions is not None:
            return step.actions
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
