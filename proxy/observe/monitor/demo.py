"""Simulated traffic that shows the monitor without an account: nothing listens, and no upstream is asked. The store is
fed with events as a proxy would feed it, at moments that follow from the clock alone, so that the same clock always
shows the same.

`demo.json` beside this module has the events. An event is written as its name in `lifecycle` and its values, a `*` in
them is the id of the request.

clients     name -> the events at which a request of it begins, and those at which its model is chosen
round       the clients that ask in turn, in the hour before and from now on
over        requests that ended in different ways: how long ago they began, how long they took, the client, what
            happened in between, the end
under_way   requests that go on while the demo does: how long ago they began, their id, the client, how far they came
notices     how long ago, and the values of a `Notice`
allowances  provider, window, used, its age, when it begins again, what is limited
"""

from __future__ import annotations

import importlib.resources
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from proxy.observe import lifecycle
from proxy.observe.monitor.snapshot import AllowanceRow, Snapshot
from proxy.observe.monitor.state import MonitorState

URL = "mock://tui-demo"
#: The proxy that is simulated had run for this long when the demo begins.
UPTIME_S = 3720.0
#: Seconds between two moments with events, and moments between two requests.
TICK_S, CYCLE = 0.25, 24
#: Seconds between the beginnings of two requests in the hour before, and their lengths.
PAST_EVERY_S, PAST_LENGTH_S = 34.0, 60.0
#: Reports of a provider that are older than this, in seconds, are not renewed.
SAID_ONCE_S = 3600.0

#: Moment in seconds of the proxy's life, request, event.
Happening = tuple[float, str, list[Any]]


def tables() -> dict[str, Any]:
    """What `demo.json` has."""
    found: dict[str, Any] = json.loads((importlib.resources.files(__package__) / "demo.json").read_text("utf-8"))
    return found


class Demo:
    """Simulated traffic; `snapshot` shows it as it is now.

    clock  seconds that only go forward, from which everything follows; `wall`: epoch seconds, asked once
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._began = clock, clock()
        self._epoch = wall() - UPTIME_S
        self._now = 0.0
        self._numbers: dict[str, int] = {}
        self._tables = tables()
        self.monitor = MonitorState(
            clock=lambda: self._now,
            wall=lambda: self._epoch + self._now,
            allowances=self._allowances,
            program="model-proxy demo",
        )
        self.monitor.url = URL
        for one in sorted([*self._past(), *self._over(), *self._under_way()], key=lambda one: one[0]):
            self._tell(*one)
        for ago, level, message, provider, session in self._tables["notices"]:
            self._now = UPTIME_S - ago
            self.monitor.notice(level, message, provider=provider, session=session)
        self._ticks = -1
        self._due: deque[Happening] = deque()

    def snapshot(self) -> Snapshot:
        elapsed = max(self._clock() - self._began, 0.0)
        while self._ticks < int(elapsed / TICK_S):
            self._ticks += 1
            self._tick()
        self._now = UPTIME_S + elapsed
        return self.monitor.snapshot()

    def _tick(self) -> None:
        number, at = divmod(self._ticks, CYCLE)
        now = UPTIME_S + self._ticks * TICK_S
        if at == 0:
            busy = ["Failed", 503, "the provider is overloaded; try again in a moment", "overloaded"]
            end = busy if number % 4 == 3 else ["Completed", 200]
            self._due.extend(
                _turn(f"demo-{number}", self._asking(number), now, 5.0, end, every=TICK_S, size=number + 1)
            )
        while self._due and self._due[0][0] <= now:
            self._tell(*self._due.popleft())
        for one in _streams(now, self._ticks):
            self._tell(*one)

    def _tell(self, at: float, request_id: str, written: list[Any]) -> None:
        self._now = at
        name, *values = written
        values = [each.replace("*", request_id) if isinstance(each, str) else each for each in values]
        event = getattr(lifecycle, name)(*values)
        self.monitor.record(request_id, event)
        if name == "Started" and event.session is not None:
            number = self._numbers[event.session] = self._numbers.get(event.session, 0) + 1
            self.monitor.record(request_id, lifecycle.Sequenced(number))

    def _allowances(self) -> tuple[AllowanceRow, ...]:
        begin, now = self._epoch + UPTIME_S, self._epoch + self._now
        return tuple(
            AllowanceRow(provider, window, used, (begin if age > SAID_ONCE_S else now) - age, limit, begin + resets)
            for provider, window, used, age, resets, limit in self._tables["allowances"]
        )

    def _asking(self, number: int) -> list[Any]:
        """The client that asks for the request of this number."""
        names = self._tables["round"]
        client: list[Any] = self._tables["clients"][names[number % len(names)]]
        return client

    def _past(self) -> Iterator[Happening]:
        """The hour before."""
        for number in range(int(3600 / PAST_EVERY_S)):
            begin = UPTIME_S - 3600 + number * PAST_EVERY_S
            end = ["Failed", 529, "overloaded; try again later"] if number % 11 == 5 else ["Completed", 200]
            yield from _turn(f"past-{number}", self._asking(number), begin, PAST_LENGTH_S, end, every=2.5, size=number)

    def _over(self) -> Iterator[Happening]:
        for number, (ago, length, name, between, end) in enumerate(self._tables["over"]):
            request_id, begin = f"over-{number}", UPTIME_S - ago
            began, chosen = self._tables["clients"][name]
            for event in (*began, *chosen, *([["UpstreamStarted", 1]] if chosen else [])):
                yield begin, request_id, event
            for step, event in enumerate(between):
                yield begin + length * step / len(between), request_id, event
            yield begin + length, request_id, end

    def _under_way(self) -> Iterator[Happening]:
        for ago, request_id, name, reached in self._tables["under_way"]:
            began, chosen = self._tables["clients"][name]
            for event in began if reached is None else (*began, *chosen, *reached):
                yield UPTIME_S - ago, request_id, event


def _turn(
    request_id: str, client: list[Any], begin: float, length: float, end: list[Any], *, every: float, size: int
) -> Iterator[Happening]:
    """A request from beginning to end: it streams for half of its time. `size` varies the requests of one client."""
    began, chosen = client
    read, output = 24_000 + 1_700 * (size % 40), int(length * (20 + 26 * math.sin(begin / 400) ** 2))
    share, reason = (0.96, "") if size % 13 else (0.31, "system text changed")
    first_byte, first_token = round(300 * length - 60, 1), round(200 * length + 15.5, 1)
    spans = {"queue": 0.4, "translate": 3.1, "connect": 41.0, "first_byte": first_byte, "first_token": first_token}
    yield from ((begin, request_id, event) for event in began)
    yield from ((begin + 0.15 * length, request_id, event) for event in chosen)
    yield begin + 0.3 * length, request_id, ["UpstreamStarted", 1]
    yield begin + 0.5 * length, request_id, ["GenerationStarted"]
    yield begin + 0.5 * length, request_id, ["UsageUpdated", read, 0, int(share * read)]
    steps = int(0.5 * length / every)
    for step in range(steps):
        at = begin + 0.5 * length + step * every
        yield at, request_id, ["Progress", 310, 3]
        yield at, request_id, ["UsageUpdated", None, output * step // steps]
    for event in (["UpstreamAnswered", "up_*"], ["Timed", spans], ["CacheChecked", 0.97, share, reason], end):
        yield begin + length, request_id, event


def _streams(now: float, tick: int) -> Iterator[Happening]:
    """The output of the two requests that stream."""
    yield now, "demo-bytes", ["Progress", 840, 2]
    if tick % 12 != 11:  # it pauses now and then
        yield now, "demo-streaming", ["Progress", 420, 4]
        yield now, "demo-streaming", ["UsageUpdated", None, 1_240 + 14 * tick]
