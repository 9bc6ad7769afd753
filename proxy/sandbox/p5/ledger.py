"""The requests of a run to its client, and the answers: the rules that every client must keep."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from proxy.sandbox.p5 import execs
from proxy.sandbox.p5.asked import BLOB, EXEC, QUERY, ServerRequest
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.written import changed
from proxy.sandbox.wires.connect.protobuf import Malformed, Message

#: Requests and answers of one run that are kept: far more than a test makes.
MAX_ASKED = 1_000
MAX_ANSWERS = 1_000

#: Seconds in which a message on its way is no violation after the server ended its subject.
GRACE_S = 0.5

#: Seconds that a client may take for an answer of its own.
ANSWER_S = 2.0

#: Kind of request: field in a message, and its fields that are not arms.
_REQUESTS = ((EXEC, 2, (1, 15, 19)), (BLOB, 4, (1, 4)), (QUERY, 7, (1,)))


class ExecLedger:
    """Checks the answers. `blame` receives each violation. Times come from `clock`."""

    def __init__(self, blame: Callable[[str], None], options: P5Options, clock: Callable[[], float]) -> None:
        self.asked: list[ServerRequest] = []
        self.beaten = False  # whether an exec heartbeat without an id came
        self._open: dict[tuple[str, int], ServerRequest] = {}
        self._blame = blame
        self._options = options
        self._clock = clock
        self._places = count(1)

    def find(self, family: str, number: int) -> ServerRequest | None:
        """The last request with this id."""
        return self._open.get((family, number))

    @property
    def owed(self) -> list[ServerRequest]:
        return [one for one in self.asked if not one.done]

    @property
    def overdue(self) -> list[ServerRequest]:
        """Late answers. A tool of the client's own client may take long, while heartbeats for it come."""
        now = self._clock()
        return [one for one in self.owed if now - one.heard_at > self._patience_s(one)]

    def _patience_s(self, one: ServerRequest) -> float:
        by_tool = one.family == EXEC and one.number in execs.TOOLS
        return self._options.exec_heartbeat_s if by_tool else ANSWER_S

    def note(self, payload: bytes) -> None:
        """Notes the requests in a sent message."""
        try:
            message = Message(payload)
            for family, place, beside in _REQUESTS:
                for one in message.all(place):
                    number = next((arm for arm in one.fields if arm not in beside), 0)
                    args = one.sub(number) if number else None
                    self._add(ServerRequest(family, one.number(1), number, args or Message(b""), one.text(15)))
            if message.has(5, 1):
                found = self.find(EXEC, message.number(5, 1, 1))
                if found is not None:
                    found.aborted_at = self._clock()
        except Malformed:
            return  # a fault

    def _add(self, asked: ServerRequest) -> None:
        asked.heard_at, asked.began = self._clock(), next(self._places)
        if len(self.asked) < MAX_ASKED:
            self.asked.append(asked)
        self._open[asked.family, asked.id] = asked

    def exec_answer(self, message: Message) -> None:
        """Checks an `exec_client_message`."""
        found = self._expected(EXEC, message.number(1))
        if found is None:
            return
        if not self.beaten:
            self._blame("an exec was answered before any exec heartbeat")
        arms = [number for number in message.fields if number not in (1, 15)]
        if message.text(15) != found.exec_id:
            self._blame(f"{found.name} was answered with exec_id {message.text(15)!r}, not {found.exec_id!r}")
        if arms != [found.number]:
            self._blame(f"{found.name} of kind {found.number} was answered with {arms}")
            return
        for problem in execs.odd(found.number, found.args, message):
            self._blame(f"{found.name}: {problem}")
        self._answered(found, message, settled=execs.ends(found.number, message))
        difference = changed(self.asked, found) if len(self.asked) < MAX_ASKED else None
        if difference is not None:
            self._blame(f"{found.name}: {difference}")

    def control(self, message: Message) -> None:
        """Checks an `exec_client_control_message`: the end of an exec, a failure, or a heartbeat."""
        if message.has(3):
            self._beat(message.number(3, 1))
        elif message.has(2):
            self._throw(message.number(2, 1), message.text(2, 2))
        elif message.has(1):
            self._close(message.number(1, 1))

    def _throw(self, number: int, words: str) -> None:
        found = self._expected(EXEC, number)
        if found is not None:
            found.thrown = words
            self._settle(found)
            if not words:
                self._blame(f"{found.name} was thrown without words")

    def _close(self, number: int) -> None:
        found = self.find(EXEC, number)
        if found is None or found.closed:
            self._blame(f"stream_close for exec {number}, which is not open")
        elif not found.settled and not self._too_late(found):
            self._blame(f"{found.name} was closed without a result")
        if found is not None:
            found.closed = True

    def _beat(self, number: int) -> None:
        self.beaten = True
        found = self.find(EXEC, number)
        if number and (found is None or found.closed):
            self._blame(f"a heartbeat for exec {number}, which is not open")
        if found is not None:
            found.heartbeats += 1
            self._heard(found)

    def _heard(self, found: ServerRequest) -> None:
        """Notes a message for an exec."""
        gap_s, found.heard_at = self._clock() - found.heard_at, self._clock()
        if found.family == EXEC and gap_s > self._options.exec_heartbeat_s:
            self._blame(f"{found.name} had no heartbeat for {gap_s:.1f} s")

    def _settle(self, found: ServerRequest) -> None:
        self._heard(found)
        found.settled, found.ended = True, next(self._places)

    def kv_answer(self, message: Message) -> None:
        """Checks a `kv_client_message`."""
        self._plain_answer(BLOB, message)

    def query_answer(self, message: Message) -> None:
        """Checks an `interaction_response`, perhaps without an arm."""
        self._plain_answer(QUERY, message, [])

    def _plain_answer(self, family: str, message: Message, *others: list[int]) -> None:
        """Checks an answer with the arm of its request, or with these `others`."""
        found = self._expected(family, message.number(1))
        if found is not None:
            if [number for number in message.fields if number != 1] not in ([found.number], *others):
                self._blame(f"{found.name} of kind {found.number} was answered with {list(message.fields)}")
            self._answered(found, message)

    def _answered(self, found: ServerRequest, message: Message, *, settled: bool = True) -> None:
        if len(found.answers) < MAX_ANSWERS:
            found.answers.append(message)
        if settled:
            self._settle(found)

    def _expected(self, family: str, number: int) -> ServerRequest | None:
        """The open request with this id."""
        found = self.find(family, number)
        if found is not None and self._too_late(found):
            return None
        if found is None or found.aborted_at is not None:
            self._blame(f"an answer to {family} {number}, which is not open")
            return None
        if found.settled:
            self._blame(f"{found.name} was answered twice")
            return None
        return found

    def _too_late(self, found: ServerRequest) -> bool:
        """Whether the answer was already on its way when it was withdrawn."""
        return found.aborted_at is not None and self._clock() - found.aborted_at <= GRACE_S
