"""The entry of the simulated P5: its routes, its wire and its faults."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from proxy.sandbox.p5.appends import serve_append, serve_models
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.state import P5
from proxy.sandbox.p5.stream import AGENT, serve_run
from proxy.sandbox.upstream import Simulator

_AGENT_PATH = "/agent.v1.AgentService"


async def _only_http2(_request: web.Request) -> web.Response:
    """What the load balancer says to `Run`, which needs both directions at once."""
    return web.Response(status=464, headers={"server": "awselb/2.0"})


def _routes(p5: P5) -> list[web.RouteDef]:
    return [
        web.post(f"{_AGENT_PATH}/RunSSE", partial(serve_run, p5)),
        web.post("/aiserver.v1.BidiService/BidiAppend", partial(serve_append, p5)),
        web.post(f"{_AGENT_PATH}/Run", _only_http2),
        web.post(f"{_AGENT_PATH}/GetUsableModels", partial(serve_models, p5)),
        *p5.issuer.routes(),
    ]


P5_SIMULATOR = Simulator("p5", P5, P5Options, (AGENT,), _routes)
