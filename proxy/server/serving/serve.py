"""The life of one model request, and the one loop over its candidates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Protocol, cast

from aiohttp import web

from proxy.core.visible import Visible
from proxy.errors import BusyError, ProxyError
from proxy.providers.contract import Call, Provider, Remembering
from proxy.server.request.admission import PROVIDER, AdmissionTicket
from proxy.server.request.candidates import Candidate, Candidates
from proxy.server.request.inquiry import Inquiry
from proxy.server.request.ledger import Ledger
from proxy.server.request.replies import as_proxy_error, error_response, has_left, is_loss, unforeseen
from proxy.server.serving.allowances import explained

Work = Callable[[Ledger, AdmissionTicket], Awaitable[web.StreamResponse]]


class Answer(Protocol):
    """The answer to one model's call, from any of its accounts.

    call     the call, for any account of the model
    visible  what the client has seen of the answer
    """

    call: Call

    @property
    def visible(self) -> Visible: ...

    async def of(self, candidates: Candidates) -> web.StreamResponse:
        """Asks the current candidate, and sends its answer. Raises ProxyError. Called again for the next account."""
        ...

    async def fail(self, error: ProxyError) -> web.StreamResponse:
        """Ends an answer that has begun. Raises the error if its format cannot report it."""
        ...


#: Makes the call for a candidate, and its answer. Raises ProxyError and InvalidRequest.
Prepare = Callable[[Candidate], Awaitable[Answer]]


async def run(request: web.Request, work: Work) -> web.StreamResponse:
    """Runs one model request; every failure becomes an answer in the caller's format."""
    inquiry = Inquiry.of(request)
    state = inquiry.state
    with state.running.one(), AdmissionTicket(state.admission) as ticket:
        ledger = Ledger(inquiry, leave=ticket.leave_all)
        ledger.arrived()
        try:
            state.admission.enter(ticket, inquiry.session)
            _enter(inquiry, ticket)
            return await work(ledger, ticket)
        except asyncio.CancelledError:
            stopped = state.running.stopped()
            if stopped is None:
                ledger.abandoned()
                raise
            return _failed(ledger, stopped)
        except Exception as error:
            return _failed(ledger, error)
        finally:
            ledger.close()


def _enter(inquiry: Inquiry, ticket: AdmissionTicket) -> None:
    """Applies the caller's limits, except to a count of tokens, which asks no service. Raises BusyError."""
    caller, state = inquiry.caller, inquiry.state
    if caller is None or inquiry.counts:
        return
    if caller.limits.at_a_time is not None:
        ticket.take(f"caller {caller.name}", caller.limits.at_a_time, f"for the key {caller.name}")
    try:
        state.callers.meter.enter(caller)
    except BusyError:
        state.admission.refused["caller"] += 1
        raise


async def serve(
    ledger: Ledger, ticket: AdmissionTicket, candidates: Candidates, prepare: Prepare
) -> web.StreamResponse:
    """The answer of the first candidate that has one. Answers of two candidates are never mixed: another account
    continues only after framing at most, another model only if nothing was sent. Raises the ProxyError of the first
    model."""
    answer: Answer | None = None
    lists = ledger.inquiry.state.catalogs.lists
    try:
        while True:
            try:
                if answer is None:
                    ledger.serves(candidates.choose_accounts())
                    lists.look(candidates.current.key, candidates.current.provider)
                    answer = await prepare(candidates.current)
                    if not candidates.others:
                        prepare = _no_other  # the real one holds the body
                        ledger.forget_body()
                return await answer.of(candidates)
            except Exception as error:
                answer, final = _after(ledger, ticket, candidates, answer, error)
                try:
                    if isinstance(final, ProxyError) and answer is not None and ledger.response is not None:
                        return await answer.fail(final)
                    if final is not None:
                        raise final from None
                finally:
                    del final  # its traceback holds this frame, and so the body, until garbage is collected
    finally:
        if answer is not None and ledger.response is not None:
            _tell_others(ledger, answer.call, candidates.current.provider)


async def _no_other(candidate: Candidate) -> Answer:
    raise RuntimeError(f"{candidate.key} was not declared")


def _after(
    ledger: Ledger, ticket: AdmissionTicket, candidates: Candidates, answer: Answer | None, error: Exception
) -> tuple[Answer | None, Exception | None]:
    """The continuation after an error: the answer that another account continues, None if another model answers; and
    the error that ends the request, None if another candidate follows."""
    request = ledger.inquiry.request
    if is_loss(error, request):
        return answer, error
    if isinstance(error, ProxyError) and error.kind == "stopping":  # not a failure of a candidate
        return answer, error
    known = as_proxy_error(error)
    if known is None:  # that a second model cannot take the request is no fault of the caller, who asked for the first
        if ledger.response is None and not (candidates.others or candidates.failures):
            return answer, error
        known = unforeseen(ledger.inquiry.state.log, ledger.inquiry.id, error)
    visible = Visible.NOTHING if answer is None else answer.visible
    if not has_left(request):
        if answer is not None and candidates.account_follows(known, visible):
            _next_account(ledger, candidates, answer.call, known)
            return answer, None
        if candidates.model_follows(known, visible):
            _next_model(ledger, ticket, candidates, known)
            known.with_traceback(None)  # the error is kept, but not the frames of the first attempt
            return None, None
    return answer, _final(ledger, candidates, known) if ledger.response is None else known


def _next_account(ledger: Ledger, candidates: Candidates, call: Call, error: ProxyError) -> None:
    """Moves to another account; reports that to log, monitors and the provider that served before."""
    state, old = ledger.inquiry.state, candidates.current
    known = explained(state, error.replaced(provider=old.label), old.account, old.model)
    new = candidates.next_account()
    state.accounts.moved(new.label, new.account, ledger.session, ledger.inquiry.caller_name)
    if isinstance(old.provider, Remembering):
        old.provider.served_elsewhere(call)
    ledger.account_moves(old, new, call.target.effort, known.message)


def _next_model(ledger: Ledger, ticket: AdmissionTicket, candidates: Candidates, error: ProxyError) -> None:
    """Moves to another model. Notes the refusing window first, since that affects the choice of accounts."""
    model = candidates.model
    known = explained(ledger.inquiry.state, error, ledger.account, model)
    note_refusal(ledger, error)
    instead = candidates.next_model(known if candidates.failures else error)
    ledger.falls_back(model, instead, candidates.stands_in, error, known.message)
    ticket.leave(PROVIDER)


def _final(ledger: Ledger, candidates: Candidates, error: ProxyError) -> ProxyError:
    """The error when every candidate failed: the first model's, under the name of the first model."""
    if not candidates.failures:
        return error
    note_refusal(ledger, error)
    final = candidates.final_error(explained(ledger.inquiry.state, error, ledger.account, candidates.model))
    ledger.blames_first()
    return final


def note_refusal(ledger: Ledger, error: ProxyError) -> None:
    """Notes a refused sign-in, so that the account is passed over for a while."""
    if ledger.serving is not None and ledger.serving.account and error.kind == "sign_in":
        ledger.inquiry.state.accounts.refused(ledger.serving.key)


def _failed(ledger: Ledger, error: Exception) -> web.StreamResponse:
    """The answer after an error; breaks off one that has begun. Raises the error if it means that the client left
    before the answer began."""
    inquiry, response = ledger.inquiry, ledger.response
    if is_loss(error, inquiry.request):
        ledger.abandoned()
        if response is None:
            raise error
        return response
    known = as_proxy_error(error) or unforeseen(inquiry.state.log, inquiry.id, error)
    known = explained(inquiry.state, known, ledger.account, ledger.model)
    known = _with_cure(ledger, known)
    note_refusal(ledger, known)
    ledger.failed(known, in_band=response is not None)
    if response is None:
        shown = inquiry.family.final_word(known, inquiry.request.headers.get("User-Agent", ""))
        answered = error_response(shown, inquiry.id, inquiry.family)
        answered.headers.update(ledger.head)
        ledger.replied(answered)
        return answered
    ledger.break_off()
    return response


def _with_cure(ledger: Ledger, error: ProxyError) -> ProxyError:
    """The error with a cure for a caller who asked for an alias, and may be signed in to another provider."""
    if error.kind != "sign_in" or ledger.serving is None or not ledger.serving.alias:
        return error
    cure = "Or set aliasProvider (PROXY_ALIAS_PROVIDER) to a provider that you are signed in to, and start again."
    return error.replaced(message=f"{error.message.rstrip('.')}. {cure}")


def _tell_others(ledger: Ledger, call: Call, provider: Provider) -> None:
    """Tells the provider that served this conversation before that another one does now."""
    if call.owner is None and call.conversation is None:
        return
    for other in ledger.inquiry.state.accounts.everyone():
        if other is not provider and _remembers(type(other)):
            cast(Remembering, other).served_elsewhere(call)


@cache
def _remembers(kind: type[Provider]) -> bool:
    """Whether a provider implements Remembering; cached, since checking a protocol is slow."""
    return issubclass(kind, Remembering)
