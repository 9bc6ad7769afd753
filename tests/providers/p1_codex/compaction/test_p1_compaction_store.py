"""What is remembered of compactions: the way of one, those that overlap, and the bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from samples import examples, rows

from proxy.core import sizes
from proxy.core.identity import Owner
from proxy.core.sse import encode_json
from proxy.providers.p1_codex.compaction.items import Item
from proxy.providers.p1_codex.compaction.store import CompactionLimits, CompactionStore, Dropped, Replayed

MODEL = "gpt-5.6-sol"
MAIN, AGENT = Owner("s"), Owner("s", "a")
SUMMARY = "The user wants a parser for dates; it is half done."


def said(text: str) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


HISTORY = [said("first"), {"type": "compaction", "encrypted_content": "E"}]
AFTER = [said(f"Continued: {SUMMARY}"), {"type": "function_call"}, said("next")]


@pytest.fixture
def anchors() -> CompactionStore:
    return CompactionStore()


def anchored(anchors: CompactionStore, owner: Owner = MAIN, now: float = 0.0, history: list[Item] | None = None) -> int:
    attempt = anchors.begin(owner, MODEL, now)
    assert anchors.store(owner, attempt, history or HISTORY, now) is None
    assert anchors.confirm(owner, attempt, SUMMARY, now) is None
    return attempt


def replay(anchors: CompactionStore, owner: Owner = MAIN, now: float = 0.0, **changes: Any) -> Any:
    return anchors.replay(owner, changes.get("model", MODEL), changes.get("items", AFTER), now)


def test_the_whole_way(anchors: CompactionStore) -> None:
    attempt = anchored(anchors)
    assert replay(anchors) == Replayed(attempt, [*HISTORY, *AFTER[1:]])
    assert replay(anchors) == Replayed(attempt, [*HISTORY, *AFTER[1:]])
    assert anchors.abort(MAIN, attempt) and replay(anchors) is None and anchors.size == 0


def test_nothing_is_replayed_before_the_summary_is_confirmed(anchors: CompactionStore) -> None:
    assert replay(anchors) is None
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert replay(anchors) is None
    anchors.store(MAIN, attempt, HISTORY, 0)
    assert replay(anchors) is None
    assert anchors.confirm(MAIN, attempt, SUMMARY, 0) is None and isinstance(replay(anchors), Replayed)


@rows(
    "changes, reason",
    [
        ({"model": "gpt-5.5"}, "other_model"),
        ({"items": [said("else"), *AFTER[1:]]}, "summary_missing"),
        ({"items": [AFTER[1], *AFTER]}, "no_message"),
        ({"items": [*AFTER, said("x" * 1000)]}, "too_large"),
    ],
)
def test_what_does_not_fit_ends_it(changes: dict[str, Any], reason: str) -> None:
    anchors = CompactionStore(CompactionLimits(state_bytes=1000))
    anchored(anchors)
    assert replay(anchors, **changes) == Dropped(reason)
    assert replay(anchors) is None and (len(anchors), anchors.size) == (0, 0)


def test_what_is_too_large_is_not_written_out_to_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "encode_json", lambda value: pytest.fail("written") if len(str(value)) > 999 else b"")
    anchors = CompactionStore(CompactionLimits(state_bytes=1000))
    anchored(anchors)
    assert replay(anchors, items=[*AFTER, said("x" * 1001)]) == Dropped("too_large")
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert anchors.store(MAIN, attempt, [said("x" * 1001)], 0) == "too_large"


@pytest.mark.parametrize("items", [AFTER[:1], [said("Write a title")], []])
def test_a_small_request_on_the_side_changes_nothing(anchors: CompactionStore, items: list[Item]) -> None:
    anchored(anchors)
    assert replay(anchors, items=items, model="gpt-5.6-luna") is None
    assert isinstance(replay(anchors), Replayed)


def test_steps_out_of_order_are_ignored(anchors: CompactionStore) -> None:
    assert anchors.store(MAIN, 1, HISTORY, 0) == "superseded"
    assert anchors.confirm(MAIN, 1, SUMMARY, 0) == "superseded"
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert anchors.confirm(MAIN, attempt, SUMMARY, 0) == "superseded"
    assert anchors.store(MAIN, attempt, HISTORY, 0) is None
    assert anchors.store(MAIN, attempt, HISTORY, 0) == "superseded"
    assert len(anchors) == 1


def test_only_the_newest_of_overlapping_attempts_counts(anchors: CompactionStore) -> None:
    first = anchored(anchors)
    older, newer = anchors.begin(MAIN, MODEL, 0), anchors.begin(MAIN, MODEL, 0)
    assert first < older < newer and replay(anchors) is None
    assert anchors.store(MAIN, older, [], 0) == "superseded"
    assert not anchors.abort(MAIN, older) and not anchors.abort(MAIN, first)
    assert anchors.store(MAIN, newer, HISTORY, 0) is None
    assert anchors.confirm(MAIN, older, SUMMARY, 0) == "superseded"
    assert anchors.confirm(MAIN, newer, SUMMARY, 0) is None
    assert replay(anchors) == Replayed(newer, [*HISTORY, *AFTER[1:]])


def test_an_agent_has_a_state_of_its_own(anchors: CompactionStore) -> None:
    anchored(anchors)
    assert replay(anchors, AGENT) is None
    anchored(anchors, AGENT)
    assert replay(anchors, AGENT, items=[said("else"), *AFTER]) == Dropped("summary_missing")
    assert isinstance(replay(anchors), Replayed)


def test_half_an_hour_without_a_replay_ends_it(anchors: CompactionStore) -> None:
    anchored(anchors)
    assert isinstance(replay(anchors, now=1800), Replayed)
    assert isinstance(replay(anchors, now=3600), Replayed)
    assert replay(anchors, now=5400.1) is None and len(anchors) == 0


def test_an_attempt_that_takes_too_long_is_too_late(anchors: CompactionStore) -> None:
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert anchors.store(MAIN, attempt, HISTORY, 1801) == "superseded"


def test_states_that_are_too_large_are_not_kept() -> None:
    anchors = CompactionStore(CompactionLimits(state_bytes=len(encode_json(HISTORY))))
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert anchors.store(MAIN, attempt, [*HISTORY, *HISTORY], 0) == "too_large"
    attempt = anchors.begin(MAIN, MODEL, 0)
    assert anchors.store(MAIN, attempt, HISTORY, 0) is None
    assert anchors.confirm(MAIN, attempt, SUMMARY, 0) == "too_large"
    attempt = anchors.begin(MAIN, MODEL, 0)
    anchors.store(MAIN, attempt, HISTORY, 0)
    assert anchors.confirm(MAIN, attempt, "short", 0) == "summary_too_short"
    assert (len(anchors), anchors.size) == (0, 0)


def test_the_state_used_longest_ago_makes_room() -> None:
    anchors = CompactionStore(CompactionLimits(states=2))
    for name in ("a", "b"):
        anchored(anchors, Owner(name))
    assert isinstance(replay(anchors, Owner("a")), Replayed)
    anchored(anchors, Owner("c"))
    assert replay(anchors, Owner("b")) is None and isinstance(replay(anchors, Owner("a")), Replayed)


def test_all_states_together_stay_within_their_bytes() -> None:
    size = len(encode_json(HISTORY)) + len(SUMMARY)
    anchors = CompactionStore(CompactionLimits(total_bytes=2 * size))
    for name in ("a", "b", "c"):
        anchored(anchors, Owner(name))
    assert (len(anchors), anchors.size) == (2, 2 * size) and replay(anchors, Owner("a")) is None


OWNERS = [Owner("s"), Owner("s", "a"), Owner("t"), Owner("u")]
LIMITS = CompactionLimits(states=3, state_bytes=400, total_bytes=700, idle_s=10)


class Overlapping(RuleBasedStateMachine):
    """Attempts of several owners in any order, as slow answers bring them."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors = CompactionStore(LIMITS)
        self.now = 0.0
        self.attempts: list[tuple[Owner, int]] = []
        self.newest: dict[Owner, int] = {}
        self.confirmed: set[int] = set()

    @rule(owner=st.sampled_from(OWNERS))
    def begin(self, owner: Owner) -> None:
        attempt = self.anchors.begin(owner, MODEL, self.now)
        assert attempt not in self.newest.values()
        self.attempts.append((owner, attempt))
        self.newest[owner] = attempt

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), size=st.integers(0, 500))
    def store(self, data: Any, size: int) -> None:
        owner, attempt = data.draw(st.sampled_from(self.attempts))
        reason = self.anchors.store(owner, attempt, [said("x" * size)], self.now)
        assert reason is not None or self.newest[owner] == attempt

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def activate(self, data: Any) -> None:
        owner, attempt = data.draw(st.sampled_from(self.attempts))
        if self.anchors.confirm(owner, attempt, SUMMARY, self.now) is None:
            assert self.newest[owner] == attempt
            self.confirmed.add(attempt)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def abort(self, data: Any) -> None:
        owner, attempt = data.draw(st.sampled_from(self.attempts))
        assert not self.anchors.abort(owner, attempt) or self.newest[owner] == attempt

    @rule(owner=st.sampled_from(OWNERS), items=st.sampled_from([AFTER, AFTER[1:], AFTER[:1]]))
    def replay(self, owner: Owner, items: list[Item]) -> None:
        found = self.anchors.replay(owner, MODEL, items, self.now)
        if isinstance(found, Replayed):
            assert items is AFTER and found.attempt == self.newest[owner] and found.attempt in self.confirmed
            assert len(encode_json(found.items)) <= LIMITS.state_bytes

    @rule(seconds=st.floats(0, 12))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def within_bounds(self) -> None:
        assert len(self.anchors) <= LIMITS.states and 0 <= self.anchors.size <= LIMITS.total_bytes
        assert self.anchors.size == 0 or len(self.anchors) > 0


Overlapping.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestOverlapping = Overlapping.TestCase
