"""One run: the client's messages in order, whatever the order of their appends."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from proxy.sandbox.p5.ledger import GRACE_S, ExecLedger
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.play.actions import Action, Pace, Reply
from proxy.sandbox.upstream import Received
from proxy.sandbox.wires.connect.protobuf import Malformed, Message

#: Appends that may wait for an earlier one: the vendor's client has no more under way.
MAX_HELD = 16

#: Appends that are counted one by one, and messages whose kind is kept.
MAX_COUNTED = 4_096

#: Field of a client's message -> its name.
KINDS = {
    1: "run_request",
    2: "exec_client_message",
    3: "kv_client_message",
    4: "conversation_action",
    5: "exec_client_control_message",
    6: "interaction_response",
    7: "client_heartbeat",
    8: "prewarm_request",
}


class Course(NamedTuple):
    """The course of a run."""

    actions: Iterable[Action]
    pace: Pace


class Run:
    """A run of the client. `received` names the handled messages, oldest first; `appends` counts the appends of each
    number, `first` is append 0. `course` is known once that and the stream are there."""

    def __init__(self, request_id: str, blame: Callable[[str], None], options: P5Options) -> None:
        self.request_id = request_id
        self.blame: Callable[[str], None] = lambda words: blame(f"{request_id}: {words}")
        self.clock = asyncio.get_running_loop().time  # of the heartbeats
        self.ledger = ExecLedger(self.blame, options, self.clock)
        self._options = options
        self.received: deque[str] = deque(maxlen=MAX_COUNTED)
        self.appends: Counter[int] = Counter()
        self.first: Message | None = None
        self.course: Course | None = None
        self.seen: Received | None = None  # its RunSSE
        self.replies: dict[int, Reply] = {}  # appends with another answer than usual
        self.waits: dict[int, float] = {}  # appends that are answered this many seconds late
        self.cuts: dict[int, bool] = {}  # appends whose connection is ended, perhaps with a reset
        self.answering = 0  # appends
        self.cancelled = False
        self.heartbeats = 0
        self.news = asyncio.Event()
        self.began_at = self.clock()
        self.ended_at: float | None = None
        self._expected = 0
        self._held: dict[int, bytes] = {}
        self._heard_at = self.began_at  # the last heartbeat

    @property
    def opened(self) -> bool:
        """Whether its stream is served."""
        return self.seen is not None

    def accept(self, number: int, data: bytes) -> None:
        """Handles one append. A number that came before is dropped, one after a gap is held."""
        if len(self.appends) < MAX_COUNTED or number in self.appends:
            self.appends[number] += 1
        if self.ended_at is not None:
            if self.clock() - self.ended_at > GRACE_S:
                self.blame(f"append {number} came after the end")
            return
        if number < self._expected or number in self._held:
            self.blame(f"append {number} came again")
            return
        if len(self._held) >= MAX_HELD:
            self.blame(f"append {number} is too far after a gap")
            return
        self._held[number] = data
        while self._expected in self._held:
            self._hear(self._held.pop(self._expected))
            self._expected += 1
        self.news.set()

    def _hear(self, data: bytes) -> None:
        try:
            message = Message(data)
            kind = next(iter(message.fields), 0)
            self.received.append(KINDS.get(kind, str(kind)))
            if len(message.fields) != 1 or kind not in KINDS:
                self.blame(f"a client's message with the fields {list(message.fields)}")
            if self.first is None:
                self.first = message
                return
            found = message.sub(kind)
            if found is not None:
                self._take(kind, found)
        except Malformed as problem:
            self.blame(f"a message that cannot be read: {problem}")

    def _take(self, kind: int, message: Message) -> None:
        ledger = self.ledger
        if kind in _HANDLERS:
            _HANDLERS[kind](ledger, message)
        elif kind == 7:
            self._beat()
        elif kind == 4 and message.has(3):
            self.cancelled = True
        else:
            self.blame(f"{KINDS.get(kind, kind)} {list(message.fields)} within a run")

    def _beat(self) -> None:
        self._heard()
        self.heartbeats += 1

    def _heard(self) -> None:
        """Notes a sign of life."""
        gap_s, self._heard_at = self.clock() - self._heard_at, self.clock()
        if gap_s > self._options.client_heartbeat_s:
            self.blame(f"no client_heartbeat for {gap_s:.1f} s")

    def end(self) -> None:
        """Ends the run: nothing more is sent."""
        if self.ended_at is None:
            self.ended_at = self.clock()
            self._heard()
            for one in self.ledger.overdue:
                self.blame(f"{one.name} was never answered")
            if self._held:
                self.blame(f"append {self._expected} never came")


_HANDLERS: dict[int, Callable[[ExecLedger, Message], None]] = {
    2: ExecLedger.exec_answer,
    3: ExecLedger.kv_answer,
    5: ExecLedger.control,
    6: ExecLedger.query_answer,
}
