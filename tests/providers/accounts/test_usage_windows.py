"""`usage` of each provider: the question, the answer in words, and what goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import configured
from samples import rows

from proxy.auth.http import MAX_ANSWER_BYTES, TokenResponse
from proxy.core.hiding.secret import Secret
from proxy.errors import ProxyError, SignInError
from proxy.loading import load
from proxy.providers.accounts.account import Account, AccountContext
from proxy.providers.accounts.usage_report import Read, UsageReport, with_ends_of_ours
from proxy.providers.p1_codex.account import usage_windows as p1
from proxy.providers.p1_codex.account.rate_limits import usage_allowance
from proxy.providers.p1_codex.account.signin import CodexAccount
from proxy.providers.p2_kimi.account import usage_windows as p2
from proxy.providers.p2_kimi.account.signin import KimiAccount
from proxy.providers.p3_grok.account import usage_windows as p3
from proxy.providers.p3_grok.account.signin import GrokAccount
from proxy.providers.p4_opencode.account import usage_windows as p4
from proxy.providers.p4_opencode.account.key import OpenCodeAccount
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
    "p3": Source(GrokAccount, "/billing", "/"),
    "p4": Source(OpenCodeAccount, "/v1/usage", "/v1/"),
}
every_provider = pytest.mark.parametrize("label", SOURCES)
signed_in = pytest.mark.parametrize("label", ["p1", "p2", "p3"])


@dataclass
class User:
    """Asks what is used; signed in first, unless a test says otherwise."""

    root: Path
    sandbox: Sandbox
    headers: dict[str, str] = field(default_factory=dict)

    async def show(self, label: str, *, as_json: bool = False, signed_in: bool = True, **settings: Any) -> list[str]:
        if signed_in and not (self.root / "p1").exists():
            self.sandbox.write_credentials(self.root)
        config = configured(load(self.sandbox.settings())[0], **settings)
        context = AccountContext(self.root, config, lambda _key: None, lambda *_urls: aiohttp.ClientSession())
        report = await SOURCES[label].make(context).usage()
        return [report.json_text()] if as_json else report.lines()

    async def answered(self, label: str, status: int, body: Any, *, as_json: bool = False) -> list[str]:
        """What is printed for this answer; `headers` are those of the question."""

        async def usage(request: web.Request) -> web.Response:
            self.headers = {name.lower(): value for name, value in request.headers.items()}
            text = body if isinstance(body, str) else json.dumps(body)
            return web.Response(status=status, text=text, headers={"Location": "/elsewhere", "Retry-After": "17"})

        app = web.Application()
        app.router.add_get(SOURCES[label].path, usage)
        async with TestServer(app) as server:
            base_url: dict[str, Any] = {f"{label}_base_url": str(server.make_url(SOURCES[label].base))}
            return await self.show(label, as_json=as_json, **base_url)


@pytest.fixture
def user(tmp_path: Path, sandbox: Sandbox) -> User:
    return User(tmp_path, sandbox)


#: What the simulated accounts print; {} is a date.
TEXTS = {
    "p1": """Codex usage (plus plan):
  5 hours: 12% used, resets {}
  Weekly: 3% used, resets {}
  Credits: none""",
    "p2": """Kimi Code usage:
  Weekly: 3 of 100 used, 97 left, resets {}
  5 hours: 12 of 100 used, 88 left, resets {}""",
    "p3": """Grok usage (SuperGrok plan):
  Weekly: 12.5% used, resets {}
  Month: $2.50 of $20.00 used, resets {}
  Pay as you go: $12.34 of $50.00 used, resets {}
  Prepaid: $7.77 left""",
    "p4": """OpenCode Go usage:
  Rolling (5 hour): 12.5% used, status ok, resets {}
  Weekly: 34% used, status ok, resets {}
  Monthly: 47% used, status ok, resets {}""",
}


@every_provider
async def test_text(user: User, label: str) -> None:
    said = "\n".join(await user.show(label))
    assert re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "{}", said) == TEXTS[label]


@pytest.mark.parametrize(
    ("label", "members", "path", "value"),
    [
        ("p1", None, "rate_limit primary_window used_percent", 12),
        ("p2", {"usage", "limits"}, "usage used", "3"),
        ("p3", {"config", "on_demand_enabled", "settings"}, "config monthlyLimit val", 2000),
        ("p4", {"usage"}, "usage rolling percent", 12.5),
    ],
)
async def test_json(user: User, label: str, members: set[str] | None, path: str, value: Any) -> None:
    (text,) = await user.show(label, as_json=True)
    found = json.loads(text)
    assert text == json.dumps(found, indent=2) and members in (None, set(found))
    for name in path.split():
        found = found[name]
    assert found == value


@signed_in
async def test_json_moves_no_cursor(user: User, label: str) -> None:
    body = {"plan": "größer \x9b2J \u202e \ud800"}
    (text,) = await user.answered(label, 200, body, as_json=True)
    assert json.loads(text) == body and r'"größer \u009b2J \u202e \ud800"' in text


@signed_in
async def test_refused_token_is_renewed_once(user: User, label: str) -> None:
    user.sandbox.write_credentials(user.root)
    upstream = getattr(user.sandbox, label)
    upstream.revoke_access()
    assert len(await user.show(label)) >= 3
    assert upstream.refreshes == 1


@pytest.mark.parametrize(
    ("label", "settings", "message"),
    [
        ("p1", {}, "auth login p1"),
        ("p2", {}, "auth login p2"),
        ("p3", {}, "auth login p3"),
        ("p4", {"p4_api_key": None}, r"PROXY_P4_API_KEY or OPENCODE_API_KEY, or p4\.apiKey"),
    ],
)
async def test_without_a_credential_nothing_is_asked(
    user: User, label: str, settings: dict[str, Any], message: str
) -> None:
    settings = {**settings, f"{label}_base_url": "http://127.0.0.1:9"}
    with pytest.raises(SignInError, match=message) as caught:
        await user.show(label, signed_in=False, **settings)
    assert caught.value.status == 401


@every_provider
async def test_unreachable(user: User, label: str) -> None:
    with pytest.raises(ProxyError, match=f"{label} could not be reached") as caught:
        await user.show(label, **{f"{label}_base_url": "http://127.0.0.1:9/codex/responses"})
    assert caught.value.status == 502


# Failures

INVALID = "usage response was invalid"
DEAD = {"code": "unauthenticated:bad-credentials", "error": "The token is dead"}
SLOW = {"error": {"message": "slow", "type": "x"}}

#: providers, answer -> kind of the error, what stands in its message.
FAILURES: list[tuple[str, int, Any, str, str]] = [
    ("p1 p2 p3", 429, SLOW, "rate_limit", "429 x: slow"),
    ("p1 p2 p3", 500, "oops", "transient", "500 oops"),
    ("p1 p2 p3", 302, "", "bad_answer", "302"),
    ("p1 p2", 401, {"detail": "who?"}, "sign_in", "who.*sign in again, run .*auth login {}"),
    ("p1 p2 p3", 200, "<html>", "bad_answer", INVALID),
    ("p1 p2 p3", 200, '{"a": "' + "x" * MAX_ANSWER_BYTES + '"}', "transport", "longer than"),
    ("p1", 403, {"detail": "no"}, "permission", "Codex did not report the usage: 403 no"),
    ("p1", 200, {"email": "a@b", "user_id": "u", "account_id": "x"}, "bad_answer", INVALID),
    ("p2", 401, {"message": "who?"}, "sign_in", "who.*sign in again, run .*auth login {}"),
    ("p2", 200, {"user": {"userId": "u"}}, "bad_answer", INVALID),
    ("p3", 401, DEAD, "sign_in", "401 The token is dead.*sign in again, run .*auth login {}"),
    ("p3", 403, DEAD, "sign_in", "401 The token is dead.*sign in again, run .*auth login {}"),
    ("p3", 403, {"error": "The OAuth2 access token could not be validated."}, "sign_in", "401 The OAuth2 .*auth login"),
    ("p3", 403, {"code": "permission-denied", "error": "no plan"}, "permission", "Grok did not .*: 403 no plan"),
    ("p3", 426, {"error": "Your Grok CLI version is outdated"}, "invalid_request", "426 Your Grok CLI version"),
]


@pytest.mark.parametrize(
    ("label", "status", "body", "kind", "message"), [(one, *row) for labels, *row in FAILURES for one in labels.split()]
)
async def test_failures(user: User, label: str, status: int, body: Any, kind: str, message: str) -> None:
    with pytest.raises(ProxyError, match=message.format(label)) as caught:
        await user.answered(label, status, body)
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
    user: User, status: int, body: Any, expected: int, shape: str, message: str
) -> None:
    with pytest.raises(ProxyError) as caught:
        await user.answered("p4", status, body)
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
    *({"percent": value} for value in ("34", True, float("nan"))),
    *({"status": "odd"}, {"status": ["ok"]}, {"resetsAt": 5}),
]


@pytest.mark.parametrize(
    "usage", [None, [], {}, {**ROWS, "weekly": None}, *({**ROWS, "weekly": {**ROW, **odd}} for odd in ODD)]
)
async def test_answer_of_another_shape(user: User, usage: Any) -> None:
    with pytest.raises(ProxyError, match=INVALID) as caught:
        await user.answered("p4", 200, {"usage": usage})
    assert caught.value.status == 502


# Who asks, and what is not printed


async def test_p1_names_the_account_and_does_not_print_it(user: User) -> None:
    body = {"user_id": "u", "account_id": "a", "email": "a@b", "plan_type": "pro"}
    (text,) = await user.answered("p1", 200, body, as_json=True)
    assert json.loads(text) == {"plan_type": "pro"}
    assert user.headers["chatgpt-account-id"] == "acct-sandbox" and user.headers["originator"]


async def test_p3_is_asked_as_by_the_vendors_own_client(user: User) -> None:
    await user.answered("p3", 200, {"config": {}})
    headers = user.headers
    assert (headers["x-xai-token-auth"], headers["x-grok-client-identifier"]) == ("xai-grok-cli", "grok-shell")
    assert headers["user-agent"].startswith(f"grok-shell/{headers['x-grok-client-version']} (")


async def test_p4_prints_no_ids(user: User) -> None:
    usage = {**ROWS, "rolling": {**ROWS["rolling"], "userID": "usr_1"}, "userID": "usr_1"}
    body = {"workspaceID": "wrk_1", "userID": "usr_1", "usage": usage}
    (text,) = await user.answered("p4", 200, body, as_json=True)
    assert text == json.dumps({"usage": ROWS}, indent=2)
    lines, headers = await user.answered("p4", 200, body), user.headers
    assert lines[3] == "  Monthly: 100% used, status rate-limited, resets 2026-10-05T00:00:00.000Z"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["accept"] == "application/json"
    assert headers["user-agent"].startswith("model-proxy/") and "x-api-key" not in headers


async def test_p4_accounts(user: User) -> None:
    with pytest.raises(SignInError, match="Invalid API key"):
        await user.show("p4", p4_api_key=Secret("wrong"))
    user.sandbox.p4.options.subscribed = False
    with pytest.raises(ProxyError, match="OpenCode Go subscription required") as caught:
        await user.show("p4")
    assert (caught.value.status, caught.value.row.messages) == (403, "permission_error")


async def test_p2_serves_coding_agents_only(user: User) -> None:
    with pytest.raises(ProxyError, match=r"403.*only available for Coding Agents") as caught:
        await user.show("p2", p2_user_agent="aiohttp/3")
    assert caught.value.kind == "permission" and user.sandbox.p2.refreshes == 0


async def test_p2_token_of_another_device(user: User) -> None:
    """The renewal is refused as well, and the credential stays."""
    user.sandbox.write_credentials(user.root)
    (user.root / "p2" / "device_id").write_text("other")
    with pytest.raises(SignInError, match="auth login p2"):
        await user.show("p2")
    assert (user.root / "p2" / "auth.json").exists()


# Forms of answers

WINDOW = {"used_percent": 12.5, "limit_window_seconds": 18_000, "reset_after_seconds": 600}
SHOWN = "5 hours: 12.5% used, resets 2027-01-15T08:10:00Z"
SPARK = {"limit_name": "Spark", "rate_limit": {"primary_window": WINDOW}}
p1_read, p2_read, p3_read, p4_read = usage_allowance, p2.allowance_of, p3.allowance_of, p4.allowance_of

MONTH = {"type": "USAGE_PERIOD_TYPE_MONTHLY", "end": "T\x1b[2J"}

FORMS: list[tuple[Read, dict[str, Any], list[str]]] = [
    (p1_read, {"rate_limit": {"primary_window": WINDOW}}, [SHOWN]),
    (p1_read, {"rate_limit": {"secondary_window": {"used_percent": 1}}}, ["Window: 1% used"]),
    (p1_read, {"additional_rate_limits": [SPARK]}, [f"Spark, {SHOWN}"]),
    (p1_read, {"credits": {"has_credits": True, "balance": "4.2"}}, ["Credits: 4.2"]),
    (p1_read, {"credits": {"has_credits": True}}, ["Credits: some"]),
    (p1_read, {"credits": {"unlimited": True}}, ["Credits: unlimited"]),
    (p1_read, {"rate_limit": None, "credits": None}, [NOT_UNDERSTOOD]),
    (p1_read, {"rate_limit": [], "additional_rate_limits": {}}, [NOT_UNDERSTOOD]),
    (p1_read, {}, [NOT_UNDERSTOOD]),
    (p2_read, {"usage": {"limit": 100, "remaining": 40}}, ["Weekly: 60 of 100 used, 40 left"]),
    (p2_read, {"usage": {"used": 3, "reset_at": "soon"}}, ["Weekly: 3 used, resets soon"]),
    (p2_read, {"usage": {"name": "Month", "limit": "5"}}, ["Month: limit 5"]),
    (p2_read, {"limits": [{"limit": 1, "used": 0.5, "title": "T\x1b[2J"}]}, ["T [2J: 0.5 of 1 used"]),
    (
        p2_read,
        {"limits": [{"window": {"duration": 7, "unit": "day"}, "detail": {"used": 1}}]},
        ["7 days: 1 used"],
    ),
    (
        p2_read,
        {"limits": [{"window": {"duration": 90, "timeUnit": "MINUTE"}, "used": 1}]},
        ["90 minutes: 1 used"],
    ),
    (p2_read, {"limits": [{"window": {"duration": "x"}, "used": 1}, 5, {}]}, ["limits: 1 used"]),
    (p2_read, {"totalQuota": {"limit": 9, "used": 1}, "parallel": 3}, ["totalQuota: 1 of 9 used"]),
    (p2_read, {"usage": [], "limits": None}, [NOT_UNDERSTOOD]),
    (p3_read, {"config": {"creditUsagePercent": "7"}}, ["Period: 7% used"]),
    (
        p3.allowance_of,
        {"config": {"creditUsagePercent": 7, "currentPeriod": MONTH}},
        ["Monthly: 7% used, resets T [2J"],
    ),
    (p3_read, {"config": {"creditUsagePercent": 0, "billingPeriodEnd": "D"}}, ["Period: 0% used, resets D"]),
    (p3_read, {"used": 5, "monthlyLimit": {"val": "1000"}}, ["Month: $0.05 of $10.00 used"]),
    (p3_read, {"config": {"used": {"val": 5}, "onDemandCap": {"val": 0}}}, ["Month: $0.05 used"]),
    (p3_read, {"config": {"onDemandCap": {"val": 900}}}, ["Pay as you go: $0.00 of $9.00 used"]),
    (p3_read, {"settings": {"allow_access": False, "gate_message": "No plan."}}, ["No access: No plan."]),
    (p3_read, {"settings": {"allow_access": False}}, ["No access: the service gives no reason"]),
    (p3_read, {"config": {"prepaidBalance": {}, "history": []}, "settings": []}, [NOT_UNDERSTOOD]),
]


@rows("read, body, shown", FORMS)
def test_forms(read: Read, body: dict[str, Any], shown: list[str]) -> None:
    assert UsageReport("Codex", body, read(body, NOW)).lines() == ["Codex usage:", *(f"  {line}" for line in shown)]


SOON, SOON_TEXT = NOW + 3600, "2027-01-15T09:00:00.000Z"
QUOTA = {"limit": "100", "used": "3", "remaining": "97", "resetTime": SOON_TEXT}
ROLLING = {"status": "ok", "percent": 12.5, "resetsAt": SOON_TEXT}
GO = {"rolling": ROLLING, "weekly": {**ROLLING, "status": "rate-limited", "percent": 99.6}, "monthly": ROLLING}
SPENT = {"billingPeriodEnd": SOON_TEXT, "onDemandUsed": {"val": 900}, "onDemandCap": {"val": 900}}
CREDITS = {"credits": {"has_credits": True, "balance": "4.2"}}

#: Answer -> title, per cent, minutes and end of each window; whether something pays for more.
NUMBERS: list[tuple[Read, dict[str, Any], list[tuple[str, float | None, int | None, float | None]], bool]] = [
    (p1_read, {"rate_limit": {"primary_window": WINDOW}}, [("5 hours", 12.5, 300, NOW + 600)], False),
    (p1_read, {"additional_rate_limits": [SPARK], **CREDITS}, [("5 hours", 12.5, 300, NOW + 600)], True),
    (p2_read, {"usage": QUOTA}, [("Weekly", 3, 10_080, SOON)], False),
    (
        p2_read,
        {"limits": [{"window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}, "detail": {**QUOTA, "used": "100"}}]},
        [("5 hours", 100, 300, SOON)],
        False,
    ),
    (p2_read, {"usage": {"used": 3}}, [("Weekly", None, 10_080, None)], False),
    (p2_read, {"usage": {"limit": 0, "used": 3}}, [("Weekly", None, 10_080, None)], False),
    (p2_read, {"usage": {"limit": 3, "remaining": 1}}, [("Weekly", 66.67, 10_080, None)], False),
    (p3_read, {"creditUsagePercent": 130, "currentPeriod": MONTH}, [("Monthly", 130, None, None)], False),
    (p3_read, {"creditUsagePercent": -1, "billingPeriodEnd": SOON_TEXT}, [("Period", 0, None, SOON)], False),
    (p3_read, {"used": 250, "monthlyLimit": {"val": 2000}}, [("Month", 12.5, None, None)], False),
    (p3_read, SPENT, [("Pay as you go", 100, None, SOON)], False),
    (p3_read, {**SPENT, "prepaidBalance": 1}, [("Pay as you go", 100, None, SOON)], True),
    (p3_read, {"onDemandCap": 5}, [("Pay as you go", 0, None, None)], True),
    (
        p4_read,
        GO,
        [("Rolling (5 hour)", 12.5, 300, SOON), ("Weekly", 100, 10_080, SOON), ("Monthly", 12.5, None, SOON)],
        False,
    ),
]


@rows("read, answer, windows, pays_on", NUMBERS)
def test_numbers(read: Read, answer: dict[str, Any], windows: list[tuple[Any, ...]], pays_on: bool) -> None:
    known = read(answer, NOW)
    assert [(one.title, one.used, one.minutes, one.resets_at) for one in known.windows] == windows
    assert known.pays_on is pays_on and known.whole
    assert {one.as_of for one in known.windows} <= {NOW}


@rows(
    "ahead, end",
    [(0.0, SOON), (59.0, SOON), (-7200.0, SOON - 7200), (7200.0, SOON + 7200), (None, SOON)],
)
def test_ends_are_told_by_our_clock(ahead: float | None, end: float) -> None:
    """`ahead`: by how much our clock is ahead of the service's."""
    answer = TokenResponse(200, "", {}, date=None if ahead is None else NOW - ahead)
    (window,) = with_ends_of_ours(p2_read({"usage": QUOTA}, NOW), answer, NOW).windows
    assert window.resets_at == end


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
