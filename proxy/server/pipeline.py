"""What all model routes share: one request from admission to its last byte, and the way from a model name to a
provider."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from proxy.config import Config
from proxy.core.bodies.decode import decode_body, decode_large_body
from proxy.core.cache_health.fingerprint import Fingerprint, of_messages
from proxy.core.content import PictureCheck
from proxy.core.effort import is_side
from proxy.core.identity import SESSION_HEADERS, Owner, agents_of
from proxy.core.ingress import Ingress
from proxy.core.invalid import cut
from proxy.core.messages import Event
from proxy.core.routing import Route, catalog_text, normalise_model, proposal, route, without_claude
from proxy.errors import BusyError, ProxyError, RequestError
from proxy.observe.capture.contract import CapturedRequest
from proxy.observe.lifecycle import Captured, ModelResolved, ProjectResolved, ProviderSelected, Sequenced
from proxy.observe.log.redact import shown_query
from proxy.observe.project import find_working_directory, project_name
from proxy.providers.contract import LARGE_BYTES, Call, Provider, Target
from proxy.server.accounts.serving import answered, served_by
from proxy.server.admission import AdmissionTicket
from proxy.server.allowances import explained
from proxy.server.body import read_body
from proxy.server.cache_watch import Asked, CacheCheck
from proxy.server.exchange import Exchange, as_proxy_error, error_response, is_loss, json_response, unforeseen
from proxy.server.fallback.onward import served
from proxy.server.families import COUNT
from proxy.server.guard import check_json
from proxy.server.renderers import RenderContext
from proxy.server.state import header_values
from proxy.server.stream import fold_stream, send_stream

#: header name in lower case -> all its values
HeaderValues = Mapping[str, list[str]]
T = TypeVar("T")
Batches = AsyncGenerator[list[Event], None]
Work = Callable[[Exchange, HeaderValues, AdmissionTicket], Awaitable[web.StreamResponse]]


async def run(request: web.Request, work: Work) -> web.StreamResponse:
    """Runs one model request; every failure becomes an answer in the caller's format."""
    exchange = Exchange(request)
    values = _own_sessions(exchange, header_values(request))
    session = first_value(values, exchange.family.session_headers)
    exchange.arrived(values, session)
    with exchange.state.running.one(), AdmissionTicket(exchange.state.admission) as ticket:
        exchange.leave = ticket.leave_all
        try:
            exchange.state.admission.enter(ticket, session)
            _enter(exchange, ticket)
            return await served(exchange, ticket, partial(work, exchange, values, ticket))
        except asyncio.CancelledError:
            stopped = exchange.state.running.stopped()
            if stopped is None:
                exchange.abandoned()
                raise
            return _failed(exchange, stopped)
        except Exception as error:
            return _failed(exchange, error)
        finally:
            exchange.close()


def _own_sessions(exchange: Exchange, values: HeaderValues) -> HeaderValues:
    """With the sessions of this caller, where callers have keys of their own."""
    if exchange.caller is None:
        return values
    names = {*SESSION_HEADERS, *exchange.family.session_headers}
    own = {
        name: [exchange.own_session(one.strip()) for one in found if one.strip()]
        for name, found in values.items()
        if name in names
    }
    return {**values, **own}


def _enter(exchange: Exchange, ticket: AdmissionTicket) -> None:
    """The limits of the caller. A count of tokens asks no service and is none of his requests. Raises BusyError."""
    caller = exchange.caller
    if caller is None or exchange.endpoint == COUNT:
        return
    if caller.limits.at_a_time is not None:
        ticket.take(f"caller {caller.name}", caller.limits.at_a_time, f"for the key {caller.name}")
    try:
        exchange.state.callers.meter.enter(caller)
    except BusyError:
        exchange.state.admission.refused["caller"] += 1
        raise


def _failed(exchange: Exchange, error: Exception) -> web.StreamResponse:
    """What is answered after an error; an answer that was begun is broken off. Raises what says that the client left
    before that."""
    response = exchange.response
    if is_loss(error, exchange.request):
        exchange.abandoned()
        if response is None:
            raise error
        return response
    known = as_proxy_error(error) or unforeseen(exchange.state, exchange.id, error)
    known = explained(exchange.state, known, exchange.account, exchange.model)
    known = _with_cure(exchange, known)
    if exchange.account and known.kind == "sign_in":
        exchange.state.accounts.refused(exchange.account_key)
    exchange.failed(known, in_band=response is not None)
    if response is None:
        told = exchange.family.final_word(known, exchange.request.headers.get("User-Agent", ""))
        answered = error_response(told, exchange.id, exchange.family)
        answered.headers.update(exchange.head)
        exchange.replied(answered)
        return answered
    exchange.break_off()
    return response


def _with_cure(exchange: Exchange, error: ProxyError) -> ProxyError:
    """Whoever asked for an alias chose no provider, and may have signed in to another one."""
    if error.kind != "sign_in" or not exchange.alias:
        return error
    cure = "Or set aliasProvider (PROXY_ALIAS_PROVIDER) to a provider that you are signed in to, and start again."
    return error.replaced(message=f"{error.message.rstrip('.')}. {cure}")


async def answer(
    exchange: Exchange,
    provider: Provider,
    call: Call,
    ingress: Ingress,
    *,
    through: Callable[[Batches], Batches] = lambda batches: batches,
) -> web.StreamResponse:
    """Asks the provider and sends what it answers, in the format of the client API, streamed or whole.

    through  what the answer goes through on its way
    """
    state = exchange.state
    created = int(state.clock())
    context = RenderContext(ingress, uuid.uuid4().hex, call.shown, created, state.timers.no_pings)
    if exchange.family.renderer is None:
        raise RuntimeError(f"{exchange.family.name} renders nothing")
    renderer = exchange.family.renderer(context)
    if ingress.stream:
        return await send_stream(exchange, through(answered(exchange, provider, call)), renderer)
    batches = through(answered(exchange, provider, replace(call, folded=True)))
    return await send_json(exchange, await fold_stream(exchange, batches, renderer))


async def read_json(exchange: Exchange, config: Config, ticket: AdmissionTicket) -> dict[str, Any]:
    """The JSON object of a request. Raises ProxyError and InvalidRequest."""
    chain = exchange.fallback
    if chain.failures and chain.body is not None:
        exchange.received = chain.received
        return dict(chain.body)
    check_json(exchange.request)
    body = await read_body(exchange.request, config, ticket, packed=exchange.state.packed)
    exchange.timings.admitted()
    exchange.size = len(body)
    if exchange.state.captures.on:
        exchange.received = bytes(body)
    large = len(body) > LARGE_BYTES
    decoded: dict[str, Any] = await asyncio.to_thread(decode_large_body, body) if large else decode_body(body)
    if config.fallback:
        chain.body, chain.received = dict(decoded), exchange.received
    return decoded


def with_true_pictures(exchange: Exchange, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The hub request without pictures that are something else than they say; the log tells of them."""
    pictures = PictureCheck()
    given = request.get("messages") or []
    messages = pictures.in_messages(given)
    if messages is given:
        return request
    exchange.log("warn", "pictures_changed", corrected=pictures.corrected, leftOut=pictures.left_out)
    return {**request, "messages": messages}


async def by_size(exchange: Exchange, work: Callable[[], T]) -> T:
    """What `work` makes of the body: of a large one in a thread, so that others go on meanwhile."""
    return await asyncio.to_thread(work) if exchange.size > LARGE_BYTES else work()


def first_value(values: HeaderValues, names: Sequence[str]) -> str | None:
    """The first value that is more than blanks, trimmed."""
    return next((text for name in names for value in values.get(name, ()) if (text := value.strip())), None)


async def send_json(exchange: Exchange, body: Mapping[str, Any]) -> web.Response:
    """Sends a whole body here and not after the handler, so that it is completed when it is sent."""
    response = json_response(body, headers=exchange.head)
    exchange.response = response
    exchange.replied(response)
    async with reading_client(exchange):
        await response.prepare(exchange.request)
        await response.write_eof()
    exchange.completed(response.status)
    return response


@asynccontextmanager
async def reading_client(exchange: Exchange) -> AsyncIterator[None]:
    """While inside, a client that takes nothing for long is given up."""
    try:
        async with asyncio.timeout(exchange.state.timers.stall):
            yield
    except TimeoutError:
        exchange.abandoned()
        exchange.break_off()
        raise ConnectionResetError("the client reads nothing") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to serve, without `[1m]`, and who serves it.

    asked        the name that the client used
    told         the name that answers carry, where it is another than the model
    auto_review  the safety classifier, sent to a model of our choice
    """

    model: str
    route: Route
    asked: str
    auto_review: bool = False
    told: str = ""


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
    state, named = exchange.state, asked
    known = state.catalogs.of(config)
    called = normalise_model(named)
    chain = exchange.fallback
    asked = chain.model if chain.failures else without_claude(called, known) if config.claude_names else called
    affinity = state.sessions.affinity(session)
    found = route(asked, known, alias_provider=config.alias_provider, affinity=affinity)
    other = None if chain.failures else instead(found)
    if other is not None:
        found = route(other, known, alias_provider=config.alias_provider)
        exchange.log("info", "auto-review route selected", requestedModel=asked, overrideModel=other)
    model = other or asked
    exchange.model = model
    if found is None:
        exchange.log("warn", "unknown model")
        exchange.record(ModelResolved(cut(model), cut(model)))
        near = proposal(cut(model), exchange.state.served, config.alias_provider)
        raise unknown_model(exchange, config, f'Unknown model "{cut(model)}". {near}'.rstrip())
    exchange.provider = found.label
    if found.label not in state.providers:
        raise unknown_model(
            exchange, config, f'Model "{cut(model)}" belongs to {found.label}, which is not available yet.'
        )
    exchange.alias = found.alias and other is None
    if not chain.failures:
        own = other is None and exchange.endpoint != COUNT  # whom we ask ourselves nobody stands in for
        chain.declare(called, model, dict(config.fallback) if own else {}, frozenset(config.fallback_on))
    return Choice(model, found, named, other is not None, told=called if asked != called and other is None else "")


#: A word for programs; with any, Claude Code asks less often again.
_UNKNOWN_MODEL = {"error_code": "model_not_found"}


def unknown_model(exchange: Exchange, config: Config, what: str) -> RequestError:
    known = catalog_text(exchange.state.served, config.alias_provider)
    return RequestError(f"{what} {known}", param="model", details=_UNKNOWN_MODEL)


def capped(
    exchange: Exchange,
    values: HeaderValues,
    choice: Choice,
    body: Mapping[str, Any],
    lower: Callable[[Mapping[str, Any], str], Mapping[str, Any]],
) -> Mapping[str, Any]:
    """The body of a side request under the cap of the settings; any other as it is.

    lower  makes it ask for no more than a cap
    """
    state = exchange.state
    config = state.config()
    if config.side_effort is None or choice.auto_review:
        return body
    own = next(catalog for catalog in state.catalogs.of(config) if catalog.label == choice.route.label)
    agent = agents_of(values)[0] is not None
    if not is_side(own.called(choice.model), own.small, own.main, agent=agent):
        return body
    result = lower(body, config.side_effort)
    if result is not body:
        exchange.log("info", "effort_replaced", sent=config.side_effort, reason="side request")
    return result


def provider_of(
    exchange: Exchange, choice: Choice, ticket: AdmissionTicket, session: str | None, *, stays: bool = False
) -> Provider:
    """The provider of a choice, made for the account that serves this session, when it has room for one more. Raises
    BusyError. `stays`: see `served_by`."""
    exchange.state.admission.select(ticket, choice.route.label)
    return served_by(exchange, choice.route.label, session, choice.model, stays=stays)


def selected(
    exchange: Exchange,
    choice: Choice,
    target: Target,
    session: str | None,
    *,
    converted: Mapping[str, Any] | None = None,
) -> None:
    """A request that is right and will be served: counts in its session, and tells whoever watches.

    converted  the hub request that the body became, where it is another
    """
    explicit = not (choice.route.alias or choice.auto_review)
    if not exchange.fallback.failures:  # the same request counts once, and aliases follow what the client named
        number = exchange.state.sessions.routed(session, choice.route.label, explicit=explicit)
        if number is not None:
            exchange.fallback.number = number
            exchange.record(Sequenced(number))
    exchange.record(ProviderSelected(exchange.account_key, choice.model, target.effort))
    exchange.record(ModelResolved(choice.model, target.model))
    if exchange.state.captures.on:
        _capture(exchange, choice, target, session, exchange.fallback.number, converted)


def compare(
    exchange: Exchange,
    owner: Owner | None,
    provider: Provider,
    call: Call,
    *,
    summary: bool = False,
    fingerprint: Callable[[Mapping[str, Any]], Fingerprint] = of_messages,
) -> None:
    """Has a call compared with the one before it of its owner, as an upstream's cache would."""
    asked = Asked(owner, provider, call.target, call.request, exchange.size, summary, fingerprint)
    exchange.cache = CacheCheck(exchange.state.cache, asked, exchange.state.clock)


def _capture(
    exchange: Exchange,
    choice: Choice,
    target: Target,
    session: str | None,
    number: int,
    converted: Mapping[str, Any] | None,
) -> None:
    request = exchange.request
    body, exchange.received = exchange.received, b""
    exchange.capture = exchange.state.captures.begin(
        CapturedRequest(
            request_id=exchange.id,
            kind=exchange.endpoint,
            provider=choice.route.label,
            requested=choice.asked,
            model=target.model,
            effort=target.effort,
            session=session,
            number=number,
            method=request.method,
            path=request.path,
            query=shown_query(request.query_string),
            headers=request.headers,
            body=body,
            converted=converted,
            earlier=len(exchange.fallback.failures),
        )
    )
    if exchange.capture.place:
        exchange.record(Captured(exchange.capture.place))


async def find_project(exchange: Exchange, body: Mapping[str, Any]) -> None:
    """Only when somebody watches: it looks at the file system."""
    if not exchange.state.monitor.wants_project:
        return
    path = await by_size(exchange, partial(find_working_directory, body))
    name = await asyncio.to_thread(project_name, path) if path else None
    if name:
        exchange.record(ProjectResolved(name))
