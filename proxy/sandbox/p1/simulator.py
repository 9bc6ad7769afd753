"""The simulated P1: its routes, wires and faults, the account, and `POST …/alpha/search`, the search that runs without
a model turn around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json
from proxy.sandbox.model.web_index import Page, find_pages
from proxy.sandbox.p1.catalog import MODELS, listed
from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.headers import FORMAT, check_account
from proxy.sandbox.p1.media.routes import MEDIA_FAULTS, media_routes
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.responses import RESPONSES, prepare_responses
from proxy.sandbox.p1.socket.answer import SOCKET_WIRE
from proxy.sandbox.p1.socket.upgrade import UPGRADE, UPGRADE_FAULTS, serve_upgrade
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.play.json_faults import JSON_FAULTS, serve_json, serve_list
from proxy.sandbox.play.script import Place
from proxy.sandbox.upstream import Simulator, receive, refusals_noted
from proxy.sandbox.wires.field_checks import (
    Checked,
    Each,
    Fault,
    Inside,
    Known,
    Table,
    check,
    fits,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import Refusal, bare, detail
from proxy.sandbox.wires.responses.checks import check_message

_FILTERS = ("allowed_domains", "blocked_domains")


def _is_domain_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _has_good_filters(settings: Any) -> bool:
    """Filters must be left out rather than empty."""
    filters = settings.get("filters", {"allowed_domains": ["any"]})
    known = isinstance(filters, dict) and bool(filters) and set(filters) <= set(_FILTERS)
    return known and all(_is_domain_list(domains) for domains in filters.values())


def _is_plain(member: str, kind: type) -> Fault:
    """Requires this type of a member that is present; null is refused."""
    return fits(lambda item: isinstance(item.get(member, kind()), kind))


def _same_session(search_id: Any, seen: Checked) -> str | None:
    """The session of the headers must match the search."""
    return None if seen.rules.get("session-id", search_id) == search_id else ""


_TYPE = Refusal("Invalid type for '{where}'.", "invalid_type")
_EMPTY = Refusal("Invalid 'input': expected a non-empty list.", "invalid_value")
_NO_MESSAGE = Refusal("Invalid '{here}': expected a message.", "invalid_value", "input")
_IS_MESSAGE = fits(lambda item: isinstance(item, dict) and item.get("type") == "message")
_IS_FILLED = fits(lambda query: isinstance(query, str) and query.strip())

_SETTINGS: Table = (
    Known("filters allowed_callers external_web_access"),
    required("", _is_plain("external_web_access", bool), _TYPE.about("{here}"), at="external_web_access"),
    required("", fits(_has_good_filters), Refusal("Invalid '{where}'.", "invalid_value"), at="filters"),
)

_SEARCH: Table = (
    required("", "object", bare("Invalid JSON body")),
    Known("id model input commands settings max_output_tokens"),
    required("id", "filled"),
    required("id", _same_session, bare("session-id does not match the id of the search")),
    required("model", one_of(*MODELS), bare("Model not found {value}", 404)),
    required("", _is_plain("max_output_tokens", int), _TYPE, at="max_output_tokens"),
    # messages only; left out rather than empty
    optional("input", "filled list", _EMPTY),
    Each("input", (required("", _IS_MESSAGE, _NO_MESSAGE), lambda item, where, _: check_message(item, where))),
    required("commands.search_query", "filled list"),
    Each("commands.search_query", (required("q", _IS_FILLED), Known("q domains recency"))),
    required("settings.allowed_callers", fits(lambda callers: callers == ["direct"])),
    Inside("settings", _SETTINGS),
)


SEARCH = Place("p1", "search", stream=False)
#: The statuses of P1 that have a sense for a search.
SEARCH_HTTP = {name: fault for name, fault in HTTP_FAULTS.items() if name not in ("context_http", "unsealable")}


async def serve_search(p1: P1, request: web.Request) -> web.StreamResponse:
    """Serves one search."""
    with p1.at_work():
        seen = await receive(request)
        p1.searches.append(seen)
        with refusals_noted(seen):
            check_account(request.headers, p1.tokens)
            check(request.headers, FORMAT, "application/json")
            check(seen.body, _SEARCH, request.headers)
        return await serve_json(p1, SEARCH, SEARCH_HTTP, request, seen, _results(seen.body))


def _results(body: Mapping[str, Any]) -> dict[str, Any]:
    filters = body["settings"].get("filters", {})
    allowed, blocked = (filters.get(name, ()) for name in _FILTERS)
    pages: list[Page] = []
    for query in body["commands"]["search_query"]:
        pages += find_pages(query["q"], allowed or query.get("domains") or (), blocked)
    results = [
        {
            "type": "text_result",
            "ref_id": f"turn0search{index}",
            "url": page.url,
            "title": page.title,
            "snippet": page.snippet,
        }
        for index, page in enumerate(pages)
    ]
    output = "\n".join(f"{page.title}: {page.snippet}" for page in pages) or "No results."
    return {"output": output, "encrypted_output": None, "results": results}


async def serve_usage(p1: P1, request: web.Request) -> web.Response:
    check_account(request.headers, p1.tokens)
    return web.json_response(p1.options.quota.usage(p1.clock()))


async def serve_models(p1: P1, request: web.Request) -> web.StreamResponse:
    if not request.query.get("client_version"):
        raise detail("Missing query parameter: client_version")
    check_account(request.headers, p1.tokens)
    return await serve_list(p1.options, request, dump_json({"models": listed(p1.options.models)}).encode(), {})


async def serve_workspaces(p1: P1, request: web.Request) -> web.Response:
    """Lists the backend of each workspace; the vendor's client sends nothing before it knows."""
    check_account(request.headers, p1.tokens)
    p1.routings += 1
    account = p1.options.account_id
    return web.json_response(
        {"accounts": [_workspace(p1)], "account_ordering": [account], "default_account_id": account}
    )


def _workspace(p1: P1) -> dict[str, Any]:
    options = p1.options
    return {
        "id": options.account_id,
        "name": "Sandbox",
        "structure": "personal",
        "plan_type": options.quota.plan,
        "profile_picture_url": None,
        "is_deactivated": False,
        "can_access_with_session": True,
        "sso_connection_name": None,
        "is_fedramp_compliant_workspace": False,
        "workspace_backend_origin": options.workspace_origin,
        "account_routing_override": options.routing_override,
    }


async def _answer(p1: P1, request: web.Request) -> web.StreamResponse:
    return await p1.serve(partial(prepare_responses, p1), request)


def _of_account(
    p1: P1, serve: Callable[[P1, web.Request], Awaitable[web.StreamResponse]]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A route that the bearer's account serves."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await serve(p1.asked(request.headers), request)

    return handle


def _routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/responses", _of_account(p1, _answer)),
        web.get(f"{CODEX_PATH}/responses", _of_account(p1, serve_upgrade), allow_head=False),
        web.post(f"{CODEX_PATH}/alpha/search", _of_account(p1, serve_search)),
        web.get(f"{CODEX_PATH}/models", _of_account(p1, serve_models)),
        web.get("/backend-api/wham/usage", _of_account(p1, serve_usage)),
        web.get("/backend-api/wham/accounts/check", _of_account(p1, serve_workspaces)),
        *media_routes(p1),
        *p1.issuer.routes(),
    ]


P1_SIMULATOR = Simulator(
    "p1",
    P1,
    P1Options,
    (RESPONSES, SOCKET_WIRE),
    _routes,
    {UPGRADE: UPGRADE_FAULTS, SEARCH: {**SEARCH_HTTP, **JSON_FAULTS}, **MEDIA_FAULTS},
)
