"""What all model routes share: one request from admission to its last byte, and the way from a model name to a
provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.config import Config
from proxy.core.invalid import cut
from proxy.core.routing import Route, catalog_text, normalise_model, route
from proxy.errors import RequestError
from proxy.observe.lifecycle import ModelResolved, ProjectResolved, ProviderSelected, Sequenced, Started
from proxy.observe.project import find_working_directory, project_name
from proxy.providers.contract import Provider, Target
from proxy.server.admission import Permit
from proxy.server.exchange import Exchange, as_proxy_error, error_response, json_response, unforeseen
from proxy.server.state import header_values
from proxy.server.stream import STALL_S

#: header name in lower case -> all its values
HeaderValues = Mapping[str, list[str]]
Work = Callable[[Exchange, HeaderValues, Permit], Awaitable[web.StreamResponse]]


async def serve(exchange: Exchange, session_headers: Sequence[str], work: Work) -> web.StreamResponse:
    """Runs one request; every failure becomes an answer in the caller's format.

    session_headers  names that may carry the session, in order of preference
    """
    values = header_values(exchange.request)
    session = first_value(values, session_headers)
    exchange.record(Started(exchange.endpoint, session))
    asked = {"method": exchange.request.method, "path": exchange.request.path}
    if exchange.request.query_string:
        asked["query"] = exchange.request.query_string
    exchange.log("info", "request", **asked)
    with exchange.state.running.one(), Permit(exchange.state.admission) as permit:
        try:
            exchange.state.admission.enter(permit, session)
            return await work(exchange, values, permit)
        except asyncio.CancelledError:
            exchange.abandoned()
            raise
        except Exception as error:
            if isinstance(error, ConnectionError) and exchange.left:
                exchange.abandoned()
                if exchange.response is None:
                    raise
                return exchange.response
            known = as_proxy_error(error) or unforeseen(exchange.state, exchange.id, error)
            exchange.failed(known, in_band=exchange.response is not None)
            if exchange.response is not None:
                exchange.break_off()
                return exchange.response
            return error_response(known, exchange.id, exchange.family)


def first_value(values: HeaderValues, names: Sequence[str]) -> str | None:
    """The first value that is more than blanks, trimmed."""
    return next((text for name in names for value in values.get(name, ()) if (text := value.strip())), None)


async def send_json(exchange: Exchange, body: Mapping[str, Any]) -> web.Response:
    """Sends a whole body here and not after the handler, so that it is completed when it is sent."""
    response = json_response(body, headers=exchange.id_headers)
    exchange.response = response
    async with reading_client(exchange):
        await response.prepare(exchange.request)
        await response.write_eof()
    exchange.completed(response.status)
    return response


@asynccontextmanager
async def reading_client(exchange: Exchange) -> AsyncIterator[None]:
    """While inside, a client that takes nothing for STALL_S is given up."""
    try:
        async with asyncio.timeout(STALL_S):
            yield
    except TimeoutError:
        exchange.abandoned()
        exchange.break_off()
        raise ConnectionResetError("the client reads nothing") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to serve, without `[1m]`, and who serves it.

    auto_review  the safety classifier, sent to a model of our choice
    """

    model: str
    route: Route
    auto_review: bool = False


def choose(
    exchange: Exchange,
    config: Config,
    asked: str,
    session: str | None,
    *,
    instead: Callable[[Route | None], str | None] = lambda _found: None,
) -> Choice:
    """Routes a requested name. Raises RequestError with the catalogue.

    instead  given the route of the requested name, another model to serve, or None
    """
    state = exchange.state
    asked = normalise_model(asked)
    affinity = state.sessions.affinity(session)
    found = route(asked, state.known, alias_provider=config.alias_provider, affinity=affinity)
    other = instead(found)
    if other is not None:
        found = route(other, state.known, alias_provider=config.alias_provider)
        exchange.log("info", "auto-review route selected", requestedModel=asked, overrideModel=other)
    model = other or asked
    exchange.model = model
    if found is None:
        exchange.log("warn", "unknown model")
        raise unknown_model(exchange, config, f'Unknown model "{cut(model)}".')
    exchange.provider = found.label
    if found.label not in state.providers:
        raise unknown_model(exchange, config, f'Model "{model}" belongs to {found.label}, which is not available yet.')
    return Choice(model, found, other is not None)


def unknown_model(exchange: Exchange, config: Config, what: str) -> RequestError:
    return RequestError(f"{what} {catalog_text(exchange.state.served, config.alias_provider)}", param="model")


def provider_of(exchange: Exchange, choice: Choice, permit: Permit) -> Provider:
    """The provider of a choice, when it has room for one more. Raises BusyError."""
    provider = exchange.state.providers[choice.route.label]
    exchange.state.admission.select(permit, provider.label)
    return provider


def selected(exchange: Exchange, choice: Choice, target: Target, session: str | None) -> None:
    """A request that is right and will be served: counts in its session, and tells whoever watches."""
    explicit = not (choice.route.alias or choice.auto_review)
    number = exchange.state.sessions.routed(session, choice.route.label, explicit=explicit)
    if number is not None:
        exchange.record(Sequenced(number))
    exchange.record(ProviderSelected(choice.route.label, choice.model, target.effort))
    exchange.record(ModelResolved(choice.model, target.model))


async def find_project(exchange: Exchange, body: Mapping[str, Any]) -> None:
    """Only when somebody watches: it looks at the file system."""
    if not exchange.state.recorder.wants_project:
        return
    path = find_working_directory(body)
    name = await asyncio.to_thread(project_name, path) if path else None
    if name:
        exchange.record(ProjectResolved(name))
