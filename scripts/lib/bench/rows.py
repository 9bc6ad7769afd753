"""The rows of the benchmark: which request, how its answer is played, and how many at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bench import requests
from bench.answers import question
from bench.load import NUMBER


@dataclass(frozen=True, slots=True)
class Wire:
    """
    model     that is asked for
    path      where the upstream has it; "" for a wire that is a conversation, which the sandbox plays
    settings  of the proxy
    """

    model: str
    path: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


WIRES = {
    "p1": Wire("gpt-5.5", "/responses"),
    "p1 WebSocket": Wire("gpt-5.5", settings={"PROXY_P1_TRANSPORT": "websocket"}),
    "p2": Wire("kimi-for-coding", "/chat/completions"),
    "p3": Wire("grok-4.6", "/responses"),
    "p4 chat": Wire("opencode-go/kimi-k2.6", "/chat/completions"),
    "p4 Messages": Wire("minimax-m3", "/messages"),
    "p4 Responses": Wire("opencode-go/grok-4.6", "/responses"),
    "p5": Wire("cursor:gpt-5.5"),
}
#: Texts of an answer that is played slowly: some four seconds of one every 20 ms; and of one in which the streams of a
#: row begin one after another.
PACED, LONG = 200, 600


@dataclass(frozen=True, slots=True)
class Row:
    """
    wire      of `WIRES`
    texts     of each answer; `every_ms` between two, 0 for all at once
    streams   at a time; each is asked for once when they are played slowly
    apart_ms  between the beginnings of two streams, 0 for all at once
    """

    wire: str
    agent: bool = False
    texts: int = 10
    every_ms: int = 0
    streams: int = 1
    apart_ms: int = 0

    @property
    def name(self) -> str:
        size = "86 kB" if self.agent else "tiny"
        if self.every_ms:
            apart = f" begun {self.apart_ms} ms apart" if self.apart_ms else ""
            return f"{self.wire} {size}, a text every {self.every_ms} ms, {self.streams} streams{apart}"
        return f"{self.wire} {size}, {self.texts} texts at once"

    def at_once(self) -> Row:
        """The same request with a short answer."""
        return replace(self, texts=10, every_ms=0, streams=1, apart_ms=0)

    def body(self) -> bytes:
        """Of the requests, with a number to change."""
        body = requests.agent() if self.agent else requests.tiny()
        last = {"role": "user", "content": f"{NUMBER.decode()} {question(self.texts, self.every_ms)}"}
        model = WIRES[self.wire].model
        return json.dumps({**body, "model": model, "messages": [*body["messages"][:-1], last]}).encode()


ROWS = (
    *(row for wire in ("p2", "p1") for row in (Row(wire), Row(wire, agent=True), Row(wire, texts=400))),
    *(Row(wire, agent=agent) for wire in WIRES if wire not in ("p1", "p2") for agent in (False, True)),
    *(Row(wire, texts=PACED, every_ms=20, streams=streams) for streams in (20, 100, 200, 500) for wire in ("p2", "p1")),
    *(Row(wire, texts=PACED, every_ms=20, streams=100) for wire in ("p1 WebSocket", "p4 Messages", "p5")),
    *(Row(wire, texts=PACED, every_ms=3, streams=20) for wire in ("p2", "p1")),
    *(Row(wire, agent=True, texts=PACED, every_ms=20, streams=100) for wire in ("p2", "p1")),
    *(Row(wire, agent=True, texts=LONG, every_ms=20, streams=200, apart_ms=20) for wire in ("p2", "p1")),
)
