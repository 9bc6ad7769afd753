"""Fixtures for all tests, and two rules for all of them: no task may fail unseen, and property tests run the same
examples every time, few enough to wait for. `--all` runs whole tables instead of samples (samples.py)."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import Live
from hypothesis import HealthCheck, settings
from own_time import OwnTimeLoop
from samples import Extent, examples, left_out
from stations import Recorded

from proxy.core.hiding import secret
from proxy.providers.upstream import tokenizer
from proxy.sandbox import Sandbox

#: "gw0", "gw1", … in a worker of pytest-xdist, else "".
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="whole tables and all examples, instead of samples of them")
    parser.addoption("--quick", action="store_true", help="even fewer examples, and nothing that is marked as slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each(number, features): a sample of the cases runs, see samples.each")
    config.addinivalue_line("markers", "slow: takes a second and more; not run with --quick")
    Extent.everything, Extent.quick = config.getoption("--all"), config.getoption("--quick")
    settings.register_profile(
        "repeatable",
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=examples(100),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("repeatable")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Has every other worker begin at the end. What pytest makes of a module takes longer than all else of collection,
    and is kept in a file: each worker makes one half, and finds the other."""
    if isinstance(collector, pytest.Directory) and _WORKER[-1:] in tuple("13579"):
        found = collector.collect
        collector.collect = lambda: [*found()][::-1]  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _WORKER:  # one order for all, however they collected; processes first, so that nobody waits for them at the end
        items.sort(key=lambda item: ("process" not in item.path.parts, item.path.parts))
    out = set() if Extent.everything else left_out(items)
    if Extent.quick:
        out.update(item for item in items if item.get_closest_marker("slow"))
    if out:
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"own time": OwnTimeLoop}


@pytest.fixture(autouse=True, scope="session")
def _one_vocabulary() -> Iterator[None]:
    """It takes a quarter of a second to load, and every application would load its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "load_encoding", functools.cache(tokenizer.load_encoding))
        yield


class Unseen(logging.Handler):
    """Errors of the running test that were told to the log only: asyncio's are lost exceptions, aiohttp's unhandled
    ones."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []
        for name in ("asyncio", "aiohttp"):
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if not is_garbage(record):
            self.errors.append(record.getMessage())


_UNSEEN = Unseen()


# hooks and no fixtures, which take a quarter of the time of a test that does little


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A process has the secrets of its accounts; here it would have those of all tests before, and look for them."""
    secret._LIVE = secret._Live()
    _UNSEEN.errors = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    lost = _UNSEEN.errors
    _UNSEEN.errors = []  # what the end of servers tells is no error of the test
    yield
    assert not lost, lost


@pytest.fixture
def unseen() -> list[str]:
    """Those errors, for a test that makes some."""
    return _UNSEEN.errors


def is_garbage(record: logging.LogRecord) -> bool:
    """What aiohttp reports about requests that are no HTTP; some tests send such."""
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__.startswith("aiohttp.")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def _nothing_is_left_open() -> Iterator[None]:
    """What was left open complains when it is collected. What is still in use after that stays to the end, mostly the
    reports of the tests, and the next collection need not look through it."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def recorded() -> Recorded:
    """Captures for `live_options` that record their calls."""
    return Recorded()


@pytest.fixture
def live_options() -> dict[str, Any]:
    """Arguments of `live`, for modules and tests (`with_live`) to replace."""
    return {}


@pytest.fixture
async def live(
    sandbox: Sandbox, tmp_path: Path, live_options: dict[str, Any], _nothing_is_left_open: None
) -> AsyncIterator[Live]:
    """A signed-in proxy in front of the sandbox."""
    async with Live(sandbox, tmp_path, **live_options) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The collector finds next to nothing while tests are collected, and need not look through them later: they stay to
    the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)  # as in a proxy that serves (cli/serve.py)
        gc.enable()
