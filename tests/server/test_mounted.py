"""The application under a prefix of another one, in a runner that does not cancel handlers when a client leaves."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from checks import check_message_stream
from harness import Fake, Live, ask, kinds, raw_request, store_account, until

from proxy import Config, create_app
from proxy.later import Later
from proxy.observe.lifecycle import Abandoned
from proxy.providers.contract import Provider, Services
from proxy.providers.entry import Entry
from proxy.providers.registry import PROVIDERS
from proxy.sandbox import Sandbox
from proxy.server import warming
from proxy.server.app import _awaited
from proxy.server.request.state import STATE


@pytest.fixture
def live_options() -> dict[str, Any]:
    return {"mount": "/models/ai", "handler_cancellation": False}


async def test_every_route_works_under_the_prefix(live: Live) -> None:
    assert (await live.get("/healthz")).json == {"ok": True}
    assert (await live.get("/v1/models")).json["data"]
    assert (await live.post(ask(), "/v1/messages/count_tokens")).json["input_tokens"] > 0
    assert (await live.post(ask())).json["type"] == "message"
    answer = await live.stream(ask())
    check_message_stream(answer.events)
    assert answer.headers["request-id"]


async def test_unknown_paths_and_wrong_methods_have_our_form_under_the_prefix(live: Live) -> None:
    missing = await live.get("/nope")
    assert missing.status == 404 and missing.error["message"] == "No route for GET /models/ai/nope"
    wrong = await live.get("/v1/messages")
    assert wrong.status == 405 and wrong.headers["Allow"] == "POST"
    assert wrong.error["type"] == "invalid_request_error"
    assert (await live.get("/v1/models", Host="evil.example")).status == 403


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"alias_provider": "kimi"}, "alias_provider: expected p1 or p2"),
        ({"auto_review_model": "lunar-9"}, "auto_review_model: expected a model"),
        ({"search": "kimi-k9"}, "search: expected auto, off, one of p1, p3, p2"),
    ],
)
def test_names_that_nobody_has_are_told_when_the_application_is_made(
    settings: dict[str, str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=told):
        create_app(Config(**settings), config_dir=tmp_path)  # type: ignore[arg-type]


async def test_the_application_around_keeps_its_own_paths(live: Live) -> None:
    live.url = live.url.removesuffix(live.mount)
    answer = await live.get("/v1/models")
    assert answer.status == 404 and answer.raw == b"404: Not Found"


async def test_a_client_that_leaves_during_a_wait_ends_the_retries(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.p1.script.extend([{"fault": "rate_limit", "times": None}])
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(60)

    async with Live(sandbox, tmp_path, handler_cancellation=False, sleep=sleep) as live:
        task = asyncio.ensure_future(live.post(ask()))
        await until(lambda: waits)
        task.cancel()
        await until(lambda: isinstance(live.watcher.last[-1], Abandoned), 1.0)
        assert live.upstream == 1


async def test_a_client_that_closes_its_half_of_the_connection_has_left(live: Live) -> None:
    live.sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": None}])
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(raw_request(f"POST {live.mount}/v1/messages", body=json.dumps(ask(stream=True)).encode()))
    await reader.readuntil(b"text_delta")
    writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    await live.sandbox.p1.idle(1.0)
    writer.close()


async def test_a_second_life_begins_like_the_first(sandbox: Sandbox, tmp_path: Path) -> None:
    for _ in range(2):
        async with Live(sandbox, tmp_path, mount="/x") as live:
            assert (await live.post(ask())).status == 200
        assert live.app[STATE].providers == {}


async def test_an_application_that_never_starts_leaves_nothing_open(tmp_path: Path) -> None:
    create_app(Config(), config_dir=tmp_path / "does not exist")
    assert list(tmp_path.iterdir()) == []


async def test_middlewares_of_the_application_around_see_our_answers(live: Live) -> None:
    seen: list[int] = []

    @web.middleware
    async def count(request: web.Request, handler: Any) -> web.StreamResponse:
        response: web.StreamResponse = await asyncio.wait_for(handler(request), 20)
        seen.append(response.status)
        return response

    parent = web.Application(middlewares=[count])
    parent.add_subapp("/deep/er", create_app(live.config, config_dir=live.root))
    runner = web.AppRunner(parent, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    live.url = f"http://127.0.0.1:{runner.addresses[0][1]}/deep/er"
    assert kinds((await live.stream(ask())).events)[-1] == "message_stop"
    assert (await live.get("/nope")).status == 404
    await runner.cleanup()
    assert seen == [200, 404]


def entries_of(closed: list[str]) -> list[Entry]:
    """Providers that note in `closed` that they are closed, and fail in it."""

    def built(label: str, _services: Services) -> Provider:
        async def close() -> None:
            closed.append(label)
            raise OSError(label)

        fake = Fake(label)
        fake.close = close  # type: ignore[method-assign]
        return fake

    return [replace(entry, build=partial(built, entry.label)) for entry in PROVIDERS]


async def test_every_provider_is_closed_and_the_first_error_is_reported(sandbox: Sandbox, tmp_path: Path) -> None:
    closed: list[str] = []
    live = Live(sandbox, tmp_path, entries=entries_of(closed))
    with pytest.raises(OSError) as raised:  # in place of what fails inside: that is looked at behind it
        async with live:
            accounts = live.app[STATE].accounts
            before = [*accounts.providers.made]
            status = (await live.post(ask())).status
            after, watched = [*accounts.providers.made], len(accounts.watched())
    assert (before, status, after, watched) == ([], 200, ["p1"], 5)
    assert closed == ["p5", "p4", "p3", "p2", "p1"] and str(raised.value) == closed[0]
    assert [note["provider"] for note in live.notes.all("provider_not_closed")] == closed
    assert live.app[STATE].providers == {}


def broken(_services: Services) -> Provider:
    raise ValueError("cannot be built")


async def test_a_provider_that_cannot_be_made_fails_its_own_requests(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second, *_ = PROVIDERS
    entries = [replace(first, build=broken), replace(second, build=lambda _: Fake("p2"))]
    async with Live(sandbox, tmp_path, entries=entries) as live:
        assert (await live.post(ask())).status == 500
        assert (await live.post(ask(model="kimi-for-coding"))).status == 200


async def test_a_provider_that_cannot_be_made_is_left_out_of_what_is_about_all(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    first, second, *_ = PROVIDERS
    entries = [replace(first, build=lambda _: Fake("p1")), replace(second, build=broken)]
    async with Live(sandbox, tmp_path, entries=entries) as live:
        assert (await live.get("/monitor")).status == 200
        assert (await live.post(ask(model="lunar-9"))).status == 400
        assert [*live.app[STATE].accounts.watched()] == ["p1"]


async def test_a_module_that_cannot_be_imported_does_not_keep_others_from_it(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warm_module.py").write_text("build = None")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(warming, "START_S", 0.0)
    first, second, *_ = PROVIDERS
    entries = [replace(first, build=Later("no_module:build")), replace(second, build=Later("warm_module:build"))]
    live = Live(sandbox, tmp_path, entries=entries)
    async with live:
        await live.app[STATE].warmed.wait()
        assert sys.modules.pop("warm_module")
    assert [note["error"] for note in live.notes.all("internal_error")] == ["ModuleNotFoundError"]


async def test_a_route_is_imported_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    code = "import sys\nin_time = sys.told.wait(5)\nasync def handle(request): return request, in_time"
    (tmp_path / "slow_route.py").write_text(code)
    monkeypatch.setattr(sys, "told", told, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    handle: Any = _awaited(Later("slow_route:handle"))
    first = asyncio.create_task(handle(1))
    await until(lambda: "slow_route" in sys.modules)
    second = asyncio.create_task(handle(2))  # while the module is known, but not ready
    await asyncio.sleep(0.05)
    told.set()
    answers: list[Any] = await asyncio.gather(first, second)
    assert answers == [(1, True), (2, True)]
    del sys.modules["slow_route"]


async def test_a_start_that_fails_closes_what_was_open(sandbox: Sandbox, tmp_path: Path) -> None:
    closed: list[str] = []
    first, second, third, *_ = entries_of(closed)
    live = Live(sandbox, tmp_path, entries=[first, second, replace(third, build=broken)])
    for label in ("p2", "p3"):
        store_account(tmp_path, label)  # the providers of named accounts are made at the start
    with pytest.raises(ValueError, match="cannot be built"):
        async with live:
            pass
    assert closed == ["p2", "p2"]
