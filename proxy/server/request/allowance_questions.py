"""Asks services for their allowances when they are shown and what is known is old. No request waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.providers.contract import AllowanceSource, Provider

if TYPE_CHECKING:
    from proxy.observe.lifecycle import Log
    from proxy.providers.accounts.allowance_store import AllowanceStore

#: How long an answer, or a failure, is kept.
ASK_EVERY_S = 300.0
#: Least time between two questions, after a request was refused for an unknown window.
ASK_AGAIN_S = 60.0
#: How often it is checked whether a question is due: a monitor calls every second.
LOOK_EVERY_S = 5.0
ANSWER_S = 20.0


class AllowanceQuestions:
    """Asks each service one question at a time. `providers` returns the running ones, by the key of their account; none
    before the start."""

    def __init__(self, allowances: AllowanceStore, log: Log, clock: Callable[[], float]) -> None:
        self.providers: Callable[[], Mapping[str, Provider]] = dict
        self.allowances = allowances
        self._log = log
        self._clock = clock
        self._looked: float | None = None
        self._asked: dict[str, float] = {}
        self._failed: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def look(self) -> None:
        """Asks for all that is old, since a user looks at it."""
        now = self._clock()
        if self._looked is not None and abs(now - self._looked) < LOOK_EVERY_S:
            return
        self._looked = now
        for label in self.providers():
            known = self.allowances.of(label)
            if known is None or known.as_of is None or abs(now - known.as_of) >= ASK_EVERY_S:
                self.ask(label, ASK_EVERY_S)

    def ask(self, label: str, pause_s: float = ASK_AGAIN_S) -> None:
        """Asks a service, unless it was asked within `pause_s`, or cannot be asked."""
        provider, now = self.providers().get(label), self._clock()
        if self._closed or provider is None or label in self._running:
            return
        if label in self._asked and abs(now - self._asked[label]) < pause_s:
            return
        if isinstance(provider, AllowanceSource) and provider.signed_in():
            self._asked[label] = now
            self._running[label] = asyncio.create_task(self._question(label, provider))

    async def answered(self, patience_s: float) -> None:
        """Asks for all that is old, and waits at most `patience_s` for the answers."""
        self.look()
        if self._running:
            await asyncio.wait(set(self._running.values()), timeout=patience_s)

    async def close(self) -> None:
        """Cancels running questions."""
        self._closed = True
        running = set(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _question(self, label: str, provider: AllowanceSource) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                report = await provider.ask_allowance()
            self.allowances.tell(label, report.account, report.known)
            self._failed.discard(label)
        except (ProxyError, OSError) as error:  # a TimeoutError is one
            if label not in self._failed:  # once, until it answers again
                reason = error.message if isinstance(error, ProxyError) else type(error).__name__
                self._log.write("info", label, "allowance_not_told", reason=reason)
            self._failed.add(label)
        except Exception as error:
            self._log.write("error", label, "internal_error", error=type(error).__name__)
        finally:
            del self._running[label]
