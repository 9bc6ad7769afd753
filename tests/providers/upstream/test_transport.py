"""How answers are collected, and that no error is changed once it was made."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from samples import rows

import proxy
from proxy.errors import UpstreamError, headers
from proxy.observe.lifecycle import NullLog
from proxy.providers.upstream import transport as module
from proxy.providers.upstream.client import read_error
from proxy.providers.upstream.failures import client_error, upstream_error
from proxy.providers.upstream.transport import (
    HttpTransport,
    UpstreamProfile,
    UpstreamRequest,
    refusal_of,
)

PACKAGE = Path(proxy.__file__).parent
PROFILE = UpstreamProfile("p9", "toy", lambda event: "last" in event, partial(upstream_error, "p9"))


@asynccontextmanager
async def answering(
    pieces: list[bytes], status: int = 200, profile: UpstreamProfile = PROFILE
) -> AsyncIterator[tuple[HttpTransport, UpstreamRequest]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        transport = HttpTransport(profile, session, NullLog(), lambda: 0.0)
        yield transport, UpstreamRequest(str(server.make_url("/")), {}, b"{}", "r", 1)


async def test_a_json_answer_in_many_pieces_is_put_together() -> None:
    async with answering([b'{"a":"', *[b"x" * 999] * 50, b'"}']) as (transport, request):
        assert await transport.json(request) == {"a": "x" * 999 * 50}


async def test_a_json_answer_has_a_limit() -> None:
    async with answering([b" " * 500_000] * 17) as (transport, request):
        with pytest.raises(UpstreamError, match=f"passed {module.MAX_JSON_BYTES} bytes") as caught:
            await transport.json(request)
    assert not caught.value.repeatable


@pytest.mark.parametrize("limit", [10, 1000])
async def test_of_an_error_body_the_beginning_is_read(limit: int) -> None:
    async with answering([b"ab"] * 100, 400) as (transport, request), transport.open(request) as answer:
        body = await read_error(answer.response, limit)
    assert (type(body), body) == (bytes, (b"ab" * 100)[:limit])


PAGE = [b"\n <!DOCTYPE html>", b"<html>"]
END = b'data: {"last": true}\n\n'


@rows(
    "status, pieces, outcome",
    [
        *((status, [END], 1) for status in (200, 201, 202)),
        *((status, [], "unexpected answer with status") for status in (204, 302, 304)),
        (200, [b"data:\n\ndata\n\n", END], 1),
        (206, [END], "unexpected answer with status 206"),
        (200, PAGE, "a page in place of a stream"),
        (202, [], "ended before its last event"),
    ],
)
async def test_what_is_taken_for_an_answer(status: int, pieces: list[bytes], outcome: int | str) -> None:
    async with answering(pieces, status) as (transport, request):
        if isinstance(outcome, int):
            assert [len(batch) async for batch in transport.stream(request)] == [outcome]
            return
        with pytest.raises(UpstreamError, match=outcome) as caught:
            await anext(transport.stream(request))
    assert caught.value.status == 502


@rows("data", [b"5", b"[]", b"null", b'"text"', b"true", b'[{"a": 1}]'])
@rows("lenient", [False, True])
async def test_json_that_is_no_object_leaves_a_hole(data: bytes, lenient: bool) -> None:
    pieces = [b'data: {"a": 1}\n\ndata: %s\n\n' % data + END]
    async with answering(pieces, profile=replace(PROFILE, lenient=lenient)) as (transport, request):
        batches = transport.stream(request)
        assert await anext(batches) == [{"a": 1}]
        with pytest.raises(UpstreamError, match="not a JSON object"):
            await anext(batches)


@rows(
    "pieces, strict, lenient",
    [
        ([b'data: {"last": "\xff"}\n\n'], "not JSON", {"last": "\ufffd"}),
        ([END.rstrip()], "ended before its last event", {"last": True}),
        ([END.rstrip(), b"\n: bye"], "ended before its last event", {"last": True}),
        ([END[:-5]], "ended before its last event", None),
    ],
)
async def test_how_much_a_profile_forgives(pieces: list[bytes], strict: str, lenient: dict[str, Any] | None) -> None:
    async with answering(pieces) as (transport, request):
        with pytest.raises(UpstreamError, match=strict):
            await anext(transport.stream(request))
    async with answering(pieces, profile=replace(PROFILE, lenient=True)) as (transport, request):
        if lenient is None:
            with pytest.raises(UpstreamError, match="ended before its last event"):
                await anext(transport.stream(request))
        else:
            assert await anext(transport.stream(request)) == [lenient]


@rows("word, final", [("false", True), (" False", True), ("true", False), ("", False)])
def test_an_upstream_says_whether_to_ask_again(word: str, final: bool) -> None:
    error = refusal_of(PROFILE, 503, {"x-should-retry": word}, b"", now=0.0)
    assert error.final is final
    assert headers(error) == ({"x-should-retry": "false"} if final else {})


def found_by(search: Callable[[ast.AST], Iterator[str]], hint: re.Pattern[str]) -> dict[Path, list[str]]:
    """In the files whose text has the hint: to take all of them apart takes seconds."""
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if "sandbox" not in path.parts}
    trees = {path: ast.parse(text) for path, text in texts.items() if hint.search(text)}
    assert trees
    return {path: found for path, tree in trees.items() if (found := list(search(tree)))}


def is_bytes(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bytes)


def growing_bytes(tree: ast.AST) -> Iterator[str]:
    """Names that begin as `b""` and grow by `+=`, which copies all of it each time."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = list(ast.walk(function))
            assigned = [node for node in nodes if isinstance(node, ast.Assign) and is_bytes(node.value)]
            begun = {ast.unparse(name) for node in assigned for name in node.targets}
            for node in nodes:
                if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in begun:
                    yield f"{function.name}: {node.target.id}"


BEGUN = re.compile(r"""=\s*\(?\s*[bB][rR]?["'](?s:.*)\+=""")


def test_no_body_is_copied_for_every_piece_of_it() -> None:
    growing = 'def f():\n    body = b""\n    body += x'
    assert BEGUN.search(growing) and list(growing_bytes(ast.parse(growing))) == ["f: body"]
    assert found_by(growing_bytes, BEGUN) == {}


#: What an error is called where it is caught or handed on, and members that nothing else has but a row of the monitor.
ERRORS = frozenset({"error", "failure", "cause", "caught", "exc", "known", "refused"})
MEMBERS = frozenset({"message", "retry_after", "repeatable", "upstream_id", "lasting"})
#: One of them, and an assignment behind it in the line.
CHANGED = re.compile(rf"(?:\b(?:{'|'.join(ERRORS)})\.\w|\.(?:{'|'.join(MEMBERS)})\b).*=(?!=)")


def changed_errors(tree: ast.AST) -> Iterator[str]:
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    for node in stored:
        name = ast.unparse(node.value)
        if name in ERRORS or (node.attr in MEMBERS and name not in ("self", "request")):
            yield ast.unparse(node)


def test_no_error_is_changed_once_it_was_made() -> None:
    """Its text would stay what it was."""
    changed = "error.message += x"
    assert CHANGED.search(changed) and list(changed_errors(ast.parse(changed))) == ["error.message"]
    assert found_by(changed_errors, CHANGED) == {}


@rows(
    "error, message, after",
    [
        (UpstreamError("x", kind="overloaded"), "x", 2.0),
        (UpstreamError("x", kind="usage_limit", retry_after=9.0), "x", 9.0),
        (UpstreamError("x", kind="usage_limit", retry_after=90.0), "x", 90.0),
        (UpstreamError("x", kind="sign_in"), "x (sign in)", None),
        (UpstreamError("x", kind="permission"), "x", None),
    ],
)
def test_a_clients_error_says_one_thing(error: UpstreamError, message: str, after: float | None) -> None:
    """Message and text agree, and the error that it was made of stays as it was."""
    told = client_error(error, sign_in_hint="sign in")
    assert (told.message, str(told), told.args, told.retry_after) == (message, message, (message,), after)
    assert str(error) == error.message == "x" and error.kind == told.kind


def test_a_silent_upstream_is_told_with_its_time_and_without_a_blank_behind_it() -> None:
    error = module.unreachable(module.Service("p1", "codex"), TimeoutError(), 2.0)
    assert error.message == "p1: no answer within 2000 ms"
