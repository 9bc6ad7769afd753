"""A request whose model cannot serve is served again from its body on, as if the client had named the next model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy.core.upstream_failures import kind_of_status
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.capture.contract import NULL_CAPTURE
from proxy.observe.lifecycle import FellBack
from proxy.providers.contract import NativeAnswer
from proxy.server.admission import PROVIDER, AdmissionTicket
from proxy.server.exchange import Exchange, has_left


async def served(
    exchange: Exchange, ticket: AdmissionTicket, work: Callable[[], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What `work` makes of the request, with the next model as long as there is one and nothing was sent. Raises
    ProxyError, the first model's."""
    chain = exchange.fallback
    while True:
        try:
            return await work()
        except ProxyError as error:
            gone = has_left(exchange.request) or exchange.response is not None
            before = chain.model
            if gone or not chain.goes_on(error):
                if chain.failures and exchange.response is None:
                    raise chain.told(error) from None
                raise
            _go_on(exchange, ticket, before, error)


def _go_on(exchange: Exchange, ticket: AdmissionTicket, before: str, error: ProxyError) -> None:
    chain, state = exchange.fallback, exchange.state
    words = f"{before} could not serve ({error.kind}); {chain.model} serves instead of it"
    exchange.log("warn", "fallback", before=before, instead=chain.model, reason=error.message)
    exchange.record(FellBack(before, chain.model, error.kind))
    state.monitor.notice("warn", words, provider=exchange.provider, session=exchange.session)
    exchange.capture.ended("failed", error.status, error.message)
    if exchange.cache is not None:
        exchange.cache.close()
    exchange.capture, exchange.cache = NULL_CAPTURE, None
    exchange.ignored = ()
    ticket.leave(PROVIDER)


def check_native(exchange: Exchange, answer: NativeAnswer, label: str) -> None:
    """Raises what a refusal means that would be passed on as it is, where another model may serve."""
    chain = exchange.fallback
    if answer.status < 400 or not chain.left:
        return
    kind = kind_of_status(answer.status)
    if kind in chain.kinds:
        message = f"{label} answered with status {answer.status}"
        raise UpstreamError(message, kind=kind, status=answer.status, provider=label)
