"""How much is served at one time. Nobody waits in a queue: what does not fit is told to come back in a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import TracebackType

from proxy.config import Config
from proxy.errors import BusyError

#: The limit of each provider.
PROVIDER = "provider"
#: The limit of what all request bodies take, among those that are counted when they refuse.
MEMORY = "memory"


class AdmissionTicket:
    """What one request holds; leaving the `with` block gives everything back."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._taken: list[str] = []
        self._bytes = 0

    def take(self, name: str, limit: int, what: str) -> None:
        """One more request under `name`. Raises BusyError (429, Retry-After 1)."""
        counts = self._admission.counts
        if counts[name] >= limit:
            self._admission.refused[name.partition(" ")[0]] += 1
            raise BusyError(f"busy: {limit} requests at a time are served {what}; try again in a second", retry_after=1)
        counts[name] += 1
        self._taken.append(name)

    def leave(self, kind: str) -> None:
        """Gives back what was taken under names of a kind."""
        left = [name for name in self._taken if name.partition(" ")[0] == kind]
        self._taken = [name for name in self._taken if name not in left]
        self._give_back(left)

    def leave_all(self) -> None:
        """Gives back all but the memory of the body."""
        left, self._taken = self._taken, []
        self._give_back(left)

    def _give_back(self, names: list[str]) -> None:
        counts = self._admission.counts
        for name in names:
            counts[name] -= 1
            if not counts[name]:
                del counts[name]

    def hold(self, size: int) -> None:
        """The request's body takes `size` bytes of memory now, whatever it took before. Raises BusyError."""
        limit, more = self._admission.config().max_buffered_bytes, size - self._bytes
        if more > 0 and self._admission.bytes + more > limit:
            self._admission.refused[MEMORY] += 1
            raise BusyError(
                f"busy: request bodies of {limit} bytes in all are held; try again in a second", retry_after=1
            )
        self._admission.bytes += more
        self._bytes = size

    def __enter__(self) -> AdmissionTicket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self.leave_all()
        self.hold(0)


class Admission:
    """The counters of one application."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # by the kind of limit, since the start
        self.bytes = 0

    def enter(self, ticket: AdmissionTicket, session: str | None) -> None:
        """Session first, then everybody."""
        config = self.config()
        if session is not None:
            ticket.take(f"session {session}", config.max_concurrent_per_session, "for one session")
        ticket.take("all", config.max_concurrent, "in all")

    def select(self, ticket: AdmissionTicket, label: str) -> None:
        """The provider's own limit, known only after routing."""
        ticket.take(f"{PROVIDER} {label}", self.config().max_concurrent_per_provider, f"by {label}")
