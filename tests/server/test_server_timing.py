"""`Server-Timing` on every answer, the same numbers in the log and for whoever watches, and the upstream's own id."""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness import Answer, Live, ask
from samples import each, rows

from proxy.observe.lifecycle import SPANS, Completed, Timed, UpstreamAnswered

#: `name;dur=1.2`, as the grammar of the header has it.
METRIC = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+);dur=([0-9]+(?:\.[0-9]+)?)")
SESSION = {"x-claude-code-session-id": "session-1"}

MODELS = {"p1": "gpt-5.5", "p2": "kimi-for-coding", "p3": "grok-4.5", "p4": "opencode-go/kimi-k3", "p5": "composer-2.5"}
#: Of an answer that began with the model's first word.
WHOLE = ["queue", "translate", "first-byte", "first-token", "total"]


def timing_of(answer: Answer) -> dict[str, float]:
    """The header, of which there is one, and which says nothing twice."""
    [header] = answer.headers.getall("Server-Timing")  # type: ignore[attr-defined]
    found = [METRIC.fullmatch(metric) for metric in header.split(", ")]
    assert all(found), header
    timing = {match[1]: float(match[2]) for match in found if match}
    assert len(timing) == len(found)
    spans = sum(ms for name, ms in timing.items() if name != "total")
    assert spans <= timing["total"] + 0.05 * len(timing)
    return timing


def told(live: Live, kind: type[Any]) -> list[Any]:
    return [event for event in list(live.watcher.told.values())[-1] if isinstance(event, kind)]


def fields(live: Live, msg: str) -> dict[str, Any]:
    """Those of the last record with this message."""
    return live.notes.all(msg)[-1]


def without_waits(timing: dict[str, float]) -> list[str]:
    """Apart from what depends on whether a connection and a token were there already."""
    return [name for name in timing if name not in ("connect", "sign-in")]


@each(1)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("label", MODELS)
async def test_every_answer_of_a_model_tells_where_its_time_went(live: Live, label: str, stream: bool) -> None:
    for first in (True, False):
        answer = await live.post(ask(model=MODELS[label], stream=stream), headers=SESSION)
        assert answer.status == 200, answer.raw
        timing = timing_of(answer)
        assert without_waits(timing) == WHOLE
        # afterwards there is an open one; of p1 the sign-in, which asks for the workspace, has left one already
        assert ("connect" in timing) is (first and label != "p1")
        [timed] = told(live, Timed)
        assert list(timed.spans) == [name for name in SPANS if name in timed.spans]
        logged = fields(live, "request_completed")
        assert logged["firstByteMs"] == timed.spans["first_byte"] > 0 and logged["queueMs"] == timed.spans["queue"]
        assert {f"{name.replace('_', '-')}": round(ms, 1) for name, ms in timed.spans.items()} == {
            name: ms for name, ms in timing.items() if name != "total"
        }
        assert [event.upstream_id for event in told(live, UpstreamAnswered)] == (
            [logged["upstreamId"]] if label != "p4" else []  # whose answers name none
        )
        names = [type(event) for event in list(live.watcher.told.values())[-1]]
        assert names.index(Timed) < names.index(Completed)


@rows("line", ["GET /healthz", "GET /v1/models", "GET /nope", "OPTIONS /v1/messages", "HEAD /monitor/events"])
async def test_what_asks_no_model_tells_its_time_too(live: Live, line: str) -> None:
    method, path = line.split()
    answer = await live.request(method, path)
    assert list(timing_of(answer)) == ["total"] and "Timing-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("forbidden", ["queue", "translate", "first-byte", "total"]),
        ("nothing", ["queue", "translate", "total"]),
    ],
)
async def test_an_error_tells_what_happened_until_then(live: Live, kind: str, names: list[str]) -> None:
    live.sandbox.p1.script.extend([{"fault": kind}] if kind != "nothing" else [])
    answer = await live.post(
        ask() if kind != "nothing" else ask(model="none-such"), headers={"x-client-request-id": "mine-1"}
    )
    assert answer.status >= 400 and without_waits(timing_of(answer)) == names
    assert fields(live, "request_failed")["clientId"] == fields(live, "request")["clientId"] == "mine-1"
