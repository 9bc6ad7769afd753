"""Many sessions, agents and users that are all new: what grows with them is a table, and every table has a bound.

All that the application holds is walked through behind two rounds of requests. A container that the second one made
larger must be one of `BOUNDS`; below such a table nothing may become larger than it was in any entry before.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, NamedTuple, cast

import pytest
from harness import Live, ask, tool, until
from samples import rows

from proxy.core.allowances.report import Allowance
from proxy.core.cache_health import memory as cache_memory
from proxy.core.cache_health.fingerprint import of_messages
from proxy.core.cache_health.judge import Sent
from proxy.core.identity import Owner
from proxy.core.long_json import MAX_VALUES, Remembered
from proxy.core.tools import read_tool
from proxy.observe.lifecycle import SPANS, NullLog
from proxy.observe.metrics import counts
from proxy.observe.monitor import state as monitor_state
from proxy.observe.monitor import tracked
from proxy.observe.monitor.tracked import TrackedSession
from proxy.providers.accounts import allowance_store
from proxy.providers.accounts.allowance_store import AllowanceStore
from proxy.providers.p1_codex.account import rate_limits
from proxy.providers.p1_codex.compaction.store import CompactionLimits, CompactionStore
from proxy.providers.p1_codex.socket.continuation import ContinuationLimits, Continuations, Transcript
from proxy.providers.p1_codex.socket.manager import PoolLimits
from proxy.providers.p5_cursor import conversations
from proxy.providers.p5_cursor.bridge import open_runs
from proxy.providers.upstream.tokenizer import TextCounts, TokenizerLimits
from proxy.server.request import accounts
from proxy.server.request.state import STATE


def is_ours(module: str) -> bool:
    return module.startswith("proxy.") and not module.startswith("proxy.sandbox")


def memos() -> set[int]:
    """The identities of those that modules hold: their sizes are told together."""
    ours = [vars(module) for name, module in list(sys.modules.items()) if is_ours(name)]
    return {id(part) for held in ours for part in held.values() if isinstance(part, Remembered)}


#: Finished requests that the monitor keeps in these tests: the first round fills that table.
RECENT = 90
#: The tables that grow with sessions, agents, users and texts, and how many entries they may have.
BOUNDS: Mapping[str, int] = {
    "Sessions._sessions": accounts.MAX_SESSIONS,
    "SessionTable._all": tracked.MAX_SESSIONS,
    "SessionTable._idle": tracked.MAX_SESSIONS,
    "MonitorState._recent": RECENT,
    "MonitorState._notices": monitor_state.MAX_NOTICES,
    "RequestRow.timings": RECENT * len(SPANS),  # of those that are kept: which spans a request has is a matter of time
    "Steps._counts": tracked.HOUR,
    "PromptMemory._owners": cache_memory.MAX_OWNERS,
    "TextCounts._newer": TokenizerLimits().remembered,
    "TextCounts._older": TokenizerLimits().remembered,
    "Remembered._newer": len(memos()) * MAX_VALUES,
    "Remembered._older": len(memos()) * MAX_VALUES,
    "Conversations._known": conversations.MAX_CONVERSATIONS,
    "OpenRuns._runs": open_runs.MAX_OPEN_RUNS,
    "OpenRuns._owned": open_runs.MAX_OPEN_RUNS,
    "Continuations._entries": ContinuationLimits().owners,
    "Pool._waiting": PoolLimits().most,
}
#: Those that two rounds make larger whatever the transport, and those of P5: a walk that misses them misses others.
ALWAYS = {"Sessions._sessions", "SessionTable._all", "SessionTable._idle", "PromptMemory._owners", "TextCounts._newer"}
OF_P5 = {"Conversations._known", "OpenRuns._runs"}
#: Growth that is none: requests whose ends are still being tidied up.
MARGIN = 5
TOGETHER = 8
LONG = "many words " * 300

_CONTAINERS = (dict, list, set, frozenset, tuple, deque)
_HOLDERS = (
    *(types.MethodType, types.CellType, types.CoroutineType, types.AsyncGeneratorType, types.GeneratorType),
    *(types.FrameType, functools.partial, asyncio.Task),
)


def attributes(thing: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from ((name, getattr(thing, name)) for name in slots if hasattr(thing, name))


def parts(name: str, thing: Any) -> Iterable[tuple[str, Any]]:
    """What an object holds, with the name by which it is told."""
    if isinstance(thing, dict):
        return [(f"{name}[]", part) for part in (*thing.keys(), *thing.values())]
    if isinstance(thing, _CONTAINERS):
        return [(f"{name}[]", part) for part in thing]
    if is_ours(type(thing).__module__):
        return [(f"{type(thing).__name__}.{member}", part) for member, part in attributes(thing)]
    if isinstance(thing, types.FunctionType):
        return [(f"{name}()", part) for part in thing.__closure__ or ()]
    return [(f"{name}()", part) for part in gc.get_referents(thing)] if isinstance(thing, _HOLDERS) else ()


def endless(thing: object) -> int:
    """How much a cache without a bound holds."""
    info = thing.cache_info() if isinstance(thing, functools._lru_cache_wrapper) else None
    return info.currsize if info is not None and info.maxsize is None else 0


def sizes(root: object) -> Counter[str]:
    """Of every container that `root` and the modules lead to: of one name all together, below a bounded table the
    largest."""
    found: Counter[str] = Counter()
    modules = [(name, vars(module)) for name, module in list(sys.modules.items()) if is_ours(name)]
    outside = [(f"{module}.{name}", part) for module, held in modules for name, part in held.items()]
    outside.append(("root", root))
    below: list[tuple[str, Any]] = []
    seen: set[int] = set()
    while waiting := outside or below:
        name, thing = waiting.pop()
        if id(thing) in seen or name.endswith(".__builtins__"):
            continue
        seen.add(id(thing))
        size = len(cast(Sized, thing)) if isinstance(thing, _CONTAINERS) else endless(thing)
        found[name] = max(found[name], size) if waiting is below else found[name] + size
        (below if name in BOUNDS else waiting).extend(parts(name, thing))
    return found


def grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """Name -> its size before and after."""
    return {name: (before[name], size) for name, size in after.items() if size > before[name] + MARGIN}


def asked(number: int, models: tuple[str, ...]) -> dict[str, Any]:
    """One of five kinds of requests, each with each model."""
    model, kind = models[number % len(models)], number // len(models) % 5
    kinds: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: ask(f"{number} {LONG}", model=model),
        lambda: ask(f"use Bash: echo {number}", model=model, stream=True, tools=[tool()]),
        lambda: ask(f"use Read: {number}", model=model, stream=True, tools=[tool("Read", "file_path")]),
        lambda: ask(model=f"nobody-{number}"),
        lambda: ask(model=model, metadata={"user_id": f"user_{number}_account__session_{number}"}),
    )
    return kinds[kind]()


async def many(live: Live, numbers: range, models: tuple[str, ...]) -> Counter[int]:
    """The statuses of the answers."""
    left, seen = iter(numbers), Counter[int]()

    async def worker() -> None:
        for number in left:
            body = asked(number, models)
            names = {"x-claude-code-session-id": f"session-{number}", "x-claude-code-agent-id": f"agent-{number}"}
            answer = await live.post(body, headers={} if "metadata" in body else names)
            seen[answer.status] += 1

    await asyncio.gather(*(worker() for _ in range(TOGETHER)))
    return seen


def nothing_is_sent() -> bool:
    """Whether no run of p5 has a message on its way."""
    return not [task for task in asyncio.all_tasks() if "Appends." in str(task.get_coro())]


#: `size`: of a round. Each kind of request with each model is made more than MARGIN times, and as many sockets wait
#: behind both rounds: the pool is at its bound.
@pytest.mark.parametrize(
    ("live_options", "models", "tables", "size"),
    [
        ({"p1_transport": "http"}, ("gpt-5.5", "kimi-for-coding", "cursor:gpt-5.5"), ALWAYS | OF_P5, 105),
        (
            {"p1_transport": "websocket", "p1_previous_response_id": True},
            ("gpt-5.5",),
            ALWAYS | {"Continuations._entries"},
            125,
        ),
    ],
    ids=["http", "websocket"],
)
async def test_what_grows_with_new_sessions_is_bounded(
    live: Live, models: tuple[str, ...], tables: set[str], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_state, "MAX_RECENT", RECENT)
    behind = []
    for start in (0, size):
        assert await many(live, range(start, start + size), models) == {200: size * 4 // 5, 400: size // 5}
        await until(nothing_is_sent)
        gc.collect()
        behind.append(sizes(live.app[STATE]))
    more = grown(*behind)
    assert {name: told for name, told in more.items() if name not in BOUNDS} == {}
    assert tables - more.keys() == set()
    assert {name: behind[1][name] for name, most in BOUNDS.items() if behind[1][name] > most} == {}


def test_a_table_without_a_bound_is_found() -> None:
    known = accounts.Sessions(lambda: 0.0, ())
    held: list[str] = []
    vars(known)["held"] = held
    before = sizes(known)
    held += ["entry"] * (MARGIN + 1)
    assert grown(before, sizes(known)) == {"Sessions.held": (0, MARGIN + 1)}


class Table(NamedTuple):
    """Of `make()`, the member that holds the entries, `put` an entry there, and how many there may be."""

    most: int
    make: Callable[[], Any]
    put: Callable[[Any, Owner], object]


PROMPT = Sent(of_messages({"messages": [{"role": "user", "content": LONG}]}), 0.0, "p1", "m")
REMEMBERED = TokenizerLimits().remembered
TABLES: Mapping[str, Table] = {
    "Sessions._sessions": Table(
        accounts.MAX_SESSIONS,
        lambda: accounts.Sessions(lambda: 0.0, ()),
        lambda held, owner: held.routed(owner.session, "p1", explicit=True),
    ),
    "SessionTable._all": Table(
        tracked.MAX_SESSIONS,
        tracked.SessionTable,
        lambda held, owner: held.of(owner.session, 0.0),
    ),
    "TrackedSession.agents": Table(
        tracked.MAX_AGENTS,
        lambda: TrackedSession(None, 0.0),
        lambda held, owner: tracked.agent_of(held, owner.session, None, 0.0),
    ),
    "PromptMemory._owners": Table(
        cache_memory.MAX_OWNERS, cache_memory.PromptMemory, lambda held, owner: held.reached(owner, PROMPT)
    ),
    "TextCounts._newer": Table(REMEMBERED, TextCounts, lambda held, owner: held.count(f"{owner.session:80}", len)),
    "Remembered._newer": Table(MAX_VALUES, lambda: Remembered(len), lambda held, owner: held(owner.session)),
    "Conversations._known": Table(
        conversations.MAX_CONVERSATIONS,
        lambda: conversations.Conversations(lambda: 0.0, lambda: "0" * 32),
        lambda held, owner: held.id_for(owner, None),
    ),
    "Continuations._entries": Table(
        ContinuationLimits().owners,
        Continuations,
        lambda held, owner: held.reserve(owner, {"input": []}, Transcript(), 0.0, b""),
    ),
    "CompactionStore._states": Table(
        CompactionLimits().states, CompactionStore, lambda held, owner: held.begin(owner, "gpt-5.5", 0.0)
    ),
    "OffsetStore._entries": Table(
        read_tool.MAX_REMEMBERED,
        read_tool.OffsetStore,
        lambda held, owner: held.put((owner, b""), "call", (1, "file")),
    ),
    "_Values._known": Table(
        counts.MAX_MODELS, lambda: counts._Values(counts.MAX_MODELS), lambda held, owner: held.of(owner.session)
    ),
    "AllowanceStore._known": Table(
        allowance_store.MAX_ACCOUNTS,
        lambda: AllowanceStore(NullLog()),
        lambda held, owner: held.tell("p1", owner.session, Allowance(notes=("a",))),
    ),
    "RateLimits._known": Table(
        rate_limits.MAX_ACCOUNTS,
        lambda: rate_limits.RateLimits(NullLog(), lambda: 0.0, AllowanceStore(NullLog())),
        lambda held, owner: held.observe_event(owner.session, {}),
    ),
}


@rows("name", TABLES)
def test_a_table_that_is_full_stays_so(name: str) -> None:
    most, make, put = TABLES[name]
    held, largest = make(), 0
    for number in range(2 * most + 1):
        put(held, Owner(f"session-{number}"))
        largest = max(largest, len(getattr(held, name.partition(".")[2])))
    assert largest == most
