"""One line per request, for a person reading along on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

from proxy.observe.monitor.snapshot import RequestRow

#: Endpoints of which only failures are shown: clients call them by the dozen.
QUIET = frozenset({"count_tokens"})
#: Characters shown of a model's name, and of an error.
NAME_WIDTH, ERROR_WIDTH = 34, 300


class RequestLines:
    """Shows finished requests: time, model, status, tokens, seconds. For `MonitorState.finished`.

    tell   takes a line, without a line end; called on the event loop
    stamp  the time of day in words
    """

    def __init__(
        self, tell: Callable[[str], None], *, stamp: Callable[[], str] = lambda: time.strftime("%H:%M:%S")
    ) -> None:
        self._tell = tell
        self._stamp = stamp

    def ended(self, row: RequestRow) -> None:
        if row.endpoint in QUIET and row.status != "failed":
            return
        seconds = f"{row.elapsed:.1f} s"
        tokens = f"{_tokens(row.input_tokens, 'in')} {_tokens(row.output_tokens, 'out')}"
        self._tell(f"{self._stamp()}  {_named(row):<{NAME_WIDTH}} {_status(row):<4} {tokens} {seconds:>8}")
        if row.error:
            self._tell(f"          {_shown(row.error, ERROR_WIDTH)}")


def _named(row: RequestRow) -> str:
    """The model and its provider, which a long name does not push out; the endpoint if no model was reached."""
    if not row.provider:
        return row.endpoint
    provider = f" ({row.provider})"
    changed = row.resolved and row.resolved != row.requested
    model = f"{row.requested} = {row.resolved}" if changed else row.requested
    return _shown(model or row.endpoint, NAME_WIDTH - len(provider)) + provider


def _status(row: RequestRow) -> str:
    """The status, or a word for an answer that broke off or was abandoned."""
    if row.status == "abandoned":
        return "left"
    return "cut" if row.status == "failed" and row.http == 200 else str(row.http or "")


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
    """Foreign text made safe for a terminal."""
    clean = "".join(char if char.isprintable() else "?" for char in text[: width + 1])
    return clean if len(clean) <= width else f"{clean[: width - 1]}…"
