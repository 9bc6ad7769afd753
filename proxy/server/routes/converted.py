"""What the routes share whose body is not the hub's: it is converted to a hub request, and the hub's answer is rendered
back, whoever serves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.core.effort import capped_openai_body
from proxy.core.ingress import Ingress
from proxy.errors import RequestError
from proxy.providers.contract import Call, Provider, Target
from proxy.server.accounts.serving import carries_state
from proxy.server.admission import AdmissionTicket
from proxy.server.cache_watch import owner_by
from proxy.server.exchange import Exchange
from proxy.server.pipeline import (
    Choice,
    HeaderValues,
    answer,
    capped,
    choose,
    compare,
    find_project,
    first_value,
    provider_of,
    read_json,
    selected,
    with_true_pictures,
)


@dataclass(frozen=True, slots=True)
class RoutedBody:
    """A body whose model is known to somebody. `lenient`: what cannot be honoured of it is left out."""

    body: dict[str, Any]
    session: str | None
    choice: Choice
    provider: Provider
    lenient: bool


async def read_routed(exchange: Exchange, values: HeaderValues, ticket: AdmissionTicket) -> RoutedBody:
    """The body, and who serves its model. Raises ProxyError and InvalidRequest."""
    config = exchange.state.config()
    body = await read_json(exchange, config, ticket)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError("`model` must be a non-empty string", param="model")
    session = first_value(values, exchange.family.session_headers)
    choice = choose(exchange, config, model, session)
    hint = body.get("prompt_cache_key")
    conversation = session or (hint if isinstance(hint, str) else None)
    provider = provider_of(exchange, choice, ticket, conversation, stays=carries_state(body))
    body = {**capped(exchange, values, choice, body, capped_openai_body), "model": choice.model}
    if exchange.caller is not None and isinstance(body.get("prompt_cache_key"), str):
        body["prompt_cache_key"] = exchange.own_session(body["prompt_cache_key"])
    return RoutedBody(body, session, choice, provider, config.openai_mode == "lenient")


async def answer_converted(exchange: Exchange, asked: RoutedBody, ingress: Ingress) -> web.StreamResponse:
    """The answer to a body that was converted."""
    exchange.ignore(ingress.ignored)
    request = with_true_pictures(exchange, ingress.request)
    target = asked.provider.resolve(asked.choice.model, request, auto_review=False)
    await find_project(exchange, request)
    call = call_for(exchange, asked, request, target)
    compare(exchange, owner_by(call.cache_key), asked.provider, call)
    return await answer(exchange, asked.provider, call, ingress)


def call_for(exchange: Exchange, asked: RoutedBody, request: Mapping[str, Any], target: Target) -> Call:
    """A request that is right and will be served. It leaves no conversation state behind."""
    converted = None if request is asked.body else request
    selected(exchange, asked.choice, target, asked.session, converted=converted)
    hint = asked.body.get("prompt_cache_key")
    return Call(
        request=request,
        model=asked.choice.model,
        target=target,
        request_id=exchange.id,
        session=asked.session,
        cache_hint=hint if isinstance(hint, str) and hint else None,
        converted=True,
        recorder=exchange.state.monitor,
        capture=exchange.capture,
        timings=exchange.timings,
        size=exchange.size,
        own_id=exchange.own_session,
        told=asked.choice.told,
    )
