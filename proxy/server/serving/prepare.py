"""Finds the candidates of a request, and makes the call for one of them: shared by all model routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from proxy.config import Config
from proxy.core.bodies.decode import contains, decode_body, decode_large_body
from proxy.core.content import PictureCheck
from proxy.core.effort import is_side
from proxy.core.identity import Owner, agents_of
from proxy.core.invalid import cut
from proxy.core.routing import Route, catalog_text, normalise_model, proposal, route, without_claude
from proxy.core.sizes import LARGE_BYTES
from proxy.errors import ProxyError, RequestError
from proxy.observe.lifecycle import ModelResolved, ProjectResolved
from proxy.observe.project import DIRECTORY_WORDS, find_working_directory, project_name
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, Target
from proxy.server.request.accounts import Accounts
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.candidates import Candidate, Candidates
from proxy.server.request.guard import check_json
from proxy.server.request.ledger import Ledger
from proxy.server.serving.body import read_body

T = TypeVar("T")


async def read_json(ledger: Ledger, ticket: AdmissionTicket) -> dict[str, Any]:
    """The JSON object of a request. Raises ProxyError and InvalidRequest."""
    inquiry, state = ledger.inquiry, ledger.inquiry.state
    check_json(inquiry.request)
    body = await read_body(inquiry.request, state.config(), ticket, packed=state.packed)
    ledger.read(body)
    large = len(body) > LARGE_BYTES
    if not large:
        ledger.names_directory = any(word in body for word in DIRECTORY_WORDS)
    return await in_thread_if(large, partial(_large, ledger, body) if large else partial(decode_body, body))


def _large(ledger: Ledger, body: bytes | bytearray) -> dict[str, Any]:
    ledger.names_directory = any(contains(body, word) for word in DIRECTORY_WORDS)
    return decode_large_body(body)


@dataclass(frozen=True, slots=True)
class _Requested:
    """The parts of a request that decide about accounts and names.

    named         the model by the client's name; `called` is that without a hint
    conversation  the session by which an account is chosen
    opening       makes a session of the first messages, for providers that need one
    stays         whether the request has what only the account that answered before can read, so that no other
                  continues
    """

    named: str
    called: str
    conversation: str | None
    opening: Callable[[], str]
    stays: bool


def choose(
    ledger: Ledger,
    ticket: AdmissionTicket,
    named: str,
    *,
    session: str | None,
    conversation: str | None,
    opening: Callable[[], str],
    stays: bool = False,
    instead: Callable[[Route | None], str | None] | None = None,
) -> Candidates:
    """The candidates for a requested name. Raises RequestError with the catalogue.

    session              the session that aliases follow
    conversation, opening, stays  see `_Requested`
    instead              given the route of the requested name, returns another model to serve, or None; no declared
                         model replaces that
    """
    state = ledger.inquiry.state
    config = state.config()
    known, called = state.catalogs.of(config), normalise_model(named)
    affinity = state.sessions.affinity(session)
    ledger.session = conversation
    asked = _Requested(named, called, conversation, cache(opening), stays)
    model = without_claude(called, known) if config.claude_names else called
    found = route(model, known, alias_provider=config.alias_provider, affinity=affinity)
    other = instead(found) if instead is not None else None
    if other is not None:
        found = route(other, known, alias_provider=config.alias_provider)
        ledger.note("info", "auto-review route selected", requestedModel=model, overrideModel=other)
        served = _served(ledger, config, other, found)
        return Candidates(other, lambda model: _accounts(ledger, ticket, asked, model, served, ours=True))
    served = _served(ledger, config, model, found)

    def accounts_of(name: str) -> Sequence[Candidate]:
        if name == model:
            return _accounts(ledger, ticket, asked, name, served)
        another = route(name, known, alias_provider=config.alias_provider, affinity=affinity)
        return _accounts(ledger, ticket, asked, name, _served(ledger, config, name, another))

    return Candidates(
        model,
        accounts_of,
        others=() if ledger.inquiry.counts else _declared(config, model),
        kinds=frozenset(config.fallback_on),
        is_spent=partial(_is_spent, state.accounts),
    )


def _accounts(
    ledger: Ledger, ticket: AdmissionTicket, asked: _Requested, model: str, served: Route, *, ours: bool = False
) -> Sequence[Candidate]:
    """The accounts for one model, in order, if its provider has room for one more request. `ours`: whether we chose the
    model. Raises BusyError."""
    inquiry, conversation = ledger.inquiry, asked.conversation
    inquiry.state.admission.select(ticket, served.label)
    needs = inquiry.state.accounts.providers[served.label].ingress(model).tools is not None and not inquiry.counts
    if conversation is None and needs:
        conversation = ledger.session = inquiry.own_session(asked.opening())
        ledger.note("info", "session_from_messages", session=conversation)
    chosen = inquiry.state.accounts.choose(
        served.label,
        inquiry.state.config(),
        session=conversation,
        caller=inquiry.caller_name,
        stays=asked.stays,
        model=model,
    )
    shown, alias = "" if ours or model == asked.called else asked.called, served.alias and not ours
    return [
        Candidate(
            model,
            served.label,
            one.name,
            one.provider,
            asked.named,
            shown,
            alias=alias,
            auto_review=ours,
            conversation=conversation,
        )
        for one in chosen
    ]


def _declared(config: Config, model: str) -> tuple[str, ...]:
    if not config.fallback:
        return ()
    others = next((others for name, others in config.fallback if normalise_model(name) == model), ())
    return tuple(map(normalise_model, others))


def _served(ledger: Ledger, config: Config, model: str, found: Route | None) -> Route:
    """The route of a model that is served. Raises RequestError."""
    state = ledger.inquiry.state
    ledger.names(None if found is None else found.label, model)
    if found is None:
        ledger.note("warn", "unknown model")
        ledger.tell(ModelResolved(cut(model), cut(model)))
        near = proposal(cut(model), state.served, config.alias_provider)
        state.catalogs.lists.look_again(state.accounts.watched())
        raise unknown_model(ledger, f'Unknown model "{cut(model)}". {near}'.rstrip())
    if found.label not in state.accounts.providers:
        raise unknown_model(ledger, f'Model "{cut(model)}" belongs to {found.label}, which is not available yet.')
    return found


def _is_spent(accounts: Accounts, candidate: Candidate, error: ProxyError) -> bool:
    """Whether the account's allowance refuses the request, rather than something that passes by itself."""
    if error.kind == "rate_limit":
        return accounts.is_spent(candidate.key, candidate.model)
    return error.kind == "usage_limit"


#: A code for programs; with any such member Claude Code retries less often.
_UNKNOWN_MODEL = {"error_code": "model_not_found"}


def unknown_model(ledger: Ledger, what: str) -> RequestError:
    state = ledger.inquiry.state
    known = catalog_text(state.served, state.config().alias_provider)
    return RequestError(f"{what} {known}", param="model", details=_UNKNOWN_MODEL)


def capped(
    ledger: Ledger,
    candidate: Candidate,
    body: Mapping[str, Any],
    lower: Callable[[Mapping[str, Any], str], Mapping[str, Any]],
) -> Mapping[str, Any]:
    """The body of a side request with its effort capped by the settings; any other body unchanged.

    lower  returns a body that asks for no more than a cap
    """
    state = ledger.inquiry.state
    config = state.config()
    if config.side_effort is None or candidate.auto_review:
        return body
    own = state.catalogs.labelled(candidate.label, config)
    agent = agents_of(ledger.inquiry.values)[0] is not None
    if not is_side(own.called(candidate.model), own.small, own.main, agent=agent):
        return body
    result = lower(body, config.side_effort)
    if result is not body:
        ledger.note("info", "effort_replaced", sent=config.side_effort, reason="side request")
    return result


def call_for(
    ledger: Ledger,
    candidate: Candidate,
    request: Mapping[str, Any],
    target: Target,
    session: str | None,
    *,
    owner: Owner | None = None,
    cache_hint: str | None = None,
    converted: bool = False,
    keeps: bool = True,
) -> Call:
    """The call for a candidate; for the arguments see `Call`. Logs what the service does not offer. `keeps`: whether
    state of its conversation may be kept."""
    inquiry = ledger.inquiry
    for what, asked, sent in target.narrowed:
        ledger.note("info", "narrowed_to_offer", model=target.model, what=what, asked=asked, sent=sent or "unset")
    return Call(
        request=request,
        model=candidate.model,
        target=target,
        request_id=inquiry.id,
        session=session,
        owner=owner,
        conversation=candidate.conversation if keeps and not candidate.auto_review else None,
        auto_review=candidate.auto_review,
        cache_hint=cache_hint,
        converted=converted,
        recorder=inquiry.state.monitor,
        capture=ledger.capture,
        timings=inquiry.timings,
        size=ledger.size,
        own_id=inquiry.own_session,
        shown_name=candidate.shown_name,
    )


def with_true_pictures(ledger: Ledger, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The hub request with wrong types of pictures corrected, which is logged."""
    pictures = PictureCheck()
    given = request.get("messages") or []
    messages = pictures.in_messages(given)
    ledger.pictures = pictures.seen
    if messages is given:
        return request
    ledger.note("warn", "pictures_changed", corrected=pictures.corrected, leftOut=pictures.left_out)
    return {**request, "messages": messages}


async def find_project(ledger: Ledger, body: Mapping[str, Any]) -> None:
    """Reports the project of a request, but only if the monitor wants it, since this reads the file system. A session
    keeps its project for a minute."""
    monitor = ledger.inquiry.state.monitor
    if not (ledger.names_directory and monitor.wants_project):
        return
    name = monitor.known_project(ledger.inquiry.id)
    if name is None:
        path = await in_thread_if(ledger.size > LARGE_BYTES, partial(find_working_directory, body))
        name = await asyncio.to_thread(project_name, path) if path else None
    if name:
        ledger.tell(ProjectResolved(name))
