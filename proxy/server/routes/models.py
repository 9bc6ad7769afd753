"""`GET /healthz` and `GET /v1/models`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.core.routing import listing
from proxy.errors import RequestError
from proxy.server.exchange import json_response
from proxy.server.state import STATE

#: The Messages API wants a date and allows this one for "not known".
UNKNOWN_DATE = "1970-01-01T00:00:00Z"

#: a model and the label of its provider
_Listed = tuple[str, str]


async def get_health(_request: web.Request) -> web.Response:
    """Alive, nothing else is checked."""
    return json_response({"ok": True})


async def get_models(request: web.Request) -> web.Response:
    """All models of all providers that are served."""
    state = request.app[STATE]
    entries = listing(state.served, state.config().alias_provider)
    shown, more = _page(entries, request.query)
    data = [_described(model, label) for model, label in shown]
    return json_response(
        {
            "object": "list",
            "data": data,
            "has_more": more,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
        }
    )


def _page(entries: list[_Listed], query: Mapping[str, str]) -> tuple[list[_Listed], bool]:
    """The entries to show, and whether there are more. `limit` keeps the first n; `after_id` goes on behind an id, and
    `before_id` back, because the official SDK pages that way and would otherwise ask for the first page for ever."""
    ids = [model for model, _ in entries]
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


def _described(model: str, label: str) -> dict[str, Any]:
    """The members of both families: each reads its own."""
    return {
        "type": "model",
        "object": "model",
        "id": model,
        "display_name": f"{model} ({label})",
        "created_at": UNKNOWN_DATE,
        "created": 0,
        "owned_by": label,
    }


def _limit(value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise RequestError("limit must be a non-negative whole number", param="limit")
    return int(value)
