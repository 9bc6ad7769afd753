"""The line of a request, for somebody who reads along."""

from __future__ import annotations

from samples import rows

from proxy.observe.lifecycle import (
    Abandoned,
    Completed,
    Event,
    Failed,
    GenerationStarted,
    ModelResolved,
    Progress,
    ProviderSelected,
    Started,
    UpstreamStarted,
    UsageUpdated,
)
from proxy.observe.monitor.state import MonitorState
from proxy.observe.request_lines import RequestLines

SOL = (ProviderSelected("p1", "gpt-5.6-sol", "high"), ModelResolved("gpt-5.6-sol", "gpt-5.6-sol"))
HAIKU = (ProviderSelected("p1", "haiku", None), ModelResolved("haiku", "gpt-5.6-luna"))
COUNTS = (UsageUpdated(12_345, None), UsageUpdated(None, 456))
FLOW = (UpstreamStarted(1), GenerationStarted(), Progress(1000, 10), *COUNTS)
LONG = ProviderSelected("p5", "cursor:" + "x" * 100, None)

#: endpoint, what happens, the lines without the time, blanks as one
TOLD: list[tuple[str, tuple[Event, ...], list[str]]] = [
    ("messages", (*SOL, *FLOW, Completed(200)), ["gpt-5.6-sol (p1) 200 12.3k in 456 out 3.2 s"]),
    ("messages", (*HAIKU, Completed(200)), ["haiku = gpt-5.6-luna (p1) 200 3.2 s"]),
    ("generation", (ProviderSelected("p1", "", None), Completed(200)), ["images (p1) 200 3.2 s"]),
    ("messages", (Failed(400, "Unknown model"),), ["messages 400 3.2 s", "Unknown model"]),
    (
        "messages",
        (*SOL, UsageUpdated(7, 1_234_567), Failed(200, "broke\x1b[31m")),
        ["gpt-5.6-sol (p1) cut 7 in 1.23M out 3.2 s", "broke?[31m"],
    ),
    ("messages", (*SOL, Abandoned("the client left")), ["gpt-5.6-sol (p1) left 3.2 s", "the client left"]),
    ("messages", (LONG, Completed(200)), [f"cursor:{'x' * 21}… (p5) 200 3.2 s"]),
    ("count_tokens", (*SOL, Completed(200)), []),
    ("count_tokens", (*SOL, Failed(503, "busy")), ["gpt-5.6-sol (p1) 503 3.2 s", "busy"]),
    ("messages", (*SOL, Failed(529, "x" * 1000)), ["gpt-5.6-sol (p1) 529 3.2 s", "x" * 299 + "…"]),
]


@rows("endpoint, events, lines", TOLD)
def test_a_request_is_told_when_it_has_ended(endpoint: str, events: tuple[Event, ...], lines: list[str]) -> None:
    now, told = [0.0], list[str]()
    state = MonitorState(clock=lambda: now[0])
    state.finished(RequestLines(told.append, stamp=lambda: "17:40:12").ended)
    state.record("a", Started(endpoint, "s"))
    state.record("b", Started("messages", "s"))
    now[0] = 3.21
    for event in events:
        assert told == []
        state.record("a", event)
    state.record("a", Completed(200))
    assert [" ".join(line.removeprefix("17:40:12").split()) for line in told] == lines
    assert all(len(line) == 78 and line.startswith("17:40:12  ") for line in told[:1])
