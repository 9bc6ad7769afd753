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
from proxy.sandbox.wires.checking import missing
from proxy.sandbox.wires.refusal import detail, invalid
from proxy.sandbox.wires.responses.input_checks import check_message

_TOP_LEVEL = frozenset({"id", "model", "input", "commands", "settings", "max_output_tokens"})
_SETTINGS = frozenset({"filters", "allowed_callers", "external_web_access"})
_QUERY = frozenset({"q", "domains", "recency"})
_FILTERS = ("allowed_domains", "blocked_domains")


async def serve_search(p1: P1, request: web.Request) -> web.StreamResponse:
    """One search."""
    with p1.at_work():
        seen = await receive(request)
        p1.searches.append(seen)
        with refusals_noted(seen):
            check_account(request.headers, p1.tokens)
            check_format(request.headers, "application/json")
            _check(request.headers, seen.body)
        seen.status = 200
        return web.json_response(_results(seen.body))


def _check(headers: Mapping[str, str], body: Any) -> None:
    if not isinstance(body, dict):
        raise detail("Invalid JSON body")
    _only(body, _TOP_LEVEL, "")
    if not isinstance(body.get("id"), str) or not body["id"]:
        raise missing("id")
    if headers.get("session-id", body["id"]) != body["id"]:
        raise detail("session-id does not match the id of the search")
    if body.get("model") not in MODELS:
        raise detail(f"Model not found {body.get('model')}", 404)
    if not isinstance(body.get("max_output_tokens", 1), int):
        raise invalid("Invalid type for 'max_output_tokens'.", code="invalid_type", param="max_output_tokens")
    _check_input(body.get("input"))
    _check_commands(body.get("commands"))
    _check_settings(body.get("settings"))


def _check_input(items: Any) -> None:
    """Messages only; left out rather than empty."""
    if items is None:
        return
    if not isinstance(items, list) or not items:
        raise invalid("Invalid 'input': expected a non-empty list.", code="invalid_value", param="input")
    for index, item in enumerate(items):
        if not isinstance(item, dict) or item.get("type") != "message":
            raise invalid(f"Invalid 'input[{index}]': expected a message.", code="invalid_value", param="input")
        check_message(item, f"input[{index}]")


def _check_commands(commands: Any) -> None:
    queries = commands.get("search_query") if isinstance(commands, dict) else None
    if not isinstance(queries, list) or not queries:
        raise missing("commands.search_query")
    for query in queries:
        if not isinstance(query, dict) or not isinstance(query.get("q"), str) or not query["q"].strip():
            raise missing("commands.search_query[].q")
        _only(query, _QUERY, "commands.search_query[].")


def _check_settings(settings: Any) -> None:
    if not isinstance(settings, dict) or settings.get("allowed_callers") != ["direct"]:
        raise missing("settings.allowed_callers")
    _only(settings, _SETTINGS, "settings.")
    if not isinstance(settings.get("external_web_access", True), bool):
        raise invalid("Invalid type for 'settings.external_web_access'.", code="invalid_type", param="settings")
    if "filters" not in settings:
        return
    filters = settings["filters"]
    lists = isinstance(filters, dict) and bool(filters) and set(filters) <= set(_FILTERS)
    if not lists or not all(_is_domain_list(domains) for domains in filters.values()):
        raise invalid("Invalid 'settings.filters'.", code="invalid_value", param="settings.filters")


def _is_domain_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _only(value: Mapping[str, Any], allowed: frozenset[str], where: str) -> None:
    for name in value:
        if name not in allowed:
            raise invalid(f"Unknown parameter: '{where}{name}'.", code="unknown_parameter", param=f"{where}{name}")


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
