"""Watches the prompt caches of upstreams: compares each request with the one before it, after its answer.

Nothing is done before the answer has begun, and mostly nothing before its last byte is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from proxy.core.cache_health.fingerprint import Fingerprint, of_messages
from proxy.core.cache_health.judge import CacheVerdict, Sent, judge
from proxy.core.cache_health.memory import Compared, PromptMemory
from proxy.core.identity import MAX_ID_BYTES, Owner
from proxy.providers.contract import Caching, Provider, Target, kept

#: Larger bodies are read in a thread, since they would block the event loop for too long.
LOOP_BYTES = 512 * 1024
#: Seconds after which they are read, unless the answer begins before: an answer that is sent whole begins at its end.
LOOK_S = 0.5
#: Kinds of reasons that occur once and pass.
_PASSING = frozenset({"compaction", "messages", "descriptions", "time", "provider", "model", "effort"})
#: Maximum number of models that are remembered for having reported cached input.
_MAX_REPORTING = 1024


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A request that is compared.

    owner    the owner of its conversation; None: it is compared with nothing
    body     a hub request, or another that `fingerprint` reads; complete until the answer begins
    size     bytes of the body, as it came
    summary  whether it asks for a summary of the conversation
    """

    owner: Owner | None
    provider: Provider
    target: Target
    body: Mapping[str, Any]
    size: int
    summary: bool = False
    fingerprint: Callable[[Mapping[str, Any]], Fingerprint] = of_messages


@dataclass(frozen=True, slots=True)
class CheckedCache:
    """The verdict on the cache of a session's prompts; `news`: whether its reason differs from the last one shown."""

    verdict: CacheVerdict
    news: bool
    session: str

    @property
    def level(self) -> str:
        """The level of a notice: what a user did, or a client does in passing, is no warning."""
        return "warn" if not _PASSING.issuperset(self.verdict.kind.split("+")) else "info"


class CacheWatch:
    """The watch of one application."""

    def __init__(self) -> None:
        self.memory = PromptMemory()
        self._reporting: set[tuple[str, str]] = set()
        self._caching: dict[type[Provider], bool] = {}

    def caching(self, provider: Provider) -> Caching | None:
        """The provider if it implements Caching, else None. Checked once per class: checking a protocol takes as long
        as all else here for a small request."""
        kind = type(provider)
        if kind not in self._caching:
            self._caching[kind] = isinstance(provider, Caching)
        return cast(Caching, provider) if self._caching[kind] else None

    def reports_cached(self, provider: Provider, model: str, cached: int) -> bool:
        """Whether a count of cached input is real: some services never report one, and 0 then means nothing. A model
        that has reported one will report it again."""
        key = provider.label, model
        if cached and len(self._reporting) < _MAX_REPORTING:
            self._reporting.add(key)
        if cached > 0 or key in self._reporting:
            return True
        caching = self.caching(provider)
        return caching is not None and caching.reports_cached(model)


class CacheCheck:
    """The comparison of one request, from the beginning of its answer to its end. `described`: see `Sent`."""

    def __init__(
        self, watch: CacheWatch, asked: ComparedRequest, clock: Callable[[], float], described: Sequence[int]
    ) -> None:
        self._described = described
        self._watch = watch
        self._clock = clock
        self._asked = asked
        self._began_at: float | None = None
        self._account: Any = None
        self._compared: Compared | None = None
        self._session = "" if asked.owner is None else asked.owner.session
        self._large = asked.owner is not None and asked.size > LOOP_BYTES
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look) if self._large else None
        self._work: asyncio.Future[Fingerprint] | None = None
        self._body: Mapping[str, Any] | None = None  # of a small request, until it is read
        self._counts: tuple[int, int] | None = None

    def answer_began(self) -> None:
        """Notes that the upstream has read the request, so that the next one is compared with it."""
        asked = self._asked
        if asked.owner is None:
            return
        self._began_at = self._clock()
        caching = self._watch.caching(asked.provider)
        self._account = None if caching is None else caching.cache_owner()
        if self._large:
            self._look()
        else:  # soon: after the first word of the answer
            self._body = kept(asked.body)
            asyncio.get_running_loop().call_soon(self._note_now)

    def moved(self, provider: Provider) -> None:
        """Notes that another account answers."""
        self._asked = replace(self._asked, provider=provider)

    def used(self, input_tokens: int | None, cached: int | None) -> int | None:
        """Notes the answer's input counts and returns the cached one, None if the service does not report it. An input
        of 0 comes from an answer without counts."""
        asked = self._asked
        if (
            not input_tokens
            or cached is None
            or not self._watch.reports_cached(asked.provider, asked.target.model, cached)
        ):
            return None
        self._counts = input_tokens, cached
        return cached

    def ended(self) -> CheckedCache | None:
        """The verdict after the last byte, None if it is unknown. Does not wait for a body that is still being read."""
        self.close()
        if self._compared is None or self._counts is None:
            return None
        compared, (input_tokens, cached) = self._compared, self._counts
        verdict = judge(
            compared.old,
            compared.new,
            cached_tokens=cached,
            input_tokens=input_tokens,
            compacted=compared.compacted,
        )
        return CheckedCache(verdict, compared.line.is_new(verdict.kind), self._session)

    def close(self) -> None:
        """Finishes the work of a request that is over in any way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._began_at is None or self._compared is not None:
            return
        if self._work is None:
            self._note_now()
        elif self._work.done():
            self._looked_at(self._work)
        else:
            self._work.add_done_callback(self._looked_at)

    def _look(self) -> None:
        if self._work is None:
            loop = asyncio.get_running_loop()
            self._work = loop.run_in_executor(None, self._asked.fingerprint, kept(self._asked.body))

    def _note_now(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            self._note(self._asked.fingerprint(body))

    def _looked_at(self, work: asyncio.Future[Fingerprint]) -> None:
        if self._compared is None and not work.cancelled() and work.exception() is None:
            self._note(work.result())

    def _note(self, found: Fingerprint) -> None:
        asked, target = self._asked, self._asked.target
        if asked.owner is None or self._began_at is None:
            return
        label, described = asked.provider.label, self._described
        sent = Sent(found, self._began_at, label, target.model, target.effort, self._account, described)
        self._compared = self._watch.memory.reached(asked.owner, sent, summary=asked.summary)


def owner_by(session: str | None) -> Owner | None:
    """The owner for a session, or for a caller's own cache key, from outside the identity headers."""
    return Owner(session) if session and len(session) <= MAX_ID_BYTES else None
