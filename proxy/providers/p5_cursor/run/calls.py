"""The calls of a client's tools whose results a run waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.steps import Plan, Step

#: Most open calls; further ones are refused.
MAX_OPEN_CALLS = 64


@dataclass(slots=True, eq=False)
class OpenCall:
    """An open call.

    plan     makes the calls of the client's tools, and from their results those of the request
    step     the call that the client gets, or has
    since    when it was asked for, in seconds of the loop's clock
    beat_at  the next sign of life to the service
    aborted  the service no longer wants the result
    tool_use_id  the call's id at the client; "" before the client has it
    """

    request: ExecRequest
    plan: Plan
    step: Step
    since: float
    beat_at: float
    aborted: bool = False
    tool_use_id: str = ""


class OpenCalls:
    """The open calls of a run. `beat_s`: seconds between two signs of life for each."""

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self._calls: dict[tuple[int, str], OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def full(self) -> bool:
        return len(self._calls) >= MAX_OPEN_CALLS

    def is_open(self, request: ExecRequest) -> bool:
        """Whether the call is open already, since the service repeats itself."""
        return (request.id, request.exec_id) in self._calls

    def open(self, request: ExecRequest, plan: Plan, step: Step, now: float) -> OpenCall:
        """Opens a call with its first step."""
        call = OpenCall(request, plan, step, now, now + self._beat_s)
        self._calls[request.id, request.exec_id] = call
        return call

    def answered(self, call: OpenCall) -> None:
        self._calls.pop((call.request.id, call.request.exec_id), None)

    def abort(self, exec_id: int | None = None) -> None:
        """Aborts the calls with this id, or all."""
        for key, call in list(self._calls.items()):
            if exec_id is None or call.request.id == exec_id:
                call.aborted = True
                del self._calls[key]

    def forget(self) -> None:
        """Forgets the calls, since the service waits for none. The client may still be asked; its result then goes to
        another run."""
        self._calls.clear()

    @property
    def beats_at(self) -> list[float]:
        """The time of the next sign of life of each call."""
        return [call.beat_at for call in self._calls.values()]

    def beats(self, now: float) -> Iterator[int]:
        """The ids of calls whose sign of life is due now."""
        for call in self._calls.values():
            if now >= call.beat_at:
                call.beat_at = now + self._beat_s
                yield call.request.id
