"""Describes pictures for a model that takes none, before it is asked: the model of the setting `vision` is shown each
picture once, and nothing else of the request. What cannot be described keeps the note of the provider.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from proxy.core.media.descriptions import EXPECTED, Described, Picture, blind_spots, description_in, in_place, question
from proxy.core.messages import Fold
from proxy.core.routing import normalise_model, route
from proxy.core.sizes import LARGE_BYTES
from proxy.core.tokens.usage import spent
from proxy.observe.lifecycle import PicturesDescribed
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Provider, Target
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.candidates import Candidate
from proxy.server.request.ledger import Ledger
from proxy.server.request.picture_memory import Descriptions, PictureKey
from proxy.server.request.replies import as_proxy_error, unforeseen
from proxy.server.serving.watch import watched

#: Maximum number of pictures of one request that are described at the same time, and in all, the newest.
AT_A_TIME = 3
MAX_ASKED = 40
#: Longest answer that is read, in characters: thoughts count.
MAX_ANSWER = 1024 * 1024
#: Maximum number of pictures whose descriptions are compared with those of the next request.
MAX_COMPARED = 256

#: Outcomes that are no kind of an error.
OK, REFUSED, TIMEOUT, BLIND, TOO_LONG = "ok", "refused", "timeout", "takes_no_pictures", "too_long"
#: What a question may come to apart from an outcome: a sibling has the last place and goes on with the picture; another
#: request has asked about it.
_GIVEN_BACK, _SHARED = "given_back", "shared"
#: Reasons that concern one picture. Any other concerns the account: for a while it is not asked about any.
_OF_PICTURE = frozenset({REFUSED, TOO_LONG, "invalid_request", "too_large", "internal"})
#: Reasons that may be gone with the next request, and cost no question to find out.
_UNKEPT = frozenset({"sign_in", "busy", BLIND})


@dataclass(frozen=True, slots=True)
class Describer:
    """An account of the model that describes; `key` is its name in tables and logs."""

    key: str
    provider: Provider


async def with_descriptions(
    ledger: Ledger, candidate: Candidate, target: Target, request: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The request with descriptions in place of pictures that the model is not sent, as far as they can be had. A count
    asks no service: it takes what is known, and the usual length for the rest."""
    model, describers = _describers(ledger, candidate)
    if not describers:
        return request
    messages, large = request["messages"], ledger.size > LARGE_BYTES
    look = partial(blind_spots, messages, results_only=target.blind == "results")
    found = await in_thread_if(large, look)
    if not found:
        return request
    noted = ledger.described = ledger.described or Descriptions()
    questions = PictureQuestions(ledger, noted, model, describers)
    counts = ledger.inquiry.counts
    if not counts:
        await questions.ask(found.values())
    known = {spot: questions.known(picture) for spot, picture in found.items()}
    if counts:
        known = {spot: EXPECTED if text is None else text for spot, text in known.items()}
    noted.said = _compared(found, known)
    described = {spot: text for spot, text in known.items() if text}
    if not described:
        return request
    if not counts:
        noted.by = questions.by
    return {**request, "messages": await in_thread_if(large, partial(_in_words, messages, described, model))}


def _compared(found: Mapping[int, Picture], known: Mapping[int, str | None]) -> array[int]:
    spots = islice(found, MAX_COMPARED)
    return array("q", [hash(one) for spot in spots for one in (found[spot].digest, known[spot] or "")])


def _in_words(messages: list[Any], described: Mapping[int, str], model: str) -> list[Any]:
    return Described({spot: in_place(text, model) for spot, text in described.items()}).in_messages(messages)


def _describers(ledger: Ledger, candidate: Candidate) -> tuple[str, list[Describer]]:
    """The model of the settings, and its accounts for this caller, in order; none if there is no such model."""
    state, config = ledger.inquiry.state, ledger.inquiry.state.config()
    model = normalise_model(config.vision_model or "")
    found = route(model, state.catalogs.of(config), alias_provider=config.alias_provider) if model else None
    if found is None or found.label not in state.providers:
        return model, []
    caller, session = ledger.inquiry.caller_name, ledger.session
    chosen = state.accounts.choose(found.label, config, session=session, caller=caller, model=model, noted=False)
    accounts = [Describer(one.key, one.provider) for one in chosen]
    return model, sorted(accounts, key=lambda one: one.provider is not candidate.provider)


class PictureQuestions:
    """Asks for the descriptions of one request's pictures.

    by  the account that was asked last, or would be asked first
    """

    def __init__(self, ledger: Ledger, noted: Descriptions, model: str, describers: Sequence[Describer]) -> None:
        self.by = describers[0].key
        self._ledger = ledger
        self._noted = noted
        self._model = model
        self._describers = describers
        self._state = ledger.inquiry.state
        self._memory = ledger.inquiry.state.pictures
        self._outcomes: Counter[str] = Counter()
        self._left: list[Picture] = []
        self._until = 0.0
        self._tokens = 0, 0
        self._asked = 0
        self._active = 0
        self._idle = ledger.label  # whose place this request has and does not use yet

    def known(self, picture: Picture) -> str | None:
        """The description; "" if there lately was a reason for none, None if it is unknown."""
        text = self._memory.of(self._key(picture.digest))
        if text is not None:
            return text
        failed = self._memory.failure(self._key(picture.digest)) or self._account()[1]
        return None if failed in ("", *_UNKEPT) else ""

    def _key(self, what: str) -> PictureKey:
        """The key of a picture, or of an account for its failures."""
        return self._ledger.inquiry.caller_name, self._model, what

    def _account(self) -> tuple[Describer | None, str]:
        """The account to ask; None with the reason if there is none."""
        reason = ""
        for one in self._describers:
            reason = self._unfit(one)
            if not reason:
                return one, ""
            if not self._is_spent(one, reason):
                break
        return None, reason

    def _unfit(self, one: Describer) -> str:
        if one.provider.resolve(self._model, {}, auto_review=True).blind == "anywhere":
            return BLIND
        return self._memory.failure(self._key(one.key)) or ("" if one.provider.signed_in() else "sign_in")

    def _is_spent(self, one: Describer, reason: str) -> bool:
        """Whether another account may do what this one does not."""
        spent = reason == "rate_limit" and self._state.accounts.is_spent(one.key, self._model)
        return spent or reason in ("usage_limit", "sign_in")

    async def ask(self, pictures: Iterable[Picture]) -> None:
        """Asks about the pictures that are not known, each once, the newest first. Ends with the client."""
        fresh = {picture.digest: picture for picture in pictures if self.known(picture) is None}
        self._left = list(fresh.values())[-MAX_ASKED:]
        if not self._left:
            return
        loop, noted = asyncio.get_running_loop(), self._noted
        began = loop.time()
        if noted.until is None:
            noted.until = began + self._state.timers.vision
        self._until = noted.until
        async with watched(self._ledger):
            tasks = [loop.create_task(self._work()) for _ in self._left[:AT_A_TIME]]
            try:
                await asyncio.wait(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                noted.waited = loop.time() - began
                self._tell(round(noted.waited * 1000))

    def _tell(self, ms: int) -> None:
        """Reports the outcomes and what they cost to log and monitors; never what a picture shows."""
        if self._outcomes:  # else another request asked about all of them
            self._ledger.tell(PicturesDescribed(self.by, self._model, dict(self._outcomes), *self._tokens, ms))

    async def _work(self) -> None:
        """Asks about one picture after another, until none is left, or others have all places."""
        while self._left:
            picture = self._left.pop()
            outcome = await self._one(picture)
            if outcome == _GIVEN_BACK:
                self._left.append(picture)
                return
            if outcome != _SHARED:
                self._outcomes[outcome] += 1

    async def _one(self, picture: Picture) -> str:
        """Asks about a picture, unless another request does: then that one's answer counts."""
        lock = self._memory.lock(self._key(picture.digest))
        if asyncio.get_running_loop().time() >= self._until:
            return TIMEOUT
        try:
            async with asyncio.timeout_at(self._until):
                await lock.acquire()
        except TimeoutError:
            return TIMEOUT
        try:
            known = self._memory.of(self._key(picture.digest))
            return await self._outcome(picture) if known is None else _SHARED
        finally:
            lock.release()

    async def _outcome(self, picture: Picture) -> str:
        """OK, or the reason why a picture has no description. A spent account is followed by the next one."""
        while True:
            failed = self._memory.failure(self._key(picture.digest))
            account, reason = self._account()
            if failed or account is None:
                return failed or reason
            outcome = await self._answer(account, picture)
            # one of many that takes all the time is the picture's fault
            if outcome in _OF_PICTURE or (outcome == TIMEOUT and self._outcomes[OK]):
                self._memory.fail(self._key(picture.digest), outcome)
            elif outcome not in (OK, _GIVEN_BACK, "busy"):
                self._memory.fail(self._key(account.key), outcome)
            if not self._is_spent(account, outcome):
                return outcome

    async def _answer(self, account: Describer, picture: Picture) -> str:
        """Asks an account about a picture. Returns OK, or what came instead."""
        try:
            with AdmissionTicket(self._state.admission) as place:
                return await self._in_place(place, account, picture)
        except TimeoutError:
            return TIMEOUT
        except OverflowError:
            return TOO_LONG
        except asyncio.CancelledError:
            self._outcomes["cancelled"] += 1
            raise
        except Exception as error:  # only its kind is shown, since an upstream may quote its request
            known = as_proxy_error(error) or unforeseen(self._state.log, self._ledger.inquiry.id, error)
            if known.kind == "sign_in":
                self._state.accounts.refused(account.key)
            return known.kind

    async def _in_place(self, place: AdmissionTicket, account: Describer, picture: Picture) -> str:
        """Asks in a place of the provider: the request's own one if that is the same, since it is idle until then."""
        label, admission = account.provider.label, self._state.admission
        own = self._idle == label
        if not admission.fits("" if own else label, picture.size):
            return _GIVEN_BACK if self._active else "busy"
        place.hold(picture.size)
        if own:
            self._idle = None
        else:
            admission.select(place, label)
        self._active += 1
        try:
            async with asyncio.timeout_at(self._until):
                text = await self._description(account, picture)
        finally:
            self._active -= 1
            if own:
                self._idle = label
        if text:
            self._memory.keep(self._key(picture.digest), text)
        return OK if text else REFUSED

    async def _description(self, account: Describer, picture: Picture) -> str:
        """The description, "" for a refusal. Raises ProxyError, and OverflowError for an answer that is too long."""
        self.by = account.key
        large = picture.size > LARGE_BYTES
        request = {"model": self._model, **await in_thread_if(large, partial(question, picture))}
        target = account.provider.resolve(self._model, request, auto_review=True)
        self._asked += 1
        call_id = f"{self._ledger.inquiry.id}-vision-{self._asked}"
        call = Call(request, self._model, target, call_id, folded=True, size=picture.size)
        fold = Fold(MAX_ANSWER)
        try:
            async with aclosing(account.provider.stream(call)) as batches:
                async for batch in batches:
                    fold.add(batch)
        finally:  # what fails costs as well
            self._spend(fold.message.get("usage") or {})
        return description_in(fold.message)

    def _spend(self, usage: Mapping[str, Any]) -> None:
        sent, came = spent(usage)
        self._tokens = self._tokens[0] + sent, self._tokens[1] + came
