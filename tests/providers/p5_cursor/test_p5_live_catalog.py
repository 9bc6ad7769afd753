"""The list of models that the service gives, and what becomes of answers that are none."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cursor_account import World as Account
from harness import until
from hypothesis import given
from hypothesis import strategies as st
from oauth_accounts import Clock

from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.hiding.secret import Secret
from proxy.core.routing import listing
from proxy.errors import SignInError, UpstreamError
from proxy.observe.lifecycle import NullLog
from proxy.providers.contract import Services
from proxy.providers.p5_cursor.catalog import CATALOG, NAMES
from proxy.providers.p5_cursor.live_catalog import MAX_MODELS, PATH, CatalogTimers, LiveCatalog, _NoCatalog, model_ids
from proxy.providers.p5_cursor.settings import CursorSettings
from proxy.providers.p5_cursor.snapshot import SNAPSHOT
from proxy.providers.p5_cursor.wire.envelopes import call_headers
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.sandbox import Sandbox


def message(*ids: str) -> bytes:
    models = [{"model_id": model, "display_name": model.upper(), "aliases": ["x"]} for model in ids]
    return encode("GetUsableModelsResponse", {"models": models})


class Log(NullLog):
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        self.lines.append((level, msg, fields["detail"]))


class Source:
    """Gives the token that a test sets, or raises the error."""

    def __init__(self) -> None:
        self.gives: str | Exception = "token-1"

    async def get(self) -> Credential:
        if isinstance(self.gives, Exception):
            raise self.gives
        return Credential(Secret(self.gives), Secret(""), 2**53)

    async def renew(self, rejected: Secret) -> Credential:
        raise AssertionError("nothing is renewed for a list")

    async def close(self) -> None:
        return None


#: Answers that never come: the connection breaks, or nothing happens.
CUT, SILENCE = b"cut", b"silence"


class World:
    """A service whose answers a test sets, one for each question; the last one stays."""

    def __init__(self) -> None:
        self.answers: list[bytes | web.StreamResponse] = [message("gpt-9", "gpt-9-high")]
        self.asked: list[tuple[web.Request, bytes]] = []
        self.clock, self.log, self.source = Clock(), Log(), Source()
        self.live: LiveCatalog

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request, await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is CUT:
            assert request.transport is not None
            request.transport.abort()
        if answer in (CUT, SILENCE):
            await asyncio.sleep(3600)
        return answer if isinstance(answer, web.StreamResponse) else web.Response(body=answer)

    async def refresh(self) -> None:
        self.live.refresh_soon()
        task = self.live._refreshing
        assert task is not None
        await task


def services(base_url: str, session: aiohttp.ClientSession, log: Log, clock: Clock) -> Services:
    config = Config(sections={CursorSettings: CursorSettings(base_url=base_url)})
    made = (lambda: config, Path(), session, session, cast(Any, None), log, clock)
    return Services(*made)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    app = web.Application()
    app.router.add_post(PATH, world.handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        base_url = str(server.make_url("")).rstrip("/")
        world.live = LiveCatalog(services(base_url, session, world.log, world.clock), world.source)
        yield world
        await world.live.close()


async def test_until_it_has_answered_the_snapshot_stands_in_its_place(world: World) -> None:
    assert world.live.ids() == SNAPSHOT and world.live.catalog() == CATALOG
    world.live.refresh_soon()
    assert world.live.ids() == SNAPSHOT
    await world.refresh()
    assert world.live.ids() == ("gpt-9", "gpt-9-high")
    names = [name for name, _ in listing([world.live.catalog()], "p1")]
    assert names[:8] == sorted(NAMES)
    assert names[8:] == [f"{prefix}:{model}" for prefix in ("cursor", "cursor-plan", "cursor-ask") for model in
                         ("gpt-9", "gpt-9-high")]  # fmt: skip
    assert world.log.lines == [("info", "cursor_models_listed", "2 models")]


async def test_the_question_is_an_empty_message_of_the_vendors_command_line(world: World) -> None:
    await world.refresh()
    ((request, body),) = world.asked
    assert body == b"" and request.headers["content-length"] == "0"
    given = {name.lower(): value for name, value in request.headers.items()}
    call = given["x-request-id"]
    assert str(uuid.UUID(call)) == call
    version = CursorSettings().client_version
    assert call_headers("token-1", version, call, call, "application/proto").items() <= given.items()


async def test_it_is_asked_once_in_five_minutes_for_an_account(world: World) -> None:
    await world.refresh()
    world.clock.now += 299
    await world.refresh()
    assert len(world.asked) == 1
    world.clock.now += 2
    world.answers = [message("gpt-10")]
    await world.refresh()
    assert len(world.asked) == 2 and world.live.ids() == ("gpt-10",)
    world.source.gives = "token-2"
    await world.refresh()
    assert world.asked[-1][0].headers["authorization"] == "Bearer token-2"


JSON = b'{"models":[{"modelId":"a","displayName":"A"},{"modelId":"b"},{"modelId":"a"},{"modelId":3},4,{}]}'


async def test_a_simulated_service_lists_its_models(tmp_path: Path) -> None:
    """With a credential of its own; it reads and writes messages in another way than we do."""
    clock, log = Clock(), Log()
    async with Sandbox(clock=clock) as sandbox, aiohttp.ClientSession() as session:
        account = Account(tmp_path, sandbox, session, clock)
        account.store()
        credentials = account.credentials()
        live = LiveCatalog(services(sandbox.origin, session, log, clock), credentials)
        live.refresh_soon()
        await until(lambda: live.ids() != SNAPSHOT)
        assert live.ids() == tuple(sandbox.p5.options.models) and sandbox.p5.violations == []
        assert [seen.path for seen in sandbox.p5.model_requests] == [PATH]
        await live.close()
        await credentials.close()


async def test_an_answer_in_json_is_read_too(world: World) -> None:
    world.answers = [web.Response(body=JSON, content_type="application/json")]
    await world.refresh()
    assert world.live.ids() == ("a", "b")


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (b"", "the answer names no model"),
        (b"{}", "the answer names no model"),
        (b'{"models":[]}', "the answer names no model"),
        (b'{"models":{"a":1}}', "the answer names no model"),
        (b"<html>", "the answer cannot be read (WireError)"),
        (b"\xff" * 40, "the answer cannot be read (WireError)"),
        (b"{", "the answer cannot be read (JSONDecodeError)"),
        (b'{"models":' + b"[" * 20_000, "the answer cannot be read (RecursionError)"),
        (b"\n" * 1_100_000, "the answer passed 1048576 bytes"),
        (web.Response(status=401, body=b'{"code":"unauthenticated"}'), "status 401"),
        (web.Response(status=415), "status 415"),
        (web.Response(status=302, headers={"location": "/elsewhere"}), "status 302"),
    ],
)
async def test_what_is_no_list_leaves_the_one_that_there_was(
    world: World, answer: bytes | web.Response, detail: str
) -> None:
    await world.refresh()
    for _ in range(3):
        world.clock.now += 301
        world.answers = [answer if isinstance(answer, bytes) else web.Response(status=answer.status, body=answer.body)]
        await world.refresh()
    assert world.live.ids() == ("gpt-9", "gpt-9-high")
    assert world.log.lines[1:] == [("warn", "cursor_models_not_listed", detail)]
    assert len(world.asked) == 4


async def test_a_question_that_did_not_get_through_is_asked_once_more(world: World) -> None:
    world.answers = [CUT, message("gpt-9")]
    await world.refresh()
    assert world.live.ids() == ("gpt-9",) and len(world.asked) == 2
    world.clock.now += 301
    world.answers = [CUT]
    await world.refresh()
    assert len(world.asked) == 4
    assert world.log.lines[-1][:2] == ("warn", "cursor_models_not_listed")


async def test_a_service_that_does_not_answer_is_given_up(world: World) -> None:
    world.answers = [SILENCE]
    world.live._timers = CatalogTimers(answer=0.2)
    await world.refresh()
    assert world.live.ids() == SNAPSHOT and world.asked
    assert world.log.lines == [("warn", "cursor_models_not_listed", "no answer (TimeoutError)")]


async def test_without_a_sign_in_nobody_is_asked_and_nothing_is_said(world: World) -> None:
    world.source.gives = SignInError("not signed in")
    await world.refresh()
    assert not world.asked and not world.log.lines
    world.source.gives = "token-1"
    await world.refresh()
    assert len(world.asked) == 1


async def test_a_sign_in_that_fails_otherwise_is_told_to_the_log(world: World) -> None:
    world.source.gives = UpstreamError("the issuer is down")
    await world.refresh()
    assert world.log.lines == [("warn", "cursor_models_not_listed", "the issuer is down")]


async def test_closing_ends_the_question(world: World) -> None:
    world.answers = [SILENCE]
    world.live.refresh_soon()
    await world.live.close()
    assert world.live.ids() == SNAPSHOT


def test_ids_that_cannot_stand_behind_a_prefix_are_left_out() -> None:
    assert model_ids(message("a", "", "x" * 101, "b c", "d\x1b", "a", "é")) == ("a", "é")
    assert len(model_ids(message(*(f"m{number}" for number in range(2 * MAX_MODELS))))) == MAX_MODELS


def test_a_message_that_looks_like_json_at_its_second_byte_is_a_message() -> None:
    """123 bytes of a first model: its length is a brace."""
    body = encode("GetUsableModelsResponse", {"models": [{"model_id": "a", "display_name": "n" * 118}]})
    assert body[:2] == b"\n{" and model_ids(body) == ("a",)


@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda data: b"{" + data))
def test_any_answer_is_survived(body: bytes) -> None:
    try:
        assert model_ids(body)
    except _NoCatalog:
        pass
