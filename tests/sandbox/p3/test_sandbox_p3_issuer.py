"""Sign-in at the simulated issuer of P3: discovery, browser, device, refresh with rotation and reuse detection; and
what it tells of the account."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from yarl import URL

from proxy.auth.jwt import claims
from proxy.sandbox import Sandbox
from proxy.sandbox.oauth import jwt
from proxy.sandbox.oauth.codes import DEVICE_GRANT
from proxy.sandbox.oauth.jwt import decode_base64url
from proxy.sandbox.p3.issuer import CLIENT_ID, REUSE_GRACE_S, SCOPE

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REDIRECT = "http://127.0.0.1:40000/callback"

AUTHORIZE = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": REDIRECT,
    "scope": SCOPE,
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "state": "st",
}


class Issuer:
    """The calls of a client that signs in, on a clock of their own."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.sandbox = Sandbox(clock=lambda: self.now)
        self.p3 = self.sandbox.p3
        self.session: aiohttp.ClientSession

    async def get(self, path: str, access: str = "", **query: str | None) -> tuple[int, Any]:
        url = URL(f"{self.sandbox.origin}{path}").with_query({name: text for name, text in query.items() if text})
        headers = {"authorization": f"Bearer {access}", "x-xai-token-auth": "xai-grok-cli"} if access else {}
        async with self.session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status == 302:
                return 302, URL(response.headers["location"])
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text

    async def authorize(self, **changes: str | None) -> tuple[int, Any]:
        return await self.get("/oauth2/authorize", **{**AUTHORIZE, **changes})

    async def token(self, grant: str, **fields: str) -> tuple[int, Any]:
        return await self.post("/oauth2/token", data={"client_id": CLIENT_ID, "grant_type": grant, **fields})

    async def exchange(self, **changes: str) -> tuple[int, Any]:
        _, url = await self.authorize()
        fields = {"code": url.query["code"], "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **changes}
        return await self.token("authorization_code", **fields)

    async def refresh(self, token: str) -> tuple[int, Any]:
        return await self.token("refresh_token", refresh_token=token)

    async def begin(self, **changes: str) -> tuple[int, Any]:
        return await self.post("/oauth2/device/code", data={"client_id": CLIENT_ID, "scope": SCOPE, **changes})

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with self.session.post(self.sandbox.origin + path, **body) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    async with found.sandbox, aiohttp.ClientSession() as found.session:
        yield found


async def test_discovery(issuer: Issuer) -> None:
    origin = issuer.sandbox.settings()["PROXY_P3_ISSUER"]
    status, document = await issuer.get("/.well-known/openid-configuration")
    assert (status, document["issuer"], document["token_endpoint"]) == (200, origin, f"{origin}/oauth2/token")
    issuer.p3.issuer.document = {"issuer": "x", "token_endpoint": None}
    _, changed = await issuer.get("/.well-known/openid-configuration")
    assert changed["issuer"] == "x" and "token_endpoint" not in changed and issuer.p3.issuer.discoveries == 2
    issuer.p3.issuer.recover()
    assert (await issuer.get("/.well-known/openid-configuration"))[1] == document


async def test_browser_flow(issuer: Issuer) -> None:
    _, url = await issuer.authorize()
    assert str(url).startswith(f"{REDIRECT}?") and set(url.query) == {"state", "code"} and url.query["state"] == "st"
    status, tokens = await issuer.exchange()
    assert (status, tokens["token_type"], tokens["expires_in"], tokens["scope"]) == (200, "Bearer", 21_600, SCOPE)
    told = claims(tokens["access_token"])
    assert told["exp"] == issuer.now + 21_600 and told["principal_type"] == "User"
    assert issuer.p3.tokens.accepts(tokens["access_token"]) and issuer.p3.tokens.permits(tokens["access_token"])


async def test_identity_tokens_can_be_checked(issuer: Issuer) -> None:
    """The vendor's client does so, and its nonce must be in them."""
    _, url = await issuer.authorize(nonce="n1")
    _, tokens = await issuer.exchange(code=url.query["code"])
    told = claims(tokens["id_token"])
    assert (told["nonce"], told["aud"], told["iss"]) == ("n1", CLIENT_ID, issuer.sandbox.origin)
    _, document = await issuer.get("/.well-known/openid-configuration")
    path = document["jwks_uri"].removeprefix(issuer.sandbox.origin)
    ((key,),) = (await issuer.get(path))[1].values()
    assert is_signed(tokens["id_token"], key)
    assert not is_signed(tokens["id_token"].replace(".", ".A", 1), key)
    issuer.p3.options.device_answers = ()
    _, begun = await issuer.begin()
    _, tokens = await issuer.token(DEVICE_GRANT, device_code=begun["device_code"])
    assert is_signed(tokens["id_token"], key) and "nonce" not in claims(tokens["id_token"])


def is_signed(token: str, key: dict[str, str]) -> bool:
    """ES256, as a client checks it (FIPS 186-4, 6.4.2)."""
    signed, _, signature = token.rpartition(".")
    raw = decode_base64url(signature)
    r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
    point = tuple(int.from_bytes(decode_base64url(key[name]), "big") for name in "xy")
    digest = int.from_bytes(hashlib.sha256(signed.encode()).digest(), "big")
    inverse = pow(s, -1, jwt.ORDER)
    ours, theirs = digest * inverse % jwt.ORDER, r * inverse % jwt.ORDER
    found = jwt.plus(jwt.times(ours), jwt.times(theirs, (point[0], point[1])))
    return found is not None and len(raw) == 64 and found[0] % jwt.ORDER == r


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in ("response_type", "client_id", "code_challenge", "code_challenge_method", "state")),
        *({"client_id": "else"}, {"response_type": "token"}, {"code_challenge": "x"}, {"scope": "openid"}),
        {"code_challenge_method": "plain"},
        *(
            {"redirect_uri": bad}
            for bad in (
                *("http://localhost:40000/callback", "http://127.0.0.1/callback", "https://127.0.0.1:40000/callback"),
                *("http://127.0.0.1:40000/else", "http://evil.example:40000/callback"),
                *("http://127.0.0.1:99999/callback", "http://["),
            )
        ),
    ],
)
async def test_authorize_is_strict(issuer: Issuer, changes: dict[str, str | None]) -> None:
    status, answer = await issuer.authorize(**changes)
    assert (status, answer["error"]) == (400, "invalid_request")


async def test_denial(issuer: Issuer) -> None:
    issuer.p3.issuer.codes.deny = "access_denied"
    _, url = await issuer.authorize()
    assert url.query == {"state": "st", "error": "access_denied"}


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        *(({name: ""}, 400, "invalid_request") for name in ("code", "redirect_uri", "code_verifier")),
        ({"code": "ac_invented"}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:40001/callback"}, 400, "invalid_grant"),
        ({"code_verifier": "w" * 43}, 400, "invalid_grant"),
        ({"client_id": "else"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "refresh_token"}, 400, "invalid_request"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, 400, "invalid_grant"),
        ({"grant_type": DEVICE_GRANT}, 400, "invalid_request"),
        ({"grant_type": DEVICE_GRANT, "device_code": "x"}, 400, "invalid_grant"),
    ],
)
async def test_token_endpoint_is_strict(issuer: Issuer, changes: dict[str, str], status: int, error: str) -> None:
    _, url = await issuer.authorize()
    fields = {"code": url.query["code"], "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
    sent = {"client_id": CLIENT_ID, "grant_type": "authorization_code", **fields, **changes}
    got, answer = await issuer.post("/oauth2/token", data=sent)
    assert (got, answer["error"]) == (status, error)


async def test_a_code_is_good_once_and_forms_only(issuer: Issuer) -> None:
    _, url = await issuer.authorize()
    code = url.query["code"]
    assert [(await issuer.exchange(code=code))[0] for _ in range(2)] == [200, 400]
    assert (await issuer.post("/oauth2/token", json={}))[0] == 415
    assert (await issuer.post("/oauth2/device/code", json={}))[0] == 415


async def test_rotation_with_grace(issuer: Issuer) -> None:
    first = (await issuer.exchange())[1]["refresh_token"]
    status, second = await issuer.refresh(first)
    assert status == 200 and second["refresh_token"] != first
    issuer.now += REUSE_GRACE_S
    status, again = await issuer.refresh(first)
    assert status == 200 and again["refresh_token"] not in (first, second["refresh_token"])
    assert issuer.p3.tokens.accepts(second["access_token"]) and issuer.p3.refreshes == 2


async def test_reuse_ends_the_sign_in_and_no_other(issuer: Issuer) -> None:
    first, other = [(await issuer.exchange())[1] for _ in range(2)]
    _, second = await issuer.refresh(first["refresh_token"])
    issuer.now += REUSE_GRACE_S + 1
    status, answer = await issuer.refresh(first["refresh_token"])
    assert (status, answer["error"]) == (400, "invalid_grant")
    assert (await issuer.refresh(second["refresh_token"]))[0] == 400
    assert not issuer.p3.tokens.accepts(second["access_token"])
    assert issuer.p3.tokens.accepts(other["access_token"]) and (await issuer.refresh(other["refresh_token"]))[0] == 200


async def test_without_rotation(issuer: Issuer) -> None:
    issuer.p3.tokens.rotating = False
    token = (await issuer.exchange())[1]["refresh_token"]
    for _ in range(2):
        status, tokens = await issuer.refresh(token)
        assert status == 200 and "refresh_token" not in tokens and issuer.p3.tokens.accepts(tokens["access_token"])
    issuer.p3.tokens.revoke_refresh()
    assert (await issuer.refresh(token))[0] == 400


async def test_device_flow(issuer: Issuer) -> None:
    issuer.p3.options.device_answers = ("authorization_pending", "slow_down")
    status, begun = await issuer.begin()
    assert (status, begun["interval"], begun["expires_in"], len(begun["user_code"])) == (200, 1, 1800, 9)
    assert begun["verification_uri_complete"] == f"{begun['verification_uri']}?user_code={begun['user_code']}"
    assert "Sandbox sign-in" in (await issuer.get("/device"))[1]
    told = [await issuer.token(DEVICE_GRANT, device_code=begun["device_code"]) for _ in range(4)]
    assert [(status, answer.get("error")) for status, answer in told] == [
        *((400, "authorization_pending"), (400, "slow_down"), (200, None), (400, "invalid_grant"))
    ]
    assert told[2][1]["refresh_token"]


async def test_device_codes_end(issuer: Issuer) -> None:
    _, begun = await issuer.begin()
    issuer.p3.issuer.devices.deny = True
    assert (await issuer.token(DEVICE_GRANT, device_code=begun["device_code"]))[1]["error"] == "access_denied"
    issuer.p3.issuer.recover()
    _, begun = await issuer.begin()
    issuer.now += 1800
    assert (await issuer.token(DEVICE_GRANT, device_code=begun["device_code"]))[1]["error"] == "expired_token"
    assert (await issuer.begin(client_id="else"))[1]["error"] == "invalid_client"
    assert (await issuer.begin(scope="openid"))[1]["error"] == "invalid_scope"
    issuer.p3.options.device_enabled = False
    assert (await issuer.begin())[0] == 404


async def test_scope_that_is_not_granted(issuer: Issuer) -> None:
    issuer.p3.tokens.scope = "openid offline_access"
    _, tokens = await issuer.exchange()
    assert tokens["scope"] == "openid offline_access"
    assert issuer.p3.tokens.accepts(tokens["access_token"]) and not issuer.p3.tokens.permits(tokens["access_token"])


async def test_broken_answer_has_done_its_work(issuer: Issuer) -> None:
    token = (await issuer.exchange())[1]["refresh_token"]
    issuer.p3.issuer.cut_answers = True
    with pytest.raises(aiohttp.ClientError):
        await issuer.refresh(token)
    assert issuer.p3.refreshes == 1


@pytest.mark.parametrize(
    ("path", "member"), [("billing?format=credits", "config"), ("settings", "allow_access"), ("user", "userId")]
)
async def test_account_routes(issuer: Issuer, path: str, member: str) -> None:
    access = issuer.p3.stored_credential()["access"]
    name, _, query = path.partition("?")
    format_ = {"format": query.partition("=")[2]}
    assert (await issuer.get(f"/v1/{name}", **format_))[0] == 401
    status, answer = await issuer.get(f"/v1/{name}", access, **format_)
    assert status == 200 and member in answer


async def test_billing_needs_its_form(issuer: Issuer) -> None:
    assert (await issuer.get("/v1/billing", issuer.p3.stored_credential()["access"]))[0] == 400


async def test_stored_sign_in(issuer: Issuer) -> None:
    stored = issuer.p3.stored_credential(lifetime_s=60)
    assert set(stored) == {"access", "refresh", "expires_at_ms", "issuer", "client_id"}
    assert stored["expires_at_ms"] == (issuer.now + 60) * 1000
    assert (stored["issuer"], stored["client_id"]) == (issuer.sandbox.origin, CLIENT_ID)
