"""What an upstream quotes of our sign-in reaches neither the caller nor the log."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import Live, ask
from openai_live import BOTH, body_for
from wires import WIRES

from proxy.core.invalid import MAX_SHOWN, cut
from proxy.core.secret import BLANK, Secret, blanked, blanked_bytes
from proxy.observe.log.redact import MAX_TEXT_BYTES, redact, shown_query
from proxy.sandbox import Sandbox

KEY = "caller-k3y"
MODELS = {"p1": "gpt-5.5"} | {wire.label: wire.model for wire in WIRES}
ROUTES = ("/v1/messages", *BOTH)


def _error(text: str) -> web.Response:
    return web.json_response(
        {"error": {"type": "x", "code": text, "message": f"bad {text}!", "param": text}}, status=400
    )


def _in_stream(text: str) -> web.Response:
    error = {"type": "response.failed", "response": {"error": {"code": "x", "message": f"bad {text}!"}}}
    frames = f"event: response.failed\ndata: {json.dumps(error)}\n\n"
    return web.Response(text=frames, content_type="text/event-stream", headers={"x-request-id": text})


ANSWERS: dict[str, Callable[[str], web.Response]] = {
    "json": _error,
    "plain": lambda text: web.Response(text=f"no {text} here", status=403),
    "encoded": lambda text: _error(quote(text, safe="") + " " + base64.b64encode(text.encode()).decode()),
    "long": lambda text: _error("x" * (10_000 - len("bad ") - 20) + text),
    "page": lambda text: web.Response(text=f"<html>{text}</html>", content_type="text/html", status=401),
    "head": lambda text: web.json_response(
        {"detail": text}, status=429, headers={"x-request-id": text, "retry-after": "1", "x-ratelimit-limit": text}
    ),
    "stream": _in_stream,
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("label", MODELS)
async def test_an_upstream_that_quotes_us_tells_nobody(
    sandbox: Sandbox, tmp_path: Path, label: str, answer: str
) -> None:
    quoted: set[str] = set()

    async def quote_back(request: web.Request) -> web.StreamResponse:
        told = [request.headers.get(name, "") for name in ("Authorization", "x-api-key", "chatgpt-account-id")]
        words = {word for value in told for word in value.split()} - {"Bearer"}
        quoted.update(words)
        return ANSWERS[answer](" ".join(sorted(words)))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", quote_back)
    async with TestServer(app) as upstream:
        url = str(upstream.make_url("/v1"))
        options = {f"{label}_base_url": url, "openai_routes": True, "api_key": KEY}
        async with Live(sandbox, tmp_path, **options) as live:
            for path in ROUTES:
                for stream in (False, True):
                    body = (body_for(path, "hi", MODELS[label]) if path in BOTH else ask(model=MODELS[label])) | {
                        "stream": stream
                    }
                    got = await live.post(body, path + "?key=" + KEY, headers={"x-api-key": KEY})
                    seen = f"{got.raw.decode()} {dict(got.headers)} {live.notes.records} {live.app}"
                    assert quoted and not any(word in seen for word in quoted), (path, stream)
                    assert KEY not in seen


async def test_a_native_stream_is_blanked_in_whole_failures_and_nowhere_else(sandbox: Sandbox, tmp_path: Path) -> None:
    key, texts, tokens = "model-proxy", iter(("completed", "failed")), set[str]()

    async def answer(request: web.Request) -> web.StreamResponse:
        kind, token = next(texts), request.headers["Authorization"].split()[-1]
        tokens.add(token)
        error = {"code": "server_error", "message": f"bad {token}!"} if kind == "failed" else None
        output = [{"type": "message", "content": [{"type": "output_text", "text": "run model-proxy"}]}]
        response = {"id": "r", "status": kind, "error": error, "output": [] if error else output}
        name = f"response.{kind}"
        frame = f"event: {name}\ndata: {json.dumps({'type': name, 'response': response})}\n\n".encode()
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        half = len(frame) // 2  # within the token, which is most of it
        await stream.write(frame[:half])
        await asyncio.sleep(0.02)  # so that it arrives alone
        await stream.write(frame[half:])
        return stream

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    body = body_for("/v1/responses", "hi", MODELS["p1"]) | {"stream": True}
    async with TestServer(app) as upstream:
        options = {"p1_base_url": str(upstream.make_url("/v1")), "openai_routes": True, "api_key": key}
        async with Live(sandbox, tmp_path, **options) as live:
            said, refused = [(await live.post(body, "/v1/responses", headers={"x-api-key": key})).raw for _ in "12"]
    assert b"run model-proxy" in said and b"redacted" not in said
    assert b"bad [redacted]!" in refused and tokens
    assert not any(part.encode() in refused for token in tokens for part in (token[:30], token[-30:]))


def test_all_forms_of_a_secret_are_taken_out() -> None:
    secrets = [Secret('a/b+c=d ä"12345'), Secret("Basic " + base64.b64encode(b"me:pa55w:rd").decode()), Secret("k3y77")]
    value = secrets[0].reveal()
    for form in (value, quote(value, safe=""), json.dumps(value)[1:-1], "pa55w:rd", "me:pa55w:rd", "k3y77"):
        assert blanked(f"<{form}>") == "<[redacted]>"
        assert blanked_bytes(f"\xff<{form}>".encode()) == "\xff<[redacted]>".encode()
    assert blanked("k3y777 ak3y77 pa55") == "k3y777 ak3y77 pa55"
    assert blanked_bytes(b"\xff k3y77") == b"\xff [redacted]"
    del secrets
    Secret("another-one")
    assert blanked(value) == value


@pytest.mark.parametrize("before", [MAX_TEXT_BYTES - 20, MAX_TEXT_BYTES - 1, MAX_TEXT_BYTES - 600])
def test_a_secret_that_a_cut_would_divide_is_blanked_before(before: int) -> None:
    secret = Secret("t0ken" * 100)
    text = "é" + "x" * (before - 2) + secret.reveal() + "y" * 10_000
    assert "t0k" not in blanked(redact_text_of(text))
    assert cut("x" * 180 + secret.reveal()) == "x" * 180 + BLANK + "…"
    assert "t0k" not in cut(f"{secret.reveal()} " * 100) and len(cut("x" * 100_000)) == MAX_SHOWN


def redact_text_of(text: str) -> str:
    shown = redact({"message": text})["message"]
    assert shown.endswith(" bytes]") and len(shown.encode()) < MAX_TEXT_BYTES + 40
    return str(shown)


SLASHED = 'a/b+c=d ä"12345>>>???ü/~'
ELSEWHERE = {
    "path": quote(SLASHED),
    "small digits": re.sub("%..", lambda found: found[0].lower(), quote(SLASHED, safe="")),
    "slashes of JSON": json.dumps(SLASHED)[1:-1].replace("/", "\\/"),
    "plain JSON": json.dumps(SLASHED, ensure_ascii=False)[1:-1],
    **{f"base64, {n} before": base64.b64encode(b"u" * n + SLASHED.encode()).decode() for n in range(3)},
    **{f"base64, {n} around": base64.b64encode(b"u" * n + SLASHED.encode() + b"u" * 9).decode() for n in range(3)},
    "base64 of URLs": base64.urlsafe_b64encode(b"u:" + SLASHED.encode()).decode(),
}


@pytest.mark.parametrize("form", ELSEWHERE)
def test_a_secret_is_found_as_others_write_it(form: str) -> None:
    secret = Secret(SLASHED)
    found = blanked(f"<{ELSEWHERE[form]}>")
    assert BLANK in found and len(found.replace(BLANK, "").strip("<u=>")) < 20
    assert blanked_bytes(ELSEWHERE[form].encode()) != ELSEWHERE[form].encode()
    del secret


@pytest.mark.parametrize("text", ['{"ts": 1712345678, "tokens": 12345}', "the test of sk-1 is a dummy"])
def test_a_short_secret_takes_nothing_else_out(text: str) -> None:
    secrets = [Secret(value) for value in ("12345678", "12345", "test", "sk-1", "dummy")]
    assert blanked(text) == text
    assert blanked_bytes(text.encode()) == text.encode()
    del secrets


def test_a_secret_that_no_text_can_hold_stops_no_other() -> None:
    secrets = [Secret("abc\ud800defgh"), Secret("k3y-of-another")]
    assert blanked("no k3y-of-another here") == "no [redacted] here"
    del secrets


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("beta=true&limit=5", "beta=true&limit=5"),
        ("key=abc", "key=[redacted len=3]"),
        *((f"{name}=abc", f"{name}=[redacted len=3]") for name in ("api_key", "token", "access_token", "code", "k")),
        ("sk-abc&SK-1=x&beta=a%20b", "[redacted len=6]&[redacted len=6]&beta=[redacted len=5]"),
        ("&".join(["a=b"] * 100), "&".join(["a=[redacted len=1]"] * 20)),
    ],
)
def test_a_query_is_shown_without_values_that_nobody_knows(query: str, shown: str) -> None:
    assert shown_query(query) == shown
