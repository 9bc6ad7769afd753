"""What simulated sign-in services share: form fields, OAuth errors, the token endpoint with its switches."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.play.actions import Reply
from proxy.sandbox.wires.refusal import Refused, detail, plain_reply

#: Codes and device sign-ins that are under way; older ones are forgotten.
MAX_PENDING = 100

#: Token requests kept for inspection.
KEPT_REQUESTS = 128

#: Letters of a code that a person types in: none that looks like another, no vowels and hence no words.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"

#: A grant turns the fields of a token request into a token response, or raises Refused.
Grant = Callable[[Mapping[str, Any]], dict[str, Any]]


class TokenEndpoint:
    """`POST` of a token request. `fail` and `delay_s` alter it; the counters and `token_requests` tell what came."""

    def __init__(self) -> None:
        self.fail: Reply | None = None
        self.fail_left: int | None = None  # how many more times; None: for ever
        self.delay_s = 0.0
        self.refreshes = 0
        self.refresh_requests = 0
        self.token_requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)  # the fields of each

    def answer_with(
        self, status: int, body: Any = "", headers: Mapping[str, str] | None = None, *, times: int | None = None
    ) -> None:
        """From now on (or `times` times) the token endpoint answers just this; `recover` ends it."""
        self.fail, self.fail_left = Reply(status, body, headers), times

    def recover(self) -> None:
        self.fail, self.fail_left, self.delay_s = None, None, 0.0

    async def serve_token(self, fields: dict[str, Any], client_id: str, grants: Mapping[str, Grant]) -> web.Response:
        """One token request. A successful refresh is counted by its grant."""
        fail = await self.switched(fields)
        if fail is not None:
            return fail
        if fields.get("client_id") != client_id:
            raise oauth_error("invalid_client", "unknown client_id", 401)
        grant = grants.get(str(fields.get("grant_type")))
        if grant is None:
            raise oauth_error("unsupported_grant_type", f"one of {', '.join(grants)} expected")
        return web.json_response(grant(fields))

    async def switched(self, fields: dict[str, Any]) -> web.Response | None:
        """Notes a token request; its answer if that is switched."""
        self.token_requests.append(fields)
        if fields.get("grant_type") == "refresh_token":
            self.refresh_requests += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        fail = self._next_failure()
        return None if fail is None else plain_reply(fail.status, fail.body, fail.headers or {})

    def _next_failure(self) -> Reply | None:
        if self.fail is None or self.fail_left is None:
            return self.fail
        self.fail_left -= 1
        fail = self.fail
        if self.fail_left <= 0:
            self.fail = self.fail_left = None
        return fail


def new_user_code() -> str:
    """Such as `BCDF-GHJK`."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))


async def sign_in_page(_request: web.Request) -> web.Response:
    """The page that a device code is typed into."""
    page = (
        "<!doctype html><title>Sandbox sign-in</title><h1>Sandbox sign-in</h1>"
        "<p>This is a simulated account on your own machine. There is nothing to type in: the program that shows "
        "you a code is signed in by itself after a moment.</p>"
    )
    return web.Response(text=page, content_type="text/html")


async def form_fields(request: web.Request) -> dict[str, Any]:
    """The fields of a form. Raises Refused."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise detail("Unsupported Media Type", 415)
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


async def json_fields(request: web.Request) -> dict[str, Any]:
    """The members of a JSON object. Raises Refused."""
    if request.content_type != "application/json":
        raise detail("Unsupported Media Type", 415)
    try:
        fields = json.loads(await request.read())
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise oauth_error("invalid_request", "a JSON object is needed")
    return fields


def oauth_error(code: str, description: str, status: int = 400) -> Refused:
    return Refused(status, {"error": code, "error_description": description})
