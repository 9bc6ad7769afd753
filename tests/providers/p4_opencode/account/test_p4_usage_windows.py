"""`usage p4`."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.core.secret import Secret
from proxy.errors import ProxyError, SignInError
from proxy.providers.p4_opencode.account import usage_windows as usage
from proxy.sandbox import Sandbox

KEY = Secret("sk-sandbox-opencode-go")
WINDOWS: dict[str, dict[str, Any]] = {
    "rolling": {"status": "ok", "percent": 12.5, "resetsAt": "2026-10-01T12:00:00.000Z"},
    "weekly": {"status": "ok", "percent": 34, "resetsAt": "2026-10-05T00:00:00.000Z"},
    "monthly": {"status": "rate-limited", "percent": 100.0, "resetsAt": "2026-10-20T00:00:00.000Z"},
}


async def show(base_url: str, key: Secret | None = KEY, **options: Any) -> list[str]:
    said: list[str] = []
    async with aiohttp.ClientSession() as session:
        await usage.show(base_url, key, say=said.append, session=session, **options)
    return said


async def ask(status: int, body: Any, **options: Any) -> list[str]:
    """What is printed for this answer."""

    async def answer(request: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers={"Retry-After": "17", "Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/v1/usage", answer)
    async with TestServer(app) as server:
        return await show(str(server.make_url("/v1/")), **options)


async def test_text() -> None:
    assert await ask(200, {"workspaceID": "wrk_1", "userID": "usr_1", "usage": WINDOWS}) == [
        "OpenCode Go usage:",
        "  Rolling (5 hour): 12.5% used, status ok, resets 2026-10-01T12:00:00.000Z",
        "  Weekly: 34% used, status ok, resets 2026-10-05T00:00:00.000Z",
        "  Monthly: 100% used, status rate-limited, resets 2026-10-20T00:00:00.000Z",
    ]


async def test_json() -> None:
    more = {**WINDOWS["rolling"], "userID": "usr_1"}
    body = {"workspaceID": "wrk_1", "userID": "usr_1", "usage": {**WINDOWS, "rolling": more, "userID": "usr_1"}}
    (text,) = await ask(200, body, as_json=True)
    assert text == json.dumps({"usage": WINDOWS}, indent=2)


async def test_sandbox(sandbox: Sandbox) -> None:
    base_url = sandbox.settings()["PROXY_P4_BASE_URL"]
    shown = await show(base_url)
    assert [line.partition(" used")[0] for line in shown[1:]] == [
        "  Rolling (5 hour): 12.5%",
        "  Weekly: 34%",
        "  Monthly: 100%",
    ]
    (asked,) = sandbox.p4.usage_requests
    headers = asked.headers
    assert headers["authorization"] == f"Bearer {KEY.reveal()}" and headers["accept"] == "application/json"
    assert headers["user-agent"].startswith("model-proxy/") and "x-api-key" not in headers
    with pytest.raises(SignInError, match="Invalid API key"):
        await show(base_url, Secret("wrong"))
    sandbox.p4.options.subscribed = False
    with pytest.raises(ProxyError, match="OpenCode Go subscription required") as caught:
        await show(base_url)
    assert (caught.value.status, caught.value.row.messages) == (403, "permission_error")


@pytest.mark.parametrize("key", [None, Secret("")])
async def test_without_a_key_nothing_is_asked(key: Secret | None) -> None:
    with pytest.raises(SignInError, match=r"PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4\.apiKey") as caught:
        await show("http://127.0.0.1:9", key)
    assert caught.value.status == 401


def said(kind: str, message: str = "why") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "expected", "shape", "message"),
    [
        (401, said("AuthError"), 401, "authentication_error", "why"),
        (401, {"message": "top"}, 401, "authentication_error", "top"),
        (401, said("ModelError"), 400, "invalid_request_error", "why"),
        (401, said("CreditsError"), 402, "permission_error", "why"),
        (402, said("x"), 402, "permission_error", "why"),
        (403, said("EntitlementError"), 403, "permission_error", "why"),
        (429, said("RateLimitError"), 429, "rate_limit_error", "why"),
        (429, said("GoUsageLimitError"), 429, "rate_limit_error", "why"),
        (418, said("x"), 418, "invalid_request_error", "why"),
        (500, said("error"), 502, "api_error", "why"),
        (302, "", 502, "api_error", "OpenCode Go upstream returned HTTP 302"),
        (503, "<html>", 502, "api_error", "OpenCode Go upstream returned HTTP 503"),
        (404, said("x", " "), 404, "invalid_request_error", "OpenCode Go upstream returned HTTP 404"),
        (500, said("x", f"key {KEY.reveal()}\x1b"), 502, "api_error", "key [redacted]"),
    ],
)
async def test_failures(status: int, body: Any, expected: int, shape: str, message: str) -> None:
    with pytest.raises(ProxyError) as caught:
        await ask(status, body)
    error = caught.value
    assert (error.status, error.row.messages, error.message) == (expected, shape, message)
    assert (error.retry_after, error.provider) == (17.0, "p4")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {},
        {**WINDOWS, "weekly": None},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "status": "odd"}},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "percent": "34"}},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "percent": True}},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "percent": float("nan")}},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "status": ["ok"]}},
        {**WINDOWS, "weekly": {**WINDOWS["weekly"], "resetsAt": 5}},
    ],
)
async def test_answer_of_another_shape(usage: Any) -> None:
    with pytest.raises(ProxyError, match="usage response was invalid") as caught:
        await ask(200, {"usage": usage})
    assert caught.value.status == 502


async def test_unreachable() -> None:
    with pytest.raises(ProxyError, match="p4 could not be reached") as caught:
        await show("http://127.0.0.1:9")
    assert caught.value.status == 502
