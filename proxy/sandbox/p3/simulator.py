"""The simulated P3: its routes, wire and faults, and its answers about the account."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.p3.answer import DONE, GrokAnswer, GrokWriter
from proxy.sandbox.p3.catalog import listed_models
from proxy.sandbox.p3.checks import check_body
from proxy.sandbox.p3.faults import GROK_FAULTS
from proxy.sandbox.p3.refusals import (
    CONVERSATION,
    HTTP_FAULTS,
    argument,
    check_bearer,
    check_caller,
    check_format,
    check_kind,
    error_only,
    reworded,
)
from proxy.sandbox.p3.state import API_PATH, P3, P3Options
from proxy.sandbox.play.json_faults import serve_list
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import CheckedRequest, ServedWire, Simulator
from proxy.sandbox.wires.refusal import Refused
from proxy.sandbox.wires.responses.read import Form, write_answer

RESPONSES = ServedWire(Place("p3", "responses"), HTTP_FAULTS, GROK_FAULTS)

_FORM = Form(GrokWriter, GrokAnswer, always_shown=True)


def prepare_responses(p3: P3, request: web.Request, body: Any) -> CheckedRequest:
    check_caller(request.headers, p3.tokens, p3.options)
    check_format(request.headers)
    if not isinstance(body, dict):
        raise error_only(400, "Failed to parse the request body as JSON: expected an object")
    try:
        rules = check_body(body, p3.options.user_id)
    except Refused as refused:
        raise reworded(refused) from None
    conversation = request.headers.get(CONVERSATION)
    answer = write_answer(p3, body, rules.reader, _FORM, cache_key=conversation)
    options, model = p3.options, rules.model
    answer.tail, answer.linger_s = DONE if options.done else b"", options.linger_s
    limit = options.context_limit or model.context
    instead: tuple[str, Mapping[str, Any]] | None = None
    if answer.input_tokens > limit:
        instead = ("context_http", {"limit": limit, "tokens": answer.input_tokens})
    headers = {"x-grok-context-window": str(model.context), "x-grok-max-completion-tokens": str(model.most_output)}
    return CheckedRequest(RESPONSES, answer, headers, instead)


_DAY_S = 86_400
#: When the models were made.
_CREATED = 1_780_000_000


async def serve_models(p3: P3, request: web.Request) -> web.StreamResponse:
    """The list of models, for any kind of bearer."""
    check_bearer(request.headers, p3.tokens)
    return await serve_list(p3.options, request, dump_json(listed_models(_CREATED)).encode(), p3.trace_headers())


async def serve_key(p3: P3, request: web.Request) -> web.Response:
    """Describes the bearer; the vendor's client asks when it was given a key instead of a login."""
    check_bearer(request.headers, p3.tokens)
    return _answer(p3, {"name": "sandbox", "user_id": p3.options.user_id, "api_key_blocked": False, "acls": ["*"]})


async def serve_user(p3: P3, request: web.Request) -> web.Response:
    _check_login(p3, request)
    options = p3.options
    return _answer(p3, {"userId": options.user_id, "email": options.email, "firstName": "Sandbox", "lastName": ""})


async def serve_settings(p3: P3, request: web.Request) -> web.Response:
    """Switches of the vendor's client, all unset, and the plan for display."""
    _check_login(p3, request)
    gate = p3.options.gate
    if gate:
        return _answer(p3, {"allow_access": False, "gate_message": gate, "gate_label": "Subscribe"})
    return _answer(p3, {"subscription_tier_display": "SuperGrok", "allow_access": True})


async def serve_billing(p3: P3, request: web.Request) -> web.Response:
    _check_login(p3, request)
    if request.query.get("format") != "credits":
        raise argument("Invalid format.").fill("format")
    now = p3.clock()
    week = {"start": _moment(now - 2 * _DAY_S), "end": _moment(now + 5 * _DAY_S)}
    month = {"billingPeriodStart": _moment(now - 20 * _DAY_S), "billingPeriodEnd": _moment(now + 10 * _DAY_S)}
    cents = {"monthlyLimit": 2_000, "used": 250, "onDemandCap": 5_000, "onDemandUsed": 1_234, "prepaidBalance": 777}
    config: dict[str, Any] = {
        "creditUsagePercent": 12.5,
        "currentPeriod": {"type": "USAGE_PERIOD_TYPE_WEEKLY", **week},
        **{name: {"val": amount} for name, amount in cents.items()},
        "isUnifiedBillingUser": True,
        **month,
        "history": [],
    }
    return _answer(p3, {"config": config, "on_demand_enabled": True})


def _check_login(p3: P3, request: web.Request) -> None:
    check_bearer(request.headers, p3.tokens)
    check_kind(request.headers)


def _answer(p3: P3, body: dict[str, Any]) -> web.Response:
    return web.json_response(body, headers=p3.trace_headers())


def _moment(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_s))


#: Path below the base -> its handler.
_ACCOUNT = {
    "models": serve_models,
    "api-key": serve_key,
    "user": serve_user,
    "settings": serve_settings,
    "billing": serve_billing,
}


def _routes(p3: P3) -> list[web.RouteDef]:
    return [
        web.post(f"{API_PATH}/responses", partial(p3.serve, partial(prepare_responses, p3))),
        *(web.get(f"{API_PATH}/{name}", partial(serve, p3)) for name, serve in _ACCOUNT.items()),
        *p3.issuer.routes(),
    ]


P3_SIMULATOR = Simulator("p3", P3, P3Options, (RESPONSES,), _routes)
