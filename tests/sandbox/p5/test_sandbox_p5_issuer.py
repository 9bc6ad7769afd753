"""Sign-in at the simulated issuer of P5: the page, the polls, renewal with rotation, the exchange of an API key."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from proxy.auth.jwt import claims
from proxy.sandbox import Sandbox
from proxy.sandbox.oauth.codes import challenge_of
from proxy.sandbox.p5.state import P5

VERIFIER = "v" * 43
CHALLENGE = challenge_of(VERIFIER)
ID = str(uuid.UUID(int=7, version=4))
PAGE = {"challenge": CHALLENGE, "uuid": ID, "mode": "login", "redirectTarget": "cli"}
POLL = {"uuid": ID, "verifier": VERIFIER}
JSON = {"content-type": "application/json"}


NOW = 1_800_000_000


@dataclass
class Issuer:
    """The calls of a client that signs in."""

    sandbox: Sandbox
    session: aiohttp.ClientSession

    @property
    def p5(self) -> P5:
        return self.sandbox.p5

    async def call(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.sandbox.origin + path, **more) as response:
            return response.status, await response.json() if response.content_type == "application/json" else ""

    async def page(self, **changes: str | None) -> int:
        query = {name: text for name, text in {**PAGE, **changes}.items() if text is not None}
        return (await self.call("GET", "/loginDeepControl", params=query))[0]

    async def poll(self, headers: Any = JSON, **changes: str) -> tuple[int, Any]:
        return await self.call("GET", "/auth/poll", params={**POLL, **changes}, headers=headers)

    async def renew(self, bearer: str, path: str = "refresh", **more: Any) -> tuple[int, Any]:
        body = more or {"json": {}}
        headers = {"authorization": bearer} if bearer else {}
        return await self.call("POST", f"/auth/{path}", headers=headers, **body)

    async def signed_in(self) -> dict[str, str]:
        assert await self.page() == 200
        status, tokens = await self.poll()
        assert status == 200
        found: dict[str, str] = tokens
        return found


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Sandbox(clock=lambda: NOW) as sandbox, aiohttp.ClientSession() as session:
        yield Issuer(sandbox, session)


async def test_sign_in(issuer: Issuer) -> None:
    assert (await issuer.poll())[0] == 404  # nobody has opened the page
    tokens = await issuer.signed_in()
    assert set(tokens) == {"accessToken", "refreshToken", "authId"}
    told = claims(tokens["accessToken"])
    assert (told["iss"], told["aud"]) == ("https://authentication.cursor.sh", "https://cursor.com")
    assert (told["type"], told["sub"], told["email"]) == ("session", "auth0|user_sandbox", "sandbox@example.com")
    assert told["exp"] == NOW + 60 * 86_400 and issuer.p5.tokens.accepts(tokens["accessToken"])
    assert (await issuer.poll())[0] == 404  # the tokens are given once
    assert issuer.p5.issuer.polls == 3


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in PAGE),
        *({"challenge": "x"}, {"mode": "signup"}, {"redirectTarget": "ide"}),
        *({"uuid": bad} for bad in ("x", str(uuid.UUID(int=7)), ID.upper().replace("-", ""))),
    ],
)
async def test_page_is_strict(issuer: Issuer, changes: dict[str, str | None]) -> None:
    assert await issuer.page(**changes) == 400


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"verifier": ""}, 400),
        ({"verifier": "v" * 42}, 400),
        ({"verifier": "w" * 43}, 403),
        ({"uuid": "x"}, 400),
        ({"uuid": str(uuid.UUID(int=8, version=4))}, 404),
        ({"headers": {}}, 415),
    ],
)
async def test_poll_is_strict(issuer: Issuer, changes: dict[str, Any], status: int) -> None:
    await issuer.page()
    assert (await issuer.poll(**changes))[0] == status


async def test_polls_by_a_script(issuer: Issuer) -> None:
    issuer.p5.options.poll_answers = (404, 500, 404)
    await issuer.page()
    assert [(await issuer.poll())[0] for _ in range(4)] == [404, 500, 404, 200]
    await issuer.page()  # the same sign-in again has no more of them
    for granted in ("no JSON", {"accessToken": "a"}, []):
        issuer.p5.issuer.granted = granted
        await issuer.page()
        assert await issuer.poll() == (200, granted if isinstance(granted, dict | list) else "")
    issuer.p5.issuer.recover()
    assert set(await issuer.signed_in()) == {"accessToken", "refreshToken", "authId"}


async def test_rotation(issuer: Issuer) -> None:
    first = await issuer.signed_in()
    status, second = await issuer.renew(f"Bearer {first['refreshToken']}")
    assert status == 200 and second["refreshToken"] != first["refreshToken"]
    assert issuer.p5.tokens.accepts(second["accessToken"])
    status, error = await issuer.renew(f"Bearer {first['refreshToken']}")
    assert (status, error["code"]) == (401, "unauthenticated") and "used before" in error["message"]
    assert (await issuer.renew(f"Bearer {second['refreshToken']}", "exchange_user_api_key"))[0] == 200
    assert issuer.p5.refreshes == 2


@pytest.mark.parametrize("path", ["refresh", "exchange_user_api_key"])
@pytest.mark.parametrize(
    ("bearer", "more", "status"),
    [
        *((bad, {}, 401) for bad in ("", "Bearer ", "Bearer invented", "bare")),
        *(("Bearer key_sandbox", {"json": body}, 400) for body in ({"refresh_token": "x"}, [])),
        ("Bearer key_sandbox", {"data": {"grant_type": "refresh_token"}}, 415),
    ],
)
async def test_renewal_is_strict(issuer: Issuer, path: str, bearer: str, more: dict[str, Any], status: int) -> None:
    assert (await issuer.renew(bearer, path, **more))[0] == status


async def test_api_key_can_be_exchanged_again_and_again(issuer: Issuer) -> None:
    for _ in range(2):
        status, tokens = await issuer.renew("Bearer key_sandbox", "exchange_user_api_key")
        assert status == 200 and issuer.p5.tokens.accepts(tokens["accessToken"])
    assert (await issuer.renew("Bearer key_sandbox"))[0] == 401 and issuer.p5.refreshes == 0


async def test_switched_answers(issuer: Issuer) -> None:
    refresh = (await issuer.signed_in())["refreshToken"]
    issuer.p5.issuer.answer_with(500, "oops", times=1)
    assert [(await issuer.renew(f"Bearer {refresh}"))[0] for _ in range(2)] == [500, 200]
    assert issuer.p5.issuer.refresh_requests == 2 and issuer.p5.refreshes == 1


async def test_stored_sign_in(issuer: Issuer) -> None:
    stored = issuer.p5.stored_credential(lifetime_s=60)
    assert set(stored) == {"accessToken", "refreshToken"}
    assert claims(stored["accessToken"])["exp"] == NOW + 60
    assert issuer.p5.tokens.accepts(stored["accessToken"])
    expired = issuer.p5.stored_credential(lifetime_s=-1, expires_ms=int(NOW + 3600) * 1000)
    assert claims(expired["accessToken"])["exp"] == NOW + 3600
    assert not issuer.p5.tokens.accepts(expired["accessToken"])
    issuer.p5.revoke_access()
    assert not issuer.p5.tokens.accepts(stored["accessToken"])
