"""P1's sign-in against an issuer on loopback: both flows, renewal within and between processes, the command texts."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from proxy.auth.grant import MAX_EXPIRES_S
from proxy.auth.pkce import challenge_of, new_pkce
from proxy.core.secret import Secret
from proxy.errors import SignInError, UpstreamError, messages_body
from proxy.providers.p1_codex.account import signin
from proxy.providers.p1_codex.account.signin import account_id, credential_from, p1_credentials

NOW_S = 1_800_000_000.0
NOW_MS = 1_800_000_000_000
REPO = Path(__file__).parents[4]


def jwt(payload: dict[str, Any]) -> str:
    part = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


def clock() -> float:
    return NOW_S


class Issuer:
    """Answers in turn, path by path, and keeps what it was asked. A callable answer may wait or act first."""

    session: aiohttp.ClientSession

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: dict[str, list[Any]] = {}

    def on(self, path: str, *answers: Any) -> None:
        self.answers.setdefault(path, []).extend(answers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.seen]

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if request.content_type == "application/json" else dict(parse_qsl(text))
        self.seen.append((request.path, request.content_type, body))
        assert "Authorization" not in request.headers and "originator" not in request.headers
        answer = self.answers[request.path].pop(0)
        if callable(answer):
            answer = await answer()
        status, data = answer
        if isinstance(data, str):
            return web.Response(status=status, text=data)
        return web.json_response(data, status=status)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    app = web.Application()
    app.router.add_post("/{path:.*}", found.handle)
    server = TestServer(app)
    await server.start_server()
    found.url = str(server.make_url("")).rstrip("/")
    async with aiohttp.ClientSession() as found.session:
        yield found
    await server.close()


TOKEN = "/oauth/token"
GRANT: dict[str, Any] = {"access_token": "new", "refresh_token": "r2", "expires_in": 3600}


def put(root: Path, **record: Any) -> Path:
    path = root / "p1" / "auth.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"access": "old", "refresh": "r1", "expires": 1, **record}))
    return path


# Tokens and claims

A_AND_B = {"chatgpt_account_id": "A", "https://api.openai.com/auth": {"chatgpt_account_id": "B"}}


@pytest.mark.parametrize(
    ("id_token", "access", "account"),
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


@pytest.mark.parametrize(
    ("expires_in", "left_ms"),
    [(3600, 3_600_000), ("60", 60_000), (1.5, 1500), (1e308, MAX_EXPIRES_S * 1000)],
)
def test_expiry_counts_from_receipt(expires_in: object, left_ms: int) -> None:
    got = credential_from({**GRANT, "expires_in": expires_in}, None, NOW_MS)
    assert got.expires_ms == NOW_MS + left_ms


@pytest.mark.parametrize("body", [{}, {"expires_in": None}], ids=str)
def test_missing_expiry_means_an_hour(body: dict[str, Any]) -> None:
    got = credential_from({"access_token": "a", "refresh_token": "r", **body}, None, NOW_MS)
    assert got.expires_ms == NOW_MS + 3_600_000 and got.account_id is None


UNUSABLE: dict[str, list[Any]] = {
    "expires_in": [0, -1, "0", "soon", True, [], float("inf")],
    "access_token": ["", "  ", None, 5],
    "refresh_token": ["", " ", None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in UNUSABLE.items() for value in values])
def test_unusable_token_response(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"the token response has no.*{name}"):
        credential_from({**GRANT, name: value}, None, NOW_MS)


def test_renewal_keeps_what_the_answer_lacks() -> None:
    old = credential_from({**GRANT, "id_token": jwt({"chatgpt_account_id": "A"})}, None, NOW_MS)
    got = credential_from({"access_token": "x"}, old, NOW_MS)
    assert (got.access.reveal(), got.refresh.reveal(), got.account_id) == ("x", "r2", "A")


# Renewal


async def test_twenty_requests_one_post(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path, accountId="acct-1", note="kept")
    release = asyncio.Event()

    async def slow() -> tuple[int, dict[str, Any]]:
        await release.wait()
        return 200, GRANT

    issuer.on(TOKEN, slow)
    credentials = p1_credentials(tmp_path, issuer.url + "/", issuer.session, clock)
    waiting = [asyncio.create_task(credentials.get()) for _ in range(20)]
    while not issuer.seen:
        await asyncio.sleep(0.001)
    release.set()
    assert {one.access.reveal() for one in await asyncio.gather(*waiting)} == {"new"}
    form = {"client_id": signin.CLIENT_ID, "grant_type": "refresh_token", "refresh_token": "r1"}
    assert issuer.seen == [(TOKEN, "application/x-www-form-urlencoded", form)]
    assert json.loads(path.read_text()) == {
        "access": "new",
        "refresh": "r2",
        "expires": NOW_MS + 3_600_000,
        "accountId": "acct-1",
        "note": "kept",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    await credentials.close()


async def test_shared_session_is_used_and_left_open(tmp_path: Path, issuer: Issuer) -> None:
    put(tmp_path)
    issuer.on(TOKEN, (200, GRANT))
    credentials = p1_credentials(tmp_path, issuer.url, issuer.session, clock)
    assert (await credentials.get()).access.reveal() == "new"
    await credentials.close()
    assert not issuer.session.closed


async def test_stale_401_makes_no_post(tmp_path: Path, issuer: Issuer) -> None:
    put(tmp_path, access="new", expires=NOW_MS + 3_600_000)
    got = await p1_credentials(tmp_path, issuer.url, issuer.session, clock).renew(Secret("old"))
    assert got.access.reveal() == "new" and issuer.seen == []


async def test_refused_but_another_process_won(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path)

    async def lose() -> tuple[int, dict[str, Any]]:
        put(tmp_path, access="peer", refresh="r9", expires=NOW_MS + 3_600_000)
        return 401, {"error": {"code": "refresh_token_reused", "message": "used before"}}

    issuer.on(TOKEN, lose)
    assert (await p1_credentials(tmp_path, issuer.url, issuer.session, clock).get()).access.reveal() == "peer"
    assert json.loads(path.read_text())["access"] == "peer"


async def test_refused_deletes_and_becomes_a_401(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path)
    issuer.on(TOKEN, (401, {"error": {"code": "refresh_token_reused", "message": "used before"}}))
    with pytest.raises(SignInError) as caught:
        await p1_credentials(tmp_path, issuer.url, issuer.session, clock).get()
    body = messages_body(caught.value, "req_1")["error"]
    assert (caught.value.status, body["type"]) == (401, "authentication_error")
    assert "refresh_token_reused" in body["message"] and "model-proxy auth login p1" in body["message"]
    assert not path.exists()


async def test_trouble_of_the_issuer_keeps_the_credential(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path)
    before = path.read_bytes()
    issuer.on(TOKEN, (503, "busy"), (200, {"access_token": "x", "expires_in": 0}), (200, GRANT))
    credentials = p1_credentials(tmp_path, issuer.url, issuer.session, clock)
    for _ in range(2):
        with pytest.raises(UpstreamError) as caught:
            await credentials.get()
        assert (caught.value.kind, caught.value.provider) == ("unavailable", "p1")
        assert path.read_bytes() == before
    assert (await credentials.get()).access.reveal() == "new"


#: Says "ready", waits for a line, then asks for the credential and prints its access token.
CHILD = """
import asyncio, sys
from pathlib import Path
from aiohttp import ClientSession
from proxy.providers.p1_codex.account.signin import p1_credentials

async def main():
    async with ClientSession() as session:
        credentials = p1_credentials(Path(sys.argv[1]), sys.argv[2], session)
        print("ready", flush=True)
        sys.stdin.readline()
        print((await credentials.get()).access.reveal(), flush=True)
        await credentials.close()

asyncio.run(main())
"""


async def start_child(root: Path, url: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(root), url, stdin=pipe, stdout=pipe, stderr=pipe, cwd=REPO
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    return child


async def test_two_processes_one_post(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path)

    async def slow() -> tuple[int, dict[str, Any]]:
        await asyncio.sleep(0.3)  # long enough for the other process to run into the lock
        return 200, GRANT

    issuer.on(TOKEN, slow)
    children = await asyncio.gather(*(start_child(tmp_path, issuer.url) for _ in range(2)))
    results = await asyncio.gather(*(child.communicate(b"go\n") for child in children))
    assert [out for out, _ in results] == [b"new\n"] * 2, results
    assert [body["refresh_token"] for body in issuer.bodies] == ["r1"]
    assert json.loads(path.read_text())["refresh"] == "r2"


async def test_process_that_died_half_way_does_not_burn_the_token_twice(tmp_path: Path, issuer: Issuer) -> None:
    path = put(tmp_path)
    child = await start_child(tmp_path, issuer.url)

    async def kill() -> tuple[int, dict[str, Any]]:
        child.kill()
        await child.wait()
        return 200, GRANT

    issuer.on(TOKEN, kill)
    await child.communicate(b"go\n")
    credentials = p1_credentials(tmp_path, issuer.url, issuer.session, clock)
    with pytest.raises(SignInError, match=r"a process died.*auth login p1"):
        await credentials.get()
    assert len(issuer.seen) == 1 and path.exists()


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


async def log_in(root: Path, issuer: Issuer, browser: Browser, said: list[str]) -> Any:
    return await signin.login(
        root, issuer.url, say=said.append, session=issuer.session, opener=browser, ports=(0,), clock=clock
    )


async def test_browser_sign_in(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(TOKEN, (200, {**GRANT, "id_token": jwt({"chatgpt_account_id": "acct-1"})}))
    said: list[str] = []
    browser = Browser(code="c&1")
    await log_in(tmp_path, issuer, browser, said)
    path = tmp_path / "p1" / "auth.json"
    assert (await browser.pages.get())[0] == 200
    assert said[1].startswith(f"{issuer.url}/oauth/authorize?")
    assert said[2:] == [f"Auth saved in {path}", "Account: acct-1"]
    (sent,) = issuer.bodies
    assert challenge_of(sent.pop("code_verifier")) == browser.authorize["code_challenge"]
    assert sent == {
        "grant_type": "authorization_code",
        "code": "c&1",
        "redirect_uri": browser.authorize["redirect_uri"],
        "client_id": signin.CLIENT_ID,
    }
    assert json.loads(path.read_text()) == {
        "access": "new",
        "refresh": "r2",
        "expires": NOW_MS + 3_600_000,
        "accountId": "acct-1",
    }


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
    assert (await browser.pages.get())[0] == status
    assert not (tmp_path / "p1").exists()


async def test_sign_in_without_opening_a_browser(tmp_path: Path, issuer: Issuer) -> None:
    said: list[str] = []
    with pytest.raises(SignInError, match="No sign-in arrived"):
        await signin.login(
            tmp_path, issuer.url, say=said.append, session=issuer.session, opener=None, ports=(0,), timeout_s=0.01
        )
    assert len(said) == 2


# Device sign-in

USERCODE = "/api/accounts/deviceauth/usercode"
POLL = "/api/accounts/deviceauth/token"
DEVICE = {"device_auth_id": "d1", "user_code": "ABCD-EFGH", "interval": "5"}
CODE = {"authorization_code": "ac", "code_challenge": "ch", "code_verifier": "ve"}


class Time:
    """A monotonic clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def log_in_device(root: Path, issuer: Issuer, said: list[str], time: Time) -> Awaitable[Any]:
    return signin.login_device(
        root,
        issuer.url,
        say=said.append,
        session=issuer.session,
        clock=clock,
        monotonic=time.monotonic,
        sleep=time.sleep,
    )


async def test_device_sign_in(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(USERCODE, (200, DEVICE))
    issuer.on(POLL, (403, {"error": "pending"}), (404, "not yet"), (200, CODE))
    issuer.on(TOKEN, (200, GRANT))
    said: list[str] = []
    time = Time()
    await log_in_device(tmp_path, issuer, said, time)
    assert time.sleeps == [8.0, 8.0]
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
        (TOKEN, "application/x-www-form-urlencoded", exchanged),
    ]


async def test_device_code_not_entered_for_15_minutes(tmp_path: Path, issuer: Issuer) -> None:
    issuer.on(USERCODE, (200, {"device_auth_id": "d1", "usercode": "ABCD", "interval": 297}))
    issuer.on(POLL, *[(403, {})] * 10)
    time = Time()
    with pytest.raises(SignInError, match="not entered in time"):
        await log_in_device(tmp_path, issuer, [], time)
    assert time.sleeps == [300.0] * 3


@pytest.mark.parametrize(
    ("first", "polled", "message"),
    [
        ((404, ""), None, "not enabled"),
        ((500, "oops"), None, "gave no device code: 500 oops"),
        ((200, {"user_code": "A"}), None, "unusable device code"),
        ((200, {**DEVICE, "user_code": "\x1b[2J"}), None, "unusable device code"),
        ((200, "<html>"), None, "unusable device code"),
        ((200, DEVICE), (410, "gone"), "failed: 410 gone"),
        ((200, DEVICE), (500, "oops"), "failed: 500 oops"),
        ((200, DEVICE), (200, {"authorization_code": "x"}), "has no code"),
    ],
)
async def test_failed_device_sign_in(tmp_path: Path, issuer: Issuer, first: Any, polled: Any, message: str) -> None:
    issuer.on(USERCODE, first)
    issuer.on(POLL, polled)
    with pytest.raises(SignInError, match=message):
        await log_in_device(tmp_path, issuer, [], Time())
    assert not (tmp_path / "p1").exists()


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [("5", 8), (7, 10), ("0", 8), (None, 8), ("soon", 8), (0, 8), (-3, 4), ("nan", 8), (True, 8), ([], 8)],
)
def test_device_interval(interval: object, seconds: float) -> None:
    assert signin.device_interval(interval) == seconds


# Status and sign-out


def test_status(tmp_path: Path) -> None:
    said: list[str] = []
    assert not signin.status(tmp_path, say=said.append, clock=clock)
    path = put(tmp_path, accountId="acct-1", expires=NOW_MS + 90_007)
    assert signin.status(tmp_path, say=said.append, clock=clock)
    put(tmp_path, expires=NOW_MS - 60_000)
    assert signin.status(tmp_path, say=said.append, clock=clock)
    assert said == [
        "Not authenticated",
        *("Account: acct-1", "Expires: 2027-01-15T08:01:30.007Z (in 90s)", f"Storage: {path}"),
        *("Account: (none)", "Expires: 2027-01-15T07:59:00.000Z (in -60s)", f"Storage: {path}"),
    ]


def test_status_of_an_absurd_expiry(tmp_path: Path) -> None:
    said: list[str] = []
    put(tmp_path, expires=10**30)
    assert signin.status(tmp_path, say=said.append, clock=clock)
    assert said[1].startswith(f"Expires: {10**30} (in ")


async def test_logout(tmp_path: Path) -> None:
    said: list[str] = []
    await signin.logout(tmp_path, say=said.append)
    assert list(tmp_path.iterdir()) == []
    path = put(tmp_path)
    await signin.logout(tmp_path, say=said.append)
    assert not path.exists() and said == ["Logged out"] * 2
