"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.auto_mode.policy import FIELD as SAFEGUARDS
from proxy.core.convert.messages_to_responses import not_strict
from proxy.core.effort import capped_request, is_compaction, unknown_effort
from proxy.core.identity import Owner, owner_of, session_in_metadata, session_of, session_of_opening
from proxy.core.ingress import Ingress
from proxy.core.messages import check_request
from proxy.core.routing import Route, is_auto_review, normalise_model
from proxy.core.search.hosted import hosted_searches
from proxy.core.tools.hosted import dated, refusal, without_missing
from proxy.errors import RequestError
from proxy.later import Later
from proxy.observe.lifecycle import CompactionStarted, SessionFound
from proxy.off_loop import imported
from proxy.providers.contract import Target
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.cache_watch import ComparedRequest, owner_by
from proxy.server.request.candidates import Candidate, Candidates
from proxy.server.request.ledger import Ledger
from proxy.server.serving.prepare import (
    call_for,
    capped,
    choose,
    find_project,
    read_json,
    unknown_model,
    with_true_pictures,
)
from proxy.server.serving.searching import lent_search, search_with, searching
from proxy.server.serving.serve import Answer, Prepare, run, serve
from proxy.server.serving.stream import answer_to, send_json
from proxy.server.serving.vision import with_descriptions

#: Clients in auto mode need it: 0.6 MB, and 30 ms to import.
_JUDGING = Later("proxy.server.serving.judge:judging")


async def post_messages(request: web.Request) -> web.StreamResponse:
    """A model's answer, streamed if the body has `"stream": true`."""
    return await run(request, _answer)


async def post_count_tokens(request: web.Request) -> web.StreamResponse:
    """`{"input_tokens": n}`, estimated here: no upstream call, no sign-in."""
    return await run(request, _count)


async def _answer(ledger: Ledger, ticket: AdmissionTicket) -> web.StreamResponse:
    return await serve(ledger, ticket, *await _asked(ledger, ticket))


async def _asked(ledger: Ledger, ticket: AdmissionTicket) -> tuple[Candidates, Prepare]:
    """The candidates, and the function that makes the call for each. Only `Prepare` holds the body."""
    body, session, compared = await _read(ledger, ticket)
    safeguards = body.pop(SAFEGUARDS, None)  # only for the judge of auto mode: no upstream gets them
    review = partial(_review_model, ledger, body)
    opening = partial(session_of_opening, body.get("messages"))
    candidates = choose(
        ledger, ticket, body["model"], session=session, conversation=session, opening=opening, instead=review
    )
    if not body.get("messages"):
        raise RequestError("messages: at least one message is required", param="messages")
    summary = is_compaction(body)

    async def prepare(candidate: Candidate) -> Answer:
        asked = capped(ledger, candidate, body, capped_request)
        target = candidate.provider.resolve(candidate.model, asked, auto_review=candidate.auto_review)
        searcher = lent_search(ledger, candidate) if hosted_searches(asked.get("tools")) else None
        search = None if searcher is None else await search_with(ledger, searcher, asked)
        served = asked if search is None else search.plan.request
        request = with_true_pictures(ledger, _without_missing(ledger, candidate, served, target))
        if target.blind and ledger.pictures:
            request = await with_descriptions(ledger, candidate, target, request)
        ledger.selected(candidate, target, session, converted=None if request is body else request)
        if summary:
            ledger.tell(CompactionStarted())
        _note_effort(ledger, asked, target)
        owner = None if candidate.auto_review else owner_of(ledger.inquiry.values)
        # headers that name a session, but no valid owner, forbid that anything is kept
        keeps = owner is not None or session_of(ledger.inquiry.values) is None
        call = call_for(ledger, candidate, request, target, session, owner=owner, keeps=keeps)
        whose = None if candidate.auto_review else owner or compared
        ledger.compares(ComparedRequest(whose, candidate.provider, target, request, ledger.size, summary))
        asks = None if search is None else searching(ledger, search)
        if safeguards is not None:
            asks = (await imported(_JUDGING))(ledger, call, safeguards, asks)
        ingress = Ingress(dict(request), stream=bool(request.get("stream")))
        return answer_to(ledger, call, ingress, candidates, asks)

    return candidates, prepare


async def _count(ledger: Ledger, ticket: AdmissionTicket) -> web.StreamResponse:
    """Counts tokens: only the first candidate does, and nothing is compared or kept."""
    body, session, _ = await _read(ledger, ticket)
    body.pop(SAFEGUARDS, None)
    opening = partial(session_of_opening, body.get("messages"))
    found = choose(ledger, ticket, body["model"], session=session, conversation=session, opening=opening)
    candidate = found.choose_accounts()
    ledger.serves(candidate)
    target = candidate.provider.resolve(candidate.model, body, auto_review=False)
    request = with_true_pictures(ledger, _without_missing(ledger, candidate, body, target))
    if target.blind and ledger.pictures:
        request = await with_descriptions(ledger, candidate, target, request)
    ledger.selected(candidate, target, session, converted=None if request is body else request)
    _note_effort(ledger, body, target)
    call = call_for(ledger, candidate, request, target, session)
    return await send_json(ledger, {"input_tokens": await candidate.provider.count_tokens(call)})


async def _read(ledger: Ledger, ticket: AdmissionTicket) -> tuple[dict[str, Any], str | None, Owner | None]:
    """The body, which has a model; the session; and its owner if only the body names the session: invalid identity
    headers name no owner. Raises ProxyError and InvalidRequest."""
    body = await read_json(ledger, ticket)
    check_request(body)
    body = dated(body)
    session, owner = session_of(ledger.inquiry.values), None
    if session is None:
        session = session_in_metadata(body.get("metadata"))
        if session is not None:
            session = ledger.inquiry.own_session(session)
            owner = owner_by(session)
            ledger.tell(SessionFound(session))
    await find_project(ledger, body)
    if body.get("model") is None:
        raise unknown_model(ledger, 'Missing "model" in request body.')
    return body, session, owner


def _without_missing(
    ledger: Ledger, candidate: Candidate, body: Mapping[str, Any], target: Target
) -> Mapping[str, Any]:
    """The request without what only another service can run, which is named to the caller. Raises RequestError if it
    makes no sense without; a count ignores that."""
    provider, model = candidate.provider, candidate.model
    kept, missing = without_missing(body, provider.hosted_tools(model))
    if not ledger.inquiry.counts:
        wrong = refusal(kept, missing, candidate.label, uploads_noted=target.uploads_noted)
        if wrong is not None:
            path, words = wrong
            raise RequestError(f"`{path}`: {words}", provider=candidate.label, param=path)
    promised = not_strict(body) if body.get("tools") and "strict" in provider.ingress(model).honours else ()
    if missing or promised:
        ledger.ignores([*(one.path for one in missing), *promised])
    return kept


def _note_effort(ledger: Ledger, body: Mapping[str, Any], target: Target) -> None:
    """Logs an unknown word for the effort, which is no error, with the effort that was sent."""
    word = unknown_effort(body)
    if word not in (None, target.effort):
        ledger.note("info", "effort_replaced", asked=word, sent=target.effort or "unset")


def _review_model(ledger: Ledger, body: Mapping[str, Any], found: Route | None) -> str | None:
    """The model that gets a request of Claude Code's safety classifier; None if the request is not one, or is not
    moved."""
    if not is_auto_review(body):
        return None
    state = ledger.inquiry.state
    config = state.config()
    if config.auto_review_model:
        return normalise_model(config.auto_review_model)
    known = state.catalogs.of(config)
    return next(
        (catalog.reviewer or None for catalog in known if found is not None and catalog.label == found.label), None
    )
