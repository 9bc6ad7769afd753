"""A line a request, for somebody who reads along on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from proxy.observe.lifecycle import (
    Abandoned,
    Completed,
    Event,
    Failed,
    ModelResolved,
    ProviderSelected,
    Started,
    UsageUpdated,
)

#: Requests under way that are known; the admission lets far fewer in.
MAX_OPEN = 10_000
#: Requests of which only failures are told: clients send them by the dozen.
QUIET = frozenset({"count_tokens"})
#: Of a model's name and of an error this much is shown, in characters.
NAME_WIDTH, ERROR_WIDTH = 34, 300


@dataclass(slots=True)
class _Open:
    """What is known of a request under way."""

    endpoint: str
    begun: float
    provider: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


class RequestLines:
    """A `Recorder` that tells of each request when it has ended: time, model, status, tokens, seconds.

    tell   takes the line, without a line end; called on the event loop
    clock  seconds that only go forward; stamp  the time of day in words
    """

    wants_project = False

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        stamp: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._stamp = stamp
        self._open: dict[str, _Open] = {}

    def record(self, request_id: str, event: Event) -> None:
        match event:
            case UsageUpdated():
                if (request := self._open.get(request_id)) is not None:
                    _count(request, event)
            case Started():
                if len(self._open) < MAX_OPEN:
                    self._open[request_id] = _Open(event.endpoint, self._clock())
            case ProviderSelected() | ModelResolved():
                if (request := self._open.get(request_id)) is not None:
                    _name(request, event)
            case Completed() | Failed() | Abandoned():
                if (request := self._open.pop(request_id, None)) is not None:
                    self._ended(request, event)
            case _:  # most events by far: what arrives from upstream
                return

    def _ended(self, request: _Open, event: Completed | Failed | Abandoned) -> None:
        if request.endpoint in QUIET and not isinstance(event, Failed):
            return
        seconds = f"{self._clock() - request.begun:.1f} s"
        tokens = f"{_tokens(request.input_tokens, 'in')} {_tokens(request.output_tokens, 'out')}"
        self._tell(f"{self._stamp()}  {_named(request):<{NAME_WIDTH}} {_status(event):<4} {tokens} {seconds:>8}")
        if isinstance(event, Failed | Abandoned):
            self._tell(f"          {_shown(event.error, ERROR_WIDTH)}")


def _count(request: _Open, event: UsageUpdated) -> None:
    if event.input_tokens is not None:
        request.input_tokens = event.input_tokens
    if event.output_tokens is not None:
        request.output_tokens = event.output_tokens


def _name(request: _Open, event: ProviderSelected | ModelResolved) -> None:
    if isinstance(event, ProviderSelected):
        request.provider, request.model = event.provider, event.model
    elif event.resolved != event.requested:
        request.model = f"{event.requested} = {event.resolved}"


def _named(request: _Open) -> str:
    """The model and its provider, which a long name does not push out; the endpoint of what reached none."""
    if not request.provider:
        return request.endpoint
    provider = f" ({request.provider})"
    return _shown(request.model or request.endpoint, NAME_WIDTH - len(provider)) + provider


def _status(event: Completed | Failed | Abandoned) -> str:
    """The status; of an answer that broke off, or that nobody waited for, a word."""
    if isinstance(event, Abandoned):
        return "left"
    return "cut" if isinstance(event, Failed) and event.status == 200 else str(event.status or "")


def _tokens(count: int | None, where: str) -> str:
    """
    >>> _tokens(456, "in"), _tokens(12_345, "out"), _tokens(None, "in")
    ('  456 in ', '12.3k out', '         ')
    """
    if count is None:
        return " " * 9
    number = str(count) if count < 10_000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1e6:.2f}M"
    return f"{number:>5} {where:<3}"


def _shown(text: str, width: int) -> str:
    """A text that others wrote, fit for a terminal."""
    clean = "".join(char if char.isprintable() else "?" for char in text[: width + 1])
    return clean if len(clean) <= width else f"{clean[: width - 1]}…"
