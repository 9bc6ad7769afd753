"""Who may go on from an earlier response, and from which. Pure: times are arguments, sockets are numbers.

A response can be continued only over the socket that produced it, by a request that repeats its conversation and adds
to it. What is kept of a conversation are digests of its items, so its words are held by nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proxy.core.identity import Owner
from proxy.core.sizes import least_size
from proxy.core.sse import dump_sorted_json
from proxy.providers.p1_codex.compaction.items import split

#: A conversation that rested longer is sent whole.
MAX_AGE_S = 30 * 60.0
MAX_OWNERS = 10_000
#: Serialised size of a conversation, and of all of them.
MAX_TRANSCRIPT_BYTES = 2_000_000
MAX_TOTAL_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as digests of its items, with its serialised size."""

    digests: tuple[bytes, ...] = ()
    size: int = 0

    def __add__(self, other: Transcript) -> Transcript:
        return Transcript(self.digests + other.digests, self.size + other.size)


def transcript_of(items: Sequence[Mapping[str, Any]]) -> Transcript | None:
    """Items are the same when their JSON is, function calls when call, name and arguments are: the model wrote the
    arguments as a text, and the client sends the object back in its own words.

    None when they are longer than may be kept; then their texts were not even read, which can take a second.
    """
    if least_size(list(items), MAX_TRANSCRIPT_BYTES) > MAX_TRANSCRIPT_BYTES:
        return None
    digests, size = [], 0
    for item in items:
        text = _canonical(item)
        digests.append(hashlib.blake2b(text, digest_size=16).digest())
        size += len(text)
        if size > MAX_TRANSCRIPT_BYTES:
            return None
    return Transcript(tuple(digests), size)


def _canonical(item: Mapping[str, Any]) -> bytes:
    if item.get("type") == "function_call":
        arguments = item.get("arguments")
        try:
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            pass
        item = {"type": "function_call", "is": [item.get("call_id"), item.get("name"), arguments]}
    return dump_sorted_json(item).encode("utf-8", "surrogatepass")


def signature_of(body: Mapping[str, Any]) -> bytes:
    """A digest of all that must not change within a conversation: everything but the input."""
    rest = {key: value for key, value in body.items() if key != "input"}
    return hashlib.blake2b(dump_sorted_json(rest).encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request is sent: after the response `previous`, over the socket `socket`, from input item `start` on; or
    whole, for a `reason`."""

    reason: str | None = None
    previous: str = ""
    socket: int = 0
    start: int = 0

    @property
    def continues(self) -> bool:
        return self.reason is None


FULL_RETRY = Plan("full_context_retry")
TOO_LARGE = Plan("too_large")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request under way: its number, whose it is, what it says, how it is sent."""

    number: int
    owner: Owner
    signature: bytes
    transcript: Transcript
    plan: Plan


@dataclass(frozen=True, slots=True)
class _State:
    response: str
    socket: int
    signature: bytes
    transcript: Transcript
    at: float


@dataclass(slots=True)
class _Entry:
    """An owner: the newest turn, how many items its conversation has, and the state when that turn is over."""

    turn: int
    items: int
    state: _State | None = None
    at: float = 0.0


@dataclass
class Continuations:
    """All conversations that may be continued."""

    _entries: OrderedDict[Owner, _Entry] = field(default_factory=OrderedDict)
    _turns: int = 0
    _bytes: int = 0

    def is_aside(self, owner: Owner, body: Mapping[str, Any], now: float) -> bool:
        """Whether a request stands beside the conversation of its owner, which it must then neither take nor follow.

        A conversation of one item says nothing about one that is longer: so look the small requests that a client makes
        on the side, for a title or a check, with a model and a prompt of their own.
        """
        known = self._entries.get(owner)
        if known is None or known.items < 2 or now - known.at > MAX_AGE_S:
            return False
        return _length(body) == 1

    def reserve(self, owner: Owner, body: Mapping[str, Any], now: float) -> Turn:
        """A turn of an owner, which takes the owner's state: of two turns at the same time at most one goes on from
        it, and only the later one may leave a state behind. One that is too large is never current, so nothing is kept
        of it."""
        known = self._entries.get(owner)
        state = known.state if known is not None else None
        self._turns += 1
        self._forget(owner)
        transcript = transcript_of(body["input"])
        if transcript is None:
            return Turn(self._turns, owner, b"", Transcript(), TOO_LARGE)
        self._entries[owner] = _Entry(self._turns, _length(body), at=now)
        self._evict(now)
        signature = signature_of(body)
        plan = _plan(state, signature, transcript, now, known=known is not None)
        return Turn(self._turns, owner, signature, transcript, plan)

    def is_current(self, turn: Turn) -> bool:
        entry = self._entries.get(turn.owner)
        return entry is not None and entry.turn == turn.number

    def record(
        self, turn: Turn, *, response: str, socket: int, output: Sequence[Mapping[str, Any]], now: float
    ) -> bool:
        """Leaves the state behind that the next turn may go on from; False when it may not."""
        if not self.is_current(turn):
            return False
        items = self._entries[turn.owner].items + len(output)
        self._forget(turn.owner)
        answer = transcript_of(output)
        if not response or not socket or answer is None:
            return False
        transcript = turn.transcript + answer
        if transcript.size > MAX_TRANSCRIPT_BYTES:
            return False
        state = _State(response, socket, turn.signature, transcript, now)
        self._entries[turn.owner] = _Entry(turn.number, items, state, now)
        self._bytes += transcript.size
        self._evict(now)
        return turn.owner in self._entries

    def abort(self, turn: Turn) -> None:
        """The turn leaves nothing behind."""
        if self.is_current(turn):
            self._forget(turn.owner)

    def _forget(self, owner: Owner) -> None:
        entry = self._entries.pop(owner, None)
        if entry is not None and entry.state is not None:
            self._bytes -= entry.state.transcript.size

    def _evict(self, now: float) -> None:
        """The oldest go first; entries stand in the order of their last change."""
        while self._entries:
            owner, entry = next(iter(self._entries.items()))
            full = len(self._entries) > MAX_OWNERS or self._bytes > MAX_TOTAL_BYTES
            if not full and now - entry.at <= MAX_AGE_S:
                return
            self._forget(owner)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def total_bytes(self) -> int:
        return self._bytes


def _length(body: Mapping[str, Any]) -> int:
    """Items of the conversation, without what leads it."""
    return len(split(body["input"])[1])


def _plan(state: _State | None, signature: bytes, transcript: Transcript, now: float, *, known: bool) -> Plan:
    if state is None or now - state.at > MAX_AGE_S:
        return Plan("superseded_turn" if known else "missing_state")
    if signature != state.signature:
        return Plan("prompt_changed")
    start = len(state.transcript.digests)
    if transcript.digests[:start] != state.transcript.digests:
        return Plan("not_append_only")
    if len(transcript.digests) == start:
        return Plan("empty_delta")
    return Plan(None, state.response, state.socket, start)


def full_context(turn: Turn) -> Turn:
    """The same turn, sent whole after its continuation failed."""
    return replace(turn, plan=FULL_RETRY) if turn.plan.continues else turn
