"""Asks for the history while it is shown; the drawing never waits for an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any, NamedTuple

from proxy.errors import ProxyError
from proxy.observe.history.overview_rows import overview_rows
from proxy.observe.monitor.terminal.times import TIMES, Time
from proxy.observe.monitor.terminal.view import ShownHistory

#: Seconds after which what is shown is read again.
AGAIN_S = 10.0
#: Asks for the overview between some edges; the answer is plain data, or fails with a ProxyError.
Ask = Callable[[Sequence[float]], "Future[Any]"]


class _Question(NamedTuple):
    time: Time
    answer: Future[Any]


class HistoryReader:
    """Keeps the newest answer for each time. All calls come from one thread."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._question: _Question | None = None
        self._known: dict[Time, ShownHistory] = {}
        self._asked: dict[Time, float] = {}

    def shown(self, time: Time, now: float) -> ShownHistory:
        """What is known of a time. Asks for it if that is nothing, or old; a question about another time is dropped."""
        question = self._question
        if question is not None and question.answer.done():
            self._known[question.time] = _read(question.answer, self._known.get(question.time, ShownHistory()))
            question = None
        if question is not None and question.time != time:
            question.answer.cancel()
            self._asked.pop(question.time)
            question = None
        if question is None and abs(now - self._asked.get(time, -math.inf)) >= AGAIN_S:
            self._asked[time] = now
            question = _Question(time, self._ask(TIMES[time].edges(now)))
        self._question = question
        return replace(self._known.get(time, ShownHistory()), asking=question is not None)


def _read(answer: Future[Any], before: ShownHistory) -> ShownHistory:
    try:
        return ShownHistory(overview_rows(answer.result()))
    except ProxyError as error:
        problem = error.message
    except ValueError as error:
        problem = f"The answer cannot be read: {error}"
    except CancelledError:  # the event loop has ended
        problem = ""
    except Exception as error:  # a fault of ours must not end the monitor
        problem = f"The history failed: {type(error).__name__}"
    return ShownHistory(before.rows, problem)
