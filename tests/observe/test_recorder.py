from __future__ import annotations

from proxy.core.lifecycle import Completed, Event, NullRecorder, Recorder
from proxy.observe.recorder import Fanout


class Keeping:
    wants_project = True

    def __init__(self) -> None:
        self.seen: list[tuple[str, Event]] = []

    def record(self, request_id: str, event: Event) -> None:
        self.seen.append((request_id, event))


class Broken:
    def record(self, request_id: str, event: Event) -> None:
        raise RuntimeError

    @property
    def wants_project(self) -> bool:
        raise RuntimeError


def test_every_recorder_gets_every_event_in_order() -> None:
    first, second = Keeping(), Keeping()
    fanout: Recorder = Fanout(first, NullRecorder(), second)
    fanout.record("r1", Completed(200))
    fanout.record("r2", Completed(500))
    assert first.seen == second.seen == [("r1", Completed(200)), ("r2", Completed(500))]


def test_one_that_raises_harms_nobody() -> None:
    last = Keeping()
    fanout = Fanout(Broken(), last)
    fanout.record("r1", Completed(200))
    assert last.seen
    assert fanout.wants_project


def test_the_project_is_wanted_when_one_wants_it() -> None:
    assert Fanout(NullRecorder(), Keeping()).wants_project
    assert not Fanout(NullRecorder(), Broken()).wants_project
    assert not Fanout().wants_project
