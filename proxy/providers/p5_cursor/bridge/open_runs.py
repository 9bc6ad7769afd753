"""The open runs of all conversations: each answers, or waits for a tool of its client.

A run that waits is found by the id of the call that its client has, which nobody can guess, and only by the owner and
the conversation that it belongs to. So several conversations of one session go on side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy.core.identity import Owner
from proxy.providers.p5_cursor.bridge.history import UserWords, find_result, has_new_words, results_of
from proxy.providers.p5_cursor.run.run import Run

#: Each run holds a connection open. When there are more, the one that has waited longest is closed.
MAX_OPEN_RUNS = 256
#: Limits the waiting runs of one owner: a conversation that its user has left may leave one behind.
MAX_WAITING_RUNS = 32


class _OpenRun(NamedTuple):
    owner: Owner
    words: UserWords


class OpenRuns:
    """The open runs with their conversations. A run that waited too long reports that itself, see `silent`."""

    def __init__(self, *, most: int = MAX_OPEN_RUNS, most_waiting: int = MAX_WAITING_RUNS) -> None:
        self._most = most
        self._most_waiting = most_waiting
        self._runs: dict[Run, _OpenRun] = {}
        self._owned: dict[Owner, list[Run]] = {}
        self._closing: dict[Run, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def closing(self) -> int:
        """The number of runs that are being closed."""
        return len(self._closing)

    def waits(self, owner: Owner | None) -> bool:
        """Whether a run of this owner waits for its client."""
        return bool(self._waiting(owner))

    def find(
        self, owner: Owner | None, request: Mapping[str, Any], words: UserWords
    ) -> tuple[Run, Mapping[str, Any]] | None:
        """The run that waits for a result in this request, and that result. None when the user has said something
        new, or changed what was said before: a run cannot be told either."""
        waiting = self._waiting(owner)
        for call_id in results_of(request, waiting.keys()):
            run = waiting[call_id]
            if run.lost or not words.goes_on_from(self._runs[run].words) or has_new_words(request, call_id):
                continue
            block = find_result(request, call_id)
            if block is not None:
                return run, block
        return None

    def resumed(self, run: Run, words: UserWords) -> None:
        """Notes the request that a run goes on with."""
        self._runs[run] = self._runs[run]._replace(words=words)

    def put(self, owner: Owner, run: Run, request: Mapping[str, Any], words: UserWords, *, alone: bool = True) -> None:
        """Adds a run. Waiting ones are closed whose conversation went on in this request without them.

        alone  whether the owner is one user, not all who began with the same words
        """
        waiting = self._waiting(owner)
        named = set(results_of(request, waiting.keys()))
        for call_id, other in waiting.items():
            if call_id in named or (alone and words.follows(self._runs[other].words)):
                self.remove(other)
        self._runs[run] = _OpenRun(owner, words)
        self._owned.setdefault(owner, []).append(run)
        self._make_room(owner)

    def remove(self, run: Run) -> None:
        """Removes a run that is no longer needed; it is closed in the background."""
        found = self._runs.pop(run, None)
        if found is not None:
            self._owned[found.owner].remove(run)
            if not self._owned[found.owner]:
                del self._owned[found.owner]
        if run not in self._closing:
            task = self._closing[run] = asyncio.create_task(run.close())
            task.add_done_callback(lambda _: self._closing.pop(run))

    def answered_elsewhere(self, owner: Owner, request: Mapping[str, Any]) -> list[Run]:
        """Removes the runs that wait for a result in this request, which another provider got. Returns them."""
        waiting = self._waiting(owner)
        found = [waiting[call_id] for call_id in results_of(request, waiting.keys())]
        for run in found:
            self.remove(run)
        return found

    def silent(self, run: Run) -> None:
        """Handles the end of a run's messages from the service: a waiting run has become useless."""
        if run.offered is not None and run.lost:
            self.remove(run)

    async def close(self) -> None:
        """Closes all runs."""
        for run in list(self._runs):
            self.remove(run)
        if self._closing:
            await asyncio.wait(self._closing.values())

    def _waiting(self, owner: Owner | None) -> dict[str, Run]:
        """The waiting runs of an owner by the ids of their calls."""
        runs = self._owned.get(owner, ()) if owner is not None else ()
        return {run.offered.tool_use_id: run for run in runs if run.offered is not None}

    def _make_room(self, owner: Owner) -> None:
        """Closes the longest waiting runs while there are too many; answering ones stay."""
        if len(self._waiting(owner)) >= self._most_waiting:  # the newest will wait as well
            self._close_oldest(self._owned[owner])
        if len(self._runs) > self._most:
            self._close_oldest(list(self._runs))

    def _close_oldest(self, runs: list[Run]) -> None:
        waiting = [(run.offered.since, run) for run in runs if run.offered is not None]
        if waiting:
            self.remove(min(waiting, key=lambda one: one[0])[1])
