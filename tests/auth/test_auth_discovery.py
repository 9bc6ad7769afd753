"""The discovery document of an issuer: what is taken from it, what is refused, how long it is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from oauth_accounts import Clock

from proxy.auth.discovery import DOCUMENT_PATH, KEPT_S, MAX_DOCUMENT_BYTES, WAITS_S, Discovery, Endpoints
from proxy.auth.http import IssuerFailure


class Issuer:
    """Serves the document, `changes` laid over it, or `answer` instead."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.changes: dict[str, Any] = {}
        self.answer: tuple[int, str] | None = None
        self.asked = 0
        self.url = ""
        self.session: aiohttp.ClientSession
        self.discovery: Discovery

    @property
    def document(self) -> dict[str, Any]:
        base = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/o/authorize?a=b",
            "token_endpoint": f"{self.url}/o/token",
            "response_types_supported": ["code", "token"],
            "grant_types_supported": ["refresh_token", "authorization_code"],
            "code_challenge_methods_supported": ["plain", "S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
            "something_new": {"a": []},
        }
        return {name: value for name, value in {**base, **self.changes}.items() if value != "absent"}

    async def serve(self, request: web.Request) -> web.Response:
        self.asked += 1
        assert (request.path, request.headers["accept"]) == (DOCUMENT_PATH, "application/json")
        status, text = self.answer or (200, json.dumps(self.document))
        return web.Response(status=status, text=text, headers={"Location": f"{DOCUMENT_PATH}?again"})


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    app = web.Application()
    app.router.add_get("/{path:.*}", found.serve)
    async with TestServer(app) as server, aiohttp.ClientSession() as found.session:
        found.url = str(server.make_url("")).rstrip("/")
        clocks: dict[str, Any] = {"clock": found.clock, "sleep": found.clock.sleep}
        found.discovery = Discovery("p3", found.url, found.session, **clocks)
        yield found


async def test_endpoints_are_kept_for_an_hour(issuer: Issuer) -> None:
    found = Endpoints(f"{issuer.url}/o/authorize?a=b", f"{issuer.url}/o/token")
    assert await issuer.discovery.sign_in_endpoints() == found
    assert await issuer.discovery.token_endpoint() == found.token and issuer.asked == 1
    issuer.clock.now += KEPT_S - 1
    assert await issuer.discovery.token_endpoint() == found.token and issuer.asked == 1
    issuer.clock.now += 1
    issuer.changes = {"token_endpoint": f"{issuer.url}/moved"}
    assert await issuer.discovery.token_endpoint() == f"{issuer.url}/moved" and issuer.asked == 2
    issuer.clock.now -= 5  # a clock that was set back makes nothing eternal
    await issuer.discovery.token_endpoint()
    assert issuer.asked == 3


#: Members -> what is said; {} stands for the issuer's own address.
ALWAYS: list[tuple[dict[str, Any], str]] = [
    ({"issuer": "https://evil.example"}, "is of https://evil.example"),
    ({"issuer": "{}/"}, "is of http"),
    *(({"issuer": odd}, "names no issuer") for odd in ("absent", None, 5)),
    *(
        ({"token_endpoint": odd}, "the token_endpoint in its discovery document is not an address of http")
        for odd in (
            *("absent", None, 5, "", "/o/token", "https://evil.example/token", "http://127.0.0.1:1/token"),
            *("{}@evil.example/token", "{}\\@evil.example/token", "{}/a b", "{}/token#x", "https://[bad", "ftp{}"),
        )
    ),
]
AT_SIGN_IN: list[tuple[dict[str, Any], str]] = [
    ({"authorization_endpoint": "https://evil.example/a"}, "the authorization_endpoint in its discovery"),
    ({"response_types_supported": ["token"]}, "lacks code in response_types_supported"),
    ({"grant_types_supported": ["authorization_code"]}, "lacks refresh_token in grant_types_supported"),
    ({"grant_types_supported": []}, "lacks authorization_code, refresh_token in grant_types_supported"),
    ({"code_challenge_methods_supported": ["plain"]}, "lacks S256 in code_challenge_methods_supported"),
    *(
        ({"token_endpoint_auth_methods_supported": odd}, "lacks none in token_endpoint_auth_methods_supported")
        for odd in ("absent", "none", None, ["client_secret_basic"], [["none"]])
    ),
]


def placed(changes: dict[str, Any], url: str) -> dict[str, Any]:
    return {name: value.replace("{}", url) if isinstance(value, str) else value for name, value in changes.items()}


@pytest.mark.parametrize(("changes", "message"), [*ALWAYS, *AT_SIGN_IN])
async def test_what_a_sign_in_refuses(issuer: Issuer, changes: dict[str, Any], message: str) -> None:
    issuer.changes = placed(changes, issuer.url)
    with pytest.raises(IssuerFailure, match="p3 sign-in service could not be used") as caught:
        await issuer.discovery.sign_in_endpoints()
    assert message in caught.value.message and issuer.asked == 1


@pytest.mark.parametrize(("changes", "message"), ALWAYS)
async def test_what_a_renewal_refuses(issuer: Issuer, changes: dict[str, Any], message: str) -> None:
    issuer.changes = placed(changes, issuer.url)
    with pytest.raises(IssuerFailure) as caught:
        await issuer.discovery.token_endpoint()
    assert message in caught.value.message


@pytest.mark.parametrize(("changes", "_message"), AT_SIGN_IN)
async def test_what_only_a_sign_in_needs(issuer: Issuer, changes: dict[str, Any], _message: str) -> None:
    issuer.changes = changes
    assert await issuer.discovery.token_endpoint() == f"{issuer.url}/o/token"


@pytest.mark.parametrize(
    ("status", "text", "message", "tries"),
    [
        (404, "x", "404 x", 1),
        (302, "", "302", 1),  # not followed
        (200, "<html>", "names no issuer", 1),
        (200, '{"a": "' + "x" * MAX_DOCUMENT_BYTES + '"}', f"longer than {MAX_DOCUMENT_BYTES} bytes", 3),
        *((status, "later", f"{status} later", 3) for status in (429, 500, 503)),
    ],
)
async def test_document_that_cannot_be_had(issuer: Issuer, status: int, text: str, message: str, tries: int) -> None:
    issuer.answer = status, text
    with pytest.raises(IssuerFailure) as caught:
        await issuer.discovery.token_endpoint()
    assert message in caught.value.message
    assert issuer.asked == tries and issuer.clock.sleeps == list(WAITS_S)[: tries - 1]
    issuer.answer = None
    assert await issuer.discovery.token_endpoint()  # a failure is not kept


async def test_largest_document(issuer: Issuer) -> None:
    filler = MAX_DOCUMENT_BYTES - len(json.dumps({**issuer.document, "filler": ""}))
    issuer.changes = {"filler": "x" * filler}
    assert len(json.dumps(issuer.document)) == MAX_DOCUMENT_BYTES
    assert await issuer.discovery.token_endpoint()


@pytest.mark.parametrize(
    ("endpoint", "good"),
    [
        *(("https://auth.x.ai/token", True), ("https://auth.x.ai:443/token", True), ("HTTPS://AUTH.X.AI/t", True)),
        *(("http://auth.x.ai/token", False), ("https://auth.x.ai:8443/t", False), ("https://x.ai/t", False)),
        *(("https://auth.x.ai.evil.example/t", False), ("https://user@auth.x.ai/t", False)),
    ],
)
async def test_same_origin(issuer: Issuer, endpoint: str, good: bool) -> None:
    """As it is asked of an https issuer."""
    discovery = Discovery("p3", "https://auth.x.ai", issuer.session)
    document = {"token_endpoint": endpoint}
    if good:
        assert discovery._endpoint(document, "token_endpoint") == endpoint
        return
    with pytest.raises(IssuerFailure, match=r"not an address of https://auth\.x\.ai"):
        discovery._endpoint(document, "token_endpoint")
