"""Routes, methods, bodies and what every answer carries."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from harness import Answer, Fake, Live, ask, use

from proxy.sandbox import Sandbox

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
JSON = {"content-type": "application/json"}


async def raw(live: Live, data: bytes) -> bytes:
    """What comes back for these bytes, until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(data)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def raw_post(body: bytes, *headers: str, host: str = "127.0.0.1") -> bytes:
    lines = [
        "POST /v1/messages HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


# -- health, unknown paths, wrong methods


async def test_health_says_ok(live: Live) -> None:
    answer = await live.get("/healthz")
    assert (answer.status, answer.json) == (200, {"ok": True})


async def test_health_answers_head_and_any_host(live: Live) -> None:
    assert (await live.request("HEAD", "/healthz")).status == 200
    assert (await live.get("/healthz", Host="evil.example", Origin="https://evil.example")).status == 200


async def test_an_unknown_path_is_named_with_its_method(live: Live) -> None:
    answer = await live.get("/nope?key=1")
    assert answer.status == 404
    assert answer.error == {"type": "not_found", "message": "No route for GET /nope"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("HEAD", "/"),
        ("GET", "/v1/models/"),
        ("GET", "/V1/models"),
        ("GET", "/v1/models/gpt-5.5"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/images/generations"),
        ("OPTIONS", "/nope"),
    ],
)
async def test_routes_match_exactly_and_disabled_ones_do_not_exist(live: Live, method: str, path: str) -> None:
    answer = await live.request(method, path, data=b"{" if method == "POST" else None, headers=JSON)
    assert answer.status == 404
    assert method == "HEAD" or answer.error["type"] == "not_found"


async def test_a_path_that_no_message_should_repeat_is_quoted_and_cut(live: Live) -> None:
    answer = await live.get("/" + "%0a%1b[31m" * 100)
    assert answer.status == 404
    assert len(answer.error["message"]) < 1000 and answer.error["message"].isprintable()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/messages", "POST"),
        ("OPTIONS", "/v1/messages", "POST"),
        ("DELETE", "/v1/messages/count_tokens", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("PUT", "/healthz", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(live: Live, method: str, path: str, allowed: str) -> None:
    answer = await live.request(method, path)
    assert answer.status == 405 and answer.headers["Allow"] == allowed
    assert answer.error["type"] == "invalid_request_error"
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


async def test_every_answer_carries_a_request_id_of_its_own(live: Live) -> None:
    answers = [
        await live.get("/healthz"),
        await live.get("/v1/models"),
        await live.get("/nope"),
        await live.get("/v1/messages"),
        await live.get("/v1/models", Host="evil.example"),
        await live.post(b"{"),
        await live.post(ask()),
        await live.stream(ask()),
        await live.post(ask(), "/v1/messages/count_tokens"),
    ]
    ids = [answer.headers["request-id"] for answer in answers]
    assert all(UUID.fullmatch(found) for found in ids) and len(set(ids)) == len(ids)


async def test_a_stream_says_what_it_is_and_that_nothing_may_hold_it_back(live: Live) -> None:
    answer = await live.stream(ask(), headers={"accept-encoding": "gzip, br"})
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in answer.headers


async def test_any_query_is_accepted_on_messages(live: Live) -> None:
    assert (await live.post(ask(), "/v1/messages?beta=true&x=1")).status == 200
    assert (await live.post(ask(), "/v1/messages/count_tokens?beta=true")).status == 200


# -- models


async def test_the_list_of_models_is_whole_and_in_order(live: Live) -> None:
    page = (await live.get("/v1/models?limit=1000&other=1")).json
    ids = [model["id"] for model in page["data"]]
    labels = [model["display_name"][-3:-1] for model in page["data"]]
    assert sorted(zip(labels, ids, strict=True)) == list(zip(labels, ids, strict=True))
    assert {"claude-opus-5", "gpt-5.5", "gpt-5.5-fast", "kimi-k3", "opencode-go/kimi-k3", "glm-5.2"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert (page["object"], page["has_more"]) == ("list", False)
    assert (page["first_id"], page["last_id"]) == (ids[0], ids[-1])
    for model in page["data"]:
        assert (model["type"], model["object"]) == ("model", "model")
        assert re.fullmatch(re.escape(model["id"]) + r" \(p[124]\)", model["display_name"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", model["created_at"])


async def test_a_limit_keeps_the_first_and_says_that_there_are_more(live: Live) -> None:
    page = (await live.get("/v1/models?limit=2")).json
    assert len(page["data"]) == 2 and page["has_more"] is True and page["last_id"] == page["data"][1]["id"]
    none = (await live.get("/v1/models?limit=0")).json
    assert none == {"object": "list", "data": [], "has_more": True, "first_id": None, "last_id": None}


@pytest.mark.parametrize("limit", ["-1", "x", "", "1.5", "%2B1", "1e3", "%D9%A3", "9" * 40])
async def test_a_limit_that_is_no_count_is_refused(live: Live, limit: str) -> None:
    answer = await live.get(f"/v1/models?limit={limit}")
    assert answer.status == 400 and answer.error["type"] == "invalid_request_error"


async def all_pages(live: Live, cursor: str, key: str) -> list[list[str]]:
    """Pages as the official SDK fetches them."""
    pages: list[list[str]] = []
    query = "limit=7"
    while len(pages) < 50:
        page = (await live.get(f"/v1/models?{query}")).json
        pages.append([model["id"] for model in page["data"]])
        if not page["has_more"] or not page["data"]:
            return pages
        query = f"limit=7&{cursor}={page[key]}"
    raise AssertionError("the pages never end")


async def test_paging_forward_gives_every_model_once(live: Live) -> None:
    every = [model["id"] for model in (await live.get("/v1/models")).json["data"]]
    pages = await all_pages(live, "after_id", "last_id")
    assert [model for page in pages for model in page] == every


async def test_paging_back_gives_the_nearest_first(live: Live) -> None:
    every = [model["id"] for model in (await live.get("/v1/models")).json["data"]]
    page = (await live.get(f"/v1/models?limit=3&before_id={every[5]}")).json
    assert [model["id"] for model in page["data"]] == every[2:5] and page["has_more"] is True
    page = (await live.get(f"/v1/models?limit=3&before_id={every[2]}")).json
    assert [model["id"] for model in page["data"]] == every[:2] and page["has_more"] is False


async def test_an_unknown_cursor_ends_the_paging(live: Live) -> None:
    for cursor in ("after_id", "before_id"):
        page = (await live.get(f"/v1/models?limit=1&{cursor}=nobody")).json
        assert page["data"] == [] and page["has_more"] is False


async def test_models_need_no_sign_in(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, signed_in=False) as live:
        assert (await live.get("/v1/models")).status == 200
        assert (await live.post(ask(), "/v1/messages/count_tokens")).json["input_tokens"] > 0


# -- bodies


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Invalid JSON: empty body"),
        (b" \n", "Invalid JSON: empty body"),
        (b"{", "Invalid JSON:"),
        (b"[]", "Invalid JSON:"),
        (b"null", "Invalid JSON:"),
        (b'"text"', "Invalid JSON:"),
        (b"\xff\xfe{}", "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":[{"role":"user","content":"\xc3\x28"}]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":[{"role":"user","content":"\\ud800"}]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":' + b"[" * 200 + b"]" * 200 + b"}", "Invalid JSON:"),
        (b"[" * 200_000, "Invalid JSON:"),
        (b'{"max_tokens":' + b"9" * 5000 + b"}", "Invalid JSON:"),
        (b'{"messages":[]}', 'Missing "model"'),
        (b'{"model":null,"messages":[]}', "Invalid JSON:"),
        (b'{"model":7,"messages":[]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":{}}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":["hi"]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":[{"content":"hi"}]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":[{"role":"user"}]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","messages":[{"role":1,"content":"hi"}]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","stream":"yes","messages":[]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","max_tokens":-1,"messages":[]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","max_tokens":4294967296,"messages":[]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","max_tokens":1.5,"messages":[]}', "Invalid JSON:"),
        (b'{"model":"gpt-5.5","max_tokens":true,"messages":[]}', "Invalid JSON:"),
    ],
)
async def test_a_body_of_the_wrong_form_is_refused_without_asking_anybody(
    live: Live, path: str, body: bytes, words: str
) -> None:
    answer = await live.post(body, path)
    assert answer.status == 400 and answer.error["type"] == "invalid_request_error"
    assert answer.error["message"].startswith(words)
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


@pytest.mark.parametrize(
    "member",
    [
        *("system", "tools", "tool_choice", "thinking", "output_config", "metadata", "stop_sequences", "speed"),
        *("service_tier", "temperature", "context_management", "thread", "mcp_servers", "container", "betas"),
    ],
)
async def test_wrong_types_in_optional_members_never_break_the_proxy(live: Live, member: str) -> None:
    """They are ignored, or refused in the caller's format; here or upstream."""
    for value in WRONG:
        answer = await live.post(ask(**{member: value}))
        assert answer.status in (200, 400), (member, value, answer.raw)
        assert answer.status == 200 or answer.error["type"] == "invalid_request_error"
        count = await live.post(ask(**{member: value}), "/v1/messages/count_tokens")
        assert count.status in (200, 400)
    assert not live.notes.all("internal_error")


def contents() -> list[Any]:
    blocks: list[Any] = []
    for kind in ("text", "image", "document", "tool_use", "tool_result", "thinking", "server_tool_use", "new", 7, None):
        for name in ("text", "source", "content", "input", "id", "tool_use_id", "name", "thinking", "signature"):
            blocks += [[{"type": kind, name: value}] for value in (None, 7, "x", [], [7], {}, {"type": "base64"})]
    return [*WRONG, *blocks]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer", "tool", ""])
async def test_wrong_types_in_content_never_break_the_proxy(live: Live, role: str) -> None:
    for content in contents():
        body = ask([{"role": "user", "content": "a"}, {"role": role, "content": content}])
        answer = await live.post(body, "/v1/messages/count_tokens")
        assert answer.status in (200, 400), (content, answer.raw)
    assert not live.notes.all("internal_error")


async def test_the_limit_of_a_body_counts_what_is_declared_and_what_comes(sandbox: Sandbox, tmp_path: Path) -> None:
    async def chunks(size: int) -> Any:
        for _ in range(size):
            yield b" " * 1024

    fits = json.dumps(ask()).encode().ljust(4096)
    async with Live(sandbox, tmp_path, max_body_bytes=4096) as live:
        assert (await live.post(fits)).status == 200
        for body in (fits + b" ", chunks(5)):
            answer = await live.request("POST", "/v1/messages", data=body, headers=JSON)
            assert answer.status == 413 and answer.error["type"] == "request_too_large"
            assert answer.headers["x-should-retry"] == "false"
        declared = await raw_unfinished(live, "Content-Length: 5000")
        assert declared.startswith(b"HTTP/1.1 413")


async def test_the_limit_of_a_body_counts_what_is_unpacked(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, max_body_bytes=4096) as live:
        packed = gzip.compress(b" " * 1_000_000)
        assert len(packed) < 4096
        answer = await live.post(packed, headers={"content-encoding": "gzip"})
        assert answer.status == 413


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity", "GZIP"])
async def test_packed_bodies_are_read(live: Live, encoding: str) -> None:
    plain = json.dumps(ask()).encode()
    pack = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding.lower(), bytes)
    answer = await live.post(pack(plain), headers={"content-encoding": encoding})
    assert answer.status == 200


async def test_an_encoding_that_nobody_unpacks_is_refused(live: Live) -> None:
    answer = await live.post(b"{}", headers={"content-encoding": "compress"})
    assert answer.status == 415 and answer.error["type"] == "invalid_request_error"


async def test_a_body_that_cannot_be_unpacked_is_the_callers_fault(live: Live) -> None:
    answer = await live.post(b"this is not gzip", headers={"content-encoding": "gzip"})
    assert answer.status == 400 and "could not be read" in answer.error["message"]
    assert not live.notes.all("internal_error")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.api+json", 200),
        ("text/plain", 415),
        ("text/plain;application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
async def test_a_body_must_call_itself_json(live: Live, kind: str, status: int) -> None:
    answer = await live.post(ask(), headers={"content-type": kind})
    assert answer.status == status
    assert status == 200 or answer.error["type"] == "invalid_request_error"


async def test_a_body_that_pauses_is_given_up(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, body_idle_timeout_ms=50) as live:
        answer = await raw_unfinished(live)
        assert answer.startswith(b"HTTP/1.1 408") and b"timeout_error" in answer


async def test_a_body_that_drips_is_given_up(sandbox: Sandbox, tmp_path: Path) -> None:
    async with Live(sandbox, tmp_path, body_idle_timeout_ms=10_000, body_total_timeout_ms=100) as live:
        answer = await raw_unfinished(live, drip_s=0.02)
        assert answer.startswith(b"HTTP/1.1 408")


async def raw_unfinished(live: Live, length: str = "Content-Length: 1000", drip_s: float = 0.0) -> bytes:
    """Sends the beginning of a body, perhaps more of it bit by bit, and reads the answer that comes all the same."""
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(raw_post(b"{", length))
    async with asyncio.timeout(2), asyncio.TaskGroup() as group:
        answer = group.create_task(reader.readuntil(b'"}'))
        while drip_s and not answer.done():
            writer.write(b" ")
            await asyncio.sleep(drip_s)
    writer.close()
    return answer.result()


async def test_a_session_header_that_is_no_text_does_no_harm(live: Live) -> None:
    body = json.dumps(ask()).encode()
    data = raw_post(body, "x-claude-code-session-id: \xff\xfe", f"Content-Length: {len(body)}")
    answer = await raw(live, data)
    assert answer.startswith(b"HTTP/1.1 200")
    assert not live.notes.all("internal_error")


async def test_an_error_nobody_foresaw_is_told_without_its_text(live: Live) -> None:
    async def broken(call: Any) -> Any:
        raise ValueError("the secret prompt")
        yield []

    use(live, Fake("p1", broken))
    for answer in (await live.post(ask()), await live.stream(ask())):
        assert answer.status == 500 and answer.error["type"] == "api_error"
        assert "ValueError" in answer.error["message"] and "secret" not in answer.raw.decode()
    assert all("secret" not in str(record) for record in live.notes.records)
    assert live.notes.all("internal_error")[0]["error"] == "ValueError"


def refused(answer: Answer) -> str:
    """The message of a 400."""
    assert answer.status == 400, answer.raw
    message: str = answer.error["message"]
    return message


async def test_an_unknown_model_gets_the_catalogue(live: Live) -> None:
    message = refused(await live.post(ask(model="not-a-model")))
    assert '"not-a-model"' in message and "Supported: p1: claude-fable-5, " in message and message.endswith(".")
    assert "Supported:" in refused(await live.post({"messages": []}))


async def test_a_model_of_a_provider_to_come_is_told_apart_from_an_unknown_one(live: Live) -> None:
    assert "belongs to p3" in refused(await live.post(ask(model="grok-4.5")))


async def test_without_a_sign_in_the_error_names_the_cure_and_asks_for_no_retry(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    async with Live(sandbox, tmp_path, signed_in=False) as live:
        for answer in (await live.post(ask()), await live.stream(ask())):
            assert answer.status == 401 and answer.error["type"] == "authentication_error"
            assert "auth login p1" in answer.error["message"]
            assert answer.headers["x-should-retry"] == "false"
        assert live.upstream == 0
