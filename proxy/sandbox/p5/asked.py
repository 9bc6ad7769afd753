"""One request of a run to its client, with what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.sandbox.p5 import execs
from proxy.sandbox.wires.connect.protobuf import Message

EXEC, BLOB, QUERY = "exec", "kv", "query"


@dataclass(slots=True)
class ServerRequest:
    """One request of the server. `number` is its kind, 0 for an unknown one. `began` and `ended` are its places in the
    order of all requests and last answers of its run."""

    family: str
    id: int
    number: int
    args: Message
    exec_id: str = ""
    answers: list[Message] = field(default_factory=list)
    thrown: str | None = None
    settled: bool = False
    closed: bool = False
    aborted_at: float | None = None
    heartbeats: int = 0
    heard_at: float = 0.0  # when it was made, or its last heartbeat came
    began: int = 0
    ended: int | None = None

    @property
    def name(self) -> str:
        return f"{self.family} {self.id}"

    @property
    def done(self) -> bool:
        """Whether the client owes nothing more."""
        return self.aborted_at is not None or (self.settled and (self.closed or self.family != EXEC))

    @property
    def outcome(self) -> execs.Outcome:
        """The outcome of an exec."""
        return execs.outcome(self.number, self.answers) if self.thrown is None else execs.Outcome(False, self.thrown)

    @property
    def verdict(self) -> str:
        """The answer to a query."""
        return execs.verdict(self.number, self.answers[-1]) if self.answers else "nothing"
