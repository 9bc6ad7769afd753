"""What is particular to P1's sign-in: claims, the authorize page, both flows against an issuer on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import configured
from oauth_accounts import context_of
from samples import rows

from proxy.auth.pkce import challenge_of, new_pkce
from proxy.auth.refresh import Lent
from proxy.errors import SignInError
from proxy.loading import load
from proxy.providers.p1_codex.account import signin
from proxy.providers.p1_codex.account.signin import CodexAccount, account_id

NOW_S = 1_800_000_000.0
NOW_MS = 1_800_000_000_000


def jwt(payload: dict[str, Any]) -> str:
    part = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


class Issuer:
    """Answers in turn, path by path, and keeps what it was asked: path, content type, members."""

    session: aiohttp.ClientSession

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: dict[str, list[Any]] = {}

    def on(self, path: str, *answers: Any) -> None:
        self.answers.setdefault(path, []).extend(answers)

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if request.content_type == "application/json" else dict(parse_qsl(text))
        self.seen.append((request.path, request.content_type, body))
        assert "Authorization" not in request.headers and "originator" not in request.headers
        status, data = self.answers[request.path].pop(0)
        return web.Response(status=status, text=data if isinstance(data, str) else json.dumps(data))


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    app = web.Application()
    app.router.add_post("/{path:.*}", found.handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as found.session:
        found.url = str(server.make_url("")).rstrip("/")
        yield found


TOKEN = "/oauth/token"
FORM = "application/x-www-form-urlencoded"
GRANT: dict[str, Any] = {"access_token": "new", "refresh_token": "r2", "expires_in": 3600}
STORED = {"access": "new", "refresh": "r2", "expires": NOW_MS + 3_600_000}

A_AND_B = {"chatgpt_account_id": "A", "https://api.openai.com/auth": {"chatgpt_account_id": "B"}}


@rows(
    "id_token, access, account",
    [
        (jwt(A_AND_B), jwt({"chatgpt_account_id": "C"}), "A"),
        (jwt({"email": "x"}), jwt({"chatgpt_account_id": "C"}), "C"),
        (jwt({"organizations": [{"id": "org-1"}]}), "", "org-1"),
        (jwt({"organizations": [{"id": "org-1"}]}), jwt({"chatgpt_account_id": "C"}), "org-1"),
        (jwt({"https://api.openai.com/auth": {"chatgpt_account_id": "B"}}), "", "B"),
        (jwt({"https://api.openai.com/auth.chatgpt_account_id": "F"}), "", "F"),
        (jwt({"chatgpt_account_id": " ", "organizations": [{"id": "org-1"}]}), "", "org-1"),
        (jwt({"chatgpt_account_id": 5, "https://api.openai.com/auth": [], "organizations": {}}), "", None),
        (jwt({"organizations": []}), jwt({"organizations": ["x"]}), None),
        ("invalid", "invalid", None),
        (None, "", None),
    ],
)
def test_account_id_precedence(id_token: object, access: object, account: str | None) -> None:
    assert account_id(id_token, access) == account


async def test_renewal_is_a_form(tmp_path: Path, issuer: Issuer) -> None:
    path = tmp_path / "p1" / "auth.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"access": "old", "refresh": "r1", "expires": 1}))
    issuer.on(TOKEN, (200, GRANT))
    await signin.p1_credentials(Lent(tmp_path, lambda: NOW_S), issuer.url + "/", issuer.session).get()
    form = {"client_id": signin.CLIENT_ID, "grant_type": "refresh_token", "refresh_token": "r1"}
    assert issuer.seen == [(TOKEN, FORM, form)] and json.loads(path.read_text()) == STORED


# Browser sign-in


def test_authorize_url() -> None:
    pkce = new_pkce(lambda count: b"\0" * count)
    url = signin.authorize_url("https://i", "http://localhost:1455/auth/callback", pkce, "me")
    assert url.startswith("https://i/oauth/authorize?response_type=code&client_id=app_EMoamEEZ73f0CkXaXp7hrann&")
    assert "scope=openid+profile+email+offline_access" in url
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "response_type": "code",
        "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
        "redirect_uri": "http://localhost:1455/auth/callback",
        "scope": "openid profile email offline_access",
        "code_challenge": challenge_of("A" * 43),
        "code_challenge_method": "S256",
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "state": "A" * 43,
        "originator": "me",
    }


class Browser:
    """Visits the redirect address of an authorize URL with these parameters, from the opener's thread."""

    def __init__(self, **query: str) -> None:
        self.query = query
        self.pages: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self.loop = asyncio.get_running_loop()
        self.authorize: dict[str, str] = {}

    def __call__(self, url: str) -> None:
        self.loop.call_soon_threadsafe(self._visit, url)

    def _visit(self, url: str) -> None:
        self.authorize = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self.task = asyncio.ensure_future(self._fetch())

    async def _fetch(self) -> None:
        target = self.authorize["redirect_uri"].replace("localhost", "127.0.0.1")
        query = {"state": self.authorize["state"], **self.query}
        async with aiohttp.ClientSession() as session, session.get(target, params=query) as response:
            self.pages.put_nowait((response.status, await response.text()))


def account(root: Path, issuer: Issuer, **ports: Any) -> CodexAccount:
    return CodexAccount(context_of(root, configured(load({})[0], p1_issuer=issuer.url), issuer.session, **ports))


async def log_in(root: Path, issuer: Issuer, browser: Browser | None, said: list[str], **options: Any) -> Any:
    options |= {"opener": browser, "listen_on": (0,), "clock": lambda: NOW_S}
    return await account(root, issuer, **options).login(device=False, say=said.append)


async def test_browser_sign_in(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(TOKEN, (200, {**GRANT, "id_token": jwt({"chatgpt_account_id": "acct-1"})}))
    said: list[str] = []
    browser = Browser(code="c&1")
    await log_in(tmp_path, issuer, browser, said)
    path = tmp_path / "p1" / "auth.json"
    assert (await browser.pages.get())[0] == 200
    assert said[1].startswith(f"{issuer.url}/oauth/authorize?")
    assert said[2:] == [f"Auth saved in {path}", "Account: acct-1"]
    ((_, _, sent),) = issuer.seen
    assert challenge_of(sent.pop("code_verifier")) == browser.authorize["code_challenge"]
    assert sent == {
        "grant_type": "authorization_code",
        "code": "c&1",
        "redirect_uri": browser.authorize["redirect_uri"],
        "client_id": signin.CLIENT_ID,
    }
    assert json.loads(path.read_text()) == {**STORED, "accountId": "acct-1"}


@pytest.mark.parametrize(
    ("query", "answer", "message", "status"),
    [
        ({"code": "C0DE"}, (400, "bad C0DE"), r"refused the code: 400 bad \[redacted\]", 500),
        ({"code": "c"}, (200, {**GRANT, "refresh_token": ""}), "no refresh_token", 500),
        ({"code": "c"}, (307, ""), "refused the code: 307", 500),
        ({"error": "access_denied"}, None, "refused: access_denied", 400),
        ({}, None, "no code", 400),
    ],
)
async def test_failed_browser_sign_in_stores_nothing(
    tmp_path: Path, issuer: Issuer, query: dict[str, str], answer: Any, message: str, status: int
) -> None:
    issuer.on(TOKEN, answer)
    browser = Browser(**query)
    with pytest.raises(SignInError, match=message):
        await log_in(tmp_path, issuer, browser, [])
    shown, page = await browser.pages.get()
    assert shown == status and ("access_denied" in page) == ("error" in query)
    assert not (tmp_path / "p1").exists()


async def test_sign_in_without_opening_a_browser(tmp_path: Path, issuer: Issuer) -> None:
    said: list[str] = []
    with pytest.raises(SignInError, match=r"No sign-in arrived within 0\.01 s"):
        await log_in(tmp_path, issuer, None, said, timeout_s=0.01)
    assert len(said) == 2


# Device sign-in

USERCODE = "/api/accounts/deviceauth/usercode"
POLL = "/api/accounts/deviceauth/token"
DEVICE = {"device_auth_id": "d1", "user_code": "ABCD-EFGH", "interval": "5"}
CODE = {"authorization_code": "ac", "code_challenge": "ch", "code_verifier": "ve"}


async def log_in_device(root: Path, issuer: Issuer, said: list[str]) -> list[float]:
    """The waits between the polls, on a clock that only they move."""
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    clocks: dict[str, Any] = {"clock": lambda: NOW_S, "monotonic": lambda: sum(sleeps), "sleep": sleep}
    try:
        await account(root, issuer, **clocks).login(device=True, say=said.append)
    except SignInError as error:
        said.append(error.message)
    return sleeps


async def test_device_sign_in(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(USERCODE, (200, DEVICE))
    issuer.on(POLL, (403, {"error": "pending"}), (404, "not yet"), (200, CODE))
    issuer.on(TOKEN, (200, GRANT))
    said: list[str] = []
    assert await log_in_device(tmp_path, issuer, said) == [8.0, 8.0]
    assert f"{issuer.url}/codex/device" in said[0]
    assert said[1:] == ["ABCD-EFGH", f"Auth saved in {tmp_path / 'p1' / 'auth.json'}"]
    asked = (POLL, "application/json", {"device_auth_id": "d1", "user_code": "ABCD-EFGH"})
    exchanged = {
        "grant_type": "authorization_code",
        "code": "ac",
        "redirect_uri": f"{issuer.url}/deviceauth/callback",
        "client_id": signin.CLIENT_ID,
        "code_verifier": "ve",
    }
    assert issuer.seen == [
        (USERCODE, "application/json", {"client_id": signin.CLIENT_ID}),
        *[asked] * 3,
        (TOKEN, FORM, exchanged),
    ]


async def test_a_bad_minute_of_the_issuer_does_not_cost_the_device_code(tmp_path: Path, issuer: Issuer) -> None:
    """A 5xx is asked again at the same pace, a 429 at a slower one."""
    issuer.on(USERCODE, (200, DEVICE))
    issuer.on(
        POLL, *((status, "oops") for status in (500, 502, 429, 503, 429)), (403, {"error": "pending"}), (200, CODE)
    )
    issuer.on(TOKEN, (200, GRANT))
    said: list[str] = []
    assert await log_in_device(tmp_path, issuer, said) == [8.0, 8.0, 13.0, 13.0, 18.0, 18.0]
    assert said[-1] == f"Auth saved in {tmp_path / 'p1' / 'auth.json'}"


async def test_device_code_not_entered_for_15_minutes(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(USERCODE, (200, {"device_auth_id": "d1", "usercode": "ABCD", "interval": 297}))
    issuer.on(POLL, *[(403, {})] * 10)
    said: list[str] = []
    assert await log_in_device(tmp_path, issuer, said) == [300.0] * 3
    assert "not entered in time" in said[-1]


@pytest.mark.parametrize(
    ("first", "polled", "message"),
    [
        *(((404, ""), None, "not enabled"), ((500, "oops"), None, "gave no device code: 500 oops")),
        *(
            ((200, bad), None, "unusable device code")
            for bad in ({"user_code": "A"}, {**DEVICE, "user_code": "\x1b[2J"}, "<html>")
        ),
        *(
            ((200, DEVICE), (status, text), f"failed: {status} {text}")
            for status, text in ((410, "gone"), (400, "oops"))
        ),
        ((200, DEVICE), (200, {"authorization_code": "x"}), "has no code"),
    ],
)
async def test_failed_device_sign_in(tmp_path: Path, issuer: Issuer, first: Any, polled: Any, message: str) -> None:
    issuer.on(USERCODE, first)
    issuer.on(POLL, polled)
    said: list[str] = []
    await log_in_device(tmp_path, issuer, said)
    assert message in said[-1]
    assert not (tmp_path / "p1").exists()
