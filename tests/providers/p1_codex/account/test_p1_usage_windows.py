"""`usage p1`: the question, the answer in words, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import configured

from proxy.auth.http import MAX_ANSWER_BYTES
from proxy.errors import ProxyError, SignInError
from proxy.loading import load
from proxy.providers.p1_codex.account import usage_windows as usage
from proxy.sandbox import Sandbox

NOW = 1_800_000_000.0
WINDOW = {"used_percent": 12.5, "limit_window_seconds": 18_000, "reset_after_seconds": 600}


async def show(root: Path, sandbox: Sandbox, base_url: str = "", **options: Any) -> list[str]:
    said: list[str] = []
    config = load(sandbox.settings())[0]
    if base_url:
        config = configured(config, p1_base_url=base_url)
    async with aiohttp.ClientSession() as session:
        await usage.show(root, config, say=said.append, session=session, **options)
    return said


async def test_text(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    title, hours, week, credits = await show(tmp_path, sandbox)
    assert (title, credits) == ("Codex usage (plus plan):", "  Credits: none")
    assert hours.startswith("  5 hours: 12% used, resets 20") and hours.endswith("Z")
    assert week.startswith("  Weekly: 3% used, resets 20")


async def test_json(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    (text,) = await show(tmp_path, sandbox, as_json=True)
    assert json.loads(text)["rate_limit"]["primary_window"]["used_percent"] == 12


async def test_refused_token_is_renewed_once(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    sandbox.p1.revoke_access()
    assert len(await show(tmp_path, sandbox)) == 4
    assert sandbox.p1.refreshes == 1


async def test_without_sign_in(tmp_path: Path, sandbox: Sandbox) -> None:
    with pytest.raises(SignInError, match="auth login p1"):
        await show(tmp_path, sandbox)


async def answered(tmp_path: Path, sandbox: Sandbox, status: int, body: Any, **options: Any) -> list[str]:
    sandbox.write_credentials(tmp_path)

    async def asked(request: web.Request) -> web.Response:
        assert request.headers["chatgpt-account-id"] == "acct-sandbox" and request.headers["originator"]
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/backend-api/wham/usage", asked)
    async with TestServer(app) as server:
        base_url = str(server.make_url("/backend-api/codex/responses"))
        return await show(tmp_path, sandbox, base_url, **options)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (429, {"error": {"message": "slow", "type": "x"}}, "rate_limit", "429 x: slow"),
        (500, "oops", "transient", "500 oops"),
        (302, "", "upstream", "302"),
        (401, {"detail": "who?"}, "sign_in", "who.*sign in again, run .*auth login p1"),
        (403, {"detail": "no"}, "permission", "Codex did not tell the usage: 403 no"),
        (200, "<html>", "bad_answer", "usage response was invalid"),
        (200, {"email": "a@b", "user_id": "u", "account_id": "x"}, "bad_answer", "usage response was invalid"),
        (200, '{"a": "' + "x" * MAX_ANSWER_BYTES + '"}', "transport", "longer than"),
    ],
)
async def test_failures(tmp_path: Path, sandbox: Sandbox, status: int, body: Any, kind: str, message: str) -> None:
    with pytest.raises(ProxyError, match=message) as caught:
        await answered(tmp_path, sandbox, status, body)
    assert (caught.value.kind, caught.value.provider) == (kind, "p1")


async def test_who_is_asking_is_not_printed(tmp_path: Path, sandbox: Sandbox) -> None:
    body = {"user_id": "u", "account_id": "a", "email": "a@b", "plan_type": "pro"}
    (text,) = await answered(tmp_path, sandbox, 200, body, as_json=True)
    assert json.loads(text) == {"plan_type": "pro"}


async def test_unreachable(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    with pytest.raises(ProxyError, match="p1 could not be reached"):
        await show(tmp_path, sandbox, "http://127.0.0.1:9/codex/responses")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"rate_limit": {"primary_window": WINDOW}}, ["5 hours: 12.5% used, resets 2027-01-15T08:10:00Z"]),
        ({"rate_limit": {"secondary_window": {"used_percent": 1}}}, ["Window: 1% used"]),
        (
            {"additional_rate_limits": [{"limit_name": "Spark", "rate_limit": {"primary_window": WINDOW}}]},
            ["Spark, 5 hours: 12.5% used, resets 2027-01-15T08:10:00Z"],
        ),
        ({"credits": {"has_credits": True, "balance": "4.2"}}, ["Credits: 4.2"]),
        ({"credits": {"has_credits": True}}, ["Credits: some"]),
        ({"credits": {"unlimited": True}}, ["Credits: unlimited"]),
        ({"rate_limit": None, "credits": None}, ["nothing that this version understands; --json prints the answer"]),
        ({"rate_limit": [], "additional_rate_limits": {}}, usage.lines({}, NOW)[1:]),
    ],
)
def test_forms(body: dict[str, Any], shown: list[str]) -> None:
    assert usage.lines(body, NOW) == ["Codex usage:", *(f"  {line.strip()}" for line in shown)]


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("https://chatgpt.com/backend-api/codex/responses", "https://chatgpt.com/backend-api/wham/usage"),
        ("https://h/x/responses", "https://h/x/wham/usage"),
        ("https://h/x", "https://h/x/wham/usage"),
    ],
)
def test_where_it_asks(base_url: str, asked: str) -> None:
    assert usage.usage_url(base_url) == asked
