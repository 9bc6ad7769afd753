"""Sign-in at the simulated issuer: browser, device, refresh with rotation, revocation."""

import base64
import hashlib
import json
import time
from typing import Any

import pytest
from p1_sandbox_client import Client, full
from yarl import URL

from proxy.auth.jwt import claims
from proxy.sandbox.p1.issuer import AUTH_CLAIM, CLIENT_ID

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REDIRECT = "http://localhost:1455/auth/callback"

AUTHORIZE = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": REDIRECT,
    "scope": "openid profile email offline_access",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "id_token_add_organizations": "true",
    "codex_cli_simplified_flow": "true",
    "state": "st",
    "originator": "x",
}


class Issuer:
    """The four kinds of calls."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.origin = client.sandbox.settings()["PROXY_P1_ISSUER"]
        self.state = client.sandbox.p1.issuer

    async def authorize(self, **changes: str | None) -> tuple[int, URL | str]:
        query = {name: value for name, value in {**AUTHORIZE, **changes}.items() if value is not None}
        url = URL(f"{self.origin}/oauth/authorize").with_query(query)
        async with self.client.session.get(url, allow_redirects=False) as response:
            if response.status == 302:
                return 302, URL(response.headers["location"])
            return response.status, await response.text()

    async def token(self, **fields: str) -> tuple[int, Any]:
        return await self.post("/oauth/token", data={"client_id": CLIENT_ID, **fields})

    async def exchange(self, code: str, **changes: str) -> tuple[int, Any]:
        fields = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **changes}
        return await self.token(grant_type="authorization_code", **fields)

    async def refresh(self, token: str) -> tuple[int, Any]:
        return await self.token(grant_type="refresh_token", refresh_token=token)

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with self.client.session.post(self.origin + path, **body) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
def issuer(client: Client) -> Issuer:
    return Issuer(client)


async def test_browser_flow(issuer: Issuer) -> None:
    _, url = await issuer.authorize()
    assert str(url).startswith(REDIRECT) and url.query["state"] == "st"
    status, tokens = await issuer.exchange(url.query["code"])
    assert status == 200
    assert tokens["token_type"] == "Bearer" and tokens["expires_in"] == 864_000
    for name in ("id_token", "access_token"):
        assert claims(tokens[name])[AUTH_CLAIM]["chatgpt_account_id"] == "acct-sandbox"
    assert claims(tokens["id_token"])["email"] == "sandbox@example.com"
    assert abs(claims(tokens["access_token"])["exp"] - time.time() - 864_000) < 5
    bearer = {"authorization": f"Bearer {tokens['access_token']}"}
    assert (await issuer.client.ask(full(), bearer)).status == 200
    again, answer = await issuer.exchange(url.query["code"])
    assert (again, answer["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "else"},
        {"response_type": "token"},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge_method": "plain"},
        {"scope": "openid"},
        {"state": None},
        {"redirect_uri": "http://localhost:1456/auth/callback"},
        {"redirect_uri": "http://localhost:1455/callback"},
        {"redirect_uri": "http://evil.example:1455/auth/callback"},
        {"redirect_uri": "https://localhost:1455/auth/callback"},
        {"redirect_uri": None},
    ],
)
async def test_authorize_is_strict(issuer: Issuer, changes: dict[str, str | None]) -> None:
    status, _ = await issuer.authorize(**changes)
    assert status == 400


async def test_the_second_port_and_a_denial(issuer: Issuer) -> None:
    status, _ = await issuer.authorize(redirect_uri="http://127.0.0.1:1457/auth/callback")
    assert status == 302
    issuer.state.codes.deny = "access_denied"
    _, url = await issuer.authorize()
    assert url.query == {"state": "st", "error": "access_denied"}


@pytest.mark.parametrize(
    "changes",
    [{"code_verifier": "w" * 43}, {"redirect_uri": "http://127.0.0.1:1455/auth/callback"}, {"code": "ac_invented"}],
)
async def test_exchange_is_strict(issuer: Issuer, changes: dict[str, str]) -> None:
    _, url = await issuer.authorize()
    fields = {"code": url.query["code"], **changes}
    status, answer = await issuer.exchange(**fields)
    assert (status, answer["error"]) == (400, "invalid_grant")


async def test_rotation(issuer: Issuer) -> None:
    first = issuer.client.credential["refresh"]
    status, tokens = await issuer.refresh(first)
    assert status == 200 and tokens["refresh_token"] != first
    status, answer = await issuer.refresh(first)
    assert (status, answer["error"]["code"]) == (401, "refresh_token_reused")
    status, answer = await issuer.refresh("rt_invented")
    assert (status, answer["error"]["code"]) == (401, "refresh_token_invalidated")
    assert (issuer.client.sandbox.p1.refreshes, issuer.state.refresh_requests) == (1, 3)
    fields = {"client_id": CLIENT_ID, "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert (await issuer.post("/oauth/token", json=fields))[0] == 200
    assert issuer.state.token_requests[-1] == fields


async def test_token_endpoint_refuses_odd_calls(issuer: Issuer) -> None:
    assert (await issuer.token(grant_type="password"))[0] == 400
    assert (await issuer.token(grant_type="refresh_token", client_id="else"))[0] == 401
    assert (await issuer.post("/oauth/token", data=b"x", headers={"content-type": "text/plain"}))[0] == 415
    assert (await issuer.post("/oauth/token", data=b"x", headers={"content-type": "application/json"}))[0] == 400


async def test_refresh_tokens_may_all_expire(issuer: Issuer) -> None:
    issuer.client.sandbox.p1.tokens.revoke_refresh("refresh_token_expired")
    status, answer = await issuer.refresh(issuer.client.credential["refresh"])
    assert (status, answer["error"]["code"]) == (401, "refresh_token_expired")


async def test_the_issuer_may_fail_and_be_slow(issuer: Issuer) -> None:
    refresh = issuer.client.credential["refresh"]
    issuer.state.answer_with(503, "down", {"retry-after": "1"})
    assert await issuer.refresh(refresh) == (503, "down")
    issuer.state.recover()
    issuer.state.delay_s = 0.1
    start = time.monotonic()
    assert (await issuer.refresh(refresh))[0] == 200
    assert time.monotonic() - start >= 0.1


async def test_device_flow(issuer: Issuer) -> None:
    issuer.client.sandbox.p1.options.device_pending_polls = 2
    _, begun = await issuer.post("/api/accounts/deviceauth/usercode", json={"client_id": CLIENT_ID})
    assert begun["interval"] == "1" and len(begun["user_code"]) == 9
    poll = {name: begun[name] for name in ("device_auth_id", "user_code")}
    path = "/api/accounts/deviceauth/token"
    assert (await issuer.post(path, json={**poll, "user_code": "X"}))[0] == 400
    assert [(await issuer.post(path, json=poll))[0] for _ in range(2)] == [403, 403]
    status, grant = await issuer.post(path, json=poll)
    assert status == 200 and set(grant) == {"authorization_code", "code_challenge", "code_verifier"}
    code, verifier = grant["authorization_code"], grant["code_verifier"]
    assert (await issuer.exchange(code, code_verifier=verifier))[0] == 400, "the redirect address is the issuer's own"
    _, begun = await issuer.post("/api/accounts/deviceauth/usercode", json={"client_id": CLIENT_ID})
    issuer.client.sandbox.p1.options.device_pending_polls = 0
    _, begun = await issuer.post("/api/accounts/deviceauth/usercode", json={"client_id": CLIENT_ID})
    _, grant = await issuer.post(path, json={name: begun[name] for name in ("device_auth_id", "user_code")})
    status, tokens = await issuer.exchange(
        grant["authorization_code"],
        code_verifier=grant["code_verifier"],
        redirect_uri=f"{issuer.origin}/deviceauth/callback",
    )
    assert status == 200 and tokens["refresh_token"]


async def test_device_sign_in_may_be_off_and_has_a_page(issuer: Issuer) -> None:
    issuer.state.device_enabled = False
    assert (await issuer.post("/api/accounts/deviceauth/usercode", json={"client_id": CLIENT_ID}))[0] == 404
    async with issuer.client.session.get(f"{issuer.origin}/codex/device") as response:
        assert "Sandbox sign-in" in await response.text()


async def test_revocation(issuer: Issuer) -> None:
    client = issuer.client
    body = {"token": client.credential["refresh"], "token_type_hint": "refresh_token", "client_id": CLIENT_ID}
    assert (await issuer.post("/oauth/revoke", json=body))[0] == 200
    assert issuer.state.revoked == [client.credential["refresh"]]
    status, answer = await issuer.refresh(client.credential["refresh"])
    assert (status, answer["error"]["code"]) == (401, "refresh_token_invalidated")
    assert (await client.ask(full())).status == 200
    client.sandbox.p1.revoke_access()
    assert (await client.ask(full())).status == 401


async def test_expired_access_tokens(issuer: Issuer) -> None:
    issuer.client.credential = issuer.client.sandbox.p1.stored_credential(lifetime_s=-1)
    assert (await issuer.client.ask(full())).json["error"]["code"] == "token_expired"
