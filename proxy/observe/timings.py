"""Where the time of a request goes: consecutive spans, one mark where each ends.

    queue        from the head of the request until its body was read and let in
    translate    until the request is handed to the upstream for the first time: routing, conversion, and whatever a
                 provider asks before the answer itself, such as a summary
    sign_in      waiting for a credential that had to be fetched or renewed; left out where none was waited for
    retry        attempts that failed, those of another model included, the waits behind them, and what was done for the
                 next one
    connect      opening a connection or a socket for the attempt that counts; left out where an open one was used
    first_byte   until its answer began: the head of an HTTP answer, the first event of a socket
    first_token  until the first output of the model

So the spans of a request add up to the time until its first token. What comes behind that is in none of them. The time
of a request that ends before belongs to the span that was under way; only what said nothing has no first token.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from proxy.core.hiding.secret import blanked
from proxy.observe.lifecycle import SPANS

#: What is lost with an attempt that failed.
_OF_AN_ATTEMPT = ("connect", "first_byte", "first_token")
#: Who has a credential in memory is faster than this, in seconds, and nobody was waited for.
_ASKED_S = 0.001


def _nobody(_upstream_id: str) -> None:
    return None


class Timings:
    """Of one request; begins when it is made.

    clock  seconds that only go forward
    tell   is told the upstream's id of the request, whenever there is another one
    """

    __slots__ = ("_began", "_clock", "_since", "_spans", "_under_way", "tell", "upstream_id")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._since = clock()
        self._spans: dict[str, float] = {}
        self._under_way = "queue"
        self.upstream_id: str | None = None
        self.tell: Callable[[str], None] = _nobody

    def admitted(self) -> None:
        """The body was read, and there is room for it."""
        self._mark("queue", "translate")

    def signing_in(self) -> None:
        """A credential is asked for."""
        self._mark("translate", "sign_in")

    def signed_in(self) -> None:
        """It is here."""
        waited = self._clock() - self._since >= _ASKED_S
        self._mark("sign_in" if waited else "translate", "translate")

    def sent(self, attempt: int) -> None:
        """The request is handed to the upstream, for the `attempt`th time."""
        if attempt <= 1:
            self._mark("translate", "first_byte")
            return
        self._lose("first_byte")

    def began_anew(self) -> None:
        """Another model is asked instead."""
        self._lose("translate")

    def _lose(self, then: str) -> None:
        """What was done until now was an attempt that failed."""
        lost = sum(self._spans.pop(span, 0.0) for span in _OF_AN_ATTEMPT)
        self._spans["retry"] = self._spans.get("retry", 0.0) + lost
        self._mark("retry", then)

    def connecting(self) -> None:
        """There is no open connection, so one is opened."""
        self._under_way = "connect"

    def connected(self) -> None:
        """It is open."""
        self._mark("connect", "first_byte")

    def answered(self, upstream_id: str | None = None) -> None:
        """The answer of the upstream began; further calls of an attempt only tell another id."""
        if "first_byte" not in self._spans:
            self._mark("first_byte", "first_token")
        if upstream_id and upstream_id != self.upstream_id:
            self.upstream_id = upstream_id = blanked(upstream_id)
            self.tell(upstream_id)

    def generating(self) -> None:
        """The model says something; only the first time of an attempt counts."""
        if "first_token" not in self._spans:
            self._mark("first_token", "")

    def broken_off(self) -> None:
        """The request ends without the rest. What said nothing has no first token."""
        if self._under_way not in ("", "first_token"):
            self._mark(self._under_way, "")

    @property
    def total(self) -> float:
        """Milliseconds since the beginning."""
        return (self._clock() - self._began) * 1000

    @property
    def spans(self) -> dict[str, float]:
        """Those that are over, name -> milliseconds, in the order of SPANS."""
        spans: dict[str, float] = {}
        for span in SPANS:
            if span in self._spans:
                spans[span] = round(self._spans[span] * 1000, 3)
        return spans

    def header(self) -> str:
        """The value of `Server-Timing`: what is known by now, and the time until now.

        >>> Timings(lambda: 0.0).header()
        'total;dur=0.0'
        """
        said = ""
        for name, ms in self.spans.items():
            said += f"{name.replace('_', '-')};dur={ms:.1f}, "
        return f"{said}total;dur={self.total:.1f}"

    def _mark(self, span: str, then: str) -> None:
        """The time since the last mark belongs to this span; `then` is the one that begins."""
        now = self._clock()
        self._spans[span] = self._spans.get(span, 0.0) + now - self._since
        self._since, self._under_way = now, then
