"""`POST /v1/chat/completions` and `POST /v1/responses`: converts a body to a hub request, and renders the hub's answer,
for any provider. One that speaks the Responses API itself gets the bodies unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.cache_health.fingerprint import of_responses
from proxy.core.convert.chat_request_to_messages import chat_request_to_messages
from proxy.core.convert.openai_mode import by_mode
from proxy.core.convert.openai_tools import asks_search
from proxy.core.convert.responses.signatures import is_ours
from proxy.core.convert.responses_request_to_messages import responses_request_to_messages
from proxy.core.effort import capped_openai_body
from proxy.core.identity import session_of_opening
from proxy.core.ingress import Ingress, IngressRules, with_search
from proxy.core.sizes import LARGE_BYTES
from proxy.errors import ProxyError, RequestError
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call, NativeResponses, OwnChat, Target
from proxy.server.request.admission import AdmissionTicket
from proxy.server.request.cache_watch import ComparedRequest, owner_by
from proxy.server.request.candidates import Candidate, Candidates
from proxy.server.request.ledger import Ledger
from proxy.server.serving.prepare import call_for, capped, choose, find_project, read_json, with_true_pictures
from proxy.server.serving.relay import RelayedAnswer
from proxy.server.serving.searching import Searcher, lent_search, search_with, searching
from proxy.server.serving.serve import Answer, Prepare, run, serve
from proxy.server.serving.stream import answer_to
from proxy.server.serving.vision import with_descriptions


async def post_chat_completions(request: web.Request) -> web.StreamResponse:
    """`chat.completion`, or its chunks if the body has `"stream": true`."""
    return await run(request, partial(_answer, parse=_chat))


async def post_responses(request: web.Request) -> web.StreamResponse:
    """A response object, or the events that build it."""
    return await run(request, partial(_answer, parse=_responses))


async def get_responses(request: web.Request) -> web.StreamResponse:
    """Refuses a WebSocket. Codex CLI tries one first and continues over HTTP after a 426, without waiting."""
    if "websocket" in request.headers.get("Upgrade", "").lower():
        raise ProxyError("this route is served over HTTP only: POST the request", kind="no_upgrade")
    raise web.HTTPMethodNotAllowed(request.method, ["POST"])


@dataclass(frozen=True, slots=True)
class OpenAiBody:
    """A body for one candidate.

    lenient  whether what cannot be honoured is left out
    rules    in place of the model's own, None without
    """

    members: dict[str, Any]
    session: str | None
    lenient: bool
    rules: IngressRules | None = None

    @property
    def cache_hint(self) -> str | None:
        hint = self.members.get("prompt_cache_key")
        return hint if isinstance(hint, str) and hint else None


#: Returns the parser of a body for a candidate, None if the candidate gets it unchanged.
Parse = Callable[[OpenAiBody, Candidate], Callable[[], Ingress] | None]


def _chat(asked: OpenAiBody, candidate: Candidate) -> Callable[[], Ingress]:
    provider, model = candidate.provider, candidate.model
    rules = asked.rules or provider.ingress(model)
    parse = partial(chat_request_to_messages, asked.members, rules, session=asked.session)
    strict = partial(provider.chat_request, asked.members, model) if isinstance(provider, OwnChat) else parse
    return partial(by_mode, strict, partial(parse, lenient=True), leniently=asked.lenient)


def _responses(asked: OpenAiBody, candidate: Candidate) -> Callable[[], Ingress] | None:
    if isinstance(candidate.provider, NativeResponses):
        return None
    rules = asked.rules or candidate.provider.ingress(candidate.model)
    parse = partial(responses_request_to_messages, asked.members, rules, session=asked.session)
    return partial(by_mode, parse, partial(parse, lenient=True), leniently=asked.lenient)


async def _answer(ledger: Ledger, ticket: AdmissionTicket, *, parse: Parse) -> web.StreamResponse:
    return await serve(ledger, ticket, *await _asked(ledger, ticket, parse))


async def _asked(ledger: Ledger, ticket: AdmissionTicket, parse: Parse) -> tuple[Candidates, Prepare]:
    """The candidates, and the function that makes the call for each. Only `Prepare` holds the body. Raises ProxyError
    and InvalidRequest."""
    body = await read_json(ledger, ticket)
    named = body.get("model")
    if not isinstance(named, str) or not named:
        raise RequestError("`model` must be a non-empty string", param="model")
    session, hint = ledger.inquiry.session, body.get("prompt_cache_key")
    conversation = session or (ledger.inquiry.own_session(hint) if isinstance(hint, str) and hint else None)
    stays = carries_state(body)
    opening = partial(session_of_opening, body.get("input") if parse is _responses else body.get("messages"))
    candidates = choose(ledger, ticket, named, session=session, conversation=conversation, opening=opening, stays=stays)

    def prepare(candidate: Candidate) -> Awaitable[Answer]:
        members = {**capped(ledger, candidate, body, capped_openai_body), "model": candidate.model}
        if ledger.inquiry.caller is not None and isinstance(hint, str):
            members["prompt_cache_key"] = ledger.inquiry.own_session(hint)
        lenient = ledger.inquiry.state.config().openai_mode == "lenient"
        searcher = lent_search(ledger, candidate) if asks_search(members) else None
        rules = None if searcher is None else with_search(candidate.provider.ingress(candidate.model))
        asked = OpenAiBody(members, session, lenient, rules)
        ingress = parse(asked, candidate)
        if ingress is None:
            return _passed_on(ledger, asked, candidate)
        return _converted(ledger, asked, candidate, candidates, ingress, searcher)

    return candidates, prepare


async def _converted(
    ledger: Ledger,
    asked: OpenAiBody,
    candidate: Candidate,
    candidates: Candidates,
    read: Callable[[], Ingress],
    searcher: Searcher | None,
) -> Answer:
    ingress = await in_thread_if(ledger.size > LARGE_BYTES, read)
    ledger.ignores(ingress.ignored)
    search = None if searcher is None else await search_with(ledger, searcher, ingress.request)
    request = with_true_pictures(ledger, ingress.request if search is None else search.plan.request)
    target = candidate.provider.resolve(candidate.model, request, auto_review=False)
    await find_project(ledger, request)
    if target.blind and ledger.pictures:
        request = await with_descriptions(ledger, candidate, target, request)
    call = _call(ledger, asked, candidate, request, target)
    ledger.compares(ComparedRequest(owner_by(call.cache_key), candidate.provider, target, request, ledger.size))
    asks = None if search is None else searching(ledger, search)
    return answer_to(ledger, call, ingress, candidates, asks)


async def _passed_on(ledger: Ledger, asked: OpenAiBody, candidate: Candidate) -> Answer:
    provider, members = candidate.provider, asked.members
    if not isinstance(provider, NativeResponses):
        raise RuntimeError(f"{candidate.label} takes no Responses bodies")
    if asked.lenient:
        members, ignored = provider.lenient_body(members)
        ledger.ignores(ignored)
    await find_project(ledger, members)
    target = provider.native_target(candidate.model, members)
    call = _call(ledger, OpenAiBody(members, asked.session, asked.lenient), candidate, members, target)
    compared = owner_by(call.cache_key)
    ledger.compares(
        ComparedRequest(compared, candidate.provider, target, members, ledger.size, fingerprint=of_responses)
    )
    return RelayedAnswer(ledger, call)


def _call(ledger: Ledger, asked: OpenAiBody, candidate: Candidate, request: Mapping[str, Any], target: Target) -> Call:
    """The call of a valid request. It leaves no conversation state."""
    ledger.selected(candidate, target, asked.session, converted=None if request is asked.members else request)
    session, hint = asked.session, asked.cache_hint
    return call_for(ledger, candidate, request, target, session, cache_hint=hint, converted=True)


def carries_state(body: Mapping[str, Any]) -> bool:
    """Whether a body of the Responses API has what belongs to the account that answered before."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    found = (item.get("encrypted_content") for item in items if isinstance(item, Mapping))
    sealed = any(isinstance(content, str) and content and not is_ours(content) for content in found)
    return sealed or bool(body.get("previous_response_id"))
