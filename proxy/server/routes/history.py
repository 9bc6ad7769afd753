"""The route of the history: what requests used in a time, as data for the monitors and for programs."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import pairwise

from aiohttp import web

from proxy.core.invalid import cut
from proxy.core.sse import encode_json
from proxy.errors import ProxyError, RequestError
from proxy.observe.history.overview import MAX_PERIODS, overview
from proxy.retention import DAY_S
from proxy.server.request.replies import has_left
from proxy.server.request.state import STATE, AppState

#: Days that are shown if no time is asked for.
_DAYS = 7
#: Seconds since 1970, up to the year 5138: later ones are milliseconds, or a mistake.
_EDGE = re.compile(r"[0-9]{1,11}(\.[0-9]{1,6})?")


async def get_history(request: web.Request) -> web.Response:
    """What was used between the `edges`, as `overview` has it; of the last seven days without them. Raises
    RequestError, BusyError, and ProxyError if no history is kept, or none can be read."""
    state = request.app[STATE]
    now = state.clock()
    edges = _edges(request.query.getall("edges", [])) or [int(now - day * DAY_S) for day in range(_DAYS, -1, -1)]
    if state.history is None:
        raise not_kept(state)

    def answered(db: sqlite3.Connection) -> bytes:
        return encode_json(overview(db, edges, now))

    def is_unwanted() -> bool:
        return has_left(request) or state.watchers.closed

    body = await state.queries.ask(state.history, answered, is_unwanted)
    return web.Response(body=body, content_type="application/json")


def not_kept(state: AppState) -> ProxyError:
    """The error for a history that is off."""
    if state.config().history:
        return ProxyError("no history is kept: this proxy has no folder for its state", kind="no_route")
    return ProxyError(
        "no history is kept: PROXY_HISTORY=1, or history.enabled in config.json, turns it on at the next start",
        kind="no_route",
    )


def _edges(texts: Sequence[str]) -> Sequence[float]:
    """The edges in the parameters of a query, none for none. Raises RequestError.

    >>> _edges(["1800000000,1800086400.5"])
    [1800000000.0, 1800086400.5]
    """
    if len(texts) > 1:
        raise RequestError("edges: expected once, with commas", param="edges")
    text = "".join(texts)
    if not text:
        return []
    parts = text.split(",")
    if not 2 <= len(parts) <= MAX_PERIODS + 1:
        raise RequestError(f"edges: expected 2 to {MAX_PERIODS + 1} times, not {len(parts)}", param="edges")
    for part in parts:
        if not _EDGE.fullmatch(part):
            raise RequestError(f"edges: expected seconds since 1970, not {cut(part)!r}", param="edges")
    edges = [float(part) for part in parts]
    if any(one >= then for one, then in pairwise(edges)):
        raise RequestError("edges: each has to be later than the one before", param="edges")
    return edges
