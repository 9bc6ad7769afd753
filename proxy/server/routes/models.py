"""`GET /v1/models` and `GET /v1/models/{id}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from proxy.core.invalid import cut
from proxy.core.routing import (
    ALIASES,
    CLAUDE,
    Catalog,
    ModelLimits,
    listing,
    normalise_model,
    proposal,
    route,
    without_claude,
)
from proxy.errors import RequestError
from proxy.server.request.replies import json_response
from proxy.server.request.state import STATE

#: The Messages API wants a date and allows this one for "unknown".
UNKNOWN_DATE = "1970-01-01T00:00:00Z"

#: Clients' names for the window of a model, and for the longest answer.
_CONTEXT = ("context_window", "context_length", "max_input_tokens")
_OUTPUT = ("max_output_tokens", "max_completion_tokens", "max_tokens")

#: A model, the label of its provider, and the provider's name for it.
_Listed = tuple[str, str, str]


async def get_models(request: web.Request) -> web.Response:
    """All models of the providers that are served."""
    state = request.app[STATE]
    config, served = state.config(), state.served
    entries = [(model, label, model) for model, label in listing(served, config.alias_provider)]
    if config.claude_names:
        entries = _with_second_names(entries, served)
    shown, more = _page(entries, request.query)
    catalogs = {catalog.label: catalog for catalog in served}
    data = [_described(model, plain, catalogs[label]) for model, label, plain in shown]
    return json_response(
        {
            "object": "list",
            "data": data,
            "has_more": more,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
        }
    )


def _with_second_names(entries: list[_Listed], served: Sequence[Catalog]) -> list[_Listed]:
    """The entries with the second names for a picker. It asks for the first thousand and shows a row for each, so
    second names come before the hundreds with a prefix, of which only those with the plain one have a second name."""
    prefixed = {name for catalog in served for name in catalog.prefixed}
    plain_prefixes = tuple(catalog.prefixes[0] for catalog in served if catalog.prefixes)
    known = {model for model, _, _ in entries} | ALIASES
    second = [
        (CLAUDE + model, label, model)
        for model, label, _ in entries
        if model not in ALIASES and (model not in prefixed or model.startswith(plain_prefixes))
    ]
    few = [entry for entry in entries if entry[0] not in prefixed]
    many = [entry for entry in entries if entry[0] in prefixed]
    return [*few, *(entry for entry in second if entry[0] not in known), *many]


async def get_model(request: web.Request) -> web.Response:
    """One model, by any name that a request may use. Raises RequestError (404)."""
    state = request.app[STATE]
    config, served = state.config(), state.served
    called = normalise_model(request.match_info["id"])
    plain = without_claude(called, served) if config.claude_names else called
    found = route(plain, served, alias_provider=config.alias_provider)
    if found is None:
        near = proposal(cut(called), served, config.alias_provider)
        message = f'There is no model "{cut(called)}". {near}GET /v1/models lists them.'
        raise RequestError(message, kind="not_found", param="model", code="model_not_found")
    catalog = next(catalog for catalog in served if catalog.label == found.label)
    return json_response(_described(called, plain, catalog))


def _page(entries: list[_Listed], query: Mapping[str, str]) -> tuple[list[_Listed], bool]:
    """The entries to show, and whether there are more. `limit` keeps the first n; `after_id` continues after an id, and
    `before_id` goes back, since the official SDK pages that way and would otherwise ask for the first page for ever."""
    ids = [model for model, _, _ in entries]
    after, before = query.get("after_id"), query.get("before_id")
    if after:
        entries = entries[ids.index(after) + 1 :] if after in ids else []
    elif before:
        entries = entries[: ids.index(before)] if before in ids else []
    limit = _limit(query.get("limit"))
    shown = entries if limit is None else entries[:limit]
    if before and not after and limit:  # backwards, the nearest ones are the last
        shown = entries[-limit:]
    return shown, len(entries) > len(shown)


def _described(model: str, plain: str, catalog: Catalog) -> dict[str, Any]:
    """The members for both families, each of which reads its own. `plain`: the name without a picker's prefix."""
    return {
        "type": "model",
        "object": "model",
        "id": model,
        "display_name": f"{model} ({catalog.label})",
        "created_at": UNKNOWN_DATE,
        "created": 0,
        "owned_by": catalog.label,
        "lifecycle": "active",
        **_limits(catalog.limits_of(plain)),
    }


def _limits(limits: ModelLimits) -> dict[str, int]:
    """Each limit under the names that clients look for, if it is known."""
    context = {} if limits.context is None else dict.fromkeys(_CONTEXT, limits.context)
    return context if limits.output is None else context | dict.fromkeys(_OUTPUT, limits.output)


def _limit(value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise RequestError("limit must be a non-negative whole number", param="limit")
    return int(value)
