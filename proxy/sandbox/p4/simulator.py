"""The entry of the simulated P4: its routes, its wires and their faults."""

from __future__ import annotations

import time
from functools import partial

from aiohttp import web

from proxy.sandbox.p4.catalog import listed_models
from proxy.sandbox.p4.gateway import check_account, check_key
from proxy.sandbox.p4.inference import PATHS, STREAMS, WHOLES, prepare_answer
from proxy.sandbox.p4.state import API_PATH, P4, P4Options
from proxy.sandbox.recorder import receive
from proxy.sandbox.upstream import Simulator

#: Window of the subscription -> its length in seconds.
WINDOWS = {"rolling": 5 * 3600, "weekly": 7 * 86_400, "monthly": 30 * 86_400}


async def _serve_models(p4: P4, _request: web.Request) -> web.Response:
    return web.json_response(listed_models(p4.clock()))


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
