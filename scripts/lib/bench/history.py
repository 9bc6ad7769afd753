"""The history with a million requests: the size of its file, and how long reports and the page's question take.

The requests are those of the demo, over and over: 200 of each, in three blocks of forty days.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from proxy.observe.history.demo import DAYS, requests
from proxy.observe.history.overview import overview
from proxy.observe.history.past_request import PastRequest
from proxy.observe.history.schema import FILE_NAME, Names, connect, reading, transaction
from proxy.observe.history.writer import write_requests

_DAY_S = 86_400
_BLOCKS = 3
#: Seconds between two copies of a request: five hours for all of them, as of a team.
_APART_S = 97
#: Requests of a write, about those of half a second of a busy proxy.
_BATCH = 200
_TRIES = 5


def _past(count: int, now: float) -> Iterator[PastRequest]:
    """So many requests, the oldest days first. A session of the demo is one of each copy."""
    known = requests(now)
    copies = -(-count // (_BLOCKS * len(known)))
    every = (
        one._replace(
            request=f"{one.request}-{block}-{copy}",
            ended=one.ended - 1000 * (block * DAYS * _DAY_S) - 1000 * _APART_S * copy,
            session=one.session and f"{one.session[:-4]}{copy:04}",
        )
        for block in reversed(range(_BLOCKS))
        for one in known
        for copy in range(copies)
    )
    return islice(every, count)


def table(count: int) -> None:
    """Writes the file, and prints what it takes."""
    now = time.time()
    with tempfile.TemporaryDirectory(prefix="model-proxy-bench-") as folder:
        path = Path(folder) / "model-proxy" / FILE_NAME
        past, begun = _past(count, now), time.process_time()
        with closing(connect(path)) as db:
            names = Names(db)
            while batch := list(islice(past, _BATCH)):
                with transaction(db):
                    write_requests(db, batch, names)
        each = (time.process_time() - begun) / count
        print(f"{count:,} requests: {path.stat().st_size / 1e6:.0f} MB, {each * 1e6:.0f} µs of CPU to write one\n")
        print("| question | median, longest of five |\n|---|--:|")
        for name, ask in _questions(path, now):
            took = [_took(ask) for _ in range(_TRIES)]
            print(f"| {name} | {statistics.median(took):.0f} ms, {max(took):.0f} ms |", flush=True)


def _questions(path: Path, now: float) -> Iterator[tuple[str, Callable[[], object]]]:
    state = {**os.environ, "XDG_STATE_HOME": str(path.parents[1])}
    for words in ("week --by model", "week --by session", "month --by project", "sessions"):
        command = [sys.executable, "-m", "proxy", "report", *words.split()]
        yield (
            f"`report {words}`",
            lambda command=command: subprocess.run(command, env=state, stdout=subprocess.DEVNULL, check=True),
        )
    for days in (7, 30, 90):
        edges = [now - _DAY_S * (days - day) for day in range(days + 1)]
        yield f"the page's, {days} days", lambda edges=edges: _overview(path, edges, now)


def _overview(path: Path, edges: list[float], now: float) -> str:
    with reading(path) as db:
        return json.dumps(overview(db, edges, now))


def _took(ask: Callable[[], object]) -> float:
    begun = time.perf_counter()
    ask()
    return (time.perf_counter() - begun) * 1000
