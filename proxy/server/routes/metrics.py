"""`GET /metrics`, for Prometheus and whatever reads its format."""

from __future__ import annotations

from aiohttp import web

from proxy.errors import ProxyError
from proxy.observe.metrics.counts import Moment
from proxy.observe.metrics.registry import CONTENT_TYPE
from proxy.server.request.state import STATE
from proxy.server.serving.allowances import allowance_rows


async def get_metrics(request: web.Request) -> web.Response:
    """All counts since the start. Raises ProxyError where nobody counts."""
    state = request.app[STATE]
    if state.metrics is None:
        raise ProxyError("nothing is counted here", kind="unavailable")
    moment = Moment(
        active=state.monitor.active(),
        buffered=state.admission.bytes,
        refusals=state.admission.refused,
        allowances=allowance_rows(state.allowances, state.clock()),
    )
    return web.Response(body=state.metrics.text(moment).encode(), headers={"Content-Type": CONTENT_TYPE})
