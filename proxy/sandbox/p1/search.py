"""`POST …/alpha/search`: the search that runs without a model turn around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.model.web_index import Page, find_pages
from proxy.sandbox.p1.catalog import MODELS
from proxy.sandbox.p1.headers import check_account, check_format
from proxy.sandbox.p1.state import P1
from proxy.sandbox.recorder import receive
from proxy.sandbox.upstream import refusals_noted
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
from proxy.sandbox.wires.refusal import Refusal, bare
from proxy.sandbox.wires.responses.input_checks import check_message

_FILTERS = ("allowed_domains", "blocked_domains")


def _is_domain_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _has_good_filters(settings: Any) -> bool:
    """Left out rather than empty."""
    filters = settings.get("filters", {"allowed_domains": ["any"]})
    known = isinstance(filters, dict) and bool(filters) and set(filters) <= set(_FILTERS)
    return known and all(_is_domain_list(domains) for domains in filters.values())


def _is_plain(member: str, kind: type) -> Fault:
    """The member is of this type where it is there; null is not."""
    return fits(lambda item: isinstance(item.get(member, kind()), kind))


def _same_session(search_id: Any, seen: Checked) -> str | None:
    """The rules are the headers here."""
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


async def serve_search(p1: P1, request: web.Request) -> web.StreamResponse:
    """One search."""
    with p1.at_work():
        seen = await receive(request)
        p1.searches.append(seen)
        with refusals_noted(seen):
            check_account(request.headers, p1.tokens)
            check_format(request.headers, "application/json")
            check(seen.body, _SEARCH, request.headers)
        seen.status = 200
        return web.json_response(_results(seen.body))


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
