"""Searches the web for models whose service does not: for an answer that does nothing else, and within an answer.

Within an answer the model has a function. When it calls it, the search is made by another service, or another part of
the same one, shown in the client's form, and the model is asked again with what was found, in the same message. All
decisions are pure, in `core/search/`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from proxy.config import Config
from proxy.core.invalid import cut
from proxy.core.messages import Event, MessageStream
from proxy.core.routing import normalise_model
from proxy.core.search.blocks import search_events
from proxy.core.search.history import with_remembered
from proxy.core.search.hosted import SearchPlan, search_plan
from proxy.core.search.results import Found, Outcome, SearchFailure, bounded, in_words
from proxy.core.search.rounds import ModelSearch, SearchRounds
from proxy.core.sizes import LARGE_BYTES, least_size
from proxy.core.tokens.usage import spent
from proxy.core.tools.hosted import WEB_SEARCH
from proxy.errors import ProxyError
from proxy.observe.capture.contract import NULL_CAPTURE
from proxy.observe.lifecycle import Searched
from proxy.observe.timings import Timings
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Provider, SearchCall, Searches
from proxy.providers.entry import searchers
from proxy.providers.upstream.event_reader import Batches
from proxy.server.request.candidates import Candidate
from proxy.server.request.ledger import Ledger
from proxy.server.request.replies import unforeseen
from proxy.server.request.search_memory import MAX_KEPT_BYTES, Blocks
from proxy.server.serving.stream import Asks
from proxy.settings import searcher_of

#: Maximum number of searches of one answer that are made at the same time.
AT_A_TIME = 3
#: Longest reason of a failure that the model is shown, in characters.
MAX_REASON = 300

#: kind of an error -> the word of the Messages API; any other is `unavailable`.
_CODES = {"rate_limit": "too_many_requests", "usage_limit": "too_many_requests", "busy": "too_many_requests"}
_NO_MORE = SearchFailure("max_uses_exceeded", "no more searches are allowed in this answer: answer with what is known")
_NO_QUERY = SearchFailure("invalid_input", "the call has no query: it needs the member `query`, a text")


@dataclass(frozen=True, slots=True)
class Searcher:
    """Who searches.

    key       the account, as tables and logs show it; "" for the one that answers, which may change
    provider  None for that one
    model     named by the settings, "" to leave it to the provider
    """

    key: str
    provider: Searches | None
    model: str = ""


def _searcher_for(ledger: Ledger, candidate: Candidate) -> Searcher | None:
    """Who searches for a candidate by the settings, None if there is none. Asks no service."""
    config = ledger.inquiry.state.config()
    if config.search == "off":
        return None
    if config.search == "auto":
        if isinstance(candidate.provider, Searches) and candidate.provider.signed_in():
            return Searcher("", None)
        able = searchers(ledger.inquiry.state.entries)
        found = (_account(ledger, entry.label, config) for entry in able)
        return next((one for one in found if one is not None), None)
    return _named(ledger, candidate, config)


def _named(ledger: Ledger, candidate: Candidate, config: Config) -> Searcher | None:
    """The provider or model that the settings name, whether it is signed in or not."""
    state = ledger.inquiry.state
    able = [entry.label for entry in searchers(state.entries)]
    label, named = searcher_of(config.search, state.catalogs.of(config), able)
    found = _account(ledger, label, config, ready=False)
    if found is None:
        return None
    provider: Any = candidate.provider if label == candidate.label else found.provider
    model = provider.resolve(normalise_model(named), {}, auto_review=False).model if named else ""
    return Searcher("", None, model) if label == candidate.label else replace(found, model=model)


def _account(ledger: Ledger, label: str, config: Config, *, ready: bool = True) -> Searcher | None:
    """The account of a provider that serves this caller; `ready`: only one that is signed in."""
    accounts = ledger.inquiry.state.accounts
    if label not in accounts.providers:
        return None
    caller = ledger.inquiry.caller_name
    one = accounts.choose(label, config, session=ledger.session, caller=caller, noted=False)[0]
    provider = one.provider
    if not isinstance(provider, Searches) or (ready and not provider.signed_in()):
        return None
    return Searcher(one.key if one.name else label, provider)


@dataclass(frozen=True, slots=True)
class Search:
    """The search of one request: its plan, and who makes it."""

    plan: SearchPlan
    searcher: Searcher


def lent_search(ledger: Ledger, candidate: Candidate) -> Searcher | None:
    """Who searches for a candidate whose service does not; None if it does, or if nobody would."""
    ledger.searcher = None
    has = WEB_SEARCH in candidate.provider.hosted_tools(candidate.model)
    return None if has else _searcher_for(ledger, candidate)


async def search_with(ledger: Ledger, searcher: Searcher, request: Mapping[str, Any]) -> Search | None:
    """The search of a request, None if it has none. Noted for the head of the answer. Raises InvalidRequest."""
    inquiry = ledger.inquiry
    kept = partial(inquiry.state.searches.of, inquiry.caller_name)
    plan = await in_thread_if(ledger.size > LARGE_BYTES, partial(_plan, request, kept))
    if plan is None:
        return None
    ledger.searcher = searcher.key
    return Search(plan, searcher)


def _plan(request: Mapping[str, Any], kept: Callable[[str], Blocks]) -> SearchPlan | None:
    messages = request.get("messages")
    found = with_remembered(messages, kept) if isinstance(messages, list) else messages
    return search_plan({**request, "messages": found})


def searching(ledger: Ledger, search: Search) -> Asks:
    """How an answer with searches is asked for."""
    return partial(_asked, ledger, search)


def _asked(ledger: Ledger, search: Search, provider: Provider, call: Call) -> Batches:
    answer = SearchingAnswer(ledger, search, provider, call)
    return answer.only(search.plan.only) if search.plan.only and not call.converted else answer.rounds()


class SearchingAnswer:
    """One answer of a model that searches."""

    def __init__(self, ledger: Ledger, search: Search, provider: Provider, call: Call) -> None:
        self._ledger = ledger
        self._plan = search.plan
        self._searcher = search.searcher
        self._service: Any = search.searcher.provider or provider
        self._provider = provider
        self._call = call
        self._used = 0
        self._id = uuid.uuid4().hex
        # a capture has one attempt at a time
        self._places = asyncio.Semaphore(AT_A_TIME if ledger.capture is NULL_CAPTURE else 1)

    async def only(self, query: str) -> Batches:
        """The answer to a request that does nothing but search: its beginning, so that a slow search is not silent, and
        then the rest."""
        stream = MessageStream(f"msg_{self._id}", self._call.shown)
        stream.start()
        yield stream.take()
        block_id = f"srvtoolu_{self._id}"
        outcome = await self._search(query, block_id)
        yield search_events(stream, outcome, query=query, block_id=block_id, text=in_words(outcome))

    async def rounds(self) -> Batches:
        """The answer of the model, asked again after each search. Raises ProxyError."""
        asked = self._call.request
        rounds = SearchRounds(self._plan, asked, converted=self._call.converted, answer_id=self._id)
        for number in range(self._plan.rounds):
            rounds.begin()
            timings = self._call.timings if number == 0 else Timings()  # the first has the times of the request
            call = replace(self._call, request=rounds.request, timings=timings)
            async with aclosing(self._provider.stream(call)) as batches:
                async for batch in batches:
                    if out := self._fed(rounds, batch):
                        yield out
            if not rounds.over:
                return  # the writer reports that the answer has no end
            outcomes: dict[str, Outcome] = {}
            async with aclosing(self._searches(rounds, outcomes)) as shown:
                async for batch in shown:
                    yield batch
            if not rounds.searches or rounds.calls_client:
                self._remember(rounds)
                yield rounds.end()
                return
            rounds.grow(outcomes)
        message = f"the model searched {self._plan.rounds} times without an answer: ask it for less, or another model"
        raise ProxyError(message, kind="unprocessable")  # asked again, it would search as often again

    def _remember(self, rounds: SearchRounds) -> None:
        """Keeps what the client's API cannot carry to its next request."""
        if rounds.call_id and rounds.shown:
            inquiry, size = self._ledger.inquiry, least_size(rounds.shown, MAX_KEPT_BYTES)
            inquiry.state.searches.keep(inquiry.caller_name, rounds.call_id, rounds.shown, size)

    def _fed(self, rounds: SearchRounds, batch: list[Event]) -> list[Event]:
        try:
            return rounds.feed(batch)
        except OverflowError as error:
            raise ProxyError(str(error), kind="bad_answer") from None

    async def _searches(self, rounds: SearchRounds, outcomes: dict[str, Outcome]) -> Batches:
        """Makes the searches of a round; each is shown when it begins and when it is done, one after another."""
        tasks = [asyncio.create_task(self._allowed(search)) for search in rounds.searches]
        try:
            for search, task in zip(rounds.searches, tasks, strict=True):
                yield rounds.show_call(search)
                outcomes[search.shown_id] = await task
                yield rounds.show_result(search, outcomes[search.shown_id])
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _allowed(self, search: ModelSearch) -> Outcome:
        """The outcome of a call, which is only made if it has a query and searches are left."""
        if not search.query:
            return _NO_QUERY
        if self._used >= self._plan.uses:
            return _NO_MORE
        self._used += 1
        async with self._places:
            return await self._search(search.query, search.call_id)

    async def _search(self, text: str, call_id: str) -> Outcome:
        """Makes one search, and reports it without its words. A failure is an outcome."""
        query, started = self._plan.query(text), time.monotonic()
        ledger, model = self._ledger, self._searcher.model
        ledger.searched = True
        request_id = f"{ledger.inquiry.id}-search"
        call = SearchCall(query, request_id, call_id, model, capture=ledger.capture)
        outcome: Outcome
        try:
            async with asyncio.timeout(ledger.inquiry.state.timers.search):
                outcome = bounded(await self._service.search(call), query)
        except TimeoutError:
            outcome = SearchFailure("unavailable", "the search took too long")
        except ProxyError as error:
            outcome = SearchFailure(_CODES.get(error.kind, "unavailable"), cut(error.message, MAX_REASON))
        except Exception as error:
            unforeseen(ledger.inquiry.state.log, ledger.inquiry.id, error)
            outcome = SearchFailure("unavailable", "the search failed for an unknown reason")
        self._tell(outcome, round((time.monotonic() - started) * 1000))
        return outcome

    def _tell(self, outcome: Outcome, ms: int) -> None:
        word = outcome.code if isinstance(outcome, SearchFailure) else "ok"
        results, usage = (len(outcome.results), outcome.usage) if isinstance(outcome, Found) else (0, {})
        by = self._ledger.searches_by
        self._ledger.tell(Searched(by, word, results, *spent(usage), ms))
        if isinstance(outcome, SearchFailure):
            self._ledger.notice("warn", f"a web search by {by} failed: {word}")
