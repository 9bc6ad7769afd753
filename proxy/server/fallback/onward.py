"""A request whose model cannot serve is served again from its body on, as if the client had named the next model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy.errors import ProxyError
from proxy.observe.capture.contract import NULL_CAPTURE
from proxy.observe.lifecycle import FellBack
from proxy.server.admission import PROVIDER, AdmissionTicket
from proxy.server.allowances import explained
from proxy.server.exchange import Exchange, as_proxy_error, has_left, is_loss, unforeseen
from proxy.server.fallback.chain import AskedFirst


async def served(
    exchange: Exchange, ticket: AdmissionTicket, work: Callable[[], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What `work` makes of the request, with the next model as long as there is one and nothing was sent. Raises
    ProxyError, the first model's."""
    while True:
        try:
            return await work()
        except Exception as error:
            raised = _ended_with(exchange, ticket, error)
            try:
                if raised is not None:
                    raise raised from None
            finally:
                del raised  # its traceback holds this frame, and with it the body, until the garbage is collected


def _ended_with(exchange: Exchange, ticket: AdmissionTicket, error: Exception) -> Exception | None:
    """What is raised after an error, None when the next model serves; then everything is ready for it."""
    if exchange.response is not None or is_loss(error, exchange.request):
        return error
    known = _known(exchange, error)
    if known is None:
        return error
    chain, before = exchange.fallback, exchange.fallback.model
    if has_left(exchange.request) or not chain.goes_on(known):
        return _told(exchange, known) if chain.failures else known
    _go_on(exchange, ticket, before, known)
    known.with_traceback(None)  # it is kept, and the frames of the first attempt are not
    return None


def _known(exchange: Exchange, error: Exception) -> ProxyError | None:
    """What a failure of one model means, None where it concerns no other: a request that the second model cannot take
    is no fault of the caller, who asked for the first."""
    known = as_proxy_error(error)
    if known is not None or not (exchange.fallback.left or exchange.fallback.failures):
        return known
    return unforeseen(exchange.state, exchange.id, error)


def _told(exchange: Exchange, error: ProxyError) -> ProxyError:
    """The first model's error, told as of whom it is: provider, account and alias are its own again."""
    chain = exchange.fallback
    _refused(exchange, error)
    told = chain.told(explained(exchange.state, error, exchange.account, exchange.model))
    first = chain.first
    exchange.provider, exchange.model, exchange.account, exchange.alias = (
        first.provider,
        first.model,
        first.account,
        first.alias,
    )
    return told


def _refused(exchange: Exchange, error: ProxyError) -> None:
    """An account whose sign-in was refused is passed over for a while, whoever serves in place of it."""
    if exchange.account and error.kind == "sign_in":
        exchange.state.accounts.refused(exchange.account_key)


def _go_on(exchange: Exchange, ticket: AdmissionTicket, before: str, error: ProxyError) -> None:
    chain, state = exchange.fallback, exchange.state
    # What this notes of the window, accounts are chosen by from now on.
    known = explained(state, error, exchange.account, before)
    _refused(exchange, error)
    if len(chain.failures) == 1:
        chain.first = AskedFirst(exchange.provider, exchange.model, exchange.account, exchange.alias)
    else:
        chain.failures[-1] = before, known
    words = f"{before} could not serve ({error.kind}); {chain.model} serves instead of it"
    exchange.log("warn", "fallback", before=before, instead=chain.model, reason=known.message)
    exchange.record(FellBack(before, chain.model, error.kind))
    state.monitor.notice("warn", words, provider=exchange.provider, session=exchange.session)
    exchange.capture.ended("failed", error.status, error.message)
    if exchange.cache is not None:
        exchange.cache.close()
    exchange.capture, exchange.cache = NULL_CAPTURE, None
    exchange.timings.began_anew()
    exchange.ignored = ()
    ticket.leave(PROVIDER)
