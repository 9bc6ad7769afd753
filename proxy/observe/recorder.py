"""Several watchers in the place of one."""

from __future__ import annotations

from contextlib import suppress

from proxy.core.lifecycle import Event, Recorder


class Fanout:
    """Passes every event to each recorder. One that raises loses the event; the others and the request do not."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders

    def record(self, request_id: str, event: Event) -> None:
        for recorder in self._recorders:
            with suppress(Exception):
                recorder.record(request_id, event)

    @property
    def wants_project(self) -> bool:
        """Whether any of them does."""
        return any(_wants_project(recorder) for recorder in self._recorders)


def _wants_project(recorder: Recorder) -> bool:
    try:
        return recorder.wants_project
    except Exception:
        return False
