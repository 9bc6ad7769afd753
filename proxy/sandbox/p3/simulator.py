"""The entry of the simulated P3: its routes, its wire and its faults."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from proxy.sandbox.p3.account import serve_billing, serve_key, serve_models, serve_settings, serve_user
from proxy.sandbox.p3.options import P3Options
from proxy.sandbox.p3.responses import RESPONSES, prepare_responses
from proxy.sandbox.p3.state import API_PATH, P3
from proxy.sandbox.upstream import Simulator

#: Path below the base -> what answers there.
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
