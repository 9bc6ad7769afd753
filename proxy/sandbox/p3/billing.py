"""What the simulated P3 tells of the allowance and the plan, in the forms that the vendor's client reads."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.p3.headers import check_bearer
from proxy.sandbox.p3.state import P3
from proxy.sandbox.wires.refusal import detail

PLAN = "SuperGrok"

_DAY_S = 86_400


async def serve_billing(p3: P3, request: web.Request) -> web.Response:
    if request.query.get("format") != "credits":
        raise detail("format must be credits")
    now = p3.clock()
    config = {
        "creditUsagePercent": 12.5,
        "currentPeriod": {
            "type": "USAGE_PERIOD_TYPE_WEEKLY",
            "start": _moment(now - 2 * _DAY_S),
            "end": _moment(now + 5 * _DAY_S),
        },
        "used": {"val": 250},
        "monthlyLimit": {"val": 2000},
        "onDemandCap": {"val": 5000},
        "onDemandUsed": {"val": 1234},
        "prepaidBalance": {"val": 777},
        "isUnifiedBillingUser": True,
        "billingPeriodStart": _moment(now - 10 * _DAY_S),
        "billingPeriodEnd": _moment(now + 20 * _DAY_S),
        "history": [],
    }
    return _answer(p3, request, {"config": config})


async def serve_settings(p3: P3, request: web.Request) -> web.Response:
    return _answer(p3, request, {"subscription_tier_display": PLAN, "allow_access": True})


async def serve_user(p3: P3, request: web.Request) -> web.Response:
    return _answer(p3, request, {"userId": p3.options.user_id, "subscriptionTier": PLAN})


def _answer(p3: P3, request: web.Request, body: Mapping[str, Any]) -> web.Response:
    check_bearer(request.headers, p3.tokens)
    return web.json_response(body, headers=p3.trace_headers())


def _moment(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_s))
