"""Routes, methods, bodies and what every answer carries."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import re
import zlib
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from harness import Answer, Live, ask, raw_request, with_live
from openai_live import error_of
from samples import rows, sampled

from proxy.providers.p5_cursor.catalog import CATALOG as CURSOR
from proxy.server.request.families import MEDIA, MESSAGES, MODELS, WATCHING
from proxy.server.routes.table import ROUTES

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
JSON = {"content-type": "application/json"}
COUNT = "/v1/messages/count_tokens"


# -- health, unknown paths, wrong methods


async def test_health_answers_anybody_who_asks(live: Live) -> None:
    for headers in ({}, {"Host": "evil.example", "Origin": "https://evil.example"}):
        answer = await live.get("/healthz", **headers)
        assert (answer.status, answer.json) == (200, {"ok": True})
    assert (await live.request("HEAD", "/healthz")).status == 200


@with_live(signed_in=False)
async def test_health_asks_for_no_sign_in_and_no_upstream(live: Live) -> None:
    await live.sandbox.stop()
    assert (await live.get("/healthz")).json == {"ok": True}


def test_no_route_changes_the_proxy_or_shows_a_credential() -> None:
    """A route for settings, sign-ins or the end of the process would be a row here."""
    taken = {route.path for route in ROUTES if not set(route.methods) <= {"GET", "HEAD"}}
    answers = {"messages", "messages/count_tokens", "chat/completions", "responses"}
    media = {"images/generations", "images/edits", "audio/transcriptions"}
    assert taken == {f"/v1/{path}" for path in (*answers, *media, "metrics", "logs", "traces")}
    watching = {route.path for route in ROUTES if route.family is WATCHING}
    told = {route.path for route in ROUTES} - taken - watching
    assert told == {"/healthz", "/readyz", "/api/hello", "/v1/models", "/v1/models/{id}"}
    accounts = {"/v1/account/limits", "/.well-known/ccr/account"}
    assert watching <= {"/monitor", "/monitor/events", "/monitor/history", "/monitor/page/{id}", "/metrics"} | accounts


#: Settings that switch every route on.
ALL = {route.needs: True for route in ROUTES if route.needs}
#: What is wrong with a path or a method is told in the form of the Messages API there.
IN_OUR_FORM = (MESSAGES, MODELS, MEDIA, WATCHING)

UNKNOWN = ("GET /", "GET /v1/models/", "GET /V1/models", "GET /v1/model", "OPTIONS /nope", "GET /nope?key=1")
DISABLED = ("POST /v1/responses", "POST /v1/chat/completions", "POST /v1/images/generations")


@pytest.mark.parametrize("line", [*UNKNOWN, *DISABLED])
async def test_routes_match_exactly_and_disabled_ones_do_not_exist(live: Live, line: str) -> None:
    method, path = line.split()
    answer = await live.request(method, path, data=b"{" if method == "POST" else None, headers=JSON)
    assert answer.status == 404
    assert answer.error["type"] == "not_found"
    told, _, hint = answer.error["message"].partition(";")
    assert told == f"No route for {line.partition('?')[0]}" and (" is off: PROXY_P1_" in hint) is (line in DISABLED)
    assert (await live.request("HEAD", "/")).status == 404


@with_live(**ALL)
async def test_a_wrong_base_url_is_told_in_the_form_of_the_route_that_was_meant(live: Live) -> None:
    for route in ROUTES:
        for path in {f"/v1{route.path}", route.path.removeprefix("/v1")} - {one.path for one in ROUTES}:
            answer = await live.request("POST", path, data=b"{", headers=JSON)
            assert answer.status == 404
            assert ("request_id" in answer.json) is (route.family in IN_OUR_FORM)
            assert answer.json["error"]["message"].startswith(
                f"No route for POST {quote(path)}; did you mean {route.path}? "
            )


@with_live()
@rows("path", ["/responses", "/v1/v1/responses"])
async def test_a_wrong_base_url_of_a_route_that_is_off_is_told_what_turns_it_on(live: Live, path: str) -> None:
    message = (await live.post(b"{", path)).error["message"]
    assert message.startswith(f"No route for POST {path}; /v1/responses is off: PROXY_P1_RESPONSES_API=1, ")


async def test_a_path_that_no_message_should_repeat_is_quoted_and_cut(live: Live) -> None:
    answer = await live.get("/" + "%0a%1b[31m" * 100)
    assert answer.status == 404
    assert len(answer.error["message"]) < 1000 and answer.error["message"].isprintable()


@rows("path", dict.fromkeys(route.path for route in ROUTES))
@with_live(**ALL)
async def test_a_wrong_method_is_told_the_right_ones(live: Live, path: str) -> None:
    served = [route for route in ROUTES if route.path == path]
    allowed = sorted(method for route in served for method in route.methods)
    for method in {"GET", "POST", "PUT", "DELETE", "OPTIONS"} - set(allowed):
        answer = await live.request(method, path)
        assert answer.status == 405 and answer.headers["Allow"] == ", ".join(allowed)
        error = answer.error if served[0].family in IN_OUR_FORM else error_of(answer)
        assert error["type"] == "invalid_request_error"
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


async def test_every_answer_carries_a_request_id_of_its_own(live: Live) -> None:
    answers = [
        *[await live.get(path) for path in ("/healthz", "/v1/models", "/nope", "/v1/messages")],
        *[await live.post(body) for body in (b"{", ask(), ask(stream=True))],
        *[await live.post(ask(), f"/v1/messages{path}?beta=true&x=1") for path in ("", "/count_tokens")],
        await live.get("/v1/models", Host="evil.example"),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 405, 400, 200, 200, 200, 200, 403]
    ids = [answer.headers["request-id"] for answer in answers]
    assert all(UUID.fullmatch(found) for found in ids) and len(set(ids)) == len(ids)


async def test_a_stream_says_what_it_is_and_that_nothing_may_hold_it_back(live: Live) -> None:
    answer = await live.stream(ask(), headers={"accept-encoding": "gzip, br"})
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in answer.headers


# -- models


async def test_the_list_of_models_is_whole_and_in_order(live: Live) -> None:
    page = (await live.get("/v1/models?limit=1000&other=1")).json
    ids = [model["id"] for model in page["data"]]
    labels = [model["display_name"][-3:-1] for model in page["data"]]
    assert sorted(labels) == labels
    plain = [(label, model) for label, model in zip(labels, ids, strict=True) if ":" not in model]
    assert plain == sorted(plain) and ids == [model for _, model in plain] + list(CURSOR.prefixed)
    assert {"claude-opus-5", "gpt-5.5", "gpt-5.5-fast", "kimi-k3", "opencode-go/kimi-k3", "glm-5.2"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert (page["object"], page["has_more"]) == ("list", False)
    assert (page["first_id"], page["last_id"]) == (ids[0], ids[-1])
    for model in page["data"]:
        assert (model["type"], model["object"]) == ("model", "model")
        assert re.fullmatch(re.escape(model["id"]) + r" \(p[1-5]\)", model["display_name"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", model["created_at"])


async def test_a_limit_keeps_the_first_and_says_that_there_are_more(live: Live) -> None:
    page = (await live.get("/v1/models?limit=2")).json
    assert len(page["data"]) == 2 and page["has_more"] is True and page["last_id"] == page["data"][1]["id"]
    none = (await live.get("/v1/models?limit=0")).json
    assert none == {"object": "list", "data": [], "has_more": True, "first_id": None, "last_id": None}


@rows("limit", ["-1", "x", "", "1.5", "%2B1", "1e3", "%D9%A3", "9" * 40])
async def test_a_limit_that_is_no_count_is_refused(live: Live, limit: str) -> None:
    answer = await live.get(f"/v1/models?limit={limit}")
    assert answer.status == 400 and answer.error["type"] == "invalid_request_error"


async def test_paging_backwards_gives_the_nearest_first_and_an_unknown_cursor_ends_it(live: Live) -> None:
    every = [model["id"] for model in (await live.get("/v1/models")).json["data"]]
    unknown = [(f"limit=1&{cursor}=nobody", [], False) for cursor in ("after_id", "before_id")]
    backwards = [
        (f"limit=3&before_id={every[5]}", every[2:5], True),
        (f"limit=3&before_id={every[2]}", every[:2], False),
    ]
    for query, found, more in [*unknown, *backwards]:
        page = (await live.get(f"/v1/models?{query}")).json
        assert [model["id"] for model in page["data"]] == found and page["has_more"] is more


# -- bodies


NOT_JSON = (
    *(b"{", b"[]", b"null", b'"text"', b"\xff\xfe{}", b"[" * 200_000, b'{"max_tokens":' + b"9" * 5000 + b"}"),
    b'{"model":"gpt-5.5","messages":[{"role":"user","content":"\xc3\x28"}]}',
    b'{"model":"gpt-5.5","messages":[{"role":"user","content":"\\ud800"}]}',
    b'{"model":"gpt-5.5","messages":' + b"[" * 200 + b"]" * 200 + b"}",
)
WRONG_MEMBERS = (
    *(b'"model":null,"messages":[]', b'"model":7,"messages":[]'),
    *(b'"model":"gpt-5.5","messages":' + value for value in (b"{}", b'["hi"]', b'[{"content":"hi"}]')),
    *(b'"model":"gpt-5.5","messages":' + value for value in (b'[{"role":"user"}]', b'[{"role":1,"content":"hi"}]')),
    b'"model":"gpt-5.5","stream":"yes","messages":[]',
    *(b'"model":"gpt-5.5","messages":[],"max_tokens":' + value for value in (b"-1", b"4294967296", b"1.5", b"true")),
)


@rows("path", ["/v1/messages", "/v1/messages/count_tokens"])
@rows(
    "body, words",
    [
        *((body, "Invalid JSON: empty body") for body in (b"", b" \n")),
        *((body, "Invalid JSON:") for body in NOT_JSON),
        *((b"{" + members + b"}", "Invalid JSON:") for members in WRONG_MEMBERS),
        (b'{"messages":[]}', 'Missing "model"'),
    ],
)
async def test_a_body_of_the_wrong_form_is_refused_without_asking_anybody(
    live: Live, path: str, body: bytes, words: str
) -> None:
    answer = await live.post(body, path)
    assert refused(answer).startswith(words) and answer.error["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"
    assert live.upstream == 0


async def test_a_message_without_messages_is_refused_but_can_be_counted(live: Live) -> None:
    body = {"model": "gpt-5.5"}
    assert (await live.post(body)).status == 400
    assert (await live.post(body, "/v1/messages/count_tokens")).status == 200


async def test_more_messages_than_any_client_sends_are_refused(live: Live) -> None:
    answer = await live.post(ask([{"role": "user", "content": "x"}] * 8193))
    assert answer.status == 400 and "8192" in answer.error["message"]
    assert (await live.post(ask([{"role": "user", "content": "x"}] * 8192), "/v1/messages/count_tokens")).status == 200


WRONG = (None, True, -1, 1e308, "text", "", [], [None], [[[]]], {}, {"type": 7}, [{"type": "text", "text": 7}])


OPTIONAL = (
    *("system", "tools", "tool_choice", "thinking", "output_config", "metadata", "stop_sequences", "speed"),
    *("service_tier", "temperature", "context_management", "thread", "mcp_servers", "container", "betas"),
)


async def test_wrong_types_in_optional_members_never_break_the_proxy(live: Live) -> None:
    """They are ignored, or refused in the caller's format; here or upstream. A count reads the same body. A sample
    gives it each member and each value once."""
    members = [*itertools.product(OPTIONAL, WRONG)]
    turns = [("/v1/messages", *one) for one in members] + [(COUNT, *one) for one in sampled(members, 1)]
    for path, member, value in turns:
        answer = await live.post(ask(**{member: value}), path)
        assert answer.status in (200, 400), (path, member, value, answer.raw)
        assert answer.status == 200 or answer.error["type"] == "invalid_request_error", (path, member, value)
    assert not live.notes.all("internal_error")


def contents() -> list[Any]:
    types = ("text", "image", "document", "tool_use", "tool_result", "thinking", "server_tool_use", "new", 7, None)
    names = ("text", "source", "content", "input", "id", "tool_use_id", "name", "thinking", "signature")
    values: tuple[Any, ...] = (None, 7, "x", [], [7], {}, {"type": "base64"})
    blocks = sampled(itertools.product(types, names, values), 2)
    return [*WRONG, *([{"type": kind, name: value}] for kind, name, value in blocks)]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer", "tool", ""])
async def test_wrong_types_in_content_never_break_the_proxy(live: Live, role: str) -> None:
    for content in contents():
        body = ask([{"role": "user", "content": "a"}, {"role": role, "content": content}])
        answer = await live.post(body, COUNT)
        assert answer.status in (200, 400), (content, answer.raw)
    assert not live.notes.all("internal_error")


@with_live(max_body_bytes=4096)
async def test_the_limit_of_a_body_counts_what_is_declared_what_comes_and_what_is_unpacked(live: Live) -> None:
    async def chunks(size: int) -> Any:
        for _ in range(size):
            yield b" " * 1024

    fits = json.dumps(ask()).encode().ljust(4096)
    packed = gzip.compress(b" " * 1_000_000)
    assert (await live.post(fits)).status == 200 and len(packed) < 4096
    for body, headers in ((fits + b" ", JSON), (chunks(5), JSON), (packed, {**JSON, "content-encoding": "gzip"})):
        answer = await live.request("POST", "/v1/messages", data=body, headers=headers)
        assert answer.status == 413 and answer.error["type"] == "request_too_large"
        assert answer.headers["x-should-retry"] == "false"
    declared = await raw_unfinished(live, "Content-Length: 5000")
    assert declared.startswith(b"HTTP/1.1 413")


def followed(more: bytes, body: bytes) -> bytes:
    return gzip.compress(body) + more


@rows(
    "encoding, pack, status",
    [
        *(("gzip", gzip.compress, 200), ("GZIP", gzip.compress, 200), ("deflate", zlib.compress, 200)),
        *(("identity", bytes, 200), ("gzip", bytes, 400), ("compress", bytes, 415)),
        *(("gzip", partial(followed, more), 400) for more in (b"junk", b"\0", gzip.compress(b""))),
        ("deflate", lambda body: zlib.compress(body) + b"junk", 400),
    ],
)
@rows("invited", [False, True])
async def test_packed_bodies_are_read(live: Live, encoding: str, pack: Any, status: int, invited: bool) -> None:
    headers = {"content-encoding": encoding} | ({"expect": "100-continue"} if invited else {})
    answer = await live.post(pack(json.dumps(ask()).encode()), headers=headers)
    assert answer.status == status
    assert status == 200 or answer.error["type"] == "invalid_request_error"
    assert status != 400 or "could not be read" in answer.error["message"]
    assert not live.notes.all("internal_error")


JSON_TYPES = ("application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json")
OTHER_TYPES = ("text/plain", "text/plain;application/json", "application/x-www-form-urlencoded", "")


@rows("kind", [*JSON_TYPES, *OTHER_TYPES, "multipart/form-data; boundary=x"])
async def test_a_body_must_call_itself_json(live: Live, kind: str) -> None:
    answer = await live.post(ask(), headers={"content-type": kind})
    assert answer.status == (200 if kind in JSON_TYPES else 415)
    assert answer.status == 200 or answer.error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("live_options", "drip_s"),
    [({"body_idle_timeout_ms": 50}, 0.0), ({"body_idle_timeout_ms": 10_000, "body_total_timeout_ms": 100}, 0.02)],
    ids=["pauses", "drips"],
)
async def test_a_body_that_pauses_or_drips_is_given_up(live: Live, drip_s: float) -> None:
    answer = await raw_unfinished(live, drip_s=drip_s)
    assert answer.startswith(b"HTTP/1.1 408") and b"timeout_error" in answer


async def raw_unfinished(live: Live, length: str = "Content-Length: 1000", drip_s: float = 0.0) -> bytes:
    """Sends the beginning of a body, perhaps more of it bit by bit, and reads the answer that comes all the same."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(raw_request("POST /v1/messages", length, body=b"{"))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        answer = group.create_task(reader.readuntil(b'"}'))
        while drip_s and not answer.done():
            writer.write(b" ")
            await asyncio.sleep(drip_s)
    writer.close()
    return answer.result()


async def test_a_session_header_that_is_no_text_does_no_harm(live: Live) -> None:
    headers = ("Connection: close", "x-claude-code-session-id: \xff\xfe")
    answer = await live.raw(raw_request("POST /v1/messages", *headers, body=json.dumps(ask()).encode()))
    assert answer.startswith(b"HTTP/1.1 200")
    assert not live.notes.all("internal_error")


def refused(answer: Answer) -> str:
    """The message of a 400."""
    assert answer.status == 400, answer.raw
    message: str = answer.error["message"]
    return message


async def test_an_unknown_model_gets_the_catalogue(live: Live) -> None:
    message = refused(await live.post(ask(model="not-a-model")))
    assert '"not-a-model"' in message and "Supported: p1: claude-fable-5, " in message and message.endswith(".")
    assert "Supported:" in refused(await live.post({"messages": []}))
    near = refused(await live.post(ask(model="kimi-k2.7")))
    assert near.startswith('Unknown model "kimi-k2.7". Did you mean kimi-k2.6') and "? Supported: p1: " in near


@with_live(signed_in=False)
async def test_without_a_sign_in_the_error_names_the_cure_and_asks_for_no_retry(live: Live) -> None:
    for answer in (await live.post(ask()), await live.stream(ask())):
        assert answer.status == 401 and answer.error["type"] == "authentication_error"
        assert "auth login p1" in answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"
    assert (await live.get("/v1/models")).status == 200
    assert (await live.post(ask(), "/v1/messages/count_tokens")).json["input_tokens"] > 0
    assert live.upstream == 0


#: gzip of nothing, then blocks that unpack to nothing for ever.
_ENDLESS = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 20_000


@pytest.mark.parametrize(
    ("path", "status", "head"),
    [
        ("/v1/messages", b"400", (gzip.compress(b"{}"), "Content-Encoding: gzip")),
        ("/v1/messages", b"413", (_ENDLESS, "Content-Encoding: gzip")),
        ("/v1/messages", b"415", (b"", "Content-Encoding: br")),
        ("/v1/messages", b"403", (b"", "Origin: http://evil.example")),
        ("/nope", b"404", (b"",)),
        ("/healthz", b"405", (b"",)),
    ],
)
@with_live(max_body_bytes=60_000)
async def test_what_comes_behind_an_answer_is_read_up_to_a_bound(
    live: Live, path: str, status: bytes, head: tuple[Any, ...]
) -> None:
    """200 MB of junk behind a body that is refused."""
    first, *names = head
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *names)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write("\r\n".join((*lines, "Transfer-Encoding: chunked", "", "")).encode())
    sent, junk = 0, b"10000\r\n" + bytes(65536) + b"\r\n"
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            if first:
                writer.write(b"%x\r\n%s\r\n" % (len(first), first))
            while sent < 200_000_000:
                writer.write(junk)
                await writer.drain()
                sent += len(junk)
    assert sent < 20_000_000  # what the kernel's buffers hold, and the bound
    with contextlib.suppress(ConnectionError):
        assert (await reader.read(100)).split()[1] == status
    writer.close()
