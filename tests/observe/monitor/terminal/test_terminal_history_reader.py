"""When the history is asked for, and what is shown until an answer comes, or when none does."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from samples import rows

from proxy.errors import ProxyError
from proxy.observe.monitor.terminal.history_reader import AGAIN_S, HistoryReader
from proxy.observe.monitor.terminal.times import TIMES

from .shown import NOW


def overview(requests: int) -> dict[str, Any]:
    usage = {"requests": requests}
    return {"version": 1, "edges": [0, 1], "whole": usage, "periods": [usage]}


class Asked:
    """A reader, and the questions that it asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[Sequence[float], Future[Any]]] = []
        self.reader = HistoryReader(self._ask)
        self.shown = self.reader.shown

    def _ask(self, edges: Sequence[float]) -> Future[Any]:
        self.questions.append((edges, Future()))
        return self.questions[-1][1]

    @property
    def answer(self) -> Future[Any]:
        return self.questions[-1][1]


def test_it_is_asked_for_once_and_again_when_it_is_old() -> None:
    asked = Asked()
    assert [asked.shown("7 days", NOW + at) for at in (0, 1, 30)] == [asked.shown("7 days", NOW)] * 3
    assert len(asked.questions) == 1 and asked.questions[0][0] == TIMES["7 days"].edges(NOW)
    asked.answer.set_result(overview(5))
    told = asked.shown("7 days", NOW + 1)
    assert told.rows and (told.rows.whole.requests, told.asking) == (5, False)
    assert asked.shown("7 days", NOW + AGAIN_S) == asked.shown("7 days", NOW + AGAIN_S)  # what is old is still shown
    assert asked.shown("7 days", NOW + AGAIN_S).asking and len(asked.questions) == 2
    asked.answer.set_result(overview(6))
    told = asked.shown("7 days", NOW + AGAIN_S + 1)
    assert told.rows and told.rows.whole.requests == 6


def test_another_time_is_asked_for_at_once_and_the_question_before_is_dropped() -> None:
    asked = Asked()
    asked.shown("7 days", NOW)
    assert asked.shown("today", NOW).asking
    assert asked.questions[0][1].cancelled() and asked.questions[1][0] == TIMES["today"].edges(NOW)
    asked.answer.set_result(overview(1))
    assert asked.shown("today", NOW).rows and asked.shown("7 days", NOW).asking
    assert len(asked.questions) == 3


def test_a_time_that_was_shown_is_shown_at_once() -> None:
    asked = Asked()
    for time in ("7 days", "today"):
        asked.shown(time, NOW)
        asked.answer.set_result(overview(3))
        asked.shown(time, NOW)
    assert asked.shown("7 days", NOW + 1).rows and len(asked.questions) == 2


@rows(
    "fault, said",
    [
        (ProxyError("no history is kept: it is off"), "no history is kept: it is off"),
        (KeyError("x"), "The history failed: KeyError"),
        ({"version": 7, "periods": []}, "The answer cannot be read: that is version 7"),
    ],
)
def test_a_problem_is_said_beside_what_is_known(fault: Any, said: str) -> None:
    asked = Asked()
    for moment, answer in ((0.0, fault), (AGAIN_S, overview(2)), (2 * AGAIN_S, fault), (3 * AGAIN_S, overview(2))):
        asked.shown("today", NOW + moment)
        if isinstance(answer, Exception):
            asked.answer.set_exception(answer)
        else:
            asked.answer.set_result(answer)
        told = asked.shown("today", NOW + moment)
        assert told.problem.startswith(said) if answer is fault else not told.problem
        assert (told.rows is None) == (moment == 0)


def test_an_event_loop_that_ended_is_no_problem() -> None:
    asked = Asked()
    asked.shown("today", NOW)
    asked.answer.cancel()
    told = asked.shown("today", NOW)
    assert (told.rows, told.problem, told.asking) == (None, "", False)
