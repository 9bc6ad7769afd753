"""Describes pictures for a model that takes none, before it is asked: the model of the setting `vision` is shown each
picture once, and nothing else of the request. What cannot be described keeps the note of the provider.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.core.media.descriptions import EXPECTED, Described, Picture, blind_spots, description_in, in_place, question
from proxy.core.messages import Fold
from proxy.core.routing import normalise_model, route
from proxy.core.sizes import LARGE_BYTES
from proxy.errors import ProxyError
from proxy.observe.lifecycle import PicturesDescribed
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Provider, Target
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.candidates import Candidate
from proxy.server.request.ledger import Ledger
from proxy.server.request.picture_memory import PictureKey
from proxy.server.request.replies import unforeseen
from proxy.server.serving.stream import watched

#: Maximum number of pictures of one request that are described at the same time, and in all, the newest.
AT_A_TIME = 3
MAX_ASKED = 40
#: Longest answer that is read, in characters: thoughts count.
MAX_ANSWER = 1024 * 1024

#: Outcomes that are no kind of an error.
OK, REFUSED, TIMEOUT, BLIND = "ok", "refused", "timeout", "takes_no_pictures"
#: Reasons that concern every picture: after one of them no other picture is asked about.
_FOR_ALL = frozenset(
    {"sign_in", "billing", "permission", "not_found", "rate_limit", "usage_limit", "busy", BLIND, TIMEOUT}
)
#: Reasons that may be gone with the next request, and cost no question to find out.
_UNKEPT = frozenset({"sign_in", "busy", BLIND})


@dataclass(frozen=True, slots=True)
class Describer:
    """The model that describes, and its account as tables and logs show it."""

    key: str
    provider: Provider
    model: str


async def with_descriptions(
    ledger: Ledger, candidate: Candidate, target: Target, request: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The request with descriptions in place of pictures that the model is not sent, as far as they can be had. A count
    asks no service: it takes what is known, and the usual length for the rest."""
    describer = _describer(ledger, candidate)
    if describer is None:
        return request
    messages, large = request["messages"], ledger.size > LARGE_BYTES
    look = partial(blind_spots, messages, results_only=target.blind == "results")
    found = await in_thread_if(large, look)
    if not found:
        return request
    answers = PictureQuestions(ledger, describer)
    if not ledger.inquiry.counts:
        await answers.ask(found.values())
    known = {spot: answers.known(picture) for spot, picture in found.items()}
    if ledger.inquiry.counts:
        known = {spot: EXPECTED if text is None else text for spot, text in known.items()}
    described = {spot: text for spot, text in known.items() if text}
    if not described:
        return request
    ledger.describer = describer.key
    return {**request, "messages": await in_thread_if(large, partial(_in_words, messages, described, describer.model))}


def _in_words(messages: list[Any], described: Mapping[int, str], model: str) -> list[Any]:
    return Described({spot: in_place(text, model) for spot, text in described.items()}).in_messages(messages)


def _describer(ledger: Ledger, candidate: Candidate) -> Describer | None:
    """The model of the settings, through the account that serves this caller; None if there is none."""
    ledger.describer = ""
    state, config = ledger.inquiry.state, ledger.inquiry.state.config()
    model = normalise_model(config.vision_model or "")
    found = route(model, state.catalogs.of(config), alias_provider=config.alias_provider) if model else None
    if found is None or found.label not in state.providers:
        return None
    if found.label == candidate.label:
        return Describer(candidate.key, candidate.provider, model)
    caller, session = ledger.inquiry.caller_name, ledger.session
    one = state.accounts.choose(found.label, config, session=session, caller=caller, model=model)[0]
    return Describer(one.key if one.name else found.label, one.provider, model)


class PictureQuestions:
    """Asks for the descriptions of one request's pictures."""

    def __init__(self, ledger: Ledger, describer: Describer) -> None:
        self._ledger = ledger
        self._describer = describer
        self._state = ledger.inquiry.state
        self._memory = ledger.inquiry.state.pictures
        self._outcomes: Counter[str] = Counter()
        self._ended = ""  # the reason for which no more pictures are asked about
        self._tokens = 0, 0
        self._asked = 0

    def known(self, picture: Picture) -> str | None:
        """See `PictureMemory.of`."""
        return self._memory.of(self._key(picture))

    def _key(self, picture: Picture) -> PictureKey:
        return self._ledger.inquiry.caller_name, self._describer.model, picture.digest

    async def ask(self, pictures: Iterable[Picture]) -> None:
        """Asks about the pictures that are not known, each once, the newest first. Ends with the client."""
        fresh = {picture.digest: picture for picture in pictures if self.known(picture) is None}
        newest = list(reversed(fresh.values()))[:MAX_ASKED]
        if not newest:
            return
        started, loop = time.monotonic(), asyncio.get_running_loop()
        left, ends = iter(newest), loop.time() + self._state.timers.vision
        async with watched(self._ledger):
            tasks = [loop.create_task(self._work(left, ends)) for _ in newest[:AT_A_TIME]]
            try:
                await asyncio.wait(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                self._tell(round((time.monotonic() - started) * 1000))

    def _tell(self, ms: int) -> None:
        """Reports the outcomes and what they cost to log and monitors; never what a picture shows."""
        outcomes, describer = dict(self._outcomes), self._describer
        self._ledger.tell(PicturesDescribed(describer.key, describer.model, outcomes, *self._tokens, ms))
        tokens = {"inputTokens": self._tokens[0], "outputTokens": self._tokens[1]}
        level = "info" if outcomes.keys() <= {OK} else "warn"
        said = {"by": describer.key, "describer": describer.model, "outcomes": outcomes}
        self._ledger.note(level, "pictures_described", **said, ms=ms, **tokens)

    async def _work(self, pictures: Iterator[Picture], ends: float) -> None:
        """Asks about one picture after another, until none is left or a reason concerns them all."""
        for picture in pictures:
            ended = self._ended
            outcome = ended or await self._one(picture, ends)
            self._outcomes[outcome] += 1
            # pictures that had no time are asked about next time, unless the model answers nothing at all
            hasty = ended == TIMEOUT and self._outcomes[OK]
            if outcome != OK and outcome not in _UNKEPT and not hasty:
                self._memory.keep(self._key(picture), "")
            if outcome in _FOR_ALL:
                self._ended = self._ended or outcome

    async def _one(self, picture: Picture, ends: float) -> str:
        """Asks about a picture. Returns OK, or the reason why it has no description."""
        try:
            async with asyncio.timeout_at(ends):
                text = await self._description(picture)
        except TimeoutError:
            return TIMEOUT
        except asyncio.CancelledError:
            self._outcomes["cancelled"] += 1
            raise
        except ProxyError as error:
            return error.kind  # without its text, since an upstream may quote its request
        except Exception as error:
            unforeseen(self._state.log, self._ledger.inquiry.id, error)
            return "internal"
        if not text:
            return REFUSED if text == "" else BLIND
        self._memory.keep(self._key(picture), text)
        return OK

    async def _description(self, picture: Picture) -> str | None:
        """The description, "" for a refusal, None if the model takes no pictures itself. Raises ProxyError."""
        provider, model = self._describer.provider, self._describer.model
        request = {"model": model, **question(picture)}
        target = provider.resolve(model, request, auto_review=True)
        if target.blind == "anywhere":
            return None
        if not provider.signed_in():
            raise ProxyError("the model that describes pictures is not signed in", kind="sign_in")
        self._asked += 1
        call_id = f"{self._ledger.inquiry.id}-vision-{self._asked}"
        call = Call(request, model, target, call_id, folded=True, size=len(picture.data))
        fold = Fold(MAX_ANSWER)
        with AdmissionTicket(self._state.admission) as place:
            self._state.admission.select(place, provider.label)
            place.hold(len(picture.data))
            async with aclosing(provider.stream(call)) as batches:
                async for batch in batches:
                    fold.add(batch)
        self._spend(fold.message.get("usage") or {})
        return description_in(fold.message)

    def _spend(self, usage: Mapping[str, Any]) -> None:
        counted = [usage.get(f"{kind}input_tokens") or 0 for kind in ("", "cache_read_", "cache_creation_")]
        known = self._tokens
        self._tokens = known[0] + sum(counted), known[1] + (usage.get("output_tokens") or 0)
