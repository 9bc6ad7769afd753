"""Routes apart from models: the monitor and its page, limits and metrics.

The files of the page lie beside the data that they draw (`observe/monitor/page`) and are sent as they are, with the
sheet (`observe/monitor/sheet.py`) as one more of them: no build, nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from aiohttp import web

from proxy.core.allowances.account_json import ProviderAllowance, accounts_json
from proxy.core.invalid import cut
from proxy.errors import ProxyError, RequestError
from proxy.observe.metrics.counts import Moment
from proxy.observe.metrics.registry import CONTENT_TYPE
from proxy.observe.monitor import sheet
from proxy.server.callers.callers import CALLER
from proxy.server.request.families import WATCHING
from proxy.server.request.inquiry import TIMING_HEADER, id_headers
from proxy.server.request.replies import has_left, json_response
from proxy.server.request.state import REQUEST_ID, STATE, TIMINGS, AppState
from proxy.server.serving.allowances import allowance_rows
from proxy.server.serving.stream import HEADERS

_INDEX = "index.html"

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

#: The page shows names and messages of others. Whatever they are, the browser runs only our files, sends nothing
#: elsewhere, and makes no element from text.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {"Content-Security-Policy": _POLICY, "Cross-Origin-Opener-Policy": "same-origin"}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    kind: str


def _wants_html(request: web.BaseRequest) -> bool:
    """Whether a browser asks: programs accept anything, or name JSON."""
    accepted = ",".join(request.headers.getall("Accept", ()))
    return any(one.partition(";")[0].strip().lower() == "text/html" for one in accepted.split(","))


async def get_page_file(request: web.Request) -> web.StreamResponse:
    """A file of the page. The name is only looked up among the existing ones, never part of a path. Raises
    HTTPNotFound."""
    found = (await _files()).get(request.match_info["id"])
    if found is None:
        raise web.HTTPNotFound
    return _answer(found)


def _answer(file: _File) -> web.Response:
    return web.Response(body=file.body, content_type=file.kind, charset="utf-8", headers=_HEADERS)


async def _files() -> Mapping[str, _File]:
    """name -> file. The files are read once, in a thread."""
    return await asyncio.to_thread(_read)


@cache
def _read() -> Mapping[str, _File]:
    folder = importlib.resources.files("proxy.observe.monitor") / "page"
    bodies = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    bodies["sheet.js"] = sheet.as_module().encode()
    kinds = {name: _KINDS.get("." + name.rpartition(".")[2]) for name in bodies}
    return {name: _File(bodies[name], kind) for name, kind in kinds.items() if kind is not None}


# -- the monitor

#: After this time without anything new a comment is sent, so that no middlebox gives up.
KEEPALIVE_S = 5.0


async def get_monitor(request: web.Request) -> web.StreamResponse:
    """`{"version": 1, "snapshot": {…}}`; for a browser the page, if it is on. Raises ProxyError."""
    state = request.app[STATE]
    if _wants_html(request):
        if not state.config().monitor_page:
            raise ProxyError(
                "the monitor's page is off: PROXY_MONITOR_PAGE=1, or monitor.page in config.json, turns it on at the"
                " next start. Programs are given JSON here",
                kind="no_route",
            )
        return _answer((await _files())[_INDEX])
    body = await state.watchers.encoded(state.monitor.snapshot())
    return web.Response(body=body, content_type="application/json")


async def get_events(request: web.Request) -> web.StreamResponse:
    """Snapshots as the data of events, about one a second while something changes; a comment now and then while nothing
    does. A slow reader gets fewer. Raises BusyError."""
    state = request.app[STATE]
    head = {**id_headers(request[REQUEST_ID]), TIMING_HEADER: request[TIMINGS].header()}
    response = web.StreamResponse(headers={**HEADERS, **head, **WATCHING.headers})
    with state.watchers.one(state.monitor):
        await response.prepare(request)
        if request.method != "HEAD":
            await _follow(request, response, state)
    return response


async def _follow(request: web.Request, response: web.StreamResponse, state: AppState) -> None:
    """Sends snapshots until the client leaves, reads nothing any more, or the application ends."""
    watchers, now = state.watchers, asyncio.get_running_loop().time
    sent, written = 0, now()
    while not (watchers.closed or has_left(request)) and state.callers.still(request.get(CALLER)):
        number, body = await watchers.newest(state.monitor)
        data = b"data: %b\n\n" % body if number != sent else b":\n\n" if now() - written >= KEEPALIVE_S else b""
        if data:
            if not await _written(request, response, data):
                return
            sent, written = number, now()
        await watchers.pause()


async def _written(request: web.Request, response: web.StreamResponse, data: bytes) -> bool:
    """Writes data. Returns False for a client that is gone, or has read nothing for too long, whose connection is then
    closed."""
    try:
        async with asyncio.timeout(request.app[STATE].timers.stall):
            await response.write(data)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return False
    return True


# -- allowances and counts

#: How long the answer waits for services that must be asked first.
PATIENCE_S = 5.0


async def get_limits(request: web.Request) -> web.Response:
    """The limits of all accounts; `?provider=p4` puts one first. Raises RequestError."""
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


async def get_metrics(request: web.Request) -> web.Response:
    """All counts since the start. Raises ProxyError if nothing is counted."""
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
