"""Simulated traffic for whoever wants to see the monitor: nothing is listened to, nobody is asked. The store is fed
with events as a proxy would feed it, at moments that follow from the clock alone, so that the same clock always shows
the same.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from proxy.observe.lifecycle import (
    Abandoned,
    CacheChecked,
    Captured,
    Completed,
    Event,
    Failed,
    FellBack,
    GenerationStarted,
    InputEstimated,
    Judged,
    ModelResolved,
    Progress,
    ProjectResolved,
    ProviderSelected,
    Sequenced,
    Started,
    Timed,
    UpstreamAnswered,
    UpstreamStarted,
    UsageUpdated,
)
from proxy.observe.monitor.snapshot import AllowanceRow, Snapshot
from proxy.observe.monitor.state import MonitorState

URL = "mock://tui-demo"
#: The proxy that is simulated had run for this long when the demo begins.
UPTIME_S = 3720.0
#: A moment at which something may happen; a request begins every so many of them.
TICK_S, CYCLE = 0.25, 24
#: Of the requests in the hour before: how often one began, and how long it took.
PAST_EVERY_S, PAST_LENGTH_S = 34.0, 60.0

#: moment in seconds of the proxy's life, request, what happens
Told = tuple[float, str, Event]


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks for what."""

    session: str | None
    project: str | None
    provider: str
    requested: str
    resolved: str
    effort: str | None = None
    endpoint: str = "messages"
    agent: str | None = None
    parent: str | None = None
    caller: str | None = None


SHOP = Client("57c7c914-6f0e-4b6e-9d6c-3f0f7a1c2b9d", "storefront", "p1", "claude-opus-5", "gpt-5.6-sol", "high")
SEARCH = replace(SHOP, requested="haiku", resolved="gpt-5.6-luna", effort="low", agent="a41f0c2e")
REVIEW = replace(SHOP, requested="gpt-5.6-terra", resolved="gpt-5.6-terra", agent="b7d93e10", parent="a41f0c2e")
DASHBOARD = Client("demo-session-dashboard", "live-dashboard", "p2", "kimi-k2.6", "kimi-for-coding", "medium")
MOBILE = Client("mobile-companion", "companion-app", "p3", "grok-4.5", "grok-4.5", "low", caller="anna")
BILLING = Client("9be0d7aa-1c52-4f7b-8a35-0b8e1d5f6c44", "billing-service", "p4", "glm-5.3", "glm-5.3")
LAYOUT = Client("cursor-session-layout", "responsive-layout", "p5", "cursor:composer-2.5", "composer-2.5")
CODEX = Client("event-stream-lab", None, "p1", "gpt-5.5", "gpt-5.5", "medium", "responses")
CHAT = replace(CODEX, session="automation-sandbox", project="automation-sandbox", endpoint="chat_completions")
NOBODY = Client(None, None, "p1", "gpt-5.4-mini", "gpt-5.4-mini", endpoint="count_tokens")
PICTURES = replace(NOBODY, requested="gpt-image-2", resolved="gpt-image-2", endpoint="generation")

#: Who asks in turn, in the hour before and from now on.
ROUND = (SHOP, DASHBOARD, SEARCH, BILLING, MOBILE, CODEX, REVIEW, LAYOUT, SHOP, CHAT)

#: Two requests that go on streaming.
STREAMING, BYTES_ONLY = "demo-streaming", "demo-bytes"
BUSY = Failed(503, "the provider is overloaded; try again in a moment", "overloaded")
#: Why a cache was of no use.
LOST = "system text changed"


class Demo:
    """`snapshot` shows what is going on now.

    clock  seconds that only go forward, from which everything follows; `wall`: epoch seconds, asked once
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._began = clock, clock()
        self._epoch = wall() - UPTIME_S
        self._now = 0.0
        self._numbers: dict[str, int] = {}
        self.monitor = MonitorState(
            clock=lambda: self._now,
            wall=lambda: self._epoch + self._now,
            allowances=self._allowances,
            program="model-proxy demo",
        )
        self.monitor.url = URL
        for told in sorted([*_past(), *_over(), *_under_way()], key=lambda told: told[0]):
            self._tell(*told)
        self._notices()
        self._ticks = -1
        self._due: deque[Told] = deque()

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
            end = BUSY if number % 4 == 3 else Completed(200)
            who = ROUND[number % len(ROUND)]
            self._due.extend(_turn(f"demo-{number}", who, now, 5.0, end, every=TICK_S, size=number + 1))
        while self._due and self._due[0][0] <= now:
            self._tell(*self._due.popleft())
        for told in _streams(now, self._ticks):
            self._tell(*told)

    def _tell(self, at: float, request_id: str, event: Event) -> None:
        self._now = at
        self.monitor.record(request_id, event)
        if isinstance(event, Started) and event.session is not None:
            number = self._numbers[event.session] = self._numbers.get(event.session, 0) + 1
            self.monitor.record(request_id, Sequenced(number))

    def _notices(self) -> None:
        for ago, level, message, provider, session in (
            (1500.0, "info", "the sign-in was renewed", "p3", None),
            (840.0, "warn", "80 % of the window Weekly are used; it begins again in 2 days", "p1", None),
            (95.0, "warn", f"the cache was lost: {LOST}", "p1", SHOP.session),
        ):
            self._now = UPTIME_S - ago
            self.monitor.notice(level, message, provider=provider, session=session)

    def _allowances(self) -> tuple[AllowanceRow, ...]:
        begin, now = self._epoch + UPTIME_S, self._epoch + self._now
        hour, day = 3600.0, 86_400.0
        return (
            AllowanceRow("p1", "5 hours", 63.0, now - 4, resets_at=begin + 1.7 * hour),
            AllowanceRow("p1", "Weekly", 82.0, now - 4, resets_at=begin + 2.1 * day),
            AllowanceRow("p2", "5 hours", 12.5, now - 40, resets_at=begin + 3.2 * hour),
            AllowanceRow("p2", "Weekly", 34.0, now - 40, resets_at=begin + 5.0 * day),
            AllowanceRow("p3", "Monthly", 47.0, begin - 2 * hour, resets_at=begin + 11.0 * day),
            AllowanceRow("p4", "Rolling", 96.0, now - 12, resets_at=begin + 0.6 * hour),
            AllowanceRow("p4", "Weekly", 58.0, now - 12, resets_at=begin + 3.4 * day),
            AllowanceRow("p5", "Monthly", 21.0, begin - 9 * hour, limit="requests", resets_at=begin + 19.0 * day),
        )


def _began(request_id: str, who: Client, at: float) -> Iterator[Told]:
    yield at, request_id, Started(who.endpoint, who.session, who.agent, who.parent, f"client-{request_id}", who.caller)
    if who.project is not None:
        yield at, request_id, ProjectResolved(who.project)


def _chosen(request_id: str, who: Client, at: float) -> Iterator[Told]:
    yield at, request_id, ProviderSelected(who.provider, who.requested, who.effort)
    yield at, request_id, ModelResolved(who.requested, who.resolved)


def _turn(
    request_id: str, who: Client, begin: float, length: float, end: Event, *, every: float, size: int = 0
) -> Iterator[Told]:
    """A request from its beginning to its end: half of its time it streams. `size` makes different ones of one
    client."""
    read, output = 24_000 + 1_700 * (size % 40), int(length * (20 + 26 * math.sin(begin / 400) ** 2))
    share = 0.96 if size % 13 else 0.31
    yield from _began(request_id, who, begin)
    yield from _chosen(request_id, who, begin + 0.15 * length)
    yield begin + 0.3 * length, request_id, UpstreamStarted(1)
    yield begin + 0.5 * length, request_id, GenerationStarted()
    yield begin + 0.5 * length, request_id, UsageUpdated(read, 0, int(share * read))
    steps = int(0.5 * length / every)
    for step in range(steps):
        at = begin + 0.5 * length + step * every
        yield at, request_id, Progress(310, 3)
        yield at, request_id, UsageUpdated(None, output * step // steps)
    yield begin + length, request_id, UpstreamAnswered(f"up_{request_id}")
    yield begin + length, request_id, Timed(_spans(length))
    yield begin + length, request_id, CacheChecked(0.97, share, "" if share > 0.9 else LOST)
    yield begin + length, request_id, end


def _spans(length: float) -> dict[str, float]:
    """Until the first token, in milliseconds."""
    return {
        "queue": 0.4,
        "translate": 3.1,
        "connect": 41.0,
        "first_byte": round(300 * length - 60, 1),
        "first_token": round(200 * length + 15.5, 1),
    }


def _past() -> Iterator[Told]:
    """The hour before."""
    for number in range(int(3600 / PAST_EVERY_S)):
        begin = UPTIME_S - 3600 + number * PAST_EVERY_S
        end = Failed(529, "overloaded; try again later") if number % 11 == 5 else Completed(200)
        who = ROUND[number % len(ROUND)]
        yield from _turn(f"past-{number}", who, begin, PAST_LENGTH_S, end, every=2.5, size=number)


def _over() -> Iterator[Told]:
    """Requests that ended in different ways: seconds since the beginning, how long they took, who, what happened in
    between, the end."""
    rate = (Progress(0, 0), Progress(12_288, 24))
    events = (Progress(0, 0), FellBack("gpt-5.6-sol", "gpt-5.5", "overloaded"), Progress(0, 60))
    judged = (
        *(UsageUpdated(96_400, 0, 91_200), GenerationStarted(), UsageUpdated(None, 832), Progress(6_900, 71)),
        *(Judged("gpt-5.6-luna", {"allow": 2, "deny": 1}, 900, 40, 700), Timed(_spans(5.0))),
        *(CacheChecked(0.97, 0.95, ""), Captured("/state/traffic/57c7c914/0007-p1")),
    )
    unknown = (ModelResolved("gpt-9", "gpt-9"),)
    counts, none = (InputEstimated(2_031), UsageUpdated(2_048, None)), ()
    broken, image = "response translation failed: missing message stop event", (UsageUpdated(51, 6_240),)
    rows: tuple[tuple[float, float, Client | None, tuple[Event, ...], Event], ...] = (
        (95.0, 12.0, SHOP, judged, Completed(200)),
        (118.0, 0.4, DASHBOARD, none, Failed(502, "upstream connection closed before response headers")),
        (143.0, 2.0, LAYOUT, none, Failed(429, "provider rate limit reached; try again in 30 seconds")),
        (170.0, 3.0, MOBILE, rate, Completed(201)),
        (202.0, 5.0, CODEX, events, Completed(204)),
        (
            239.0,
            0.1,
            None,
            unknown,
            Failed(400, 'Unknown model "gpt-9". Supported: gpt-5.6-sol, kimi-k2.6, …', "invalid_request"),
        ),
        (291.0, 0.2, NOBODY, counts, Completed(200)),
        (330.0, 21.0, PICTURES, image, Completed(200)),
        (355.0, 0.3, BILLING, none, Failed(500, broken)),
        (417.0, 7.0, CHAT, none, Abandoned("Request ended before completion: the client left")),
    )
    for number, (ago, length, who, between, end) in enumerate(rows):
        request_id, begin = f"over-{number}", UPTIME_S - ago
        yield from _began(request_id, who or replace(NOBODY, endpoint="messages"), begin)
        if who is not None:
            yield from _chosen(request_id, who, begin)
            yield begin, request_id, UpstreamStarted(1)
        for step, event in enumerate(between):
            yield begin + length * step / len(between), request_id, event
        yield begin + length, request_id, end


def _under_way() -> Iterator[Told]:
    """Five requests that go on while the demo does, each as far as one can be."""
    rows: tuple[tuple[float, str, Client, tuple[Event, ...]], ...] = (
        (21.0, BYTES_ONLY, LAYOUT, (UpstreamStarted(1), Progress(0, 0))),
        (20.0, STREAMING, SHOP, (UpstreamStarted(1), UsageUpdated(41_200, 0, 39_600), GenerationStarted())),
        (6.0, "demo-upstream", DASHBOARD, (UpstreamStarted(1), UpstreamStarted(2))),
        (3.0, "demo-selected", MOBILE, ()),
    )
    for ago, request_id, who, reached in rows:
        yield from _began(request_id, who, UPTIME_S - ago)
        yield from _chosen(request_id, who, UPTIME_S - ago)
        for event in reached:
            yield UPTIME_S - ago, request_id, event
    yield from _began("demo-started", NOBODY, UPTIME_S - 1)


def _streams(now: float, tick: int) -> Iterator[Told]:
    """What comes of the two that stream."""
    yield now, BYTES_ONLY, Progress(840, 2)
    if tick % 12 != 11:  # it pauses now and then
        yield now, STREAMING, Progress(420, 4)
        yield now, STREAMING, UsageUpdated(None, 1_240 + 14 * tick)
