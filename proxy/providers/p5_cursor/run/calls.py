"""The calls of a client's tools whose results a run waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proxy.providers.p5_cursor.bridge.calls import ExecRequest

#: So many may be open; the service is refused any more.
MAX_OPEN_CALLS = 64


@dataclass(slots=True, eq=False)
class OpenCall:
    """One of them.

    tool     the client's name of the tool
    since    when it was asked for, in seconds of the loop's clock
    beat_at  when the service is told next that it is being worked on
    aborted  the service does not want the result any more
    tool_use_id  under which the client has it; "" before that
    """

    request: ExecRequest
    tool: str
    since: float
    beat_at: float
    aborted: bool = False
    tool_use_id: str = ""


class OpenCalls:
    """All of a run. `beat_s`: how often the service is told of each, in seconds."""

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self._calls: dict[tuple[int, str], OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def full(self) -> bool:
        return len(self._calls) >= MAX_OPEN_CALLS

    def open(self, request: ExecRequest, tool: str, now: float) -> OpenCall | None:
        """None when it is open already: the service repeats itself."""
        key = (request.id, request.exec_id)
        if key in self._calls:
            return None
        call = self._calls[key] = OpenCall(request, tool, now, now + self._beat_s)
        return call

    def answered(self, call: OpenCall) -> None:
        self._calls.pop((call.request.id, call.request.exec_id), None)

    def abort(self, exec_id: int | None = None) -> None:
        """Takes back those with this id, or all."""
        for key, call in list(self._calls.items()):
            if exec_id is None or call.request.id == exec_id:
                call.aborted = True
                del self._calls[key]

    def forget(self) -> None:
        """The service waits for none any more. A client that was not asked yet still is: what it brings is told in
        another run."""
        self._calls.clear()

    @property
    def beats_at(self) -> list[float]:
        """When the service is told of each."""
        return [call.beat_at for call in self._calls.values()]

    def beats(self, now: float) -> Iterator[int]:
        """The ids of those that the service is to be told of now."""
        for call in self._calls.values():
            if now >= call.beat_at:
                call.beat_at = now + self._beat_s
                yield call.request.id
