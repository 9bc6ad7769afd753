"""Many runs, every fifth with a fault: each message once, each request answered once, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from cursor_talk import Talk, all_over, calls, folded, open_runs, result
from harness import Live, with_live

from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.sandbox.p5.execs import SHELL_STREAM
from proxy.sandbox.p5.runs import Run

#: Conversations of a round; each is one run or more. The second round has the sessions and words of the first.
CONVERSATIONS = 48
SESSIONS = 16

#: In turn for every fifth: what breaks a run, what it must survive, and what a client is told at once.
FAULTS = (
    *("cut_text", "append_fails", "execs_together", "end_error", "cut_call", "tiny_writes"),
    *("malformed", "abort", "server_error", "turn_ends_in_call", "append_cut", "display_records"),
)


def fault_of(number: int) -> list[dict[str, Any]]:
    return [{"provider": "p5", "fault": FAULTS[number // 5 % len(FAULTS)]}] if number % 5 == 0 else []


async def converse(live: Live, number: int) -> None:
    """Every third uses a tool, of which every ninth never comes back with the result."""
    live.sandbox.p5.script.replace(fault_of(number))
    talk = Talk(
        live,
        "use Bash: ls" if number % 3 == 0 else f"hello {number % SESSIONS}",
        session=f"session-{number % SESSIONS}",
    )
    while True:
        answer = await talk.ask()
        if answer.status != 200 or answer.events[-1]["type"] == "error":
            assert number % 5 == 0, answer.raw
            return
        message = folded(answer)
        if not calls(message) or number % 9 == 0:
            return
        results = [result(call, f"did {number}") for call in calls(message)]
        talk.messages += [
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": results},
        ]


def check_counts(run: Run) -> None:
    """Each number once, without a gap; each exec and each other request one result."""
    assert sorted(run.appends.elements()) == list(range(len(run.appends)))
    for asked in run.ledger.asked:
        assert len(asked.answers) <= 1 or asked.number == SHELL_STREAM


class Held(NamedTuple):
    """What the process holds: tasks, file descriptors, and objects of the provider by their class."""

    tasks: int
    descriptors: int
    objects: Counter[str]


async def held(live: Live) -> Held:
    """After the end of whatever runs, also of those whose clients do not come back."""
    await all_over(live)
    await asyncio.sleep(0.05)
    return Held(len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir())), objects())


def objects() -> Counter[str]:
    gc.collect()
    modules = ((one.__name__, str(one.__module__)) for one in map(type, gc.get_objects()))
    return Counter(
        name for name, module in modules if module.startswith("proxy.providers.p5_cursor") and ".wire." not in module
    )  # the tables of the wire are read as they are needed


@with_live(tuning=(RunTimers(after_end=0.05, cancel=0.2, pause=0.8, exec_heartbeat=0.3),))
async def test_many_runs_with_faults_leave_nothing_and_say_nothing_twice(live: Live) -> None:
    before = objects()["Run"]  # of other tests in this process
    rounds = []
    for beginning in (0, CONVERSATIONS):
        for number in range(beginning, beginning + CONVERSATIONS):
            await converse(live, number)
            check_counts(live.sandbox.p5.runs[-1])
        rounds.append(await held(live))
    assert not open_runs(live) and not live.notes.all("internal_error")
    for run in live.sandbox.p5.runs:
        check_counts(run)
    first, last = rounds
    assert last.tasks <= first.tasks + 1 and last.descriptors <= first.descriptors + 2
    assert last.objects == first.objects and last.objects["Run"] == before
