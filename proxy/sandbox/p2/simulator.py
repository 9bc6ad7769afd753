"""The simulated P2: its routes, wires and faults, the account, and the services for tools.

The vendor's own client offers `POST …/search` and `…/fetch` to its model, with the same credential.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.model.web_index import find_pages
from proxy.sandbox.p2.catalog import listed_models
from proxy.sandbox.p2.chat import HTTP_FAULTS, STREAM, WHOLE, prepare_chat
from proxy.sandbox.p2.issuer import check_caller
from proxy.sandbox.p2.state import API_PATH, P2, P2Options
from proxy.sandbox.play.json_faults import JSON_FAULTS, serve_json, serve_list
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Received, Simulator, receive, refusals_noted
from proxy.sandbox.wires.field_checks import Table, check, fits, required
from proxy.sandbox.wires.refusal import WRONG_VALUE

_ADDRESS = fits(lambda url: isinstance(url, str) and url.startswith(("http://", "https://")), "an address")

_SEARCH: Table = (required("", "object"), required("text_query", "filled"))
_FETCH: Table = (required("", "object"), required("url", _ADDRESS, WRONG_VALUE))


SEARCH = Place("p2", "search", stream=False)
SEARCH_HTTP = {name: fault for name, fault in HTTP_FAULTS.items() if name != "context_http"}


async def serve_search(p2: P2, request: web.Request) -> web.StreamResponse:
    """`{"text_query": "rust"}` -> `{"search_results": [{"title", "url", "snippet", "site_name", "date"}]}`."""
    seen = await _checked(p2, request, _SEARCH)
    found = [
        {"title": page.title, "url": page.url, "snippet": page.snippet, "site_name": page.url.split("/")[2], "date": ""}
        for page in find_pages(seen.body["text_query"])
    ]
    return await serve_json(p2, SEARCH, SEARCH_HTTP, request, seen, {"search_results": found})


async def serve_fetch(p2: P2, request: web.Request) -> web.Response:
    """`{"url": …}` -> the page as Markdown."""
    body = (await _checked(p2, request, _FETCH)).body
    text = f"# A page\n\nThe content of {body['url']}.\n"
    return web.Response(text=text, content_type="text/markdown", headers=p2.trace_headers())


async def _checked(p2: P2, request: web.Request, table: Table) -> Received:
    """The checked request. Raises Refused."""
    seen = await receive(request)
    p2.service_requests.append(seen)
    with refusals_noted(seen):
        check_caller(request.headers, p2.tokens, p2.options.agents)
        check(seen.body, table)
    seen.status = 200
    return seen


async def _serve_models(p2: P2, request: web.Request) -> web.StreamResponse:
    check_caller(request.headers, p2.tokens, p2.options.agents)
    return await serve_list(p2.options, request, dump_json(listed_models()).encode(), p2.trace_headers())


async def _serve_usages(p2: P2, request: web.Request) -> web.Response:
    """The quotas of the week and of the five-hour window, in the form that the vendor's own client reads."""
    week, window = (_quota(used, p2.clock() + hours * 3600) for used, hours in ((3, 168), (12, 5)))
    limit = {"window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}, "detail": window}
    return _account_answer(p2, request, {"usage": week, "limits": [limit]})


def _account_answer(p2: P2, request: web.Request, body: Mapping[str, Any]) -> web.Response:
    check_caller(request.headers, p2.tokens, p2.options.agents)
    return web.json_response(body, headers=p2.trace_headers())


def _quota(used: int, resets: float) -> dict[str, Any]:
    time_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(resets))
    return {"limit": "100", "used": str(used), "remaining": str(100 - used), "resetTime": time_text}


def _routes(p2: P2) -> list[web.RouteDef]:
    return [
        web.post(f"{API_PATH}/chat/completions", partial(p2.serve, partial(prepare_chat, p2))),
        web.post(f"{API_PATH}/search", partial(serve_search, p2)),
        web.post(f"{API_PATH}/fetch", partial(serve_fetch, p2)),
        web.get(f"{API_PATH}/models", partial(_serve_models, p2)),
        web.get(f"{API_PATH}/usages", partial(_serve_usages, p2)),
        *p2.issuer.routes(),
    ]


P2_SIMULATOR = Simulator("p2", P2, P2Options, (STREAM, WHOLE), _routes, {SEARCH: {**SEARCH_HTTP, **JSON_FAULTS}})
