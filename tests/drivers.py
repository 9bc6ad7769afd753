"""What passes an answer on, and whether answers are the same whatever does.

The pump; the pump in front of a writer that gives every batch back, so that each changes over to the generators; and
the generators alone.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientPayloadError
from harness import Answer, Live, ask
from openai_live import body_for, function
from paced import paced
from wires import TOOLS, Wire

from proxy.observe.lifecycle import Progress
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.event_reader import Pump
from proxy.sandbox import Sandbox
from proxy.server.serving.stream import EventWriter

MESSAGES = "/v1/messages"
PUMP, GIVES_BACK, GENERATORS = "pump", "gives back", "generators"
#: A fault, and its members.
Fault = tuple[str, dict[str, Any]]


@dataclass
class Driver:
    """`taken` and `refused` count the batches that the pump passed on, and that it left to the generators."""

    name: str
    taken: int = 0
    refused: int = 0

    @contextmanager
    def drives(self) -> Iterator[None]:
        """While inside, every answer is passed on so, and ids of the proxy are the same each time."""
        numbers = itertools.count(1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
            patch.setattr(Pump, "take", self._counting(Pump.take))
            if self.name == GENERATORS:
                patch.setattr(AttemptRunner, "_flows", lambda _self: False)
            if self.name == GIVES_BACK:
                patch.setattr(EventWriter, "take", lambda _self, _events: False)
            yield

    def _counting(self, take: Callable[[Pump, bytes], bool]) -> Callable[[Pump, bytes], bool]:
        def counted(pump: Pump, chunk: bytes) -> bool:
            events, done = pump.events, take(pump, chunk)
            self.taken += pump.events > events
            self.refused += not done
            return done

        return counted


@dataclass(frozen=True)
class Played:
    """An answer, and what else is known of it: what the log was told, without times."""

    status: int
    raw: bytes
    attempts: int = 0
    sleeps: tuple[float, ...] = ()
    told: tuple[str, ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    progress: tuple[tuple[int, int], ...] = ()


#: Fields of the log that are new each time, and lines about accounts, which learn from each answer.
_FRESH, _LEARNT = ("upstreamid", "headers"), ("codex_allowance", "allowance_low")


def known_of(live: Live) -> dict[str, Any]:
    return {
        "sleeps": tuple(live.sleeps),
        "told": tuple(live.watcher.names),
        "lines": tuple(
            {"msg": msg, **{key: value for key, value in fields.items() if not is_fresh(key.lower())}}
            for _, _, msg, fields in live.notes.records
            if msg not in _LEARNT
        ),
        "progress": tuple(
            (event.bytes, event.chunks)
            for told in live.watcher.told.values()
            for event in told
            if isinstance(event, Progress)
        ),
    }


def is_fresh(name: str) -> bool:
    return name.endswith("ms") or name in _FRESH


@dataclass
class Compared:
    """Plays the same answer with each driver."""

    drivers: list[Driver] = field(default_factory=lambda: [*map(Driver, (PUMP, GIVES_BACK, GENERATORS))])

    async def same(self, play: Callable[[], Awaitable[Played]]) -> Played:
        """What all of them give. Raises AssertionError for a difference."""
        found = []
        for driver in self.drivers:
            with driver.drives():
                found.append(await play())
        for driver, other in zip(self.drivers, found, strict=True):
            assert other == found[-1], f"{driver.name} differs from {self.drivers[-1].name}"
        return found[-1]

    def are_different(self) -> None:
        """That they were in use at all: else nothing is compared."""
        pump, gives_back, generators = self.drivers
        assert pump.taken > 10 and pump.taken > pump.refused, pump
        assert gives_back.refused > pump.refused, gives_back  # one without events needs no writer
        assert not generators.taken + generators.refused, generators


@asynccontextmanager
async def behind(root: Path) -> AsyncIterator[Live]:
    """A proxy that reads each event of its upstreams alone, and whose upstreams say the same each time."""
    now = 1_790_000_000.0
    async with Sandbox(clock=lambda: now) as sandbox, paced(sandbox.port) as relay:
        here, there = f":{sandbox.port}", f":{relay.port}"
        settings = {
            key: value.replace(here, there) if "BASE" in key else value for key, value in sandbox.settings().items()
        }
        async with Live(
            sandbox, root, settings=settings, clock=lambda: now, openai_routes=True, openai_mode="lenient"
        ) as live:
            yield live


def body_of(path: str, wire: Wire, fault: Fault) -> dict[str, Any]:
    """A streamed request in whose answer there is room for the fault."""
    if path != MESSAGES:
        return body_for(path, model=wire.model, stream=True, tools=[function(path)])
    thinks = any(word in str(fault) for word in ("thinking", "sealed"))
    effort = {"output_config": {"effort": "high"}} if thinks else {}
    return ask(model=wire.model, tools=TOOLS, stream=True, **effort)


async def play_fault(live: Live, wire: Wire, path: str, fault: Fault) -> Played:
    upstream, (name, params) = wire.sandbox(live), fault
    live.forget()
    upstream.ids._run, upstream.ids._numbers = "0" * 12, itertools.count(1)
    upstream.script.replace([{"fault": name, **params}])
    answer = await post(live, body_of(path, wire, fault), path)
    await upstream.idle()
    assert not live.notes.all("internal_error")
    return Played(answer.status, answer.raw, upstream.total_requests, **known_of(live))


async def post(live: Live, body: Any, path: str) -> Answer:
    """An answer; of one whose transfer breaks off, no bytes."""
    try:
        return await live.post(body, path)
    except ClientPayloadError:
        return Answer(0, {}, b"")
