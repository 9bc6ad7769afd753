"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, cast

from aiohttp import web

from proxy.config import Config
from proxy.core.auto_mode.policy import FIELD as SAFEGUARDS
from proxy.core.compaction import is_compaction
from proxy.core.convert.messages_to_responses import not_strict
from proxy.core.effort import capped_request, unknown_effort
from proxy.core.identity import Owner, owner_of, session_of
from proxy.core.ingress import Ingress
from proxy.core.messages import check_request
from proxy.core.routing import Route, is_auto_review, normalise_model
from proxy.core.tools.hosted import dated, refusal, without_missing
from proxy.errors import RequestError
from proxy.observe.lifecycle import CompactionStarted, SessionFound
from proxy.providers.contract import Call, Provider, Remembering, Target
from proxy.server.accounts.serving import now_serving
from proxy.server.admission import AdmissionTicket
from proxy.server.auto_mode import judged_by
from proxy.server.cache_watch import owner_by
from proxy.server.exchange import Exchange
from proxy.server.families import COUNT
from proxy.server.pipeline import (
    HeaderValues,
    answer,
    capped,
    choose,
    compare,
    find_project,
    provider_of,
    read_json,
    run,
    selected,
    send_json,
    unknown_model,
    with_true_pictures,
)
from proxy.server.state import AppState


async def post_messages(request: web.Request) -> web.StreamResponse:
    """A model's answer, streamed when the body says `"stream": true`."""
    return await run(request, _answer)


async def post_count_tokens(request: web.Request) -> web.StreamResponse:
    """`{"input_tokens": n}`, estimated here: no upstream call, no sign-in."""
    return await run(request, _count)


async def _answer(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    call, provider = await _prepare(exchange, values, ticket)
    ingress = Ingress(dict(call.request), stream=bool(call.request.get("stream")))
    try:
        return await answer(exchange, provider, call, ingress, through=judged_by(exchange, call, provider))
    finally:
        if exchange.response is not None:  # else nobody has answered, or another model still may
            _tell_others(exchange.state, call, now_serving(exchange, provider))


async def _count(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> web.StreamResponse:
    call, provider = await _prepare(exchange, values, ticket)
    return await send_json(exchange, {"input_tokens": await provider.count_tokens(call)})


async def _prepare(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> tuple[Call, Provider]:
    """From a body to a call."""
    state = exchange.state
    config = state.config()
    body = await read_json(exchange, config, ticket)
    check_request(body)
    body = dated(body)
    exchange.safeguards = body.pop(SAFEGUARDS, None)  # for the judge of auto mode alone: no upstream gets them
    session = _session(exchange, values, body)
    await find_project(exchange, body)
    if body.get("model") is None:
        raise unknown_model(exchange, config, 'Missing "model" in request body.')
    review = partial(_review_model, exchange, config, body)
    choice = choose(exchange, config, body["model"], session, instead=review)
    if exchange.endpoint != COUNT and not body.get("messages"):
        raise RequestError("messages: at least one message is required", param="messages")
    provider = provider_of(exchange, choice, ticket, session)
    asked = body if exchange.endpoint == COUNT else capped(exchange, values, choice, body, capped_request)
    target = provider.resolve(choice.model, asked, auto_review=choice.auto_review)
    request = with_true_pictures(exchange, _without_missing(exchange, asked, provider, choice.model, target))
    selected(exchange, choice, target, session, converted=None if request is body else request)
    _note_effort(exchange, asked, target)
    summary = _note_summary(exchange, body)
    stateless = choice.auto_review or exchange.endpoint == COUNT
    call = Call(
        request=request,
        model=choice.model,
        target=target,
        request_id=exchange.id,
        session=session,
        owner=None if stateless else owner_of(values),
        auto_review=choice.auto_review,
        recorder=state.monitor,
        capture=exchange.capture,
        timings=exchange.timings,
        size=exchange.size,
        own_id=exchange.own_session,
        told=choice.told,
    )
    compare(exchange, None if stateless else _compared_with(values, session), provider, call, summary=summary)
    return call, provider


def _compared_with(values: HeaderValues, session: str | None) -> Owner | None:
    """Whose requests this one is compared with: a session may also stand in the body alone. Identity headers that are
    not acceptable are no owner's."""
    return owner_of(values) or (owner_by(session) if session_of(values, {}) is None else None)


def _session(exchange: Exchange, values: HeaderValues, body: Mapping[str, Any]) -> str | None:
    """The session, told when only the body names it."""
    session = session_of(values, body)
    if session is not None and session_of(values, {}) is None:
        session = exchange.own_session(session)
        exchange.record(SessionFound(session))
    return session


def _without_missing(
    exchange: Exchange, body: Mapping[str, Any], provider: Provider, model: str, target: Target
) -> Mapping[str, Any]:
    """The request without what only a service can run that is not this one; the caller is told. Raises RequestError
    when it makes no sense without; a count is an estimate of whatever is left."""
    kept, missing = without_missing(body, provider.hosted_tools(model))
    wrong = (
        None
        if exchange.endpoint == COUNT
        else refusal(kept, missing, provider.label, uploads_noted=target.uploads_noted)
    )
    if wrong is not None:
        path, words = wrong
        raise RequestError(f"`{path}`: {words}", provider=provider.label, param=path)
    promised = "strict" in provider.ingress(model).honours
    exchange.ignore([*(one.path for one in missing), *(not_strict(body) if promised else ())])
    return kept


def _note_summary(exchange: Exchange, body: Mapping[str, Any]) -> bool:
    """Whether a summary of the conversation is asked for."""
    asked = exchange.endpoint != COUNT and is_compaction(body)
    if asked:
        exchange.record(CompactionStarted())
    return asked


def _note_effort(exchange: Exchange, body: Mapping[str, Any], target: Target) -> None:
    """A word for the effort that nobody knows is no error; the log says what became of it."""
    word = unknown_effort(body)
    if word not in (None, target.effort):
        exchange.log("info", "effort_replaced", asked=word, sent=target.effort or "unset")


def _tell_others(state: AppState, call: Call, provider: Provider) -> None:
    """Whoever served this conversation before learns that it does not any more."""
    if call.owner is None:
        return
    for other in state.accounts.everyone():
        if other is not provider and _remembers(type(other)):
            cast(Remembering, other).served_elsewhere(call.owner, call.request, call.request_id)


@cache
def _remembers(kind: type[Provider]) -> bool:
    """Found out once: looking through a protocol takes long."""
    return issubclass(kind, Remembering)


def _review_model(exchange: Exchange, config: Config, body: Mapping[str, Any], found: Route | None) -> str | None:
    """Where Claude Code's safety classifier is sent instead, None when the request is not one or stays where it is."""
    if exchange.endpoint == COUNT or not is_auto_review(body):
        return None
    if config.auto_review_model:
        return normalise_model(config.auto_review_model)
    known = exchange.state.catalogs.of(config)
    return next(
        (catalog.reviewer or None for catalog in known if found is not None and catalog.label == found.label), None
    )
