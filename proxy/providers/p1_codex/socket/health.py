"""Whether sockets are worth a try, as a value: each thing that happens to one makes a new one. Pure: times are
arguments.

Only requests that can use HTTP instead ask for it. Two things speak against sockets for a while: an upgrade whose
refusal will last, and sockets that open and then die before they brought an answer, as behind a box on the way that
lets upgrades pass and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

#: So many sockets in a row that died are no accident. One request tries four, so the next one already goes over HTTP;
#: the official client gives up after about six.
DEAD_SOCKETS = 3


@dataclass(frozen=True, slots=True)
class SocketHealth:
    """
    dead    sockets that died one after another; only an answer makes an end of it
    since   when something spoke against sockets the last time
    reason  what it was, for the log
    digest  of the address and token that were refused: another sign-in is worth a try; b"" where it is not about them
    """

    dead: int = 0
    since: float = -math.inf
    reason: str = ""
    digest: bytes = b""

    def objection(self, now: float, rest_s: float, digest: bytes) -> str | None:
        """Why no socket should be tried now; `rest_s`: for how long that holds; `digest`: of what would be sent."""
        if not self.reason or now - self.since > rest_s or self.digest not in (b"", digest):
            return None
        return self.reason

    def refused(self, why: str, now: float, digest: bytes) -> SocketHealth:
        """After an upgrade that would only fail again."""
        return replace(self, since=now, reason=f"an earlier upgrade failed ({why})", digest=digest)

    def opened(self) -> SocketHealth:
        """After an upgrade that worked, which says nothing about what becomes of the socket."""
        return self if self.dead >= DEAD_SOCKETS else SocketHealth(self.dead)

    def died(self, now: float) -> SocketHealth:
        """After a socket that took a request and brought no whole answer."""
        dead = self.dead + 1
        if dead < DEAD_SOCKETS:
            return replace(self, dead=dead)
        return SocketHealth(dead, now, f"the last {dead} sockets opened and died before the end of an answer")

    def answered(self) -> SocketHealth:
        """After a socket that brought an answer."""
        return SocketHealth()
