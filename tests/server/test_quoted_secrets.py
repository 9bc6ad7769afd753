"""What an upstream quotes of our sign-in, or of a picture of the request, reaches neither the caller nor the log."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness import Live, ask
from openai_live import BOTH, body_for
from samples import each, rows, sampled
from wires import WIRES, Wire

from proxy.core.hiding.secret import BLANK, Secret, blanked, blanked_bytes
from proxy.core.hiding.texts import MAX_TEXT_BYTES, log_text, masked, shown_bytes, shown_query
from proxy.core.invalid import MAX_SHOWN, cut
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


@pytest.mark.parametrize("label", MODELS)
async def test_an_upstream_that_quotes_us_tells_nobody(sandbox: Sandbox, tmp_path: Path, label: str) -> None:
    quoted: set[str] = set()
    answers = [""]

    async def quote_back(request: web.Request) -> web.StreamResponse:
        told = [request.headers.get(name, "") for name in ("Authorization", "x-api-key", "chatgpt-account-id")]
        words = {word for value in told for word in value.split()} - {"Bearer"}
        quoted.update(words)
        return ANSWERS[answers[-1]](" ".join(sorted(words)))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", quote_back)
    async with TestServer(app) as upstream:
        url = str(upstream.make_url("/v1"))
        options = {f"{label}_base_url": url, "openai_routes": True, "api_key": KEY}
        async with Live(sandbox, tmp_path, **options) as live:
            for answer, path, stream in sampled(product(ANSWERS, ROUTES, (False, True)), 2):
                answers.append(answer)
                quoted.clear()
                body = body_for(path, "hi", MODELS[label]) if path in BOTH else ask(model=MODELS[label])
                got = await live.post(body | {"stream": stream}, path + "?key=" + KEY, headers={"x-api-key": KEY})
                seen = f"{got.raw.decode()} {dict(got.headers)} {live.notes.records} {live.app}"
                assert quoted and not any(word in seen for word in quoted), (answer, path, stream)
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


PIXELS = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(7).randbytes(1500)).decode()
PICTURE = f"data:image/png;base64,{PIXELS}"
BROKEN = "\n".join(PIXELS[at : at + 76] for at in range(0, len(PIXELS), 76))
#: How a service quotes a picture.
QUOTES = {
    "url": f"bad '{PICTURE}' here",
    "in an address": f"bad http://box/?of={quote(PICTURE, safe='')} here",
    "upper case": f"bad 'DATA:IMAGE/PNG;BASE64,{PIXELS}' here",
    "raw": f"bad {PIXELS} here",
    "raw, cut at both ends": f"bad …{PIXELS[300:500]}… here",
    "url, cut at its end": f"bad {PICTURE[:200]}",
    "of URLs": f"bad {PICTURE.translate(str.maketrans('+/', '-_'))} here",
    "raw, of URLs": f"bad {PIXELS.translate(str.maketrans('+/', '-_'))} here",
    "slashes of JSON": "bad " + json.dumps({"url": PICTURE}).replace("/", "\\/"),
    "signs of JSON": "bad " + json.dumps({"url": PICTURE}).replace("+", "\\u002b").replace("=", "\\u003d"),
    "JSON in JSON": "bad " + json.dumps(json.dumps({"url": PICTURE})).replace("/", "\\/"),
    "lines": f"bad data:image/png;base64,{BROKEN}\nhere",
    "raw lines": f"bad\n{BROKEN}\nhere",
    "lines of JSON": "bad " + json.dumps({"data": BROKEN}),
    "lines of the web": f"bad data:image/png;base64,{BROKEN}".replace("\n", "\r\n"),
    "lines as blanks": f"bad data:image/png;base64,{BROKEN}".replace("\n", " "),
    "where the words are cut": "x " * 4_950 + PICTURE,
    "where words of few are cut": "x " * 200 + PICTURE,
    "svg": f"bad data:image/svg+xml,{PIXELS} here",
}


def _leaks(seen: str) -> bool:
    """Whether 40 characters of the picture in a row are in a text, however they are written."""
    for escape, meant in (("\\u002b", "+"), ("\\u003d", "="), ("-", "+"), ("_", "/"), ("\\r", ""), ("\\n", "")):
        seen = seen.replace(escape, meant)
    plain = re.sub(r"[\s\\]", "", seen)
    # of 40 in a row, 20 begin at a multiple of 20
    near = [at for at in range(0, len(PIXELS), 20) if PIXELS[at : at + 20] in plain]
    return any(PIXELS[at : at + 40] in plain for end in near for at in range(max(0, end - 20), end + 1))


@rows("form", QUOTES)
def test_a_picture_among_words_is_taken_out_however_it_is_written(form: str) -> None:
    words = masked(QUOTES[form])
    assert not _leaks(words) and not _leaks(masked(f"{QUOTES[form]}{'x ' * 20_000}")[:200])
    assert words.startswith(("bad", "x x")) and ("here" in words or "here" not in QUOTES[form])
    body = json.dumps({"error": {"message": QUOTES[form], "code": 'a "b" \\'}})
    for written in (body, json.dumps(body), body.replace("/", "\\/"), body.replace("+", "\\u002b")):
        passed = shown_bytes(written.encode())
        assert not _leaks(passed.decode()) and type(json.loads(passed)) is type(json.loads(written))


@rows(
    "words",
    [
        "No model openai/gpt-5.5-codex at https://chatgpt.com/backend-api/codex/responses?client_version=0.169.0",
        f"Previous response with id 'resp_{'0123456789abcdef' * 6}' not found; sha256 {'ab12' * 32}.",
        f"no such file: /home/someone/Projects/{'a-folder/of_many/' * 12}Makefile",
        "the base64, and data: more; `data:` URLs of type image/png;base64 are taken",
        "x" * 10_000,
    ],
)
def test_other_words_stay(words: str) -> None:
    assert masked(words) == words


def _frame_of(text: str) -> bytes:
    end = json.dumps({"error": {"code": "invalid_argument", "message": text}}).encode()
    return b"\x02" + len(end).to_bytes(4, "big") + end


def _failing_stream(wire: Wire, text: str) -> web.Response:
    if wire.traits.run:
        return web.Response(body=_frame_of(text), content_type="application/connect+proto")
    error = {"type": "invalid_request_error", "code": text, "message": text}
    events: dict[str, dict[str, Any]] = {
        "chat": {"error": error},
        "messages": {"type": "error", "error": error},
    }
    event = events.get(wire.kind, {"type": "response.failed", "response": {"status": "failed", "error": error}})
    name = "" if wire.kind == "chat" else f"event: {event['type']}\n"
    return web.Response(text=f"{name}data: {json.dumps(event)}\n\n", content_type="text/event-stream")


def _refused(_wire: Wire, text: str) -> web.Response:
    error = {"type": "invalid_request_error", "code": text, "message": text, "param": text}
    return web.json_response({"error": error}, status=400)


def _detailed(_wire: Wire, text: str) -> web.Response:
    return web.json_response({"detail": [{"loc": ["body", text], "msg": text}]}, status=422)


P1 = Wire("p1", "responses", MODELS["p1"])


@each(1)
@pytest.mark.parametrize("answered", [_failing_stream, _refused, _detailed])
@pytest.mark.parametrize("wire", [P1, *WIRES], ids=str)
async def test_an_upstream_that_quotes_a_picture_shows_it_to_nobody(
    sandbox: Sandbox, tmp_path: Path, wire: Wire, answered: Callable[[Wire, str], web.Response]
) -> None:
    text = [""]

    async def answer(_request: web.Request) -> web.StreamResponse:
        return answered(wire, text[0])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as upstream:
        options = {f"{wire.label}_base_url": str(upstream.make_url("/v1")), "openai_routes": True}
        async with Live(sandbox, tmp_path, **options) as live:
            for number, form in enumerate(QUOTES):
                text[0] = QUOTES[form]
                # P1 passes answers on as they are on one of the routes; elsewhere all go the same way
                for path in ROUTES if wire is P1 else (ROUTES[number % 3],):
                    body = body_for(path, "hi", wire.model) if path in BOTH else ask(model=wire.model)
                    got = await live.post(body | {"stream": number % 2 == 0}, path)
                    assert b"bad " in got.raw or b"x x" in got.raw or b"xxx" in got.raw or b"error" in got.raw
                    assert not _leaks(got.raw.decode()), (form, path)
            assert not _leaks(f"{live.notes.records}"), "log"
            assert not _leaks(f"{live.notes.captures}") and live.notes.captures, "error files"


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_socket_that_quotes_a_picture_shows_it_to_nobody(
    sandbox: Sandbox, tmp_path: Path, refuses: bool
) -> None:
    text = [""]

    async def talk(request: web.Request) -> web.StreamResponse:
        if refuses:
            return web.json_response({"error": {"message": text[0][:800]}}, status=400)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        error = {"type": "invalid_request_error", "code": "x", "message": text[0]}
        await socket.send_json({"type": "error", "status": 400, "error": error})
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", talk)
    async with TestServer(app) as upstream:
        options = {"p1_base_url": str(upstream.make_url("/v1")), "p1_transport": "websocket"}
        async with Live(sandbox, tmp_path, **options) as live:
            for form in QUOTES:
                text[0] = QUOTES[form]
                got = await live.post(ask(model=P1.model))
                assert got.status == 400 and not _leaks(got.raw.decode()), form
            assert not _leaks(f"{live.notes.records} {live.notes.captures}")


async def test_a_native_failure_of_any_length_shows_no_picture_and_the_answer_before_it_stays(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    item = {"type": "response.output_item.done", "item": {"type": "image_generation_call", "result": PIXELS}}
    error = {"code": "server_error", "message": f"bad {PICTURE * 300} {PIXELS}"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (item, failed)]

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="".join(frames), content_type="text/event-stream")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as upstream:
        options = {"p1_base_url": str(upstream.make_url("/v1")), "openai_routes": True}
        async with Live(sandbox, tmp_path, **options) as live:
            got = await live.post(body_for("/v1/responses", "hi", P1.model) | {"stream": True}, "/v1/responses")
    shown = got.raw.decode()
    assert shown.startswith(frames[0]) and not _leaks(shown.removeprefix(frames[0]))


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
    shown = log_text(text)
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


@rows("form", ELSEWHERE)
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


@rows(
    "query, shown",
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
