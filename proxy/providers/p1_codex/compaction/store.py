"""The memory of P1's compactions: one state for each owner, with bounds. Pure; the time is an argument.

    (none) ── begin ──▶ preparing ── store ──▶ unconfirmed ── confirm ──▶ confirmed ── replay ──▶ confirmed

Anything that does not fit ends in (none): only the client's own summary is left. Two compactions of one owner
may overlap: `begin` counts, and only the newest attempt has an effect.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from proxy.core.identity import Owner
from proxy.core.sizes import json_size
from proxy.providers.p1_codex.compaction.items import Item, mismatch, replayed, split, summary_of


class Phase(Enum):
    """The progress of a compaction."""

    PREPARING = auto()  # the upstream is asked
    UNCONFIRMED = auto()  # the encrypted item is here; the summary is being written
    CONFIRMED = auto()  # both are here; the summary shows where the item belongs


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """states: number of owners; state_bytes: size of one state, and of an input that it goes into; idle_s: seconds
    without a replay."""

    states: int = 1000
    state_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 20_000_000
    idle_s: float = 30 * 60.0


@dataclass(frozen=True, slots=True)
class _CompactionState:
    attempt: int
    model: str
    seen: float
    phase: Phase = Phase.PREPARING
    history: tuple[Item, ...] = ()
    summary: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """The input to send instead of the translated one."""

    attempt: int
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Dropped:
    """The state did not fit the request and is gone."""

    reason: str


class CompactionStore:
    """The states of all owners, the least recently used first."""

    def __init__(self, limits: CompactionLimits | None = None) -> None:
        self._limits = limits or CompactionLimits()
        self._states: OrderedDict[Owner, _CompactionState] = OrderedDict()
        self._attempts = 0
        self.size = 0  # bytes held

    def __len__(self) -> int:
        return len(self._states)

    def begin(self, owner: Owner, model: str, now: float) -> int:
        """Begins an attempt, replacing any other; returns its number."""
        self._attempts += 1
        self._put(owner, _CompactionState(self._attempts, model, now))
        self._evict(now)
        return self._attempts

    def store(self, owner: Owner, attempt: int, history: Sequence[Item], now: float) -> str | None:
        """Stores the native history. Returns why it is not kept, or None when it is."""
        state = self._current(owner, attempt, Phase.PREPARING, now)
        if state is None:
            return "superseded"
        size = json_size(history, self._limits.state_bytes)
        if size > self._limits.state_bytes:
            self.discard(owner)
            return "too_large"
        self._put(owner, replace(state, phase=Phase.UNCONFIRMED, history=tuple(history), size=size, seen=now))
        self._evict(now)
        return None

    def confirm(self, owner: Owner, attempt: int, answer: str, now: float) -> str | None:
        """Confirms with the client's summary; `answer` is all that the model said. Returns why it cannot be used, or
        None."""
        state = self._current(owner, attempt, Phase.UNCONFIRMED, now)
        if state is None:
            return "superseded"
        summary = summary_of(answer)
        size = state.size + len((summary or "").encode("utf-8", "replace"))
        if summary is None or size > self._limits.state_bytes:
            self.discard(owner)
            return "too_large" if summary else "summary_too_short"
        self._put(owner, replace(state, phase=Phase.CONFIRMED, summary=summary, size=size, seen=now))
        self._evict(now)
        return None

    def abort(self, owner: Owner, attempt: int) -> bool:
        """Forgets this attempt; False when it is not the current one."""
        state = self._states.get(owner)
        if state is None or state.attempt != attempt:
            return False
        self.discard(owner)
        return True

    def discard(self, owner: Owner) -> bool:
        """Forgets the owner; False when nothing was known."""
        state = self._states.pop(owner, None)
        if state is None:
            return False
        self.size -= state.size
        return True

    def replay(self, owner: Owner, model: str, items: Sequence[Item], now: float) -> Replayed | Dropped | None:
        """The items to send instead of these; None when there is nothing to replay.

        A conversation of one item says nothing about the state: a client makes such small requests on the side, with
        another model and prompt."""
        state = self._alive(owner, now)
        if state is None or state.phase is not Phase.CONFIRMED:
            return None
        _, conversation = split(items)
        if len(conversation) < 2:
            return None
        reason = "other_model" if model != state.model else mismatch(conversation, state.summary)
        if reason is None:
            whole = replayed(items, state.history, state.summary)
            if json_size(whole, self._limits.state_bytes) <= self._limits.state_bytes:
                self._put(owner, replace(state, seen=now))
                return Replayed(state.attempt, whole)
            reason = "too_large"
        self.discard(owner)
        return Dropped(reason)

    # -- the table

    def _alive(self, owner: Owner, now: float) -> _CompactionState | None:
        state = self._states.get(owner)
        if state is not None and now - state.seen > self._limits.idle_s:
            self.discard(owner)
            return None
        return state

    def _current(self, owner: Owner, attempt: int, phase: Phase, now: float) -> _CompactionState | None:
        state = self._alive(owner, now)
        return state if state is not None and (state.attempt, state.phase) == (attempt, phase) else None

    def _put(self, owner: Owner, state: _CompactionState) -> None:
        self.discard(owner)
        self._states[owner] = state
        self.size += state.size

    def _evict(self, now: float) -> None:
        """Drops expired states, and then the least recently used until all bounds hold."""
        limits = self._limits
        while self._states:
            owner, oldest = next(iter(self._states.items()))
            full = len(self._states) > limits.states or self.size > limits.total_bytes
            if not full and now - oldest.seen <= limits.idle_s:
                return
            self.discard(owner)
