"""`usage p2`: the question, and an answer of which nobody promised the form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.errors import ProxyError, SignInError
from proxy.providers.p2_kimi.account import usage_windows as usage
from proxy.sandbox import Sandbox

NOW_S = 1_790_000_000.0


async def show(root: Path, sandbox: Sandbox, base_url: str = "", **options: Any) -> list[str]:
    said: list[str] = []
    base_url = base_url or sandbox.settings()["PROXY_P2_BASE_URL"] + "/"
    async with aiohttp.ClientSession() as session:
        await usage.show(root, base_url, sandbox.origin, say=said.append, session=session, **options)
    return said


async def test_text(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    title, week, window = await show(tmp_path, sandbox)
    assert title == "Kimi Code usage:"
    assert week.startswith("  Weekly: 3 of 100 used, 97 left, resets 20") and week.endswith("Z")
    assert window.startswith("  5 hours: 12 of 100 used, 88 left, resets 20")


async def test_json(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    (text,) = await show(tmp_path, sandbox, as_json=True)
    body = json.loads(text)
    assert set(body) == {"usage", "limits"} and body["usage"]["used"] == "3"
    assert text.startswith('{\n  "usage": {\n')


async def test_refused_token_is_renewed_once(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    sandbox.p2.revoke_access()
    assert len(await show(tmp_path, sandbox)) == 3
    assert sandbox.p2.refreshes == 1


async def test_without_sign_in(tmp_path: Path, sandbox: Sandbox) -> None:
    with pytest.raises(SignInError, match="auth login p2"):
        await show(tmp_path, sandbox)


async def test_program_that_is_not_served(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    with pytest.raises(ProxyError, match=r"403.*only available for Coding Agents") as caught:
        await show(tmp_path, sandbox, user_agent="aiohttp/3")
    assert caught.value.kind == "permission" and sandbox.p2.refreshes == 0


async def test_token_of_another_device(tmp_path: Path, sandbox: Sandbox) -> None:
    """The renewal is refused as well, and the credential stays."""
    sandbox.write_credentials(tmp_path)
    (tmp_path / "p2" / "device_id").write_text("other")
    with pytest.raises(SignInError, match="auth login p2"):
        await show(tmp_path, sandbox)
    assert (tmp_path / "p2" / "auth.json").exists()


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (429, {"error": {"message": "slow", "type": "x"}}, "rate_limit", "429 x: slow"),
        (500, "oops", "transient", "500 oops"),
        (302, "", "upstream", "302"),
        (401, {"message": "who?"}, "sign_in", "who.*sign in again, run .*auth login p2"),
        (200, "<html>", "bad_answer", "usage response was invalid"),
        (200, {"user": {"userId": "u"}}, "bad_answer", "usage response was invalid"),
    ],
)
async def test_failures(tmp_path: Path, sandbox: Sandbox, status: int, body: Any, kind: str, message: str) -> None:
    sandbox.write_credentials(tmp_path)

    async def usages(request: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/usages", usages)
    async with TestServer(app) as server:
        with pytest.raises(ProxyError, match=message) as caught:
            await show(tmp_path, sandbox, str(server.make_url("")))
    assert (caught.value.kind, caught.value.provider) == (kind, "p2")


async def test_unreachable(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    with pytest.raises(ProxyError, match="p2 could not be reached") as caught:
        await show(tmp_path, sandbox, "http://127.0.0.1:9")
    assert caught.value.status == 502


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"usage": {"limit": 100, "remaining": 40}}, ["Weekly: 60 of 100 used, 40 left"]),
        ({"usage": {"used": 3, "reset_at": "soon"}}, ["Weekly: 3 used, resets soon"]),
        ({"usage": {"name": "Month", "limit": "5"}}, ["Month: limit 5"]),
        ({"limits": [{"limit": 1, "used": 0.5, "title": "T\x1b[2J"}]}, ["T [2J: 0.5 of 1 used"]),
        ({"limits": [{"window": {"duration": 7, "unit": "day"}, "detail": {"used": 1}}]}, ["7 days: 1 used"]),
        ({"limits": [{"window": {"duration": 90, "timeUnit": "MINUTE"}, "used": 1}]}, ["90 minutes: 1 used"]),
        ({"limits": [{"window": {"duration": "x"}, "used": 1}, 5, {}]}, ["limits: 1 used"]),
        ({"totalQuota": {"limit": 9, "used": 1}, "parallel": 3}, ["totalQuota: 1 of 9 used"]),
        ({"usage": [], "limits": None}, ["nothing that this version understands; --json prints the answer"]),
    ],
)
def test_unknown_forms(body: dict[str, Any], shown: list[str]) -> None:
    assert usage.lines(body) == ["Kimi Code usage:", *(f"  {line}" for line in shown)]
