"""`POST …/search` and `…/fetch`: what the vendor's own client offers its model as tools, with the same credential."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from proxy.sandbox.model.web_index import find_pages
from proxy.sandbox.p2.headers import check_caller
from proxy.sandbox.p2.state import P2
from proxy.sandbox.recorder import receive
from proxy.sandbox.upstream import refusals_noted
from proxy.sandbox.wires.field_checks import Table, check, fits, required
from proxy.sandbox.wires.refusal import WRONG_VALUE

_ADDRESS = fits(lambda url: isinstance(url, str) and url.startswith(("http://", "https://")), "an address")

_SEARCH: Table = (required("", "object"), required("text_query", "filled"))
_FETCH: Table = (required("", "object"), required("url", _ADDRESS, WRONG_VALUE))


async def serve_search(p2: P2, request: web.Request) -> web.Response:
    """`{"text_query": "rust"}` -> `{"search_results": [{"title", "url", "snippet", "site_name", "date"}]}`."""
    body = await _checked(p2, request, _SEARCH)
    found = [
        {"title": page.title, "url": page.url, "snippet": page.snippet, "site_name": page.url.split("/")[2], "date": ""}
        for page in find_pages(body["text_query"])
    ]
    return web.json_response({"search_results": found}, headers=p2.trace_headers())


async def serve_fetch(p2: P2, request: web.Request) -> web.Response:
    """`{"url": …}` -> the page as Markdown."""
    body = await _checked(p2, request, _FETCH)
    text = f"# A page\n\nWhat stands at {body['url']}.\n"
    return web.Response(text=text, content_type="text/markdown", headers=p2.trace_headers())


async def _checked(p2: P2, request: web.Request, table: Table) -> Any:
    """The body. Raises Refused."""
    seen = await receive(request)
    p2.service_requests.append(seen)
    with refusals_noted(seen):
        check_caller(request.headers, p2.tokens, p2.options.agents)
        check(seen.body, table)
    seen.status = 200
    return seen.body
