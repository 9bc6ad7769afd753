"""What the simulated P3 tells of the account and its models beside the answers, as far as the vendor's client asks."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from proxy.sandbox.p3.catalog import listed_models
from proxy.sandbox.p3.headers import check_bearer, check_kind
from proxy.sandbox.p3.refusals import argument
from proxy.sandbox.p3.state import P3

_DAY_S = 86_400


async def serve_models(p3: P3, request: web.Request) -> web.Response:
    """The list of models, for which a bearer of whatever kind is enough."""
    check_bearer(request.headers, p3.tokens)
    return _answer(p3, listed_models(int(p3.clock())))


async def serve_key(p3: P3, request: web.Request) -> web.Response:
    """What the bearer is; the vendor's client asks when it was given a key instead of a login."""
    check_bearer(request.headers, p3.tokens)
    return _answer(p3, {"name": "sandbox", "user_id": p3.options.user_id, "api_key_blocked": False, "acls": ["*"]})


async def serve_user(p3: P3, request: web.Request) -> web.Response:
    _check_login(p3, request)
    options = p3.options
    return _answer(p3, {"userId": options.user_id, "email": options.email, "firstName": "Sandbox", "lastName": ""})


async def serve_settings(p3: P3, request: web.Request) -> web.Response:
    """Switches of the vendor's client, none of which is set, and the plan that it shows."""
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
