"""Sign-in at the simulated issuer of P2: device flow, refresh with rotation; and the account routes."""

import json
from typing import Any

import aiohttp
import pytest
from p2_sandbox_client import P2Client, chat

from proxy.auth.jwt import claims
from proxy.sandbox import P2Options, Sandbox
from proxy.sandbox.p2.issuer import CLIENT_ID, DEVICE_GRANT


class Issuer:
    """The calls of a client that signs in."""

    def __init__(self, client: P2Client) -> None:
        self.client = client
        self.p2 = client.sandbox.p2
        self.host = client.sandbox.settings()["PROXY_P2_OAUTH_HOST"]

    async def begin(self, **fields: str) -> tuple[int, Any]:
        return await self.post("device_authorization", {"client_id": CLIENT_ID, **fields})

    async def poll(self, code: str, **headers: str) -> tuple[int, Any]:
        fields = {"client_id": CLIENT_ID, "grant_type": DEVICE_GRANT, "device_code": code}
        return await self.post("token", fields, **headers)

    async def refresh(self, token: str, **headers: str) -> tuple[int, Any]:
        fields = {"client_id": CLIENT_ID, "grant_type": "refresh_token", "refresh_token": token}
        return await self.post("token", fields, **headers)

    async def post(self, path: str, fields: Any, **headers: str) -> tuple[int, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in {**self.client.device(), **named}.items() if value}
        url = f"{self.host}/api/oauth/{path}"
        async with self.client.session.post(url, data=fields, headers=sent) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
def issuer(kimi: P2Client) -> Issuer:
    return Issuer(kimi)


async def test_device_flow(issuer: Issuer) -> None:
    issuer.p2.options.device_answers = ("authorization_pending", "slow_down", "authorization_pending")
    status, begun = await issuer.begin()
    assert status == 200
    assert (begun["interval"], begun["expires_in"], len(begun["user_code"])) == (1, 900, 9)
    assert begun["verification_uri_complete"] == f"{begun['verification_uri']}?user_code={begun['user_code']}"
    async with issuer.client.session.get(begun["verification_uri_complete"]) as page:
        assert "Sandbox sign-in" in await page.text()
    answers = [await issuer.poll(begun["device_code"]) for _ in range(3)]
    assert [(status, answer["error"]) for status, answer in answers] == [
        (400, "authorization_pending"),
        (400, "slow_down"),
        (400, "authorization_pending"),
    ]
    status, tokens = await issuer.poll(begun["device_code"])
    assert (status, tokens["token_type"], tokens["expires_in"]) == (200, "Bearer", 900)
    told = claims(tokens["access_token"])
    assert (told["user_id"], told["device_id"]) == ("u_sandbox", issuer.p2.options.device_id)
    assert told["exp"] - told["iat"] == 900
    bearer = {"authorization": f"Bearer {tokens['access_token']}"}
    assert (await issuer.client.ask(chat(), bearer)).status == 200
    again, answer = await issuer.poll(begun["device_code"])
    assert (again, answer["error"]) == (400, "invalid_grant")
    assert set(issuer.p2.issuer.holders) == {issuer.p2.options.device_id}


async def test_pending_may_be_told_with_status_200(issuer: Issuer) -> None:
    issuer.p2.options.pending_status = 200
    _, begun = await issuer.begin()
    status, answer = await issuer.poll(begun["device_code"])
    assert (status, answer["error"], "access_token" in answer) == (200, "authorization_pending", False)


async def test_refusal_and_expiry_end_the_sign_in() -> None:
    now = 1_000.0
    async with Sandbox(clock=lambda: now) as sandbox, aiohttp.ClientSession() as session:
        issuer = Issuer(P2Client(sandbox, session))
        _, begun = await issuer.begin()
        issuer.p2.issuer.devices.deny = True
        assert (await issuer.poll(begun["device_code"]))[1]["error"] == "access_denied"
        issuer.p2.issuer.recover()
        assert (await issuer.poll(begun["device_code"]))[1]["error"] == "invalid_grant"
        _, begun = await issuer.begin()
        now += 900
        status, answer = await issuer.poll(begun["device_code"])
        assert (status, answer["error"]) == (400, "expired_token")


async def test_the_interval_may_be_watched() -> None:
    now = 0.0
    options = P2Options(watch_interval=True, device_answers=())
    async with Sandbox(options=[options], clock=lambda: now) as sandbox, aiohttp.ClientSession() as session:
        issuer = Issuer(P2Client(sandbox, session))
        issuer.p2.options.device_answers = ("authorization_pending",) * 2
        _, begun = await issuer.begin()
        told = []
        for pause in (0.0, 1.0, 0.5, 1.0, 11.0):
            now += pause
            told.append((await issuer.poll(begun["device_code"]))[1].get("error"))
    assert told == ["authorization_pending", "authorization_pending", "slow_down", "slow_down", None]


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"client_id": "else"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"device_code": "dc_invented"}, 400, "invalid_grant"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, 401, "invalid_grant"),
    ],
)
async def test_token_endpoint_is_strict(issuer: Issuer, fields: dict[str, str], status: int, error: str) -> None:
    base = {"client_id": CLIENT_ID, "grant_type": DEVICE_GRANT, "device_code": "dc"}
    got, answer = await issuer.post("token", {**base, **fields})
    assert (got, answer["error"]) == (status, error)


async def test_odd_calls(issuer: Issuer) -> None:
    assert (await issuer.begin(client_id="else"))[1]["error"] == "invalid_client"
    assert (await issuer.post("device_authorization", b"{}", content_type="application/json"))[0] == 415
    for name in ("platform", "version", "device_name", "device_model", "os_version", "device_id"):
        status, answer = await issuer.post("device_authorization", {"client_id": CLIENT_ID}, **{f"x_msh_{name}": ""})
        assert (status, answer["error"]) == (400, "invalid_request")
        status, answer = await issuer.post("token", {"client_id": CLIENT_ID}, **{f"x_msh_{name}": ""})
        assert (status, answer["error"]) == (400, "invalid_request")


async def test_everything_is_bound_to_the_device(issuer: Issuer) -> None:
    _, begun = await issuer.begin()
    status, answer = await issuer.poll(begun["device_code"], x_msh_device_id="0" * 32)
    assert (status, answer["error"]) == (400, "invalid_grant")
    status, answer = await issuer.refresh(issuer.client.credential["refresh"], x_msh_device_id="0" * 32)
    assert (status, answer["error"]) == (401, "invalid_grant")
    assert (await issuer.refresh(issuer.client.credential["refresh"]))[0] == 200, "that attempt did not spend it"


async def test_rotation(issuer: Issuer) -> None:
    first = issuer.client.credential["refresh"]
    status, tokens = await issuer.refresh(first)
    assert status == 200 and tokens["refresh_token"] != first
    status, answer = await issuer.refresh(first)
    assert (status, answer["error"]) == (401, "invalid_grant")
    assert (issuer.p2.refreshes, issuer.p2.issuer.refresh_requests) == (1, 2)
    assert (await issuer.refresh(tokens["refresh_token"]))[0] == 200
    assert issuer.p2.issuer.token_requests[-1]["refresh_token"] == tokens["refresh_token"]
    issuer.p2.tokens.revoke_refresh()
    assert (await issuer.refresh((await issuer.refresh("x"))[1].get("refresh_token", "x")))[0] == 401


async def test_the_issuer_may_fail_some_times(issuer: Issuer) -> None:
    refresh = issuer.client.credential["refresh"]
    issuer.p2.issuer.answer_with(500, {"error": "server_error"}, times=2)
    assert [(await issuer.refresh(refresh))[0] for _ in range(3)] == [500, 500, 200]


async def test_access_tokens_end(issuer: Issuer) -> None:
    issuer.client.credential = issuer.p2.stored_credential(lifetime_s=-1)
    assert (await issuer.client.ask(chat())).status == 401
    issuer.client.credential = issuer.p2.stored_credential()
    assert (await issuer.client.ask(chat())).status == 200
    issuer.p2.revoke_access()
    assert (await issuer.client.ask(chat())).status == 401


async def test_account_routes(kimi: P2Client) -> None:
    async with kimi.session.get(f"{kimi.url}/models", headers=kimi.headers()) as response:
        models = {model["id"]: model for model in (await response.json())["data"]}
    assert set(models) == {"kimi-for-coding", "kimi-for-coding-highspeed", "k3", "k3-256k"}
    assert models["k3"]["think_efforts"]["valid_efforts"] == ["low", "high", "max"]
    assert (models["k3"]["supports_thinking_type"], models["k3-256k"]["supports_video_in"]) == ("only", False)
    async with kimi.session.get(f"{kimi.url}/usages", headers=kimi.headers()) as response:
        usages = await response.json()
        assert response.headers["x-trace-id"]
    assert usages["usage"]["used"] == "3" and usages["limits"][0]["window"]["duration"] == 300
    for path, sent, words in (
        ("search", {"text_query": "rust"}, "https://docs.example.org/rust"),
        ("fetch", {"url": "https://e.example/a"}, "What stands at https://e.example/a"),
    ):
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.headers(), json=sent) as response:
            assert response.status == 200 and words in await response.text()
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.headers(), json={"query": "rust"}) as response:
            assert response.status == 400
        async with kimi.session.post(f"{kimi.url}/{path}", headers=kimi.device(), json=sent) as response:
            assert response.status == 401
    assert [seen.status for seen in kimi.sandbox.p2.service_requests] == [200, 400, 401] * 2
    for path in ("models", "usages"):
        async with kimi.session.get(f"{kimi.url}/{path}", headers=kimi.device()) as response:
            assert response.status == 401
