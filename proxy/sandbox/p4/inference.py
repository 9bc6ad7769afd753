"""The simulated P4: its routes, wires and faults, and the handling of a request for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json, encode_events
from proxy.sandbox.model.reply import reply
from proxy.sandbox.p4.catalog import MODELS, chat_rules, listed_models, thinks
from proxy.sandbox.p4.gateway import (
    CLIENT_HEADERS,
    HTTP_FAULTS,
    SESSION,
    check_account,
    check_chat_tidiness,
    check_key,
    check_responses,
    check_session,
    check_tidiness,
    checked_model,
    provider_error,
)
from proxy.sandbox.p4.state import API_PATH, P4, P4Options
from proxy.sandbox.play.actions import Action
from proxy.sandbox.play.json_faults import serve_list
from proxy.sandbox.play.script import Place
from proxy.sandbox.play.stream_faults import WHOLE_FAULTS, Fault
from proxy.sandbox.upstream import CheckedRequest, ServedWire, Simulator, receive
from proxy.sandbox.wires.answer import Answer
from proxy.sandbox.wires.chat.answer import ChatAnswer
from proxy.sandbox.wires.chat.checks import check_chat
from proxy.sandbox.wires.chat.faults import CHAT_FAULTS
from proxy.sandbox.wires.chat.read import read_chat, write_chat
from proxy.sandbox.wires.encrypted_content import is_from_account
from proxy.sandbox.wires.messages.answer import MessagesAnswer, prompt_parts, prompt_tokens, read_messages
from proxy.sandbox.wires.messages.checks import check_messages
from proxy.sandbox.wires.messages.faults import MESSAGES_FAULTS
from proxy.sandbox.wires.refusal import Refused
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS
from proxy.sandbox.wires.responses.read import PLAIN, write_answer

#: Path below the base -> its wire.
PATHS = {"chat/completions": "chat", "messages": "messages", "responses": "responses"}

#: Added by the gateway to an answer without a stream. A subscription is not charged.
COST = {"cost": "0"}

_PING = encode_events([{"type": "ping", **COST}])


def _tail(answer: Answer, comes: str) -> list[Action]:
    answer.tail_comes = comes
    return answer.stream()


_TAIL_FAULTS: dict[str, Fault] = {
    "cost_together": lambda answer: _tail(answer, "together"),
    "cost_later": lambda answer: _tail(answer, "later"),
    "no_cost": lambda answer: _tail(answer, "none"),
}

_STREAM_FAULTS = {"chat": CHAT_FAULTS, "messages": MESSAGES_FAULTS, "responses": RESPONSES_FAULTS}

STREAMS = {
    wire: ServedWire(Place("p4", wire), HTTP_FAULTS, {**faults, **_TAIL_FAULTS})
    for wire, faults in _STREAM_FAULTS.items()
}
WHOLES = {wire: ServedWire(Place("p4", wire, stream=False), HTTP_FAULTS, WHOLE_FAULTS) for wire in _STREAM_FAULTS}


def prepare_answer(p4: P4, wire: str, request: web.Request, body: Any) -> CheckedRequest:
    """Runs the gateway's checks, then those of the provider behind it, whose errors get its name in front."""
    options = p4.options
    check_key(request.headers, wire, options.api_key)
    name = checked_model(body, wire)
    check_account(name, options)
    if options.needs_session:
        check_session(request.headers)
    stream = body.get("stream") is True
    if options.tidy_client:
        check_tidiness(request.headers, wire, stream=stream)
    session = request.headers.get(SESSION, "")
    p4.clients.append({name: request.headers[name] for name in CLIENT_HEADERS if name in request.headers})
    try:
        answer = _ANSWERS[wire](p4, name, body, session)
    except Refused as refused:
        raise provider_error(MODELS[name].vendor, refused.message, status=refused.status) from None
    answer.tail_comes, answer.extra = options.cost_comes, COST
    limit = options.context_limit or MODELS[name].context
    instead: tuple[str, Mapping[str, Any]] | None = ("context_http", {}) if answer.input_tokens > limit else None
    return CheckedRequest((STREAMS if stream else WHOLES)[wire], answer, instead=instead)


def _chat(p4: P4, name: str, body: dict[str, Any], session: str) -> ChatAnswer:
    thinking = thinks(name, body) if isinstance(body.get("thinking"), dict | None) else False
    check_chat(body, chat_rules(name, thinking=thinking, refuse_images=p4.options.refuse_images))
    if p4.options.tidy_client:
        check_chat_tidiness(body)
    answer = write_chat(
        p4,
        body,
        read_chat(body, effort=(body.get("reasoning_effort") or "high") if thinking else None),
        new_id=lambda _tool, _number: p4.ids.new("call"),
        cache_key=session,
        usage_places=p4.options.usage_places,
    )
    answer.tail = answer.encode([{**answer.head, "choices": [], **COST}])
    return answer


def _messages(p4: P4, name: str, body: dict[str, Any], session: str) -> MessagesAnswer:
    account = p4.options.account_id
    signed = (lambda signature: is_from_account(signature, account)) if p4.options.check_signatures else None
    check_messages(body, signed)
    ask = read_messages(body)
    tokens = prompt_tokens(body)
    answer = MessagesAnswer(
        ask=ask,
        model=name,
        ids=p4.ids,
        account_id=account,
        input_tokens=tokens,
        cached_tokens=p4.cached_tokens(session, name, prompt_parts(body), tokens),
        tail=_PING,
    )
    answer.say(reply(ask))
    return answer


def _responses(p4: P4, name: str, body: dict[str, Any], _session: str) -> Answer:
    check_responses(body, p4.options.account_id)
    answer = write_answer(p4, {**body, "model": name}, p4.options.account_id, PLAIN)
    answer.tail = _PING
    return answer


_ANSWERS: dict[str, Callable[[P4, str, dict[str, Any], str], Answer]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
}


#: Window of the subscription -> its length in seconds.
WINDOWS = {"rolling": 5 * 3600, "weekly": 7 * 86_400, "monthly": 30 * 86_400}


#: When the models were listed.
_CREATED = 1_780_000_000


async def _serve_models(p4: P4, request: web.Request) -> web.StreamResponse:
    return await serve_list(p4.options, request, dump_json(listed_models(_CREATED)).encode(), {})


async def _serve_usage(p4: P4, request: web.Request) -> web.Response:
    p4.usage_requests.append(await receive(request))
    check_key(request.headers, "usage", p4.options.api_key)
    check_account("", p4.options)
    usage = {
        name: {
            "status": "rate-limited" if percent >= 100 else "ok",
            "percent": percent,
            "resetsAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(p4.clock() + WINDOWS[name])),
        }
        for name, percent in p4.options.usage.items()
    }
    return web.json_response({"workspaceID": "wrk_sandbox", "userID": "usr_sandbox", "usage": usage})


def _routes(p4: P4) -> list[web.RouteDef]:
    return [
        *(
            web.post(f"{API_PATH}/{path}", partial(p4.serve, partial(prepare_answer, p4, wire)))
            for path, wire in PATHS.items()
        ),
        web.get(f"{API_PATH}/usage", partial(_serve_usage, p4)),
        web.get(f"{API_PATH}/models", partial(_serve_models, p4)),
    ]


P4_SIMULATOR = Simulator("p4", P4, P4Options, (*STREAMS.values(), *WHOLES.values()), _routes)
