"""Judges the tool calls of an answer while it streams, for Claude Code's auto mode.

A client in auto mode sends `safeguards` and runs no checked call before the last `message_delta` of the answer has
`safeguard_results`. So only that event is held. One request asks the reviewer model about all calls, in this process,
through its provider; it leaves no state, and ends with the request that it belongs to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from proxy.core.auto_mode.policy import FIELD, Policy, policy_of
from proxy.core.auto_mode.question import CallCollector, question
from proxy.core.auto_mode.rules import decide
from proxy.core.auto_mode.verdicts import ERROR, ToolUse, Verdict, outcomes, results, reviewed
from proxy.core.content import texts_of
from proxy.core.messages import Event, Fold
from proxy.core.routing import normalise_model, route
from proxy.core.tokens.usage import spent
from proxy.errors import ProxyError, RequestError
from proxy.observe.lifecycle import Judged
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Provider, kept
from proxy.providers.upstream.event_reader import Batches
from proxy.server.request.ledger import Ledger
from proxy.server.request.replies import unforeseen
from proxy.server.serving.stream import Asks

#: Longest answer of a reviewer, in characters. Explanations of hundreds of calls are shorter.
MAX_ANSWER = 1024 * 1024
#: Most characters of calls and policy that are checked without a thread.
MAX_INLINE = 4_000

#: kind of a failure of the reviewer -> the verdict on its calls; any other is an error.
_REASONS = {"context": "input_too_long", "too_large": "input_too_long", "upstream_timeout": "timeout"}


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The model that judges, and its provider."""

    provider: Provider
    model: str


def judging(ledger: Ledger, call: Call, safeguards: Any, asks: Asks | None = None) -> Asks | None:
    """How an answer is asked for whose tool calls are judged; `asks` if the client does not want that. It raises
    RequestError if the client must judge itself: it then asks again at once, without `safeguards`.

    safeguards  the user's policy from a client in auto mode
    asks        how the answer is asked for without a judge, None for the provider's own stream
    """
    policy = policy_of(safeguards)
    if policy is None or ledger.inquiry.state.config().auto_mode == "off":
        return asks
    asked = replace(call, request=kept(call.request))

    def judged(provider: Provider, call: Call) -> Batches:
        judge = Judge(ledger, asked, policy, _willing(ledger, provider))
        return judge.wrap(provider.stream(call) if asks is None else asks(provider, call))

    return judged


def _willing(ledger: Ledger, provider: Provider) -> Reviewer:
    """The reviewer that judges by the settings. Raises RequestError if the client must judge."""
    config, reviewer = ledger.inquiry.state.config(), _reviewer(ledger, provider)
    if config.auto_mode == "client" or reviewer is None:
        raise _client_judges()
    if config.auto_mode is None and not reviewer.provider.signed_in():
        raise _client_judges()
    return reviewer


def _client_judges() -> RequestError:
    return RequestError(
        f"{FIELD}: tool calls are not judged here, so the client must judge them itself. The setting autoMode"
        " (PROXY_AUTO_MODE) changes that.",
        param=FIELD,
    )


def _reviewer(ledger: Ledger, provider: Provider) -> Reviewer | None:
    """The model of the settings; else the small one of the provider that answers, or of the aliases' provider. If it is
    of the provider that answers, it is asked through the same account."""
    state, config = ledger.inquiry.state, ledger.inquiry.state.config()
    if config.auto_review_model:
        model = normalise_model(config.auto_review_model)
        found = route(model, state.catalogs.of(config), alias_provider=config.alias_provider)
        if found is None or found.label not in state.providers:
            return None
        own = found.label == provider.label
        return Reviewer(provider if own else state.accounts.best(found.label, config), model)
    aliases = config.alias_provider
    for one in (provider, state.accounts.best(aliases, config) if aliases in state.providers else None):
        small = state.catalogs.labelled(one.label, config).small if one is not None else ""
        if one is not None and small:
            return Reviewer(one, small)
    return None


class Judge:
    """Judges one answer. `wrap` adds the verdicts to its stream."""

    def __init__(self, ledger: Ledger, call: Call, policy: Policy, reviewer: Reviewer) -> None:
        self._ledger = ledger
        self._call = call
        self._policy = policy
        self._reviewer = reviewer
        self._timers = ledger.inquiry.state.timers
        self._calls = CallCollector()
        self._asked: list[ToolUse] = []
        self._review: asyncio.Task[dict[str, Verdict]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tokens = (0, 0)

    async def wrap(self, batches: Batches) -> Batches:
        """Passes everything on as it comes, except the end of the answer, which waits for the verdicts."""
        try:
            async with aclosing(batches):
                async for batch in batches:
                    place = next((place for place, event in enumerate(batch) if _is_end(event)), len(batch))
                    before, rest = batch[:place], batch[place:]
                    if before:
                        self._see(before)
                        yield before
                    if rest:
                        verdicts = results(await self._verdicts())
                        delta = {**rest[0]["delta"], "safeguard_results": verdicts}
                        yield [{**rest[0], "delta": delta}, *rest[1:]]
        finally:
            await self._drop()

    def _see(self, events: list[Event]) -> None:
        """Collects calls, and begins the review once calls are complete and nothing more comes for a while."""
        self._calls.see(events)
        self._stop_timer()
        if len(self._calls.whole) > len(self._asked):
            self._timer = asyncio.get_running_loop().call_later(self._timers.judge_quiet, self._begin)

    def _begin(self) -> asyncio.Task[dict[str, Verdict]]:
        """Asks about the calls so far; cancels an earlier question about some of them."""
        if self._review is not None:
            self._review.cancel()
        self._asked = list(self._calls.whole)
        self._review = asyncio.create_task(self._judge(self._asked))
        return self._review

    async def _verdicts(self) -> dict[str, Verdict]:
        """The verdicts on all calls of the answer."""
        calls = self._calls.finished()
        self._stop_timer()
        if not calls:
            return {}
        review = self._review
        if review is None or len(calls) > len(self._asked):
            review = self._begin()
        return await review

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _drop(self) -> None:
        """Cancels a running review, and so its request to the upstream."""
        self._stop_timer()
        if self._review is not None and not self._review.done():
            self._review.cancel()
            await asyncio.wait({self._review})

    async def _judge(self, calls: Sequence[ToolUse]) -> dict[str, Verdict]:
        started = time.monotonic()
        try:
            verdicts, left = await self._by_rules(calls)
        except Exception as error:
            unforeseen(self._ledger.inquiry.state.log, self._ledger.inquiry.id, error)
            verdicts, left = {call.id: ERROR for call in calls}, []
        if left:
            verdicts |= await self._reviewed(left)
        ordered = {call.id: verdicts[call.id] for call in calls}
        self._tell(ordered, self._reviewer.model if left else "", round((time.monotonic() - started) * 1000))
        return ordered

    async def _by_rules(self, calls: Sequence[ToolUse]) -> tuple[dict[str, Verdict], list[ToolUse]]:
        size = sum(call.size for call in calls) + self._policy.size
        return await in_thread_if(size > MAX_INLINE, partial(decide, calls, self._policy))

    async def _reviewed(self, calls: Sequence[ToolUse]) -> dict[str, Verdict]:
        """The reviewer's verdicts; if it fails, the reason as the verdict on each call."""
        try:
            async with asyncio.timeout(self._timers.judge):
                reply = await self._ask(calls)
        except TimeoutError:
            reason = "timeout"
        except ProxyError as error:
            reason = _REASONS.get(error.kind, "error")
            # without the error's text, since an upstream may quote its request
            self._ledger.note("warn", "auto_mode_judge_failed", reviewer=self._reviewer.model, error=error.kind)
        except Exception as error:
            unforeseen(self._ledger.inquiry.state.log, self._ledger.inquiry.id, error)
            reason = "error"
        else:
            if reply.get("stop_reason") != "refusal":
                return reviewed("".join(texts_of(reply.get("content"))), calls)
            reason = "refused"
        return {call.id: Verdict(reason) for call in calls}

    async def _ask(self, calls: Sequence[ToolUse]) -> Mapping[str, Any]:
        """The whole answer of the reviewer. Raises ProxyError."""
        provider, model, owner = self._reviewer.provider, self._reviewer.model, self._call.owner
        subagent = owner is not None and owner.agent is not None
        request = {"model": model, **question(calls, self._policy, self._call.request, subagent=subagent)}
        target = provider.resolve(model, request, auto_review=True)
        asked = Call(request, model, target, f"{self._ledger.inquiry.id}-judge", auto_review=True, folded=True)
        fold = Fold(MAX_ANSWER)
        async with aclosing(provider.stream(asked)) as batches:
            async for batch in batches:
                fold.add(batch)
        self._tokens = spent(fold.message.get("usage") or {})
        return fold.message

    def _tell(self, verdicts: Mapping[str, Verdict], model: str, ms: int) -> None:
        """Reports the outcomes and what they cost to log and monitors; never the calls themselves."""
        self._ledger.tell(Judged(model, outcomes(verdicts), *self._tokens, ms))


def _is_end(event: Event) -> bool:
    """Whether an event has the stop reason; other events of its type may come before it."""
    return event["type"] == "message_delta" and event["delta"].get("stop_reason") is not None
