"""Cases that `scripts/fuzz` found, once and for all; and that its oracle sees what is wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from events import closed, delta, opened
from fuzz_stub import FuzzCase, Step
from fuzzing import Rig, judge, rig
from harness import Answer, Fake, ask, played, use, whole_message
from samples import rows

from proxy.observe.history.schema import FILE_NAME, connect
from proxy.server.request.families import ClientRoute
from proxy.server.routes.table import ROUTES

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from fuzz.answers import plain_answers
from fuzz.cases import case_of
from fuzz.seeds import seeds

CASES = sorted((Path(__file__).parent / "fuzz_cases").glob("*.json"))
STREAM = {"content-type": "text/event-stream"}
WHOLE = whole_message("gpt-5.5", "fine")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(tmp_path) as one:
        yield one


def case(**members: Any) -> FuzzCase:
    return FuzzCase("/v1/messages", body=json.dumps(ask(**members)), headers={"content-type": "application/json"})


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
async def test_a_case_that_was_found(path: Path, running: Rig) -> None:
    assert await running.run(FuzzCase.load(path.read_text())) == []
    assert await running.leftovers() == []


async def test_a_plain_answer_has_nothing_wrong(running: Rig) -> None:
    assert await running.run(case(stream=True)) == []
    assert await running.leftovers() == []


def _hits(case: FuzzCase, route: ClientRoute) -> bool:
    path = re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(route.path))
    return case.method in route.methods and re.fullmatch(path, case.path.partition("?")[0]) is not None


def test_every_route_has_a_seed_and_is_tried() -> None:
    for route in ROUTES:
        assert {seed.method for seed in seeds() if _hits(seed, route)} == set(route.methods), route.path
    untried = [*ROUTES]
    for number in range(2000):
        made = case_of(1, number)
        untried = [route for route in untried if not _hits(made, route)]
        if not untried:
            break
    assert untried == []


async def test_seeds_are_well_formed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    connect(state / FILE_NAME).close()  # else it is made half a second after the start
    async with rig(tmp_path, plain_answers(), state_dir=state) as running:
        for seed in seeds():
            assert await running.run(seed) == [], seed
            assert running.statuses == [405 if seed.method == "GET" and seed.path == "/v1/responses" else 200], seed


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    made = [case_of(3, number).dump() for number in range(60)]
    assert made == [case_of(3, number).dump() for number in range(60)]
    assert made != [case_of(4, number).dump() for number in range(60)]


def _logs() -> None:
    logging.getLogger("asyncio").error("Task exception was never retrieved")


def _burns() -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < 0.3:
        pass


def _raises() -> None:
    raise TypeError("unhashable")


@pytest.mark.parametrize(
    ("fault", "words"), [(_raises, "internal_error"), (_logs, "in the log"), (_burns, "a step of")]
)
async def test_the_oracle_sees_a_fault(fault: Callable[[], None], words: str, running: Rig, unseen: list[str]) -> None:
    async def stream(_call: Any) -> AsyncIterator[list[dict[str, Any]]]:
        fault()
        yield WHOLE

    use(running.live, Fake("p1", stream))  # type: ignore[arg-type]
    assert any(words in one for one in await running.run(case()))
    unseen.clear()


async def test_the_oracle_sees_a_secret(running: Rig) -> None:
    token = json.loads((running.live.root / "p1" / "auth.json").read_text())["access"]
    use(running.live, Fake("p1", played(whole_message("gpt-5.5", f"it is {token}"))))
    assert [one for one in await running.run(case()) if "a secret" in one]


async def test_the_oracle_sees_a_task_that_is_left(running: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    task = asyncio.create_task(asyncio.sleep(60), name="left")
    assert any("left" in one for one in await running.leftovers())
    task.cancel()


def _sse(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


@rows(
    "raw, words",
    [
        (_sse(*WHOLE[:-1]), "the stream has no end"),
        (_sse(WHOLE[0], opened(), delta(), delta(kind="thinking_delta"), closed()), "a wrong delta"),
        (_sse(*WHOLE)[:-9], "Error"),
        (_sse(*WHOLE), "looks complete"),
    ],
)
def test_the_oracle_sees_a_wrong_stream(raw: bytes, words: str) -> None:
    broken = Step('event: response.created\ndata: {"type": "response.created"}\n\n')
    [wrong] = judge(case(), Answer(200, STREAM, raw), [("p1-responses", broken)])
    assert words in wrong
