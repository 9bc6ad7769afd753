"""Divides the time of a request into consecutive spans, one mark where each ends.

    queue        from the head of the request until its body was read and let in
    translate    until the request is handed to the upstream for the first time: routing, conversion, and whatever a
                 provider asks before the answer itself, such as a summary
    sign_in      waiting for a credential that had to be fetched or renewed; left out where none was waited for
    retry        attempts that failed, those of another model included, the waits after them, and the work for the next
                 one
    connect      opening a connection or a socket for the attempt that counts; left out where an open one was used
    first_byte   until its answer began: the head of an HTTP answer, the first event of a socket
    first_token  until the first output of the model

So the spans of a request add up to the time until its first token. The time after it is in no span. The time of a
request that ends before it belongs to the current span; only an answer without output has no first token.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar

from proxy.core.hiding.secret import blanked
from proxy.observe.lifecycle import SPANS

#: Spans that a failed attempt loses.
_OF_AN_ATTEMPT = ("connect", "first_byte", "first_token")
#: Seconds below which the credential was in memory, and nothing was waited for.
_ASKED_S = 0.001


def _nobody(_upstream_id: str) -> None:
    return None


class Timings:
    """The spans of one request; the time begins when it is made.

    clock  seconds that only go forward
    tell   receives the upstream's id of the request, whenever there is another one
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
        """Marks that the body was read and admitted."""
        self._mark("queue", "translate")

    def signing_in(self) -> None:
        """Marks the question for a credential."""
        self._mark("translate", "sign_in")

    def signed_in(self) -> None:
        """Marks its arrival."""
        waited = self._clock() - self._since >= _ASKED_S
        self._mark("sign_in" if waited else "translate", "translate")

    def sent(self, attempt: int) -> None:
        """Marks that the request goes to the upstream, for the `attempt`th time."""
        if attempt <= 1:
            self._mark("translate", "first_byte")
            return
        self._lose("first_byte")

    def began_anew(self) -> None:
        """Marks that another model is asked instead."""
        self._lose("translate")

    def _lose(self, then: str) -> None:
        """Moves the time until now to failed attempts."""
        lost = sum(self._spans.pop(span, 0.0) for span in _OF_AN_ATTEMPT)
        self._spans["retry"] = self._spans.get("retry", 0.0) + lost
        self._mark("retry", then)

    def connecting(self) -> None:
        """Marks that a connection is opened, since none is open."""
        self._under_way = "connect"

    def connected(self) -> None:
        """Marks that it is open."""
        self._mark("connect", "first_byte")

    def answered(self, upstream_id: str | None = None) -> None:
        """Marks the beginning of the upstream's answer; further calls of an attempt only report another id."""
        if "first_byte" not in self._spans:
            self._mark("first_byte", "first_token")
        if upstream_id and upstream_id != self.upstream_id:
            self.upstream_id = upstream_id = blanked(upstream_id)
            self.tell(upstream_id)

    def generating(self) -> None:
        """Marks the first output of the model; later calls of an attempt do nothing."""
        if "first_token" not in self._spans:
            self._mark("first_token", "")

    def broken_off(self) -> None:
        """Marks the end of a request before its answer is whole. Without output there is no first token."""
        if self._under_way not in ("", "first_token"):
            self._mark(self._under_way, "")

    @property
    def total(self) -> float:
        """Milliseconds since the beginning."""
        return (self._clock() - self._began) * 1000

    @property
    def spans(self) -> dict[str, float]:
        """The finished spans, name -> milliseconds, in the order of SPANS."""
        spans: dict[str, float] = {}
        for span in SPANS:
            if span in self._spans:
                spans[span] = round(self._spans[span] * 1000, 3)
        return spans

    def header(self) -> str:
        """The value of `Server-Timing`: the finished spans, and the time until now.

        >>> Timings(lambda: 0.0).header()
        'total;dur=0.0'
        """
        said = ""
        for name, ms in self.spans.items():
            said += f"{name.replace('_', '-')};dur={ms:.1f}, "
        return f"{said}total;dur={self.total:.1f}"

    def _mark(self, span: str, then: str) -> None:
        """Adds the time since the last mark to this span; `then` is the one that begins."""
        now = self._clock()
        self._spans[span] = self._spans.get(span, 0.0) + now - self._since
        self._since, self._under_way = now, then


#: Times the request for which the current task wants a connection.
CONNECTING: ContextVar[Timings | None] = ContextVar("CONNECTING", default=None)
