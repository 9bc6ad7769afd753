"""Who may ask."""

from __future__ import annotations

import contextlib
from typing import Any
from unittest import mock

import pytest
from aiohttp.test_utils import make_mocked_request
from harness import Live, ask, raw_request, with_live
from samples import rows

from proxy.config import Config
from proxy.core.hiding.secret import Secret
from proxy.errors import ProxyError
from proxy.server.callers.callers import Callers
from proxy.server.request.guard import API_KEY, check
from proxy.server.routes.table import ROUTES

OURS = [
    *("127.0.0.1:18765", "127.0.0.1", "localhost:1", "LocalHost", "localhost.", "proxy.localhost:80", "[::1]:18765"),
    *("[::ffff:127.0.0.1]:1", "127.9.9.9", "host.docker.internal:18765", "host.containers.internal"),
]
FOREIGN = [
    *("evil.example", "evil.example:18765", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost"),
    *("127.0.0.1@evil.example", "evil.example@127.0.0.1", "192.0.2.7", "192.0.2.7:18765", "[2001:db8::1]:1", "0.0.0.0"),
    # what one reader takes for an address of ours and another for a name of somebody else's
    *("[::1].evil.example", "[::1]evil", "[::1", "::1]", "[::1]:80:80", "[::1]:80.evil.example", "[::1%25x.example]"),
    *("[127.0.0.1]", "[localhost]", "[]", "127.1", "0x7f.1", "2130706433", "017700000001", "127.0.0.1.nip.example"),
    *("localhost:x", "localhost:65536", "localhost:-1", "localhost:80:80", "localhost:1@evil.example", "a@localhost"),
    *("localhost%00.evil.example", "localhost%2eevil", "localhost/evil", "localhost#evil", "localhost\\evil"),
    *("localhost..", ".localhost:x", "loc\xe4lhost", "localhost evil.example", "localhost,evil.example", ""),
]
ASKED = [
    *(("Host", host, True) for host in OURS),
    *(("Host", host, False) for host in FOREIGN),
    *(("Origin", origin, True) for origin in ("vscode-webview://x", "chrome-extension://abc", "http://OURS")),
    *(("Origin", origin, False) for origin in ("https://evil.example", "http://127.0.0.1:1", "null", "http://[broken")),
    *(
        ("Origin", origin, False)
        for origin in ("evil.example", "//evil.example", "http:evil.example", "file://", "", "x:")
    ),
    *(
        ("Origin", f"http://{host}", False)
        for host in ("OURS.evil.example", "a@OURS", "OURS@evil.example", "OURS/", "")
    ),
    *(("Sec-Fetch-Site", site, True) for site in ("same-origin", "none")),
    *(("Sec-Fetch-Site", site, False) for site in ("cross-site", "Same-Site")),
]


@rows("name", ["Host", "Origin", "Sec-Fetch-Site"])
async def test_the_host_must_be_one_of_ours_and_other_web_sites_are_not_served(live: Live, name: str) -> None:
    """Headers of those who say that they forward are not believed."""
    for _, value, served in (row for row in ASKED if row[0] == name):
        forwarded = {} if served else {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
        await checked(live, served, **{name: value.replace("OURS", f"127.0.0.1:{live.port}")}, **forwarded)


async def checked(live: Live, served: bool, **headers: str) -> None:
    answer = await live.get("/v1/models", **headers)
    assert answer.status == (200 if served else 403), headers
    assert served or answer.error["type"] == "permission_error", headers
    assert "Access-Control-Allow-Origin" not in answer.headers, headers


@pytest.mark.parametrize(
    ("live_options", "host", "served"),
    [
        ({"allowed_hosts": ("mine.example",)}, "Mine.Example:80", True),
        ({"allowed_hosts": ("mine.example",)}, "x.mine.example", False),
        ({"allowed_hosts": ("*",)}, "evil.example", True),
        ({"allowed_hosts": ("192.0.2.7",)}, "192.0.2.7:80", True),
        ({"bind_address": "192.0.2.7"}, "192.0.2.7:80", True),
        ({"bind_address": "192.0.2.7"}, "192.0.2.8:80", False),
        ({"bind_address": "0.0.0.0", "allow_remote_unauthenticated": True}, "192.0.2.7", True),
        ({"bind_address": "0.0.0.0", "allow_remote_unauthenticated": True}, "evil.example", False),
    ],
)
async def test_further_hosts_can_be_allowed(live: Live, host: str, served: bool) -> None:
    await checked(live, served, Host=host)


@rows(
    "local, settings, served",
    [
        *(
            (local, {}, True)
            for local in (("127.0.0.1", 1), ("::1", 1, 0, 0), ("::ffff:127.0.0.1", 1, 0, 0), "", b"", None)
        ),
        *((local, {}, False) for local in (("192.0.2.7", 1), ("2001:db8::1", 1, 0, 0), ("fe80::1%eth0", 1, 0, 2))),
        *(
            (("192.0.2.7", 1), {"bind_address": bind}, bind == "192.0.2.7")
            for bind in ("192.0.2.7", "0.0.0.0", "192.0.2.8")
        ),
        (("::ffff:192.0.2.7", 1, 0, 0), {"bind_address": "192.0.2.7"}, True),
        (("::ffff:192.0.2.8", 1, 0, 0), {"bind_address": "192.0.2.7"}, False),
        (("192.0.2.7", 1), {"allow_remote_unauthenticated": True}, True),
        (("192.0.2.7", 1), {"api_key": Secret("k3y")}, True),
        (("192.0.2.7", 1), {"api_key": "k3y"}, True),
    ],
)
def test_a_listener_that_is_wider_than_meant_serves_nobody(local: Any, settings: dict[str, Any], served: bool) -> None:
    """A program that embeds the application chooses its listener; tests listen on loopback, so the socket is told."""
    transport = mock.Mock(**{"get_extra_info.side_effect": {"sockname": local}.get})
    request = make_mocked_request("GET", "/v1/models", {"Host": "localhost", "x-api-key": "k3y"}, transport=transport)
    with contextlib.nullcontext() if served else pytest.raises(ProxyError, match=r"meant for .* and was reached at"):
        check(request, Config(**settings), [API_KEY], Callers(), "")


@pytest.mark.parametrize(
    ("bind", "told"),
    [
        *((bind, "for loopback and was") for bind in ("127.0.0.1", "0.0.0.0")),
        ("192.0.2.8", "loopback and 192.0.2.8 and"),
    ],
)
def test_the_refusal_says_where_it_serves_and_what_to_set(bind: str, told: str) -> None:
    transport = mock.Mock(**{"get_extra_info.side_effect": {"sockname": ("192.0.2.7", 1)}.get})
    request = make_mocked_request("GET", "/v1/models", transport=transport)
    with pytest.raises(ProxyError, match=f"{told}.* reached at 192.0.2.7; .*key.*allow_remote_unauthenticated"):
        check(request, Config(bind_address=bind), [API_KEY], Callers(), "")


@rows(
    "head, status",
    [
        (b"GET /v1/models?limit=1 HTTP/1.0\r\n", b"200"),  # which knows no Host
        (b"GET /v1/models?limit=1 HTTP/1.1\r\n", b"400"),
        (b"GET http://localhost/v1/models?limit=1 HTTP/1.1\r\nHost: localhost\r\n", b"200"),
        (b"GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n", b"403"),
        (b"GET http://evil@localhost/v1/models HTTP/1.1\r\nHost: localhost\r\n", b"403"),
        (b"GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
    ],
)
async def test_a_request_that_names_no_host_or_two_of_them(live: Live, head: bytes, status: bytes) -> None:
    assert (await live.raw(head + b"Connection: close\r\n\r\n")).split()[1] == status


@rows("name", ["Origin", "Content-Encoding"])
async def test_a_header_that_two_readers_may_understand_differently_is_refused(live: Live, name: str) -> None:
    twice = (f"{name}: gzip", f"{name}: identity")
    answer = await live.raw(raw_request("GET /v1/models", "Connection: close", *twice))
    assert answer.startswith(b"HTTP/1.1 400") and b"more than once" in answer


async def test_the_guard_stands_before_errors_too(live: Live) -> None:
    assert (await live.get("/nope", Host="evil.example")).status == 403
    assert (await live.request("GET", "/v1/messages", headers={"Host": "evil.example"})).status == 403


@rows(
    "headers, status",
    [
        ({}, 401),
        ({"Authorization": "Bearer k3y"}, 200),
        ({"authorization": "bearer  k3y "}, 200),
        ({"x-api-key": "k3y"}, 200),
        ({"x-api-key": "k3y", "Authorization": "Bearer other"}, 200),
        ({"Authorization": "Basic k3y"}, 401),
        ({"Authorization": "Bearer k3"}, 401),
        ({"Authorization": "k3y"}, 401),
        ({"x-api-key": "\xff"}, 401),
    ],
)
@with_live(api_key=Secret("k3y"))
async def test_a_key_is_asked_for_when_one_is_set(live: Live, headers: dict[str, str], status: int) -> None:
    answer = await live.get("/v1/models", **headers)
    assert answer.status == status
    if status == 401:
        assert answer.error["type"] == "authentication_error" and "k3y" not in answer.raw.decode()
        assert answer.headers["x-should-retry"] == "false"
        assert "`Authorization: Bearer …`" in answer.error["message"]
    assert (await live.get("/healthz")).status == 200


@pytest.mark.parametrize(
    ("path", "place"),
    [
        *(("/v1/messages", "ANTHROPIC_AUTH_TOKEN"), ("/v1/messages/count_tokens", "ANTHROPIC_AUTH_TOKEN")),
        *(
            ("/v1/chat/completions", "OPENAI_API_KEY"),
            ("/v1/responses", "`env_key`"),
            ("/nope", "ANTHROPIC_AUTH_TOKEN"),
        ),
        *(("/v1/images/edits", "OPENAI_API_KEY"), ("/v1/models", "ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY")),
        ("/monitor", "a password"),
    ],
)
@with_live(api_key=Secret("k3y"), openai_routes=True, image_routes=True)
async def test_where_the_key_goes_is_told_in_words_that_claude_code_shows(live: Live, path: str, place: str) -> None:
    method = "GET" if path in ("/v1/models", "/monitor") else "POST"
    for headers, came in (({}, "none came"), ({"Authorization": "Bearer other"}, "another one came")):
        answer = await live.request(method, path, headers=headers)
        told = answer.json["error"]["message"]
        assert answer.status == 401 and f"its key (PROXY_API_KEY), and {came}: " in told and place in told
        assert "x-api-key" not in answer.raw.decode().lower()


@rows("charset", ["utf-8", "latin-1"])
@rows("key, status", [("schlüssel", b"200"), ("schlössel", b"401")])
@with_live(api_key=Secret("schlüssel"))
async def test_a_key_may_have_letters_of_any_language(live: Live, key: str, status: bytes, charset: str) -> None:
    sent = key.encode(charset).decode("latin-1")  # as which the request is written
    answer = await live.raw(raw_request("GET /v1/models", "Connection: close", f"x-api-key: {sent}"))
    assert answer.split()[1] == status


async def test_without_a_key_credentials_of_callers_are_ignored_and_stay_here(live: Live) -> None:
    answer = await live.post(ask(), headers={"Authorization": "Bearer mine", "x-api-key": "mine", "Cookie": "a=b"})
    assert answer.status == 200
    sent = live.sandbox.p1.requests[-1].headers
    assert "mine" not in str(sent) and "Cookie" not in sent and "x-api-key" not in sent


def test_only_health_is_served_to_anybody_and_a_greeting_without_a_key() -> None:
    assert [route.path for route in ROUTES if not route.guarded] == ["/healthz", "/readyz"]
    assert [route.path for route in ROUTES if route.keyless] == ["/api/hello"]


@rows("header", ["Host: evil.example", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"])
async def test_a_greeting_is_not_for_other_sites(live: Live, header: str) -> None:
    name, _, value = header.partition(": ")
    for method in ("GET", "HEAD"):
        assert (await live.request(method, "/api/hello", headers={name: value})).status == 403
