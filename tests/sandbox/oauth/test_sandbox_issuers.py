"""Sign-in at the simulated issuers of P1, P2 and P3: browser, device, refresh, and what each has alone."""

import hashlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import pytest
from p1_sandbox_client import Client, P3Client, full, grok
from p2_sandbox_client import DEVICE, P2Client, chat
from raw_client import RawClient
from yarl import URL

from proxy.auth.jwt import claims
from proxy.sandbox import Sandbox
from proxy.sandbox.oauth import jwt
from proxy.sandbox.oauth.codes import DEVICE_GRANT, challenge_of
from proxy.sandbox.oauth.issuer import Flows
from proxy.sandbox.p1.issuer import AUTH_CLAIM
from proxy.sandbox.p1.issuer import FLOWS as CODEX
from proxy.sandbox.p2.issuer import FLOWS as KIMI
from proxy.sandbox.p3.issuer import FLOWS as GROK
from proxy.sandbox.p3.issuer import REUSE_GRACE_S, SCOPE

VERIFIER = "v" * 43


class Service(NamedTuple):
    """`dead` is how a refresh token that nobody issued is refused, `used` one that comes again."""

    label: str
    flows: Flows
    client: type[RawClient]
    body: dict[str, Any]
    lifetime_s: int
    dead: tuple[int, str]
    used: tuple[int, str] | None = None
    scope: str = "openid profile email offline_access"
    redirect: str = ""


INVALID = (401, "invalid_grant")
P1 = Service(
    "p1",
    CODEX,
    Client,
    full(),
    864_000,
    (401, "refresh_token_invalidated"),
    (401, "refresh_token_reused"),
    redirect="http://localhost:1455/auth/callback",
)
P2 = Service("p2", KIMI, P2Client, chat(), 900, INVALID, INVALID)
P3 = Service(
    "p3",
    GROK,
    P3Client,
    grok(),
    21_600,
    (400, "invalid_grant"),
    scope=SCOPE,
    redirect="http://127.0.0.1:40000/callback",
)
ALL, BROWSERS, DEVICES = (P1, P2, P3), (P1, P3), (P2, P3)


class Signer:
    """The calls of a client that signs in, on a clock of its own."""

    def __init__(self, service: Service) -> None:
        self.service, self.flows, self.now = service, service.flows, 1_800_000_000.0
        self.sandbox = Sandbox(clock=lambda: self.now)
        self.upstream: Any = self.sandbox[service.label]
        self.issuer, self.options, self.tokens = self.upstream.issuer, self.upstream.options, self.upstream.tokens
        self.session: aiohttp.ClientSession

    async def call(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        headers = {**self.device(), **more.pop("headers", {})}
        sent = {name: value for name, value in headers.items() if value is not None}
        url = self.sandbox.origin + path
        async with self.session.request(method, url, headers=sent, allow_redirects=False, **more) as response:
            if response.status == 302:
                return 302, URL(response.headers["location"])
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text

    def device(self) -> dict[str, str]:
        """What P2 wants with every call."""
        return {**DEVICE, "x-msh-device-id": self.options.device_id} if self.service is P2 else {}

    async def authorize(self, **changes: str | None) -> tuple[int, Any]:
        query = {
            "response_type": "code",
            "client_id": self.flows.client_id,
            "redirect_uri": self.service.redirect,
            "scope": self.service.scope,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "st",
            **changes,
        }
        params = {name: text for name, text in query.items() if text is not None}
        return await self.call("GET", self.flows.authorize, params=params)

    async def token(self, grant: str, headers: Any = None, **fields: str) -> tuple[int, Any]:
        sent = {"client_id": self.flows.client_id, "grant_type": grant, **fields}
        return await self.call("POST", self.flows.token, data=sent, headers=headers or {})

    async def exchange(self, **changes: str) -> tuple[int, Any]:
        """Of a code that was just made."""
        _, url = await self.authorize()
        fields = {"code": url.query["code"], "redirect_uri": self.service.redirect, "code_verifier": VERIFIER}
        return await self.token(**{"grant": "authorization_code", **fields, **changes})

    async def refresh(self, token: str, **headers: str) -> tuple[int, Any]:
        return await self.token("refresh_token", headers, refresh_token=token)

    async def begin(self, headers: Any = None, **changes: str) -> tuple[int, Any]:
        sent = {"client_id": self.flows.client_id, "scope": self.service.scope, **changes}
        return await self.call("POST", self.flows.device, data=sent, headers=headers or {})

    async def poll(self, code: str, **headers: str) -> tuple[int, Any]:
        return await self.token(DEVICE_GRANT, headers, device_code=code)

    async def signed_in(self) -> dict[str, Any]:
        """The token response of a new sign-in."""
        issued: dict[str, Any] = self.upstream.sign_in(None)[0]
        return issued

    async def served(self, access: str) -> int:
        """The status of a request for an answer with this bearer."""
        client = self.service.client(self.sandbox, self.session)  # type: ignore[call-arg]
        return (await client.ask(self.service.body, {"authorization": f"Bearer {access}"})).status


def error_of(answer: tuple[int, Any]) -> tuple[int, str | None]:
    """Status and error code of an answer."""
    status, body = answer
    error = body.get("error")
    return status, error["code"] if isinstance(error, dict) else error


@pytest.fixture
async def signer(request: pytest.FixtureRequest) -> AsyncIterator[Signer]:
    found = Signer(request.param)
    async with found.sandbox, aiohttp.ClientSession() as found.session:
        yield found


def at(*services: Service) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("signer", services, ids=lambda service: service.label, indirect=True)


# -- browsers


@at(*BROWSERS)
async def test_browser_flow(signer: Signer) -> None:
    _, url = await signer.authorize()
    assert str(url).startswith(f"{signer.service.redirect}?") and set(url.query) == {"state", "code"}
    assert url.query["state"] == "st"
    status, tokens = await signer.exchange(code=url.query["code"])
    assert (status, tokens["token_type"], tokens["expires_in"]) == (200, "Bearer", signer.service.lifetime_s)
    assert claims(tokens["access_token"])["exp"] == signer.now + signer.service.lifetime_s
    assert await signer.served(tokens["access_token"]) == 200
    assert error_of(await signer.exchange(code=url.query["code"])) == (400, "invalid_grant")
    signer.issuer.codes.deny = "access_denied"
    assert (await signer.authorize())[1].query == {"state": "st", "error": "access_denied"}
    signer.issuer.recover()
    assert "code" in (await signer.authorize())[1].query


NEEDED = ("response_type", "client_id", "code_challenge", "code_challenge_method", "state", "redirect_uri")
ODD_REDIRECTS = (
    *("http://localhost:1456/auth/callback", "http://localhost:1455/callback", "https://localhost:1455/auth/callback"),
    *("http://localhost:40000/callback", "http://127.0.0.1/callback", "https://127.0.0.1:40000/callback"),
    *("http://127.0.0.1:40000/else", "http://127.0.0.1:99999/callback", "http://[", "x"),
    *(f"http://evil.example:{rest}" for rest in ("1455/auth/callback", "40000/callback")),
)


@at(*BROWSERS)
@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in NEEDED),
        *({"client_id": "else"}, {"response_type": "token"}, {"code_challenge": "short"}, {"scope": "openid"}),
        {"code_challenge_method": "plain"},
        *({"redirect_uri": address} for address in ODD_REDIRECTS),
    ],
)
async def test_authorize_is_strict(signer: Signer, changes: dict[str, str | None]) -> None:
    assert error_of(await signer.authorize(**changes)) == (400, "invalid_request")


@at(*BROWSERS)
@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"code": "ac_invented"}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1455/auth/callback"}, 400, "invalid_grant"),
        ({"code_verifier": "w" * 43}, 400, "invalid_grant"),
        ({"client_id": "else"}, 401, "invalid_client"),
        ({"grant": "password"}, 400, "unsupported_grant_type"),
    ],
)
async def test_exchange_is_strict(signer: Signer, changes: dict[str, str], status: int, error: str) -> None:
    assert error_of(await signer.exchange(**changes)) == (status, error)


@at(P3)
@pytest.mark.parametrize(
    ("grant", "needed"),
    [
        *(("authorization_code", name) for name in ("code", "redirect_uri", "code_verifier")),
        *(("refresh_token", "refresh_token"), (DEVICE_GRANT, "device_code")),
    ],
)
async def test_what_a_grant_needs(signer: Signer, grant: str, needed: str) -> None:
    status, answer = await signer.exchange(grant=grant, **{needed: ""})
    assert (status, answer["error"], needed in answer["error_description"]) == (400, "invalid_request", True)


@at(P1)
async def test_p1_has_a_second_port_and_claims(signer: Signer) -> None:
    assert (await signer.authorize(redirect_uri="http://127.0.0.1:1457/auth/callback"))[0] == 302
    _, tokens = await signer.exchange()
    for name in ("id_token", "access_token"):
        assert claims(tokens[name])[AUTH_CLAIM]["chatgpt_account_id"] == "acct-sandbox"
    assert claims(tokens["id_token"])["email"] == "sandbox@example.com"


@at(P3)
async def test_p3_grants_a_scope(signer: Signer) -> None:
    _, tokens = await signer.exchange()
    assert tokens["scope"] == SCOPE and signer.tokens.permits(tokens["access_token"])
    assert claims(tokens["access_token"])["principal_type"] == "User"
    signer.tokens.scope = "openid offline_access"
    assert (await signer.exchange())[1]["scope"] == "openid offline_access"


@at(P3)
async def test_identity_tokens_can_be_checked(signer: Signer) -> None:
    """The vendor's client does so, and its nonce must be in them."""
    _, url = await signer.authorize(nonce="n1")
    _, tokens = await signer.exchange(code=url.query["code"])
    told = claims(tokens["id_token"])
    assert (told["nonce"], told["aud"], told["iss"]) == ("n1", GROK.client_id, signer.sandbox.origin)
    _, document = await signer.call("GET", "/.well-known/openid-configuration")
    path = document["jwks_uri"].removeprefix(signer.sandbox.origin)
    ((key,),) = (await signer.call("GET", path))[1].values()
    assert is_signed(tokens["id_token"], key)
    assert not is_signed(tokens["id_token"].replace(".", ".A", 1), key)
    signer.options.device_answers = ()
    _, tokens = await signer.poll((await signer.begin())[1]["device_code"])
    assert is_signed(tokens["id_token"], key) and "nonce" not in claims(tokens["id_token"])


def is_signed(token: str, key: dict[str, str]) -> bool:
    """ES256, as a client checks it (FIPS 186-4, 6.4.2)."""
    signed, _, signature = token.rpartition(".")
    raw = jwt.decode_base64url(signature)
    r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
    x, y = (int.from_bytes(jwt.decode_base64url(key[name]), "big") for name in "xy")
    digest = int.from_bytes(hashlib.sha256(signed.encode()).digest(), "big")
    inverse = pow(s, -1, jwt.ORDER)
    ours, theirs = digest * inverse % jwt.ORDER, r * inverse % jwt.ORDER
    found = jwt.plus(jwt.times(ours), jwt.times(theirs, (x, y)))
    return found is not None and len(raw) == 64 and found[0] % jwt.ORDER == r


@at(P3)
async def test_discovery(signer: Signer) -> None:
    path, origin = "/.well-known/openid-configuration", signer.sandbox.settings()["PROXY_P3_ISSUER"]
    status, document = await signer.call("GET", path)
    assert (status, document["issuer"], document["token_endpoint"]) == (200, origin, f"{origin}/oauth2/token")
    signer.issuer.document = {"issuer": "x", "token_endpoint": None}
    _, changed = await signer.call("GET", path)
    assert changed["issuer"] == "x" and "token_endpoint" not in changed and signer.issuer.discoveries == 2
    signer.issuer.recover()
    assert (await signer.call("GET", path))[1] == document


# -- refresh


@at(*ALL)
async def test_rotation(signer: Signer) -> None:
    first = (await signer.signed_in())["refresh_token"]
    status, second = await signer.refresh(first)
    assert status == 200 and second["refresh_token"] != first and signer.tokens.accepts(second["access_token"])
    if signer.service.used is not None:
        assert error_of(await signer.refresh(first)) == signer.service.used
    assert error_of(await signer.refresh("invented")) == signer.service.dead
    assert signer.upstream.refreshes == 1 and signer.issuer.refresh_requests >= 2
    assert (await signer.refresh(second["refresh_token"]))[0] == 200
    assert signer.issuer.token_requests[-1]["refresh_token"] == second["refresh_token"]
    last = (await signer.signed_in())["refresh_token"]
    signer.tokens.revoke_refresh("refresh_token_expired")
    assert error_of(await signer.refresh(last))[0] == signer.service.dead[0]


@at(P3)
async def test_rotation_of_p3_has_a_grace(signer: Signer) -> None:
    first, other = [(await signer.exchange())[1] for _ in range(2)]
    _, second = await signer.refresh(first["refresh_token"])
    signer.now += REUSE_GRACE_S
    status, again = await signer.refresh(first["refresh_token"])
    assert status == 200 and again["refresh_token"] not in (first["refresh_token"], second["refresh_token"])
    assert signer.tokens.accepts(second["access_token"]) and signer.upstream.refreshes == 2
    signer.now += 1
    assert error_of(await signer.refresh(first["refresh_token"])) == (400, "invalid_grant"), "stolen, it seems"
    assert (await signer.refresh(second["refresh_token"]))[0] == 400
    assert not signer.tokens.accepts(second["access_token"])
    assert signer.tokens.accepts(other["access_token"]) and (await signer.refresh(other["refresh_token"]))[0] == 200


@at(P3)
async def test_p3_without_rotation(signer: Signer) -> None:
    signer.tokens.rotating = False
    token = (await signer.exchange())[1]["refresh_token"]
    for _ in range(2):
        status, tokens = await signer.refresh(token)
        assert status == 200 and "refresh_token" not in tokens and signer.tokens.accepts(tokens["access_token"])
    signer.tokens.revoke_refresh()
    assert (await signer.refresh(token))[0] == 400


@at(*ALL)
async def test_access_tokens_end(signer: Signer) -> None:
    assert await signer.served(signer.upstream.stored_credential(lifetime_s=-1)["access"]) == 401
    access = signer.upstream.stored_credential()["access"]
    assert await signer.served(access) == 200
    signer.upstream.revoke_access()
    assert await signer.served(access) == 401


@at(*ALL)
async def test_the_token_endpoint_may_fail_and_be_slow(signer: Signer) -> None:
    refresh = (await signer.signed_in())["refresh_token"]
    signer.issuer.answer_with(500, {"error": "server_error"}, times=2)
    assert [(await signer.refresh(refresh))[0] for _ in range(3)] == [500, 500, 200]
    signer.issuer.answer_with(503, "down", {"retry-after": "1"})
    assert await signer.refresh(refresh) == (503, "down")
    signer.issuer.recover()
    signer.issuer.delay_s = 0.1
    start = time.monotonic()
    assert (await signer.refresh((await signer.signed_in())["refresh_token"]))[0] == 200
    assert time.monotonic() - start >= 0.1


@at(*ALL)
async def test_forms_and_json(signer: Signer) -> None:
    """P1 takes both, the others forms only."""
    path, takes_json = signer.flows.token, signer.service is P1
    assert (await signer.call("POST", path, data=b"x", headers={"content-type": "text/plain"}))[0] == 415
    assert (await signer.call("POST", path, data=b"x", headers={"content-type": "application/json"}))[0] == (
        400 if takes_json else 415
    )
    token = (await signer.signed_in())["refresh_token"]
    fields = {"client_id": signer.flows.client_id, "grant_type": "refresh_token", "refresh_token": token}
    assert (await signer.call("POST", path, json=fields))[0] == (200 if takes_json else 415)
    if signer.flows.device:
        assert (await signer.call("POST", signer.flows.device, json={}))[0] == 415


@at(P3)
async def test_broken_answer_has_done_its_work(signer: Signer) -> None:
    token = (await signer.exchange())[1]["refresh_token"]
    signer.issuer.cut_answers = True
    with pytest.raises(aiohttp.ClientError):
        await signer.refresh(token)
    assert signer.upstream.refreshes == 1


# -- device codes


@at(*DEVICES)
async def test_device_flow(signer: Signer) -> None:
    signer.options.device_answers = ("authorization_pending", "slow_down")
    status, begun = await signer.begin()
    lifetime_s = signer.options.device_lifetime_s
    assert (status, begun["interval"], begun["expires_in"], len(begun["user_code"])) == (200, 1, lifetime_s, 9)
    assert begun["verification_uri_complete"] == f"{begun['verification_uri']}?user_code={begun['user_code']}"
    page = begun["verification_uri_complete"].removeprefix(signer.sandbox.origin)
    assert "Sandbox sign-in" in (await signer.call("GET", page))[1]
    told = [await signer.poll(begun["device_code"]) for _ in range(4)]
    assert [(status, answer.get("error")) for status, answer in told] == [
        *((400, "authorization_pending"), (400, "slow_down"), (200, None), (400, "invalid_grant"))
    ]
    tokens = told[2][1]
    assert tokens["refresh_token"] and tokens["expires_in"] == signer.service.lifetime_s
    assert await signer.served(tokens["access_token"]) == 200


@at(*DEVICES)
async def test_device_codes_end(signer: Signer) -> None:
    _, begun = await signer.begin()
    signer.issuer.devices.deny = True
    assert error_of(await signer.poll(begun["device_code"])) == (400, "access_denied")
    signer.issuer.recover()
    assert error_of(await signer.poll(begun["device_code"])) == (400, "invalid_grant")
    _, begun = await signer.begin()
    signer.now += signer.options.device_lifetime_s
    assert error_of(await signer.poll(begun["device_code"])) == (400, "expired_token")


@at(*DEVICES)
async def test_device_codes_are_strict(signer: Signer) -> None:
    assert error_of(await signer.begin(client_id="else")) == (401, "invalid_client")
    assert error_of(await signer.poll("dc_invented")) == (400, "invalid_grant")
    assert error_of(await signer.token("password")) == (400, "unsupported_grant_type")
    assert error_of(await signer.token(DEVICE_GRANT, client_id="else")) == (401, "invalid_client")
    if signer.flows.scope:
        assert error_of(await signer.begin(scope="openid")) == (400, "invalid_scope")
    signer.options.device_enabled = False
    assert (await signer.begin())[0] == 404


@at(*DEVICES)
async def test_pending_may_be_told_with_status_200(signer: Signer) -> None:
    signer.options.pending_status = 200
    _, begun = await signer.begin()
    status, answer = await signer.poll(begun["device_code"])
    assert (status, answer["error"], "access_token" in answer) == (200, "authorization_pending", False)


@at(*DEVICES)
async def test_the_interval_may_be_watched(signer: Signer) -> None:
    signer.options.watch_interval, signer.options.device_answers = True, ("authorization_pending",) * 2
    _, begun = await signer.begin()
    told = []
    for pause in (0.0, 1.0, 0.5, 1.0, 11.0):
        signer.now += pause
        told.append((await signer.poll(begun["device_code"]))[1].get("error"))
    assert told == ["authorization_pending", "authorization_pending", "slow_down", "slow_down", None]


@at(P2)
async def test_p2_binds_everything_to_the_device(signer: Signer) -> None:
    for name in signer.device():
        assert error_of(await signer.begin({name: ""})) == (400, "invalid_request")
        assert error_of(await signer.token("", {name: ""})) == (400, "invalid_request")
    other = {"x-msh-device-id": "0" * 32}
    _, begun = await signer.begin()
    assert error_of(await signer.poll(begun["device_code"], **other)) == (400, "invalid_grant")
    token = (await signer.signed_in())["refresh_token"]
    assert error_of(await signer.refresh(token, **other)) == INVALID
    status, tokens = await signer.refresh(token)
    assert status == 200, "that attempt did not spend it"
    told = claims(tokens["access_token"])
    assert (told["user_id"], told["device_id"]) == ("u_sandbox", signer.options.device_id)
    assert set(signer.issuer.holders) == {signer.options.device_id, "0" * 32}


@at(P1)
async def test_p1_has_a_device_flow_of_its_own(signer: Signer) -> None:
    codes, polls = "/api/accounts/deviceauth/usercode", "/api/accounts/deviceauth/token"
    asked = {"client_id": CODEX.client_id}
    signer.options.device_pending_polls = 2
    _, begun = await signer.call("POST", codes, json=asked)
    assert begun["interval"] == "1" and len(begun["user_code"]) == 9
    poll = {name: begun[name] for name in ("device_auth_id", "user_code")}
    assert (await signer.call("POST", polls, json={**poll, "user_code": "X"}))[0] == 400
    assert [(await signer.call("POST", polls, json=poll))[0] for _ in range(2)] == [403, 403]
    for redirect, status in ((signer.service.redirect, 400), (f"{signer.sandbox.origin}/deviceauth/callback", 200)):
        _, grant = await signer.call("POST", polls, json=poll)
        assert set(grant) == {"authorization_code", "code_challenge", "code_verifier"}
        code, verifier = grant["authorization_code"], grant["code_verifier"]
        got, _ = await signer.exchange(code=code, code_verifier=verifier, redirect_uri=redirect)
        assert got == status, "the redirect address is the issuer's own"
        signer.options.device_pending_polls = 0
        _, begun = await signer.call("POST", codes, json=asked)
        poll = {name: begun[name] for name in ("device_auth_id", "user_code")}
    assert "Sandbox sign-in" in (await signer.call("GET", "/codex/device"))[1]
    signer.issuer.device_enabled = False
    assert (await signer.call("POST", codes, json=asked))[0] == 404


@at(P1)
async def test_revocation(signer: Signer) -> None:
    tokens = await signer.signed_in()
    body = {"token": tokens["refresh_token"], "token_type_hint": "refresh_token", "client_id": CODEX.client_id}
    assert (await signer.call("POST", "/oauth/revoke", json=body))[0] == 200
    assert signer.issuer.revoked == [tokens["refresh_token"]]
    assert error_of(await signer.refresh(tokens["refresh_token"])) == signer.service.dead
    assert await signer.served(tokens["access_token"]) == 200


@at(P3)
async def test_stored_sign_in(signer: Signer) -> None:
    stored = signer.upstream.stored_credential(lifetime_s=60)
    assert set(stored) == {"access", "refresh", "expires_at_ms", "issuer", "client_id"}
    assert stored["expires_at_ms"] == (signer.now + 60) * 1000
    assert (stored["issuer"], stored["client_id"]) == (signer.sandbox.origin, GROK.client_id)
