"""`GET /v1/account/limits` and `/.well-known/ccr/account`: what is left, in the form that comparable programs share."""

from __future__ import annotations

from aiohttp import web

from proxy.core.allowances.account_json import ProviderAllowance, accounts_json
from proxy.core.invalid import cut
from proxy.errors import RequestError
from proxy.server.request.replies import json_response
from proxy.server.request.state import STATE

#: How long the answer waits for services that have to be asked first.
PATIENCE_S = 5.0

PATHS = ("/v1/account/limits", "/.well-known/ccr/account")


async def get_limits(request: web.Request) -> web.Response:
    """All accounts; `?provider=p4` puts one of them at the top. Raises RequestError."""
    state = request.app[STATE]
    wanted = request.query.get("provider", "").strip().lower()
    names = {name: entry.label for entry in state.entries for name in (entry.label, entry.catalog.service)}
    if wanted and wanted not in names:
        known = ", ".join(entry.label for entry in state.entries)
        raise RequestError(f'There is no provider "{cut(wanted)}"; there are {known}.', param="provider")
    await state.questions.answered(PATIENCE_S)
    current = state.allowances.current
    found = [
        ProviderAllowance(key, entry.product, known)
        for entry in state.entries
        for key, known in current.items()
        if key.partition("/")[0] == entry.label
    ]
    return json_response(accounts_json(found, state.clock(), names.get(wanted, "")))
