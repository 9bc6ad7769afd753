"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.config import Config
from proxy.core.compaction import is_compaction
from proxy.core.identity import SESSION_HEADERS, owner_of, session_of
from proxy.core.lifecycle import CompactionStarted, ModelResolved, ProjectResolved, ProviderSelected, Sequenced, Started
from proxy.core.messages import check_request
from proxy.core.routing import (
    AUTO_REVIEW_MODEL,
    AUTO_REVIEW_PROVIDER,
    Route,
    catalog_text,
    is_auto_review,
    normalise_model,
    route,
)
from proxy.errors import RequestError
from proxy.observe.project import find_working_directory, project_name
from proxy.providers.base import Call, Provider, Remembering
from proxy.server.admission import Permit
from proxy.server.body import read_json
from proxy.server.exchange import Exchange, as_proxy_error, error_response, json_response, unforeseen
from proxy.server.state import State, header_values
from proxy.server.stream import fold_stream, send_stream

Work = Callable[[Exchange, Call, Provider], Awaitable[web.StreamResponse]]


async def post_messages(request: web.Request) -> web.StreamResponse:
    """A model's answer, streamed when the body says `"stream": true`."""
    return await _serve(Exchange(request, "messages"), _answer)


async def post_count_tokens(request: web.Request) -> web.StreamResponse:
    """`{"input_tokens": n}`, estimated here: no upstream call, no sign-in."""
    return await _serve(Exchange(request, "count_tokens"), _count)


async def _serve(exchange: Exchange, work: Work) -> web.StreamResponse:
    """Runs one request from admission to its last byte; every failure becomes an answer in the caller's format."""
    values = header_values(exchange.request)
    session = next((value for name in SESSION_HEADERS for value in values.get(name, ()) if value), None)
    exchange.record(Started(exchange.endpoint, session))
    asked = {"method": exchange.request.method, "path": exchange.request.path}
    if exchange.request.query_string:
        asked["query"] = exchange.request.query_string
    exchange.log("info", "request", **asked)
    with exchange.state.running.one(), Permit(exchange.state.admission) as permit:
        try:
            exchange.state.admission.enter(permit, session)
            call, provider = await _prepare(exchange, values, permit)
            return await work(exchange, call, provider)
        except asyncio.CancelledError:
            exchange.abandoned()
            raise
        except Exception as error:
            if isinstance(error, ConnectionError) and exchange.left:
                exchange.abandoned()
                raise
            known = as_proxy_error(error) or unforeseen(exchange.state, exchange.id, error)
            exchange.failed(known)
            return error_response(known, exchange.id)


async def _answer(exchange: Exchange, call: Call, provider: Provider) -> web.StreamResponse:
    if call.request.get("stream"):
        grace_s = exchange.state.config().stream_grace_ms / 1000
        return await send_stream(exchange, provider.stream(call), grace_s)
    return await _send_json(exchange, await fold_stream(exchange, provider.stream(call)))


async def _count(exchange: Exchange, call: Call, provider: Provider) -> web.StreamResponse:
    return await _send_json(exchange, {"input_tokens": await provider.count_tokens(call)})


async def _send_json(exchange: Exchange, body: Mapping[str, Any]) -> web.Response:
    """Sends a whole body here and not after the handler, so that it is completed when it is sent."""
    response = json_response(body, headers={"request-id": exchange.id})
    await response.prepare(exchange.request)
    await response.write_eof()
    exchange.completed(response.status)
    return response


# -- from a body to a call


async def _prepare(exchange: Exchange, values: Mapping[str, list[str]], permit: Permit) -> tuple[Call, Provider]:
    state = exchange.state
    config = state.config()
    body = await read_json(exchange.request, config, permit, packed=state.packed)
    check_request(body)
    session = session_of(values, body)
    await _find_project(exchange, body)
    choice = _choose(exchange, config, body, session)
    if exchange.endpoint == "messages" and not body.get("messages"):
        raise RequestError("messages: at least one message is required", param="messages")
    provider = state.providers[choice.route.label]
    state.admission.select(permit, provider.label)
    target = provider.resolve(choice.model, body, auto_review=choice.auto_review)
    explicit = not (choice.route.alias or choice.auto_review)
    number = state.sessions.routed(session, provider.label, explicit=explicit)
    if number is not None:
        exchange.record(Sequenced(number))
    exchange.record(ProviderSelected(provider.label, choice.model, target.effort))
    exchange.record(ModelResolved(choice.model, target.model))
    if exchange.endpoint == "messages" and is_compaction(body):
        exchange.record(CompactionStarted())
    stateless = choice.auto_review or exchange.endpoint == "count_tokens"
    call = Call(
        request=body,
        model=choice.model,
        target=target,
        request_id=exchange.id,
        session=session,
        owner=None if stateless else owner_of(values),
        auto_review=choice.auto_review,
        recorder=state.recorder,
    )
    _tell_others(state, call, provider)
    return call, provider


def _tell_others(state: State, call: Call, provider: Provider) -> None:
    """Whoever served this conversation before learns that it does not any more."""
    if call.owner is None:
        return
    for other in state.providers.values():
        if other is not provider and isinstance(other, Remembering):
            other.served_elsewhere(call.owner, call.request, call.request_id)


@dataclass(frozen=True, slots=True)
class _Choice:
    model: str
    route: Route
    auto_review: bool = False


def _choose(exchange: Exchange, config: Config, body: Mapping[str, Any], session: str | None) -> _Choice:
    """The model to serve and who serves it. Raises RequestError with the catalogue."""
    state = exchange.state
    if body.get("model") is None:
        raise _unknown(exchange, config, 'Missing "model" in request body.')
    asked = normalise_model(body["model"])
    affinity = state.sessions.affinity(session)
    found = route(asked, state.known, alias_provider=config.alias_provider, affinity=affinity)
    review = _review_model(exchange, config, body, found)
    if review is not None:
        found = route(review, state.known, alias_provider=config.alias_provider)
        exchange.log("info", "auto-review route selected", requestedModel=asked, overrideModel=review)
    model = review or asked
    exchange.model = model
    if found is None:
        exchange.log("warn", "unknown model")
        raise _unknown(exchange, config, f'Unknown model "{model}".')
    exchange.provider = found.label
    if found.label not in state.providers:
        raise _unknown(exchange, config, f'Model "{model}" belongs to {found.label}, which is not available yet.')
    return _Choice(model, found, review is not None)


def _review_model(exchange: Exchange, config: Config, body: Mapping[str, Any], found: Route | None) -> str | None:
    """Where Claude Code's safety classifier is sent instead, None when the request is not one or stays where it is."""
    if exchange.endpoint != "messages" or not is_auto_review(body):
        return None
    if config.auto_review_model:
        return normalise_model(config.auto_review_model)
    return AUTO_REVIEW_MODEL if found is not None and found.label == AUTO_REVIEW_PROVIDER else None


def _unknown(exchange: Exchange, config: Config, what: str) -> RequestError:
    return RequestError(f"{what} {catalog_text(exchange.state.served, config.alias_provider)}", param="model")


async def _find_project(exchange: Exchange, body: Mapping[str, Any]) -> None:
    """Only when somebody watches: it looks at the file system."""
    if not exchange.state.recorder.wants_project:
        return
    path = find_working_directory(body)
    name = await asyncio.to_thread(project_name, path) if path else None
    if name:
        exchange.record(ProjectResolved(name))
