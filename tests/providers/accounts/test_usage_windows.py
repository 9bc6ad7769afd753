"""`usage` of each provider: the question, the answer in words, and what goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import configured

from proxy.auth.http import MAX_ANSWER_BYTES
from proxy.core.secret import Secret
from proxy.errors import ProxyError, SignInError
from proxy.loading import load
from proxy.providers.contract import Account, AccountContext
from proxy.providers.p1_codex.account import usage_windows as p1
from proxy.providers.p1_codex.account.commands import CodexAccount
from proxy.providers.p2_kimi.account import usage_windows as p2
from proxy.providers.p2_kimi.account.commands import KimiAccount
from proxy.providers.p4_opencode.account.commands import OpenCodeAccount
from proxy.sandbox import Sandbox

NOW = 1_800_000_000.0
KEY = "sk-sandbox-opencode-go"
NOT_UNDERSTOOD = "nothing that this version understands; --json prints the answer"


@dataclass(frozen=True)
class Source:
    """Whom a provider asks: the path of the question, and the setting below the origin that leads there."""

    make: Callable[[AccountContext], Account]
    path: str
    base: str


SOURCES = {
    "p1": Source(CodexAccount, "/backend-api/wham/usage", "/backend-api/codex/responses"),
    "p2": Source(KimiAccount, "/usages", "/"),
    "p4": Source(OpenCodeAccount, "/v1/usage", "/v1/"),
}
every_provider = pytest.mark.parametrize("label", SOURCES)
signed_in = pytest.mark.parametrize("label", ["p1", "p2"])


async def show(label: str, root: Path, sandbox: Sandbox, *, as_json: bool = False, **settings: Any) -> list[str]:
    said: list[str] = []
    config = configured(load(sandbox.settings())[0], **settings)
    context = AccountContext(root, config, lambda _key: None, lambda *_urls: aiohttp.ClientSession())
    await SOURCES[label].make(context).usage(as_json=as_json, say=said.append)
    return said


async def answered(
    label: str, root: Path, sandbox: Sandbox, status: int, body: Any, *, as_json: bool = False
) -> tuple[list[str], Mapping[str, str]]:
    """What is printed for this answer, and the headers of the question."""
    sandbox.write_credentials(root)
    headers: dict[str, str] = {}

    async def usage(request: web.Request) -> web.Response:
        headers.update((name.lower(), value) for name, value in request.headers.items())
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers={"Location": "/elsewhere", "Retry-After": "17"})

    source = SOURCES[label]
    app = web.Application()
    app.router.add_get(source.path, usage)
    async with TestServer(app) as server:
        base_url = {f"{label}_base_url": str(server.make_url(source.base))}
        return await show(label, root, sandbox, as_json=as_json, **base_url), headers


#: What the simulated accounts print; {} is a date.
TEXTS = {
    "p1": """Codex usage (plus plan):
  5 hours: 12% used, resets {}
  Weekly: 3% used, resets {}
  Credits: none""",
    "p2": """Kimi Code usage:
  Weekly: 3 of 100 used, 97 left, resets {}
  5 hours: 12 of 100 used, 88 left, resets {}""",
    "p4": """OpenCode Go usage:
  Rolling (5 hour): 12.5% used, status ok, resets {}
  Weekly: 34% used, status ok, resets {}
  Monthly: 100% used, status rate-limited, resets {}""",
}


@every_provider
async def test_text(tmp_path: Path, sandbox: Sandbox, label: str) -> None:
    sandbox.write_credentials(tmp_path)
    said = "\n".join(await show(label, tmp_path, sandbox))
    assert re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "{}", said) == TEXTS[label]


@pytest.mark.parametrize(
    ("label", "members", "path", "value"),
    [
        ("p1", None, "rate_limit primary_window used_percent", 12),
        ("p2", {"usage", "limits"}, "usage used", "3"),
        ("p4", {"usage"}, "usage rolling percent", 12.5),
    ],
)
async def test_json(
    tmp_path: Path, sandbox: Sandbox, label: str, members: set[str] | None, path: str, value: Any
) -> None:
    sandbox.write_credentials(tmp_path)
    (text,) = await show(label, tmp_path, sandbox, as_json=True)
    found = json.loads(text)
    assert text == json.dumps(found, indent=2) and members in (None, set(found))
    for name in path.split():
        found = found[name]
    assert found == value


@signed_in
async def test_refused_token_is_renewed_once(tmp_path: Path, sandbox: Sandbox, label: str) -> None:
    sandbox.write_credentials(tmp_path)
    upstream = getattr(sandbox, label)
    upstream.revoke_access()
    assert len(await show(label, tmp_path, sandbox)) >= 3
    assert upstream.refreshes == 1


@pytest.mark.parametrize(
    ("label", "settings", "message"),
    [
        ("p1", {}, "auth login p1"),
        ("p2", {}, "auth login p2"),
        ("p4", {"p4_api_key": None}, r"PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4\.apiKey"),
        ("p4", {"p4_api_key": Secret("")}, r"PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4\.apiKey"),
    ],
)
async def test_without_a_credential_nothing_is_asked(
    tmp_path: Path, sandbox: Sandbox, label: str, settings: dict[str, Any], message: str
) -> None:
    settings = {**settings, f"{label}_base_url": "http://127.0.0.1:9"}
    with pytest.raises(SignInError, match=message) as caught:
        await show(label, tmp_path, sandbox, **settings)
    assert caught.value.status == 401


@every_provider
async def test_unreachable(tmp_path: Path, sandbox: Sandbox, label: str) -> None:
    sandbox.write_credentials(tmp_path)
    with pytest.raises(ProxyError, match=f"{label} could not be reached") as caught:
        await show(label, tmp_path, sandbox, **{f"{label}_base_url": "http://127.0.0.1:9/codex/responses"})
    assert caught.value.status == 502


# Failures

INVALID = "usage response was invalid"
SLOW = {"error": {"message": "slow", "type": "x"}}

#: provider, answer -> kind of the error, what stands in its message.
FAILURES: list[tuple[str, int, Any, str, str]] = [
    *(
        row
        for label in ("p1", "p2")
        for row in (
            (label, 429, SLOW, "rate_limit", "429 x: slow"),
            (label, 500, "oops", "transient", "500 oops"),
            (label, 302, "", "upstream", "302"),
            (label, 401, {"detail": "who?"}, "sign_in", f"who.*sign in again, run .*auth login {label}"),
            (label, 200, "<html>", "bad_answer", INVALID),
            (label, 200, '{"a": "' + "x" * MAX_ANSWER_BYTES + '"}', "transport", "longer than"),
        )
    ),
    ("p1", 403, {"detail": "no"}, "permission", "Codex did not tell the usage: 403 no"),
    ("p1", 200, {"email": "a@b", "user_id": "u", "account_id": "x"}, "bad_answer", INVALID),
    ("p2", 401, {"message": "who?"}, "sign_in", "who.*sign in again, run .*auth login p2"),
    ("p2", 200, {"user": {"userId": "u"}}, "bad_answer", INVALID),
]


@pytest.mark.parametrize(("label", "status", "body", "kind", "message"), FAILURES)
async def test_failures(
    tmp_path: Path, sandbox: Sandbox, label: str, status: int, body: Any, kind: str, message: str
) -> None:
    with pytest.raises(ProxyError, match=message) as caught:
        await answered(label, tmp_path, sandbox, status, body)
    assert (caught.value.kind, caught.value.provider) == (kind, label)


def said(kind: str, message: str = "why") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


#: What P4's gateway says: status, answer -> status, type and message of the error.
GATEWAY: list[tuple[int, Any, int, str, str]] = [
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
    (500, said("x", f"key {KEY}\x1b"), 502, "api_error", "key [redacted]"),
]


@pytest.mark.parametrize(("status", "body", "expected", "shape", "message"), GATEWAY)
async def test_failures_of_the_gateway(
    tmp_path: Path, sandbox: Sandbox, status: int, body: Any, expected: int, shape: str, message: str
) -> None:
    with pytest.raises(ProxyError) as caught:
        await answered("p4", tmp_path, sandbox, status, body)
    error = caught.value
    assert (error.status, error.row.messages, error.message) == (expected, shape, message)
    assert (error.retry_after, error.provider) == (17.0, "p4")


ROW: dict[str, Any] = {"status": "ok", "percent": 34, "resetsAt": "2026-10-05T00:00:00.000Z"}
ROWS = {
    "rolling": {**ROW, "percent": 12.5},
    "weekly": ROW,
    "monthly": {**ROW, "status": "rate-limited", "percent": 100.0},
}
ODD: list[dict[str, Any]] = [
    {"status": "odd"},
    {"percent": "34"},
    {"percent": True},
    {"percent": float("nan")},
    {"status": ["ok"]},
    {"resetsAt": 5},
]


@pytest.mark.parametrize(
    "usage", [None, [], {}, {**ROWS, "weekly": None}, *({**ROWS, "weekly": {**ROW, **odd}} for odd in ODD)]
)
async def test_answer_of_another_shape(tmp_path: Path, sandbox: Sandbox, usage: Any) -> None:
    with pytest.raises(ProxyError, match=INVALID) as caught:
        await answered("p4", tmp_path, sandbox, 200, {"usage": usage})
    assert caught.value.status == 502


# Who asks, and what is not printed


async def test_p1_names_the_account_and_does_not_print_it(tmp_path: Path, sandbox: Sandbox) -> None:
    body = {"user_id": "u", "account_id": "a", "email": "a@b", "plan_type": "pro"}
    (text,), headers = await answered("p1", tmp_path, sandbox, 200, body, as_json=True)
    assert json.loads(text) == {"plan_type": "pro"}
    assert headers["chatgpt-account-id"] == "acct-sandbox" and headers["originator"]


async def test_p4_prints_no_ids(tmp_path: Path, sandbox: Sandbox) -> None:
    usage = {**ROWS, "rolling": {**ROWS["rolling"], "userID": "usr_1"}, "userID": "usr_1"}
    body = {"workspaceID": "wrk_1", "userID": "usr_1", "usage": usage}
    (text,), _ = await answered("p4", tmp_path, sandbox, 200, body, as_json=True)
    assert text == json.dumps({"usage": ROWS}, indent=2)
    lines, headers = await answered("p4", tmp_path, sandbox, 200, body)
    assert lines[3] == "  Monthly: 100% used, status rate-limited, resets 2026-10-05T00:00:00.000Z"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["accept"] == "application/json"
    assert headers["user-agent"].startswith("model-proxy/") and "x-api-key" not in headers


async def test_p4_accounts(tmp_path: Path, sandbox: Sandbox) -> None:
    with pytest.raises(SignInError, match="Invalid API key"):
        await show("p4", tmp_path, sandbox, p4_api_key=Secret("wrong"))
    sandbox.p4.options.subscribed = False
    with pytest.raises(ProxyError, match="OpenCode Go subscription required") as caught:
        await show("p4", tmp_path, sandbox)
    assert (caught.value.status, caught.value.row.messages) == (403, "permission_error")


async def test_p2_serves_coding_agents_only(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.write_credentials(tmp_path)
    with pytest.raises(ProxyError, match=r"403.*only available for Coding Agents") as caught:
        await show("p2", tmp_path, sandbox, p2_user_agent="aiohttp/3")
    assert caught.value.kind == "permission" and sandbox.p2.refreshes == 0


async def test_p2_token_of_another_device(tmp_path: Path, sandbox: Sandbox) -> None:
    """The renewal is refused as well, and the credential stays."""
    sandbox.write_credentials(tmp_path)
    (tmp_path / "p2" / "device_id").write_text("other")
    with pytest.raises(SignInError, match="auth login p2"):
        await show("p2", tmp_path, sandbox)
    assert (tmp_path / "p2" / "auth.json").exists()


# Forms of answers

WINDOW = {"used_percent": 12.5, "limit_window_seconds": 18_000, "reset_after_seconds": 600}
SHOWN = "5 hours: 12.5% used, resets 2027-01-15T08:10:00Z"
p1_lines = partial(p1.lines, now=NOW)

FORMS: list[tuple[Callable[[Any], list[str]], dict[str, Any], list[str]]] = [
    (p1_lines, {"rate_limit": {"primary_window": WINDOW}}, [SHOWN]),
    (p1_lines, {"rate_limit": {"secondary_window": {"used_percent": 1}}}, ["Window: 1% used"]),
    (
        p1_lines,
        {"additional_rate_limits": [{"limit_name": "Spark", "rate_limit": {"primary_window": WINDOW}}]},
        [f"Spark, {SHOWN}"],
    ),
    (p1_lines, {"credits": {"has_credits": True, "balance": "4.2"}}, ["Credits: 4.2"]),
    (p1_lines, {"credits": {"has_credits": True}}, ["Credits: some"]),
    (p1_lines, {"credits": {"unlimited": True}}, ["Credits: unlimited"]),
    (p1_lines, {"rate_limit": None, "credits": None}, [NOT_UNDERSTOOD]),
    (p1_lines, {"rate_limit": [], "additional_rate_limits": {}}, [NOT_UNDERSTOOD]),
    (p1_lines, {}, [NOT_UNDERSTOOD]),
    (p2.lines, {"usage": {"limit": 100, "remaining": 40}}, ["Weekly: 60 of 100 used, 40 left"]),
    (p2.lines, {"usage": {"used": 3, "reset_at": "soon"}}, ["Weekly: 3 used, resets soon"]),
    (p2.lines, {"usage": {"name": "Month", "limit": "5"}}, ["Month: limit 5"]),
    (p2.lines, {"limits": [{"limit": 1, "used": 0.5, "title": "T\x1b[2J"}]}, ["T [2J: 0.5 of 1 used"]),
    (p2.lines, {"limits": [{"window": {"duration": 7, "unit": "day"}, "detail": {"used": 1}}]}, ["7 days: 1 used"]),
    (p2.lines, {"limits": [{"window": {"duration": 90, "timeUnit": "MINUTE"}, "used": 1}]}, ["90 minutes: 1 used"]),
    (p2.lines, {"limits": [{"window": {"duration": "x"}, "used": 1}, 5, {}]}, ["limits: 1 used"]),
    (p2.lines, {"totalQuota": {"limit": 9, "used": 1}, "parallel": 3}, ["totalQuota: 1 of 9 used"]),
    (p2.lines, {"usage": [], "limits": None}, [NOT_UNDERSTOOD]),
]


@pytest.mark.parametrize(("lines", "body", "shown"), FORMS)
def test_forms(lines: Callable[[Any], list[str]], body: dict[str, Any], shown: list[str]) -> None:
    title = "Kimi Code usage:" if lines is p2.lines else "Codex usage:"
    assert lines(body) == [title, *(f"  {line}" for line in shown)]


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("https://chatgpt.com/backend-api/codex/responses", "https://chatgpt.com/backend-api/wham/usage"),
        ("https://h/x/responses", "https://h/x/wham/usage"),
        ("https://h/x", "https://h/x/wham/usage"),
    ],
)
def test_where_p1_asks(base_url: str, asked: str) -> None:
    assert p1.usage_url(base_url) == asked
