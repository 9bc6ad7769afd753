"""Decides which request may continue which earlier response. Pure: times are arguments, sockets are numbers.

A response can be continued only over the socket that produced it, by a request that repeats its conversation and adds
to it. Only digests of a conversation's items are kept, none of its text.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from proxy.core.identity import Owner
from proxy.core.long_json import Remembered, in_order, is_long, json_pieces, member_pieces
from proxy.core.sizes import least_size
from proxy.core.sse import dump_json
from proxy.providers.p1_codex.compaction.items import split


@dataclass(frozen=True, slots=True)
class ContinuationLimits:
    """Bounds of what may be continued.

    age_s             a conversation that rested longer is sent whole
    owners            conversations that are remembered; each takes some hundred bytes, however long it is
    transcript_bytes  serialised size of a conversation: that of the largest accepted request. Size costs time only, and
                      a longer conversation saves more when only its new part is sent
    """

    age_s: float = 30 * 60.0
    owners: int = 10_000
    transcript_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as digests of its items, with its serialised size."""

    digests: tuple[bytes, ...] = ()
    size: int = 0

    def __add__(self, other: Transcript) -> Transcript:
        return Transcript(self.digests + other.digests, self.size + other.size)

    def digest(self, count: int) -> bytes:
        """A digest of the first `count` items together."""
        return hashlib.blake2b(b"".join(self.digests[:count]), digest_size=16).digest()


class WrittenItems(Protocol):
    """The items of a body as they are sent, written on demand."""

    @property
    def items(self) -> Sequence[bytes]: ...


def transcript_of(
    items: Sequence[Mapping[str, Any]], limit: int, written: WrittenItems | None = None
) -> Transcript | None:
    """Digests of the items. Two items are equal when their JSON is; function calls when call, name and arguments are,
    since the model wrote the arguments as text, and the client formats them anew.

    None when the items are longer than `limit` bytes; their texts are then not read, which could take a second.

    written  the sent form of these items, if they are sent as well: each is then written once for both
    """
    if least_size(list(items), limit) > limit:
        return None
    digests, size = [], 0
    texts = written.items if written is not None else itertools.repeat(None)
    for item, sent in zip(items, texts, strict=False):
        text = _canonical(item, sent)
        digests.append(hashlib.blake2b(text, digest_size=16).digest())
        size += len(text)
        if size > limit:
            return None
    return Transcript(tuple(digests), size)


#: Item types whose members the translation always writes in one order, so that their text identifies them.
_WRITTEN_ALIKE = frozenset({"message", "function_call_output", "reasoning", "compaction"})
#: Longer arguments of a call are compared as text: parsing them would hold the interpreter.
MAX_ARGUMENTS_CHARS = 1024 * 1024


def _canonical(item: Mapping[str, Any], sent: bytes | None) -> bytes:
    """The identity of an item, whatever the order of its members; `sent` is its text if already written."""
    kind = item.get("type")
    if isinstance(kind, str) and kind in _WRITTEN_ALIKE:
        return dump_json(item).encode("utf-8", "surrogatepass") if sent is None else sent
    if kind == "function_call":
        arguments = item.get("arguments")
        try:
            if isinstance(arguments, str) and len(arguments) <= MAX_ARGUMENTS_CHARS:
                arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            pass
        item = {"type": "function_call", "is": [item.get("call_id"), item.get("name"), arguments]}
    return b"".join(json_pieces(item, in_order))


def signature_of(body: Mapping[str, Any]) -> bytes:
    """A digest of all that must not change within a conversation: everything except the input."""
    rest = {key: value for key, value in body.items() if key != "input"}
    return _digest_of(rest) if is_long(rest) else _remembered_digest(rest)


def _digest_of(members: Mapping[str, Any]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in member_pieces(members, in_order):
        digest.update(piece)
    return digest.digest()


_remembered_digest = Remembered(_digest_of)


@dataclass(frozen=True, slots=True)
class ContinuationPlan:
    """The way to send a request: after the response `previous`, over the socket `socket`, from input item `start` on;
    or whole, for a `reason`."""

    reason: str | None = None
    previous: str = ""
    socket: int = 0
    start: int = 0

    @property
    def continues(self) -> bool:
        return self.reason is None


FULL_RETRY = ContinuationPlan("full_context_retry")
TOO_LARGE = ContinuationPlan("too_large")


@dataclass(frozen=True, slots=True)
class ReservedTurn:
    """A request under way: its number, owner, content and plan."""

    number: int
    owner: Owner
    signature: bytes
    transcript: Transcript
    plan: ContinuationPlan


@dataclass(frozen=True, slots=True)
class _ResponseState:
    """The state after a response: a conversation of `items` items with this digest."""

    response: str
    socket: int
    signature: bytes
    items: int
    digest: bytes
    at: float


@dataclass(slots=True)
class _OwnerEntry:
    """An owner: the newest turn, the length of its conversation, and the state after that turn."""

    turn: int
    items: int
    state: _ResponseState | None = None
    at: float = 0.0


@dataclass
class Continuations:
    """All conversations that can be continued."""

    limits: ContinuationLimits = field(default_factory=ContinuationLimits)
    _entries: OrderedDict[Owner, _OwnerEntry] = field(default_factory=OrderedDict)
    _refused: OrderedDict[Owner, tuple[int, float]] = field(default_factory=OrderedDict)
    _turns: int = 0

    def is_aside(self, owner: Owner, body: Mapping[str, Any], now: float) -> bool:
        """Whether a request is aside from its owner's conversation, so that it must neither take nor follow its state.

        A conversation of one item says nothing about a longer one: a client makes such small requests on the side, for
        a title or a check, with another model and prompt."""
        known = self._entries.get(owner)
        if known is None or known.items < 2 or now - known.at > self.limits.age_s:
            return False
        return _length(body) == 1

    def reserve(
        self, owner: Owner, body: Mapping[str, Any], transcript: Transcript | None, now: float, signature: bytes
    ) -> ReservedTurn:
        """Starts a turn, which takes the owner's state. Of two simultaneous turns at most one continues from it, and
        only the later one may leave a state. A turn that is too large is never current, so nothing is kept of it.

        transcript  of the input
        signature   of the rest, see `signature_of`
        """
        known = self._entries.get(owner)
        state = known.state if known is not None else None
        self._turns += 1
        self._entries.pop(owner, None)
        if transcript is None:
            return ReservedTurn(self._turns, owner, b"", Transcript(), TOO_LARGE)
        self._entries[owner] = _OwnerEntry(self._turns, _length(body), at=now)
        self._evict(now)
        plan = self._plan(state, signature, transcript, now, known=known is not None)
        return ReservedTurn(self._turns, owner, signature, transcript, plan)

    def _plan(
        self, state: _ResponseState | None, signature: bytes, transcript: Transcript, now: float, *, known: bool
    ) -> ContinuationPlan:
        if state is None or now - state.at > self.limits.age_s:
            return ContinuationPlan("superseded_turn" if known else "missing_state")
        if signature != state.signature:
            return ContinuationPlan("prompt_changed")
        if len(transcript.digests) < state.items or transcript.digest(state.items) != state.digest:
            return ContinuationPlan("not_append_only")
        if len(transcript.digests) == state.items:
            return ContinuationPlan("empty_delta")
        return ContinuationPlan(None, state.response, state.socket, state.items)

    def is_current(self, turn: ReservedTurn) -> bool:
        entry = self._entries.get(turn.owner)
        return entry is not None and entry.turn == turn.number

    def record(
        self, turn: ReservedTurn, *, response: str, socket: int, output: Sequence[Mapping[str, Any]], now: float
    ) -> bool:
        """Stores the state for the next turn; False when this turn may not."""
        if not self.is_current(turn):
            return False
        items = self._entries[turn.owner].items + len(output)
        del self._entries[turn.owner]
        answer = transcript_of(output, self.limits.transcript_bytes)
        if not response or not socket or answer is None:
            return False
        transcript = turn.transcript + answer
        if transcript.size > self.limits.transcript_bytes:
            return False
        count = len(transcript.digests)
        state = _ResponseState(response, socket, turn.signature, count, transcript.digest(count), now)
        self._entries[turn.owner] = _OwnerEntry(turn.number, items, state, now)
        self._evict(now)
        return True

    def abort(self, turn: ReservedTurn) -> None:
        """Ends the turn without leaving a state."""
        if self.is_current(turn):
            del self._entries[turn.owner]

    def refuse(self, owner: Owner, size: int, now: float) -> None:
        """Notes that the upstream refuses the owner's frames of this size over a socket."""
        self._refused.pop(owner, None)
        self._refused[owner] = size, now
        while len(self._refused) > self.limits.owners:
            self._refused.popitem(last=False)

    def refused_size(self, owner: Owner, now: float) -> int | None:
        """The size from which the owner's frames are refused over a socket; None when none was refused."""
        size, at = self._refused.get(owner, (None, now))
        return size if now - at <= self.limits.age_s else None

    def _evict(self, now: float) -> None:
        """Drops the oldest first; entries are ordered by their last change."""
        while self._entries:
            owner, entry = next(iter(self._entries.items()))
            if len(self._entries) <= self.limits.owners and now - entry.at <= self.limits.age_s:
                return
            del self._entries[owner]

    def __len__(self) -> int:
        return len(self._entries)


def _length(body: Mapping[str, Any]) -> int:
    """Items of the conversation, without its envelope."""
    return len(split(body["input"])[1])


def full_context(turn: ReservedTurn) -> ReservedTurn:
    """The turn, sent whole after its continuation failed."""
    return replace(turn, plan=FULL_RETRY) if turn.plan.continues else turn
