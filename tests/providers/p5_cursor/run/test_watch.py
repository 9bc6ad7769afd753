"""How long a run may be silent, as a story of moments."""

from __future__ import annotations

from collections.abc import Callable

from samples import rows

from proxy.providers.p5_cursor.run.watch import RunTimers, RunWatch, WaitEnd

TIMERS = RunTimers()

Step = Callable[[RunWatch], None]


def heartbeat(at: float) -> Step:
    return lambda watch: watch.heard(at)


def half(at: float) -> Step:
    return lambda watch: watch.heard(at, inside=True)


def progress(at: float) -> Step:
    def step(watch: RunWatch) -> None:
        watch.heard(at)
        watch.moved(at)

    return step


def said(at: float, *, visible: bool = True) -> Step:
    def step(watch: RunWatch) -> None:
        progress(at)(watch)
        watch.said(visible=visible)

    return step


def thought(at: float) -> Step:
    return said(at, visible=False)


def rest(at: float) -> Step:
    return lambda watch: watch.rest(at)


def result(at: float) -> Step:
    return lambda watch: watch.go_on(at, delivered=True)


def taken_back(at: float) -> Step:
    return lambda watch: watch.go_on(at, delivered=False)


def blocked(start: float, end: float) -> Step:
    def step(watch: RunWatch) -> None:
        watch.block()
        assert watch.limit() == (1800, WaitEnd.TOO_LONG)
        watch.unblock(end)

    return step


STORIES: dict[str, tuple[list[Step], float, WaitEnd]] = {
    "nothing at all": ([], 45, WaitEnd.NO_START),
    "one heartbeat, then silence": ([heartbeat(5)], 65, WaitEnd.SILENT),
    "silence behind a text ends the turn": ([said(10)], 40, WaitEnd.QUIET_END),
    "heartbeats count as life behind a text": ([said(10), heartbeat(39)], 69, WaitEnd.QUIET_END),
    "silence behind a thought is no end": ([thought(10)], 70, WaitEnd.SILENT),
    "silence behind a text and a thought ends the turn": ([said(5), thought(10)], 40, WaitEnd.QUIET_END),
    "a thought behind a result is an answer": (
        [rest(10), result(100), thought(110), *map(heartbeat, range(115, 300, 5))],
        355,
        WaitEnd.SILENT,
    ),
    "an envelope that comes slowly is life, and no end of the turn": ([said(10), half(39)], 99, WaitEnd.SILENT),
    "nothing but heartbeats": ([*map(heartbeat, range(5, 596, 5))], 600, WaitEnd.NO_PROGRESS),
    "long thinking": ([progress(300), *map(heartbeat, range(305, 896, 5))], 900, WaitEnd.NO_PROGRESS),
    "all of a run": ([*map(progress, range(1, 1800, 10))], 1800, WaitEnd.TOO_LONG),
    "a client may take its time": (
        [heartbeat(5), rest(10), *map(heartbeat, range(15, 1000, 5))],
        1810,
        WaitEnd.PAUSE_OVER,
    ),
    "for each of its tools": ([heartbeat(5), rest(10), rest(1000)], 2800, WaitEnd.PAUSE_OVER),
    "pauses are no part of the whole": (
        [heartbeat(5), rest(10), result(1010), *map(said, range(1011, 2799, 20))],
        2800,
        WaitEnd.TOO_LONG,
    ),
    "nothing but heartbeats behind a result": (
        [said(5), rest(10), result(100), *map(heartbeat, range(105, 156, 5))],
        160,
        WaitEnd.STALLED,
    ),
    "what is no answer puts that off": (
        [rest(10), result(100), progress(120), heartbeat(150)],
        180,
        WaitEnd.STALLED,
    ),
    "an answer behind a result is one": ([rest(10), result(100), said(110)], 140, WaitEnd.QUIET_END),
    "silence behind a result is no end": ([said(5), rest(10), result(100)], 160, WaitEnd.SILENT),
    "a call that was taken back": ([heartbeat(5), rest(10), taken_back(50)], 110, WaitEnd.SILENT),
    "nobody reads": ([said(5), blocked(10, 500)], 530, WaitEnd.QUIET_END),
}


@rows("story", STORIES)
def test_the_next_moment_that_means_something(story: str) -> None:
    steps, moment, verdict = STORIES[story]
    watch = RunWatch(TIMERS, 0)
    for step in steps:
        step(watch)
    assert watch.limit() == (moment, verdict)
